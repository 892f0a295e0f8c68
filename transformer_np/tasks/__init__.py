"""Applications of the models: data, model, training and decoding together, and the folders of runs."""

from importlib import import_module

TASKS = {  # the class and the summary of each kind; its file is read only when it is needed
    "translate": ("translation.TranslationTask", "train an encoder-decoder to translate"),
    "gpt": ("text.GPTTask", "train a GPT to continue a text"),
    "classify": ("classify.ClassifyTask", "train a BERT to classify texts"),
    "mlm": ("mlm.MLMTask", "train a BERT to predict masked tokens, for `train classify --init`"),
    "xl": ("xl.XLTask", "train a Transformer-XL, which has a memory, to continue a text"),
    "t5": ("t5.T5Task", "train one T5 for several tasks, distinguished by a prefix"),
    "word2vec": ("word2vec.Word2VecTask", "learn word vectors from a text"),
}


def task_of(kind):
    """The training task of this kind, one of TASKS."""
    module, _, name = TASKS[kind][0].partition(".")
    return getattr(import_module(f".{module}", __name__), name)()


def load_trained(folder, *kinds, newest=()):
    """The Trained in the folder of a run of one of these kinds, such as a Translator; without a folder, that of the
    newest run of these kinds, or of the kinds `newest`, below this folder. Raises as `runs.read_run` and `newest_run`.
    """
    from .runs import newest_run, read_run

    folder = folder or newest_run(*(newest or kinds))
    return task_of(read_run(folder, *kinds)["kind"]).Result.load(folder)


def all_tasks():
    """All training tasks."""
    return [task_of(kind) for kind in TASKS]
