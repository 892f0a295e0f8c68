"""The living page: a trained model itself in one HTML file, with its forward pass in JavaScript.

The page computes everything from the text that is typed into it. The scripts in `live_page/` have one subject each;
`model.js` is the forward pass, and keeps every intermediate under the name that `Module.intermediates` gives it.
"""

from dataclasses import asdict, replace

import numpy as np

from ...data import BPETokenizer, CharTokenizer, WordTokenizer
from ...data.tokenizers import UNK
from ...layers.activations import ACTIVATIONS
from ...models import GPT, Transformer
from . import MOST_TOKENS, explore, own_translation
from .page import Page, assemble, encoded

MOST_BYTES = 3_000_000  # of a page: a mail or a learning platform takes it

STYLES = ("common.css", "live_page/page.css")
FILES = "tensors tokenizers model decoding drawing state view_text view_model view_attention view_sum view_residual"
FILES += " view_feed_forward view_lens main"
SCRIPTS = ("elements.js", "heads.js", *(f"live_page/{name}.js" for name in FILES.split()))


class LivePage(Page):
    """The page that `explore_live` makes; weights: the format of the numbers in it, "float32" or "float16"."""

    title = "Living model"

    def __init__(self, page, weights):
        super().__init__(page)
        self.weights = weights

    def __repr__(self):
        size = len(self.page.encode()) / 1e6
        return f"<LivePage, {size:.1f} MB, weights in {self.weights}: show it in Jupyter, or .save('page.html')>"


def explore_live(model, tokenizers, text):
    """A page with the model itself in it: type a text, follow it through every layer, change a step and see the effect.

    model: a Transformer or a GPT, with the tokenizers of `transformer-np train translate` or `train gpt`
    tokenizers: for a Transformer a pair, (source, target); for a GPT its tokenizer
    text: what the page begins with. It alone has gradients, those of `explore` for the model's own translation.

    The weights are float32, or float16 if the page would be larger than MOST_BYTES otherwise: then the page's model is
    the one with the rounded weights. The page computes in float64. The given model does not change.

    Raises TypeError for another model or tokenizer, and ValueError for a choice that the page does not have, a text
    that is empty or too long, and a page that would still be larger than MOST_BYTES.
    """
    kind = next((kind for kind in (Transformer, GPT) if type(model) is kind), None)
    if kind is None:
        raise TypeError(f"model must be a Transformer or a GPT, got {type(model).__name__}")
    _check_choices(model.config)
    pair = _check_tokenizers(model, tokenizers)
    ids = np.array(pair[0].encode(text), dtype=np.int64)
    if not len(ids):
        raise ValueError("the text is empty: the page must begin with one")
    if kind is GPT and pair[0].unknown(text):
        raise ValueError(f"the training text of the model does not have: {', '.join(map(repr, pair[0].unknown(text)))}")
    for weights in ("float32", "float16"):
        size = model.num_parameters() * np.dtype(weights).itemsize * 4 / 3  # in base64
        if size <= MOST_BYTES:
            page = _page(model, pair, text, ids, weights)
            size = len(page.encode())
            if size <= MOST_BYTES:
                return LivePage(page, weights)
    raise ValueError(
        f"the page would have {size / 1e6:.1f} MB, more than {MOST_BYTES / 1e6:.1f} MB, even with float16 weights: the "
        f"model has {model.num_parameters():,} parameters; use a shorter text or train a model with fewer layers"
    )


def _check_choices(config):
    if getattr(config, "num_decoder_layers", 1) == 0 or getattr(config, "num_layers", 1) == 0:
        raise ValueError("the model must have at least one decoder block: this one has none")
    if config.activation not in ACTIVATIONS:
        raise ValueError(
            f"the activation must be one of {', '.join(ACTIVATIONS)} for this page, got {config.activation!r}"
        )
    if getattr(config, "window", None) is not None:
        raise ValueError(f"the model must see all tokens for this page, but its window is {config.window}")


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


def _page(model, tokenizers, text, ids, weights):
    """The HTML of the page, with weights in this format."""
    model = _rounded(model, weights)
    arrays = {name: np.atleast_2d(parameter.data) for name, parameter in model.named_parameters()}
    data = {
        "kind": type(model).__name__,
        "config": asdict(model.config),
        "parameters": model.num_parameters(),
        "tokenizers": [tokenizer.to_dict() | {"vocabulary": tokenizer.vocabulary} for tokenizer in tokenizers],
        "text": text,
        "most": MOST_TOKENS,
        "excluded": _excluded(model),
        "gradients": _gradients(model, ids),
        "format": weights,
        "shapes": [(name, *array.shape) for name, array in arrays.items()],
        "weights": encoded(np.concatenate([array.ravel() for array in arrays.values()]), weights),
    }
    return assemble(LivePage.title, "live_page/page.html", STYLES, SCRIPTS, data)


def _rounded(model, weights):
    """A float32 copy of the model, its weights rounded to this format. Raises ValueError for weights too large."""
    with np.errstate(over="ignore"):
        state = {name: array.astype(weights).astype(np.float32) for name, array in model.state_dict().items()}
    copy = type(model)(replace(model.config, dtype="float32", dropout=0.0))
    copy.load_state_dict(state)
    return copy


def _excluded(model):
    """The tokens that the model never writes: <unk>, and all special tokens in a GPT, whose texts have none."""
    return list(range(UNK + 1)) if isinstance(model, GPT) else [UNK]


def _gradients(model, ids):
    """The loss and the gradients of weights and scores, as `explore` computes them, with the ids that they belong to;
    None for a single token of a GPT, which has no loss."""
    target = None
    if isinstance(model, GPT):
        if len(ids) < 2:
            return None
    else:
        target = own_translation(model, ids, _excluded(model)).tolist()
    explorer = explore(model, ids, target)
    found = {
        name: {"dweight": encoded(attention.dweights), "dscore": encoded(attention.dscores)}
        for name, attention in explorer.attentions.items()
    }
    return {"loss": explorer.loss, "source": ids.tolist(), "target": target, "arrays": found}
