"""The Transformer in plain NumPy, with every gradient written by hand.

    from transformer_np import Adam, Transformer, TransformerConfig, functional as F

    model = Transformer(TransformerConfig(src_vocab_size=12, tgt_vocab_size=12, d_model=32, num_heads=4, d_ff=64))
    logits = model([[3, 4, 5]], [[1, 5, 4]])                   # source and target ids -> (1, 3, 12)
    loss, probs = F.cross_entropy(logits, [[5, 4, 2]])         # the ids 0, 1, 2 are padding, start, end
    model.backward(F.cross_entropy_backward(probs, [[5, 4, 2]]))
    Adam(model.parameters(), lr=1e-3).step()
    print(model)                                               # its modules with shapes and numbers of parameters

To begin with:
    functional          the mathematics, every forward function beside its backward
    Transformer, GPT, Bert, T5, Llama, TransformerXL, Word2Vec     the models, each with its …Config
    Adam, Trainer       one step yourself, or a whole training run with validation and checkpoints
    greedy_decode, beam_search, generate                           from a trained model to ids
    Translator.load("runs/translate-1")                            the result of `transformer-np train translate`
    check_gradients, check_layer, check_model                      check a backward, a layer, a model of your own
    trace, plots                                                   list every step, draw
    homework            exercises: `transformer-np homework start work`

`help(transformer_np.Transformer)` explains each of them; `transformer-np` in a shell lists the commands. Arrays are
NumPy's, ids are whole numbers, a row is a token, and True in a mask hides.

Everything is loaded on first use: `import transformer_np` is fast, and matplotlib, tqdm and safetensors are loaded only
by the parts that need them.
"""

from importlib import import_module

__version__ = "1.0.0"

_MODULES = (
    *("data", "decoding", "functional", "gradcheck", "homework", "layers", "lecture", "masks", "models", "module"),
    *("plots", "pretrained", "tasks", "training"),
)
_NAMES = {  # of the parts that define them
    "decoding": ("beam_search", "generate", "greedy_decode"),
    "gradcheck": ("check_gradients",),
    "inspection": ("check_layer", "check_model"),
    "models": (
        *("Bert", "BertConfig", "GPT", "GPTConfig", "Llama", "LlamaConfig", "T5", "T5Config", "Transformer"),
        *("TransformerConfig", "TransformerXL", "TransformerXLConfig", "Word2Vec", "Word2VecConfig"),
    ),
    "tasks.t5": ("TextToText",),
    "tasks.translation": ("Translator",),
    "tasks.word2vec": ("WordVectors",),
    "tracing": ("trace",),
    "training": ("Adam", "AdamW", "TeacherForcing", "Trainer", "noam_schedule"),
}
_HOMES = {name: part for part, names in _NAMES.items() for name in names}

__all__ = [*_HOMES, *_MODULES]


def __getattr__(name):
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name in _HOMES:
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
