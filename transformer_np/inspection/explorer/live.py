"""The living page: a trained model itself in one HTML file, with its forward pass in JavaScript.

The page computes everything from the text that is typed into it. The scripts in `live_page/` have one subject each;
`model.js` is the forward pass, and keeps every intermediate under the name that `Module.intermediates` gives it.
"""

from dataclasses import asdict

import numpy as np

from ... import functional as F
from ...data import BPETokenizer, CharTokenizer, WordTokenizer
from ...data.tokenizers import UNK
from ...layers.activations import ACTIVATIONS
from ...layers.gated import GATED
from ...models import GPT, Llama, Transformer
from . import MOST_TOKENS
from .lessons import lessons_for
from .page import Page, assemble
from .weights import FORMATS, packed, rounded

MOST_BYTES = 3_000_000  # of a page with whole float32: a mail or a learning platform takes it
MOST_BYTES_ROUNDED = 6_000_000  # of a page with rounded weights

STYLES = ("common.css", "live_page/page.css")
FILES = (
    "tensors weights tokenizers model backward decoding drawing state matrix_view steps view_text view_changes "
    "view_effect view_heads view_residual view_lens view_units view_training view_flow lessons main"
)
SCRIPTS = ("elements.js", "heads.js", *(f"live_page/{name}.js" for name in FILES.split()))


class LivePage(Page):
    """The page that `explore_live` makes.

    weights: the format of the numbers in it, "float32", "float16" or "int8";  model: a copy with these weights
    """

    title = "Living model"

    def __init__(self, page, weights, model):
        super().__init__(page)
        self.weights, self.model = weights, model

    def __repr__(self):
        size = len(self.page.encode()) / 1e6
        return f"<LivePage, {size:.1f} MB, weights in {self.weights}: show it in Jupyter, or .save('page.html')>"


def explore_live(model, tokenizers, text, examples=()):
    """A page with the model itself in it: type a text, follow it through every layer, change a step and see the effect.

    model: a Transformer, GPT or Llama, with the tokenizers of `transformer-np train translate` or `train gpt`
    tokenizers: for a Transformer a pair, (source, target); for a decoder-only model its tokenizer
    text: what the page begins with;  examples: other texts, one of which the button "Another" takes

    The weights are float32 if the page has at most MOST_BYTES then; otherwise float16, or int8 with a scale for each
    row of a matrix, if it has at most MOST_BYTES_ROUNDED. The page's model is the one with the rounded weights
    (`LivePage.model`). The page computes forward and backward passes in float64. The given model does not change.

    Raises TypeError for another model or tokenizer, and ValueError for a choice that the page does not have, a text
    that is empty or too long, and a page that would still be too large.
    """
    kind = next((kind for kind in (Transformer, GPT, Llama) if type(model) is kind), None)
    if kind is None:
        raise TypeError(f"model must be a Transformer, a GPT or a Llama, got {type(model).__name__}")
    _check_choices(model.config)
    pair = _check_tokenizers(model, tokenizers)
    ids = pair[0].encode(text)
    if not ids:
        raise ValueError("the text is empty: the page must begin with one")
    if kind is Transformer and len(ids) > model.config.max_len:
        raise ValueError(f"the text has {len(ids)} tokens, more than max_len = {model.config.max_len}")
    if kind is not Transformer and pair[0].unknown(text):
        raise ValueError(f"the training text of the model does not have: {', '.join(map(repr, pair[0].unknown(text)))}")
    for weights in FORMATS:
        most = MOST_BYTES if weights == "float32" else MOST_BYTES_ROUNDED
        if model.num_parameters() * np.dtype(weights).itemsize > most:  # compressed, base64 is rarely shorter
            size = model.num_parameters() * np.dtype(weights).itemsize * 4 / 3
            continue
        page = _page(model, pair, text, examples, weights)
        size = len(page.encode())
        if size <= most:
            return LivePage(page, weights, rounded(model, weights))
    raise ValueError(
        f"the page would have {size / 1e6:.1f} MB, more than {most / 1e6:.1f} MB, even with int8 weights: the model "
        f"has {model.num_parameters():,} parameters; use a shorter text or train a model with fewer layers"
    )


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
        if not isinstance(tokenizer, CharTokenizer | WordTokenizer | BPETokenizer):
            raise TypeError(f"tokenizers must be of characters, words or byte pairs, got {tokenizer!r}")
    if [*map(len, tokenizers)] != sizes:
        raise ValueError(f"tokenizers must have {sizes} tokens, as the model does, got {[*map(len, tokenizers)]}")
    return tokenizers


def _page(model, tokenizers, text, examples, weights):
    """The HTML of the page, with weights in this format."""
    arrays = {name: np.atleast_2d(parameter.data) for name, parameter in model.named_parameters()}
    data = {
        "kind": type(model).__name__,
        "config": architecture(model),
        "parameters": model.num_parameters(),
        "tokenizers": [tokenizer.to_dict() | {"vocabulary": tokenizer.vocabulary} for tokenizer in tokenizers],
        "text": text,
        "examples": list(examples),
        "most": MOST_TOKENS,
        "excluded": _excluded(model),
        "lessons": lessons_for(type(model).__name__),
        "shapes": [(name, *array.shape) for name, array in arrays.items()],
        **packed(arrays.values(), weights),
    }
    return assemble(LivePage.title, "live_page/page.html", STYLES, SCRIPTS, data)


def architecture(model):
    """The config as the page reads it: one name for each choice of the models that it computes."""
    config = asdict(model.config)
    if isinstance(model, Transformer):
        return config
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


def _excluded(model):
    """The tokens that the model never writes: <unk>, and all special tokens in a GPT, whose texts have none."""
    return list(range(UNK + 1)) if isinstance(model, GPT) else [UNK]
