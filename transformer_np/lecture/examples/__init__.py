"""Every number worked out in the lecture's documents, compared with the number that the package computes.

One function per row. `printed` has the printed numbers, `steps` computes ours with the package's functions and layers,
`comparison` decides whether they agree. Each row also states the expected verdict.
"""

from ..worked import EXAMPLES
from . import architecture, attention, exercises  # noqa: F401 (each adds its own)


def worked_examples():
    """Compute all worked examples of the lecture's documents: a list of WorkedExample, by row."""
    return [EXAMPLES[row]() for row in sorted(EXAMPLES)]
