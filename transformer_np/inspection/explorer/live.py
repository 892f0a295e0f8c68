"""The living page: a trained model itself in one HTML file, with its forward pass in JavaScript.

The page computes everything from the text that is typed into it. The scripts in `live_page/` have one subject each;
`model.js` is the forward pass, and keeps every intermediate under the name that `Module.intermediates` gives it.
"""

from dataclasses import asdict

import numpy as np

from ... import functional as F
from ...data import BPETokenizer, CharTokenizer, PlainWordTokenizer, Seen, WordTokenizer
from ...data.tokenizers import BOS, EOS, UNK
from ...layers.activations import ACTIVATIONS
from ...layers.gated import GATED
from ...models import GPT, Bert, Llama, Transformer
from ...pretrained import PretrainedTokenizer
from ...support.checks import listed
from .lessons import lessons_for, texts
from .page import Page, assemble
from .pretrained import described
from .weights import FORMATS, packed, rounded

LARGE = 10_000_000  # parameters: the page computes with float32 weights, and asks before it loads them
MOST_TOKENS = 64  # of a text: more would not be readable
MOST_BYTES = 3_000_000  # of a page with whole float32: a mail or a learning platform takes it
MOST_BYTES_ROUNDED = 6_000_000  # of a page with rounded weights
# Parameters of a pretrained model in each format: pages of at most about 20, 90 and 170 MB
MOST_PARAMETERS = {"float32": 4_000_000, "float16": 40_000_000, "int8": 150_000_000}


class LivePage(Page):
    """The page that `explore_live` makes.

    weights: the format of the numbers in it, "float32", "float16" or "int8";  model: a copy with these weights
    memory: the bytes that a browser needs for it, at most about
    """

    def __init__(self, page, weights, model, memory):
        super().__init__(page)
        self.weights, self.model, self.memory = weights, model, memory

    def __repr__(self):
        size = len(self.page.encode()) / 1e6
        return f"<LivePage, {size:.1f} MB, weights in {self.weights}: show it in Jupyter, or .save('page.html')>"


def explore_live(model, tokenizers, text, examples=(), formats=None, labels=None, target=None, seen=None):
    """A page with the model itself in it: type a text, follow it through every layer, change a step and see the effect.

    model: a Transformer, GPT, Llama or Bert, with the tokenizers of `transformer-np train translate` or `train gpt`, or
        a pretrained one with its PretrainedTokenizer
    tokenizers: for a Transformer a pair, (source, target); for another model its tokenizer
    text: what the page begins with;  examples: other texts, one of which the button "Another" takes
    formats: those that the weights may have (default: all three)
    labels: for a Bert with classifier, the names of its classes (default: their numbers)
    target: for a Transformer, the translation that the page begins with (default: the model's own)
    seen: the data.Seen of the training texts, such as `Translator.seen`: what the page says of a text with other words

    The weights are float32 if the page has at most MOST_BYTES then; otherwise float16, or int8 with a scale for each
    row of a matrix, if it has at most MOST_BYTES_ROUNDED. A pretrained model has the first format of MOST_PARAMETERS in
    which it has at most so many. The page's model is the one with the rounded weights (`LivePage.model`). The page
    computes forward and backward passes in float64. The given model does not change.

    Raises TypeError for another model or tokenizer, and ValueError for a choice that the page does not have, a text
    that is empty or too long, and a page that would still be too large.
    """
    kind = next((kind for kind in (Transformer, GPT, Llama, Bert) if type(model) is kind), None)
    if kind is None:
        raise TypeError(f"model must be a Transformer, a GPT, a Llama or a Bert, got {type(model).__name__}")
    _check_choices(model.config)
    pair = _check_tokenizers(model, tokenizers)
    seen = seen or _guessed(kind, pair[0])
    text = seen.fold(text)
    ids = pair[0].encode(text)
    if not ids:
        raise ValueError("the text is empty: the page must begin with one")
    if kind is Transformer and len(ids) > model.config.max_len:
        raise ValueError(f"the text has {len(ids)} tokens, more than max_len = {model.config.max_len}")
    count = len(ids) if isinstance(pair[0], PretrainedTokenizer) else len(ids) + 2  # with [CLS] and [SEP]
    most = min(model.config.max_len, MOST_TOKENS)
    if kind is Bert and count > most:
        raise ValueError(f"the text has {count} tokens, and the page shows {most}")
    if kind is not Transformer and target is not None:
        raise ValueError("target is for a translator: leave it out for this model, which has no target text")
    if kind in (GPT, Llama) and (unknown := pair[0].unknown(text)):
        raise ValueError(f"the training text of the model does not have: {listed([*map(repr, unknown)])}")
    own = _own_data(model, pair, labels, target) | {"text": text, "examples": list(examples), "seen": seen.to_dict()}
    if isinstance(pair[0], PretrainedTokenizer):
        count = model.num_parameters()
        check_size(count, "the model")
        return _made(model, pair, own, next(each for each, most in MOST_PARAMETERS.items() if count <= most))
    for weights in formats or FORMATS:
        most = MOST_BYTES if weights == "float32" else MOST_BYTES_ROUNDED
        size = model.num_parameters() * np.dtype(weights).itemsize * 4 / 3
        if size * 3 / 4 <= most:  # compressed, base64 is rarely shorter
            made = _made(model, pair, own, weights)
            size = len(made.page.encode())
            if size <= most:
                return made
    what = f"the page would have {size / 1e6:.1f} MB, more than {most / 1e6:.1f} MB, even with int8 weights"
    how = "use a shorter text or train a model with fewer layers"
    raise ValueError(f"{what}: the model has {model.num_parameters():,} parameters; {how}")


