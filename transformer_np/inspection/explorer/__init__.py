"""The attention explorer: one HTML page to click through every attention head of a model.

The page contains its numbers, style and script; it needs no network. It shows the values of one forward and
one backward pass in each head: weights, scores, q, k, v, and the gradients of the loss with respect to them.
"""

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import numpy as np

from ... import functional as F
from ...decoding import Excluding, greedy_decode
from ...layers import MultiHeadAttention
from ...models import Bert, Transformer
from ...models.decoder_only import DecoderOnly
from ...support.checks import as_ids
from ...support.intercept import methods
from .page import Page, assemble, encoded

MOST_TOKENS = 64  # on either side: more words would not be readable
MOST_NUMBERS = 4_000_000  # on one page, about 20 MB

TITLES = {  # of a model with two stacks: the kind of attention, and a remark
    "encoder": ("encoder self-attention", "source looks at itself"),
    "decoder": ("decoder self-attention", "target looks at itself"),
    "cross": ("cross-attention", "target looks at source"),
}
CONTROL = {"\n": "↵", "\t": "⇥", " ": "␣", "": "∅"}  # characters that would be invisible


@dataclass(frozen=True)
class Attention:
    """All attention heads of one kind, with gradients of the loss. L layers, H heads of K features.

    queries (T), keys (S): the words;  following: the word that the loss expects after each query, or None
    weights A, scores S, dweights ∂L/∂A, dscores ∂L/∂S (L, H, T, S);  q, doutput g = ∂L/∂(A v) (L, H, T, K);
    k, v (L, H, S, K);  hidden (T, S) Boolean, True where a mask hides the key; scores are from before the mask
    """

    queries: list
    keys: list
    following: list | None
    hidden: np.ndarray
    weights: np.ndarray
    scores: np.ndarray
    dweights: np.ndarray
    dscores: np.ndarray
    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    doutput: np.ndarray


class Explorer(Page):
    """A page that Jupyter shows in a frame; `save` writes it to a file for any browser.

    page: the HTML;  attentions: {"encoder", "decoder" or "cross": Attention}, the values shown;  loss: the loss
    """

    def __init__(self, page, attentions, loss):
        super().__init__(page)
        self.attentions, self.loss = attentions, loss

    def __repr__(self):
        return f"<Explorer of {', '.join(self.attentions)} attention: show it in Jupyter, or .save('page.html')>"


def explore(model, tokens, targets=None, labels=None):
    """A page to click through the attention heads of a model for `tokens`: weights, scores, q, k, v, gradients.

    model: a Transformer, GPT, Llama or Bert
    tokens: the ids of one sequence; for a Transformer, of the source
    targets: for a Transformer, the ids of the target, without start and end token (default: its greedy translation);
        for a Bert with classifier, the class (default: the likeliest)
    labels: the words, as a list with one per id or as a function from an id to its word; for a Transformer a pair,
        (source, target). Default: the ids.

    The loss depends on the model, which is in eval mode (no dropout):

        Transformer, GPT,    cross-entropy of the next token, mean over the tokens, with teacher forcing
        Llama
        Bert with classifier cross-entropy of the class
        Bert with mlm_head   cross-entropy of each token at its own position, nothing masked
        another Bert         ½ ‖h‖², h the mean of the tokens' output vectors, the basis of sentence vectors

    The gradients of a head follow from g = ∂L/∂(A v): ∂L/∂A = g vᵀ and ∂L/∂S = softmax_backward(∂L/∂A, A).

    The model does not change: its mode, its gradients and the values kept by its last forward pass are restored.

    Raises TypeError for another model or ids that are not whole numbers; ValueError for ids out of range, a wrong
    number of labels, more than MOST_TOKENS tokens on a side, or more than MOST_NUMBERS numbers in all.
    """
    readers = {Transformer: _read_transformer, DecoderOnly: _read_decoder_only, Bert: _read_bert}
    read = next((reader for kind, reader in readers.items() if isinstance(model, kind)), None)
    if read is None:
        raise TypeError(f"model must be a Transformer, a GPT, a Llama or a Bert, got {type(model).__name__}")
    ids = _sequence("tokens", tokens)
    with _left_as_it_was(model), ExitStack() as stack:
        reading = read(model, ids, targets, labels)
        _check_size(reading)
        model.eval(keep=True)
        caught = {name: [_Caught(layer) for layer in words.layers] for name, words in reading.words.items()}
        for layer in [layer for layers in caught.values() for layer in layers]:
            stack.enter_context(layer.catching())
        loss, dlogits = reading.loss()
        model.backward(dlogits)
        attentions = {name: _collect(reading.words[name], layers) for name, layers in caught.items()}
    about = f"{_describe(model, attentions)} Loss L = {loss:.4g}: {reading.what}."
    return Explorer(_page(attentions, about), attentions, loss)


