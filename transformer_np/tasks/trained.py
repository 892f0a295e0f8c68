"""The result of a training run: a model with its tokenizers, from the finished run or from its folder."""

from pathlib import Path

from ..data import PAD, pad_batch
from . import runs


class Trained:
    """The base of what a task's model is used with, such as a Translator.

    task: the Task, which sets this attribute of its `Result`
    """

    task = None

    @classmethod
    def of(cls, run):
        """From a finished training run."""
        facts = {**cls.task().facts(run.data), **run.setup.facts}
        return cls._made(run.setup.model, run.tokenizers, run.options, facts)

    @classmethod
    def load(cls, folder):
        """From the folder of a run; FileNotFoundError or ValueError if it holds no usable model."""
        description, options, tokenizers = cls.task().read(folder)
        model = runs.load_run_model(folder, tokenizers)
        try:
            return cls._made(model, tokenizers, options, description)
        except ValueError as error:
            raise ValueError(f"{Path(folder) / runs.DESCRIPTION} is damaged: {error}") from None

    @classmethod
    def _made(cls, model, tokenizers, options, facts):
        """facts: those of the task's `facts`. Raises ValueError if they do not fit the model."""
        return cls(model, *tokenizers.values())


def share_exact(examples, written, batch_size, pad_id=PAD):
    """The share of (source ids, target text) whose target is what the model writes, in [0, 1].

    written: the texts for a batch of sources (B, S) and its targets. Raises ValueError without examples.
    """
    if not examples:
        raise ValueError("there are no examples to measure")
    examples = sorted(examples, key=lambda example: len(example[0]))  # little padding
    right = 0
    for start in range(0, len(examples), batch_size):
        sources, targets = zip(*examples[start : start + batch_size], strict=True)
        outputs = written(pad_batch(sources, pad_id), targets)
        right += sum(output == target for output, target in zip(outputs, targets, strict=True))
    return right / len(examples)
