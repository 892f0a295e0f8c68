"""The result of a training run: a model with its tokenizers, from the finished run or from its folder."""

from pathlib import Path

from . import runs


class Trained:
    """The base of what a task's model is used with, such as a Translator.

    task: the Task, which sets this attribute of its `Result`
    """

    task = None

    @classmethod
    def of(cls, run):
        """From a finished training run."""
        return cls._made(run.setup.model, run.tokenizers, run.options, cls.task().facts(run.data))

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