def own_translation(model, src, excluded=()):
    """The greedy translation of src (S,) by a Transformer, as long as fits on the page; it never has these tokens."""
    longest = min(model.config.max_len, MOST_TOKENS, 2 * len(src) + 10) - 1
    return np.array(greedy_decode(Excluding(model, excluded), src[None], longest)[0], dtype=np.int64)


# --- the loss of each model -------------------------------------------------------------------------------------------


@dataclass
class _Words:
    """The layers of one kind of attention, and the words of its queries and keys."""

    layers: list
    queries: list
    keys: list
    following: list | None = None


@dataclass
class _Reading:
    """words: {kind: _Words}; loss(): a forward pass, -> the loss and dlogits; what: a description of the loss."""

    words: dict
    loss: object
    what: str


def _read_transformer(model, src, targets, labels):
    config = model.config
    source_labels, target_labels = (None, None) if labels is None else _pair(labels)
    source = _labels("labels of the source", source_labels, src)
    if targets is None:
        targets = own_translation(model, src)
    targets = _sequence("targets", targets, may_be_empty=True)
    target = _labels("labels of the target", target_labels, targets)
    end = target_labels if callable(target_labels) else lambda i: "<bos>" if i == config.bos_id else "<eos>"
    given, asked = [_visible(end(config.bos_id)), *target], [*target, _visible(end(config.eos_id))]
    tgt_in, tgt_out = np.array([[config.bos_id, *targets]]), np.array([[*targets, config.eos_id]])

    def loss():
        return _cross_entropy(model(src[None], tgt_in), tgt_out)

    words = {
        "encoder": _Words([block.attention for block in model.encoder], source, source),
        "decoder": _Words([block.self_attention for block in model.decoder], given, given, asked),
        "cross": _Words([block.cross_attention for block in model.decoder], given, source, asked),
    }
    words = {name: kind for name, kind in words.items() if kind.layers}
    if not words:
        raise ValueError("model must have at least one block: this one has no attention")
    return _Reading(words, loss, "cross-entropy of the next target token, teacher forcing, nats per token")


def _read_decoder_only(model, ids, targets, labels):
    if targets is not None:
        kind = type(model).__name__
        raise ValueError(f"targets are for a Transformer or a classifier: the targets of a {kind} are its next tokens")
    if len(ids) < 2:
        raise ValueError("tokens must be at least 2 ids: a single one has no next token, so there is no loss")
    names = _labels("labels", labels, ids)
    asked = np.array([[*ids[1:], -1]])  # the last token has no known next one

    def loss():
        return _cross_entropy(model(ids[None]), asked, ignore_index=-1)

    layers = [block.attention for block in model.blocks]
    words = {"decoder": _Words(layers, names, names, [*names[1:], "…"])}
    return _Reading(words, loss, "cross-entropy of the next token, nats per token")