def _guessed(kind, tokenizer):
    """What a model has seen whose training is not known: the words of its vocabulary, if it has words."""
    words = tokenizer.vocabulary[UNK + 1 :] if tokenizer.kind == "word" else []
    words = [word for word in words if PlainWordTokenizer.cut(word) == [word]]
    running = tokenizer.kind == "pretrained" or kind in (GPT, Llama)
    return Seen(words, None if running else (), tokenizer.kind == "word" and tokenizer.lowercase)


def check_size(parameters, name):
    """Raise ValueError if a browser cannot hold a pretrained model with so many parameters."""
    if parameters > MOST_PARAMETERS["int8"]:
        most = f"a page with the model in it holds at most {MOST_PARAMETERS['int8']:,}: use a smaller model"
        raise ValueError(f"{name} has {parameters:,} parameters, and {most}")


def _own_data(model, tokenizers, labels, target):
    """What only some models have: the names of the classes, and the ids of a given translation."""
    classes = getattr(model.config, "num_classes", None)
    if labels is not None and len(labels) != (classes or 0):
        raise ValueError(f"labels must name the {classes or 0} classes of the model, got {len(labels)}")
    found = {} if classes is None else {"classes": list(map(str, labels or range(1, classes + 1)))}
    if target is None:
        return found
    ids = tokenizers[1].encode(target)
    most = min(model.config.max_len, MOST_TOKENS) - 1
    if not 0 < len(ids) <= most:
        raise ValueError(f"the target must have 1 … {most} tokens, got {len(ids)}: leave it out for the model's own")
    return found | {"written": [*ids, model.config.eos_id]}


def _check_choices(config):
    if getattr(config, "num_decoder_layers", 1) == 0 or getattr(config, "num_layers", 1) == 0:
        raise ValueError("the model must have at least one decoder block: this one has none")
    known = (*ACTIVATIONS, *GATED)
    if getattr(config, "activation", "silu") not in known:
        raise ValueError(f"the activation must be one of {', '.join(known)} for this page, got {config.activation!r}")


