"""The documents statement by statement: what each says, whether it holds, and the check that decides.

    from transformer_np.lecture.statements import read_statements
    for statement in read_statements():
        print(statement.verdict, statement.says, statement.holds())

`statements.toml` beside this file has them, and says what its fields mean. A lecturer can check a document in the same
form: `transformer-np lecture --statements FILE.toml`, with checks of their own ("module:function").
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

from ..support.checks import refusing
from ..support.files import read_bytes
from .comparison import ERRATUM, HOLDS, SLIP
from .examples import worked_examples

FILE = Path(__file__).with_name("statements.toml")
_FIELDS = ("document", "place", "says", "row", "true", "why", "check", "notebook")


@dataclass(frozen=True)
class Statement:
    """One statement of a document. `true` is empty if it holds; `row` is a worked example that recomputes it."""

    document: str
    place: str
    says: str
    row: int | None = None
    true: str = ""
    why: str = ""
    check: str = ""
    notebook: str = ""

    @property
    def verdict(self):
        """The verdict of the worked example, else "slip" or "holds"."""
        return _worked()[self.row].verdict if self.row else SLIP if self.true else HOLDS

    def holds(self):
        """Whether the check finds what this statement's entry claims."""
        if self.row:
            example = _worked()[self.row]
            return example.ok and (example.verdict != ERRATUM or bool(self.true))
        return bool(_function(self.check)())


@cache
def _worked():
    return {example.row: example for example in worked_examples()}


def _function(check):
    module, _, name = check.rpartition(":")
    with refusing(f'check "{check}" cannot be found', (ImportError, AttributeError)):
        return getattr(import_module(module or "transformer_np.lecture.claims"), name)


def read_statements(path=FILE):
    """The statements of a TOML file, in order. Raises ValueError for a file that is not one, with the entry."""
    with refusing(f"{path} is not TOML", (tomllib.TOMLDecodeError, UnicodeDecodeError)):
        entries = tomllib.loads(read_bytes(path, "a TOML file").decode("utf-8-sig")).get("statement", [])
    if not isinstance(entries, list) or not entries:
        raise ValueError(f"{path} has no [[statement]]")
    found = []
    for i, entry in enumerate(entries, 1):
        where = f"{path}, statement {i}"
        if unknown := set(entry) - set(_FIELDS):
            raise ValueError(f"{where}: unknown field {', '.join(sorted(unknown))}; fields: {', '.join(_FIELDS)}")
        if missing := [name for name in _FIELDS[:3] if not entry.get(name)]:
            raise ValueError(f"{where} has no {' and no '.join(missing)}")
        statement = Statement(**entry)
        if statement.row is None and not statement.check:
            raise ValueError(f"{where} has neither a row nor a check: {statement.says!r}")
        if statement.row is not None and statement.row not in _worked():
            raise ValueError(f"{where}: there is no row {statement.row}")
        found.append(statement)
    return found