def _read_bert(model, ids, targets, labels):
    names = _labels("labels", labels, ids)
    if targets is not None and model.classifier is None:
        raise ValueError("targets must be None: a Bert without a classifier has no class to predict")

    def classify():
        logits = model.classify(ids[None])  # (1, C)
        return _cross_entropy(logits, logits.argmax(axis=-1) if targets is None else np.reshape(targets, 1))

    def every_token():
        return _cross_entropy(model.mlm_logits(ids[None]), ids[None])

    def length_of_mean():
        hidden = model(ids[None])  # (1, S, D)
        mean = hidden.mean(axis=1, keepdims=True)  # (1, 1, D)
        return 0.5 * float(np.sum(mean * mean)), np.broadcast_to(mean / len(ids), hidden.shape).copy()

    if model.classifier is not None:
        loss = classify
        what = f"cross-entropy of the {'likeliest' if targets is None else 'given'} class, nats"
    elif model.mlm_head is not None:
        loss, what = every_token, "cross-entropy of each token at its own place, nothing masked, nats per token"
    else:
        loss, what = length_of_mean, "½ ‖h‖², h the mean of the tokens' output vectors"
    return _Reading({"encoder": _Words([block.attention for block in model.blocks], names, names)}, loss, what)


def _cross_entropy(logits, targets, ignore_index=None):
    """The loss and dlogits."""
    loss, probs = F.cross_entropy(logits, targets, ignore_index)
    return loss, F.cross_entropy_backward(probs, targets, ignore_index)


# --- arguments --------------------------------------------------------------------------------------------------------


def _sequence(name, ids, may_be_empty=False):
    """One sequence of ids (T,), from an array (T,) or (1, T)."""
    if may_be_empty and np.size(ids) == 0:
        return np.zeros(0, np.int64)
    ids = as_ids(ids, np.iinfo(np.int64).max, name)  # the model itself checks the vocabulary size
    if ids.ndim == 2 and len(ids) == 1:
        ids = ids[0]
    if ids.ndim != 1:
        raise ValueError(f"{name} must be one sequence of ids, (T,) or (1, T), got shape {ids.shape}")
    return ids


def _pair(labels):
    if callable(labels) or len(labels) != 2:
        raise ValueError("labels of a Transformer must be a pair: (labels of the source, labels of the target)")
    return labels


def _labels(name, labels, ids):
    """The words of a sequence, with blanks and control characters made visible."""
    if labels is None:
        labels = str
    words = [labels(int(i)) for i in ids] if callable(labels) else list(labels)
    if len(words) != len(ids):
        raise ValueError(f"{name}: got {len(words)} words for {len(ids)} ids")
    return [_visible(word) for word in words]


def _visible(word):
    word = CONTROL.get(word, str(word))
    return "".join(CONTROL.get(c, "\ufffd") if c < " " or "\ud800" <= c <= "\udfff" else c for c in word)


def _check_size(reading):
    numbers = 0
    for words in reading.words.values():
        T, S = len(words.queries), len(words.keys)
        if max(T, S) > MOST_TOKENS:
            raise ValueError(
                f"{max(T, S)} tokens are too many for the page: at most {MOST_TOKENS} on each side, "
                "including start or end token; use a shorter text"
            )
        for layer in words.layers:
            numbers += 4 * layer.num_heads * T * S + 2 * (T + S) * layer.w_q.shape[1]
    if numbers > MOST_NUMBERS:
        raise ValueError(
            f"the page would hold {numbers:,} numbers, more than {MOST_NUMBERS:,}: "
            "use a shorter text or a smaller model"
        )


# --- forward and backward ---------------------------------------------------------------------------------------------


@contextmanager
def _left_as_it_was(model):
    """Restore the attributes of every module and the gradient of every parameter at the end of the block."""
    gradients = [(parameter, parameter.grad.copy()) for parameter in model.parameters()]
    attributes = [(module, dict(vars(module))) for _, module in model.named_modules()]
    try:
        yield
    finally:
        for module, before in attributes:
            vars(module).clear()
            vars(module).update(before)
        for parameter, gradient in gradients:
            parameter.grad = gradient


