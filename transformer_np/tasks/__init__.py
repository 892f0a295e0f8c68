"""What the models are put to use for: data, model, training and decoding brought together, and the folders of runs."""


def all_tasks():
    """Every kind of training, for the command line."""
    from .translation import TranslationTask

    return [TranslationTask()]