def _check_tokenizers(model, tokenizers):
    """The tokenizers as a list: two of a Transformer, one of a GPT, each of a known kind and of the model's size."""
    c = model.config
    sizes = [c.src_vocab_size, c.tgt_vocab_size] if isinstance(model, Transformer) else [c.vocab_size]
    tokenizers = list(tokenizers) if isinstance(tokenizers, tuple | list) else [tokenizers]
    for tokenizer in tokenizers:
        kinds = CharTokenizer | WordTokenizer | BPETokenizer
        if not isinstance(tokenizer, kinds if isinstance(model, Transformer) else kinds | PretrainedTokenizer):
            raise TypeError(f"tokenizers must be of characters, words or byte pairs, got {tokenizer!r}")
    if isinstance(tokenizers[0], PretrainedTokenizer) and len(tokenizers[0]) <= sizes[0]:
        return tokenizers  # some models have more rows in their table than tokens
    if [*map(len, tokenizers)] != sizes:
        raise ValueError(f"tokenizers must have {sizes} tokens, as the model does, got {[*map(len, tokenizers)]}")
    return tokenizers


def _made(model, tokenizers, own, weights):
    """The LivePage with weights in this format. own: the data that only some models have

    Its memory is what a browser needs at most: the weights as they are computed with and as they are stored, their text
    twice, and the browser itself; within 5 % of what Chromium takes for a model with 135 million parameters.
    """
    count = model.num_parameters()
    arrays = {name: np.atleast_2d(parameter.data) for name, parameter in model.named_parameters()}
    unused = "mlm_head." if "classes" in own else ("pooler.", "classifier.")
    arrays = {name: array for name, array in arrays.items() if not name.startswith(unused)}
    data = {
        "kind": type(model).__name__, "config": architecture(model), "parameters": count, "large": count > LARGE,
        "tokenizers": [_tokenizer(tokenizer, isinstance(model, Bert)) for tokenizer in tokenizers],
        **own, "most": MOST_TOKENS, "excluded": _excluded(model, tokenizers[0]), "lessons": _lessons(model), **texts(),
        "shapes": [(name, *array.shape) for name, array in arrays.items()], "format": weights,
    }  # fmt: skip
    numbers = packed(arrays.values(), weights)
    each = (4 if count > LARGE else 8) + np.dtype(weights).itemsize
    data["memory"] = count * each + 2 * sum(map(len, numbers.values())) + 150_000_000
    return LivePage(assemble(data, numbers), weights, rounded(model, weights), data["memory"])


def _tokenizer(tokenizer, around):
    """The data of a tokenizer. around: whether [CLS] and [SEP] are around a text"""
    if isinstance(tokenizer, PretrainedTokenizer):
        return described(tokenizer)
    found = tokenizer.to_dict() | {"vocabulary": list(tokenizer.vocabulary)}
    if around:
        found["vocabulary"][BOS], found["vocabulary"][EOS] = "[CLS]", "[SEP]"
        found |= {"before": [BOS], "after": [EOS]}
    return found


def _lessons(model):
    lessons = lessons_for(type(model).__name__)
    without_loss = isinstance(model, Bert) and model.mlm_head is None and model.classifier is None
    return [lesson for lesson in lessons if lesson["matrices"]] if without_loss else lessons


def architecture(model):
    """The config as the page reads it: one name for each choice of the models that it computes."""
    config = asdict(model.config)
    if isinstance(model, Transformer):
        return config
    if isinstance(model, Bert):
        return config | {"norm_first": False}
    config |= {"norm_first": True}
    if isinstance(model, Llama):
        frequencies = F.rotary_frequencies(config["d_head"], config["rope_theta"], config["rope_scaling"])
        config |= {"norm": "rms", "layer_norm_eps": config["eps"], "activation": "silu", "gated": True}
        return config | {"positions": "rotary", "frequencies": frequencies.tolist()}
    if config["activation"] in GATED:
        config |= {"gated": True, "activation": "silu" if config["activation"] == "gated_silu" else "gelu_tanh"}
    if config["positions"] == "rotary":
        config["frequencies"] = F.rotary_frequencies(config["d_model"] // config["num_heads"]).tolist()
    if config["positions"] == "alibi":
        config["slopes"] = (-F.alibi_bias(config["num_heads"], 2, dtype=np.float64)[:, 1, 0]).tolist()
    return config


def _excluded(model, tokenizer):
    """The tokens that the model never writes: <unk>, and all special tokens in a GPT, whose texts have none."""
    if isinstance(tokenizer, PretrainedTokenizer) or isinstance(model, Bert):
        return []
    return list(range(UNK + 1)) if isinstance(model, GPT) else [UNK]