class _Caught:
    """Catches the mask and the gradient of the output of an attention layer in its next passes."""

    def __init__(self, layer):
        if not isinstance(layer, MultiHeadAttention):
            raise TypeError(f"expected a MultiHeadAttention, got {type(layer).__name__}")
        self.layer, self.mask, self.dout = layer, None, None

    def catching(self):
        """Inside the block, its passes are noted."""
        forward, backward = self.layer.forward, self.layer.backward

        def catching_forward(x, memory=None, mask=None, cache=None):
            self.mask = mask
            return forward(x, memory, mask, cache)

        def catching_backward(dout):
            self.dout = dout.copy()
            return backward(dout)

        return methods(self.layer, {"forward": catching_forward, "backward": catching_backward})

    def arrays(self):
        """The arrays of an Attention for one layer, without the batch axis."""
        q, k, v, weights = self.layer.kept("q", "k", "v", "weights")  # (1, H, T, K), …, (1, H, T, S)
        k, v = (F.repeat_heads(a, q.shape[1] // a.shape[1]) for a in (k, v))
        scores = F.attention_scores(q, k)  # (1, H, T, S)
        if self.dout is None:  # no backward pass: the loss does not depend on this layer
            doutput = np.zeros_like(q)
        else:
            dconcat = self.dout @ self.layer.w_o.data.T  # (1, T, D)
            doutput = F.split_heads(dconcat, self.layer.num_heads)  # (1, H, T, K)
        dweights = doutput @ v.swapaxes(-1, -2)  # (1, H, T, S)
        found = {
            "weights": weights,
            "scores": scores,
            "dweights": dweights,
            "dscores": F.softmax_backward(dweights, weights),
            "q": q,
            "k": k,
            "v": v,
            "doutput": doutput,
        }
        return {name: array[0] for name, array in found.items()}

    def hidden(self):
        """Where the mask hides a key from a query (T, S), the same for all heads."""
        q, k = self.layer.kept("q", "k")
        k = F.repeat_heads(k, q.shape[1] // k.shape[1])
        return np.isneginf(F.attention_scores(q, k, self.mask))[0, 0]


def _collect(words, layers):
    parts = [layer.arrays() for layer in layers]
    stacked = {name: np.stack([part[name] for part in parts]) for name in parts[0]}
    return Attention(words.queries, words.keys, words.following, layers[0].hidden(), **stacked)


# --- the page ---------------------------------------------------------------------------------------------------------


ARRAYS = {  # name on the page: in an Attention
    "weight": "weights",
    "score": "scores",
    "dweight": "dweights",
    "dscore": "dscores",
    "q": "q",
    "k": "k",
    "v": "v",
    "g": "doutput",
}


def _describe(model, attentions):
    stacks = [f"{len(found.q)} in the {name}" for name, found in attentions.items() if name != "cross"]
    _, H, _, K = next(iter(attentions.values())).q.shape
    return f"{type(model).__name__}, layers: {', '.join(stacks)}; {H} heads of {K} features."


def _page(attentions, about):
    """The HTML of the page, with the numbers."""
    data = {
        "about": about,
        "start": len(attentions) - 1,
        "kinds": [
            _as_json(name, TITLES[name] if len(attentions) > 1 else ("self-attention", "text looks at itself"), found)
            for name, found in attentions.items()
        ],
    }
    return assemble(
        Explorer.title, "page.html", ["common.css", "page.css"], ["elements.js", "heads.js", "page.js"], data
    )


def _as_json(name, title, attention):
    L, H, _, K = attention.q.shape
    return {
        "name": name,
        "title": title[0],
        "about": title[1],
        "layers": L,
        "heads": H,
        "features": K,
        "queries": attention.queries,
        "keys": attention.keys,
        "next": attention.following,
        "hidden": ["".join("1" if hidden else "0" for hidden in row) for row in attention.hidden],
        "arrays": {there: encoded(getattr(attention, here)) for there, here in ARRAYS.items()},
    }
