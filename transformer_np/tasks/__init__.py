"""Applications of the models: data, model, training and decoding together, and the folders of runs."""


def all_tasks():
    """All training tasks, for the command line."""
    from .classify import ClassifyTask
    from .mlm import MLMTask
    from .t5 import T5Task
    from .text import GPTTask
    from .translation import TranslationTask
    from .word2vec import Word2VecTask
    from .xl import XLTask

    return [TranslationTask(), GPTTask(), ClassifyTask(), MLMTask(), XLTask(), T5Task(), Word2VecTask()]
