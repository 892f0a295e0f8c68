"""The encoder-only Transformer (Devlin et al. 2019): each token reads the whole text, before and after it."""

from dataclasses import dataclass

import numpy as np

from .. import functional as F
from ..layers import Dropout, Embedding, LayerNorm, LearnedPositionalEmbedding, Linear, TiedLinear
from ..layers.activations import activate, activate_backward
from ..layers.blocks import EncoderBlock
from ..layers.initial import normal
from ..module import Module, Parameter, forward_part
from ..support.checks import as_array, as_ids, as_rows, check_choice
from .base import ModelConfig, Pretrained, fitting
from .layouts import bert as layout

# Of every matrix, at every width (Devlin et al. 2019, the published code). Larger ones, as `width_std` gives them to
# narrow models, help with masked words; but with one seed in three a classifier then stays at chance.
INIT_STD = 0.02


@dataclass(frozen=True)
class BertConfig(ModelConfig):
    """Sizes and choices of a BERT. The defaults are BERT base (Devlin et al. 2019, §3).

    max_len: the longest text, in tokens
    type_vocab_size: the number of segments a text may have; BERT's two are the sentences of a pair
    num_classes: the number of classes of a text for `classify`; None makes no classifier
    token_classes: the number of classes of a token for `classify_tokens`; None makes no such classifier
    span_head: whether the model has the layer for `span_scores`
    pooler, mlm_head: whether the model has the layers for `pool` and `mlm_logits`; a classifier needs the pooler
    pooling: the vector of a text that `pool` returns: "cls", the first token's through a linear map and tanh, as in the
        paper; "mean", the mean over all tokens, as in models for sentences (Reimers & Gurevych 2019)
    tie_embeddings: whether the masked-language-model head scores with the word embedding, as in the paper
    activation: of the feed-forward networks and the masked-language-model head, "gelu" (exact), "gelu_tanh",
        "relu" or "silu"
    """

    vocab_size: int
    max_len: int = 512
    d_model: int = 768
    num_heads: int = 12
    num_layers: int = 12
    d_ff: int = 3072
    type_vocab_size: int = 2
    num_classes: int | None = None
    pooler: bool = True
    mlm_head: bool = True
    pooling: str = "cls"
    token_classes: int | None = None
    span_head: bool = False
    tie_embeddings: bool = True
    dropout: float = 0.1
    activation: str = "gelu"
    layer_norm_eps: float = 1e-12
    pad_id: int = 0
    dtype: str = "float32"
    seed: int = 0

    def __post_init__(self):
        super().__post_init__()
        check_choice("pooling", self.pooling, tuple(POOLERS))
        if self.num_classes is not None and not self.pooler:
            raise ValueError(f"num_classes is {self.num_classes}, but a classifier needs pooler=True")


class Pooler(Module):
    """A vector for the whole text: tanh(x₀ W + b) of the first token, [CLS] (Devlin et al. 2019, §3).

    hidden (B, S, D), padding (B, S), which is not read  ->  pooled (B, D)
    """

    def __init__(self, d_model, rng=None, dtype=np.float32):
        self.linear = Linear(d_model, d_model, rng=rng, dtype=dtype, init_std=INIT_STD)

    def forward(self, hidden, padding=None):
        pooled = F.tanh(self.linear(hidden[:, 0]))  # (B, D)
        self.keep(hidden=hidden, pooled=pooled)
        return pooled

    def backward(self, dpooled):
        hidden, pooled = self.kept("hidden", "pooled")
        dhidden = np.zeros_like(hidden)  # (B, S, D): the other tokens were not read
        dhidden[:, 0] = self.linear.backward(F.tanh_backward(dpooled, pooled))
        return dhidden


class MeanPooler(Module):
    """A vector for the whole text: the mean over its tokens (Reimers & Gurevych 2019, §3). There are no parameters.

    hidden (B, S, D), padding (B, S), True = padding, or None  ->  pooled (B, D)
    """

    def __init__(self, d_model=None, rng=None, dtype=np.float32):
        pass

    def forward(self, hidden, padding=None):
        real = np.ones(hidden.shape[:2], bool) if padding is None else ~padding
        share = (real / real.sum(axis=1, keepdims=True)).astype(hidden.dtype)[..., None]  # (B, S, 1)
        self.keep(share=share)
        return (hidden * share).sum(axis=1)  # (B, D)

    def backward(self, dpooled):
        return dpooled[:, None] * self.kept("share")  # (B, S, D)


POOLERS = {"cls": Pooler, "mean": MeanPooler}


class MaskedTokenHead(Module):
    """A score for every token of the vocabulary (Devlin et al. 2019, the published code).

        LayerNorm(GELU(x W + b)) Eᵀ + c,    E the word embedding, or a matrix of its own

    x (..., D)  ->  logits (..., V)
    """

    def __init__(self, embedding, activation, eps, tied=True, rng=None, dtype=np.float32):
        V, D = embedding.table.shape
        own = {"rng": rng, "dtype": dtype, "init_std": INIT_STD}
        self.linear = Linear(D, D, **own)
        self.norm = LayerNorm(D, eps, dtype=dtype)
        self.output = TiedLinear(embedding) if tied else Linear(D, V, bias=False, **own)
        self.b = Parameter(np.zeros(V, dtype))
        self.activation = activation

    def forward(self, x):
        before = self.linear(x)  # (..., D)
        hidden, slope = activate(self.activation, before, self.keeping)
        self.keep(**{"before": before} if slope is None else {"slope": slope})
        return self.output(self.norm(hidden)) + self.b.data  # (..., V)

    def backward(self, dlogits):
        self.b.grad += dlogits.reshape(-1, dlogits.shape[-1]).sum(axis=0)
        dhidden = self.norm.backward(self.output.backward(dlogits))  # (..., D)
        dbefore = activate_backward(self.activation, dhidden, self._kept.get("before"), self._kept.get("slope"))
        return self.linear.backward(dbefore)


class Bert(Pretrained, Module):
    """A stack of post-norm encoder blocks, from ids to a vector for each token, and heads that read these vectors.

        model = Bert(BertConfig(vocab_size=11, max_len=8, d_model=16, num_heads=2, num_layers=2, d_ff=32,
                                num_classes=3))
        ids = np.array([[1, 5, 6, 2], [1, 7, 2, 0]])      # the second text ends with padding
        hidden = model(ids)                               # (2, 4, 16)
        logits = model.classify(ids)                      # (2, 3)
        scores = model.mlm_logits(ids)                    # (2, 4, 11)

    Only padding is hidden. A token sees itself and the tokens after it too, so the model can be asked to predict a
    token only where it was masked. The sum of word, position and segment embedding is normalised before the first
    block.

    With token_classes and span_head it also has `classify_tokens` and `span_scores`. `backward` takes the gradient of
    the last output of `forward` or of one of these methods.

    Raises ValueError for ids out of range; for a text that is empty, only padding or longer than max_len; for segments
    or padding of another shape than ids; and for a head that the model lacks.
    """

    config_class = BertConfig
    layouts = (layout,)
    inputs = ("embedding", "position", "segment", "norm", "dropout")

    def __init__(self, config: BertConfig):
        c = self.config = fitting(config, BertConfig)
        rng = np.random.default_rng(c.seed)
        self.embedding = Embedding(c.vocab_size, c.d_model, rng=rng, dtype=c.dtype, init_std=INIT_STD)
        self.position = LearnedPositionalEmbedding(c.max_len, c.d_model, rng=rng, dtype=c.dtype, init_std=INIT_STD)
        self.segment = Embedding(c.type_vocab_size, c.d_model, rng=rng, dtype=c.dtype, init_std=INIT_STD)
        self.norm = LayerNorm(c.d_model, c.layer_norm_eps, dtype=c.dtype)
        self.dropout = Dropout(c.dropout, rng=rng)
        block = {"activation": c.activation, "eps": c.layer_norm_eps, "rng": rng, "dtype": c.dtype}
        self.blocks = [EncoderBlock(c.d_model, c.num_heads, c.d_ff, c.dropout, **block) for _ in range(c.num_layers)]
        self._draw(rng)
        self.pooler = POOLERS[c.pooling](c.d_model, rng, c.dtype) if c.pooler else None
        self.mlm_head = None
        if c.mlm_head:
            head = (c.activation, c.layer_norm_eps, c.tie_embeddings, rng, c.dtype)
            self.mlm_head = MaskedTokenHead(self.embedding, *head)
        self.classifier_dropout = Dropout(c.dropout, rng=rng)
        outputs = (c.num_classes, c.token_classes, 2 if c.span_head else None)
        self.classifier, self.token_classifier, self.span_head = (
            None if n is None else Linear(c.d_model, n, rng=rng, dtype=c.dtype, init_std=INIT_STD) for n in outputs
        )
        self._asked = "forward"  # the method whose output backward differentiates
        self._places = None

    def _draw(self, rng):
        for block in self.blocks:
            attention, feed_forward = block.attention, block.feed_forward
            for w in (attention.w_q, attention.w_k, attention.w_v, attention.w_o, feed_forward.w1, feed_forward.w2):
                w.data = normal(rng, w.shape, INIT_STD, w.dtype)

    def forward(self, ids, padding=None, segments=None):
        """ids (B, S), padding (B, S) Boolean, True = padding, segments (B, S)  ->  hidden (B, S, D)

        By default ids equal to pad_id are padding, and all tokens are in segment 0.
        """
        ids = as_rows(ids, self.config.vocab_size, longest=self.config.max_len)
        mask = self._padding(ids, padding)[:, None, None, :]  # (B, 1, 1, S)
        x = self.embedding(ids) + self.segment(self._segments(ids, segments))  # (B, S, D)
        x = self.dropout(self.norm(self.position(x)))
        for block in self.blocks:
            x = block(x, mask)
        self._asked = "forward"
        return x  # (B, S, D)

    def pool(self, hidden, padding=None):
        """hidden (B, S, D), padding (B, S) or None for none  ->  (B, D), a vector for each text; see `pooling`"""
        return self._needed("pooler")(hidden, padding)

    @forward_part
    def classify(self, ids, padding=None, segments=None):
        """ids (B, S), the others as in `forward`  ->  logits (B, C), one per class"""
        classifier = self._needed("classifier")
        hidden = self.forward(ids, padding, segments)  # (B, S, D)
        pooled = self.pool(hidden, self._padding(np.asarray(ids), padding))  # (B, D)
        self._asked = "classify"
        return classifier(self.classifier_dropout(pooled))  # (B, C)

    @forward_part
    def classify_tokens(self, ids, padding=None, segments=None):
        """ids (B, S), the others as in `forward`  ->  logits (B, S, C), one per class of each token"""
        return self._of_each_token("token_classifier", ids, padding, segments)

    @forward_part
    def span_scores(self, ids, padding=None, segments=None):
        """ids (B, S) of a question and a text, the others as in `forward`  ->  scores (B, S, 2): how well each
        token begins and ends the answer (Devlin et al. 2019, §4.2)"""
        return self._of_each_token("span_head", ids, padding, segments)

    def _of_each_token(self, name, *inputs):
        head = self._needed(name)
        hidden = self.forward(*inputs)  # (B, S, D)
        self._asked = name
        return head(self.classifier_dropout(hidden))

    @forward_part
    def mlm_logits(self, ids, padding=None, segments=None, places=None):
        """ids (B, S), the others as in `forward`  ->  logits (B, S, V), scores of the token at each place

        places: Boolean (B, S); scores only the places that are True, in order, (N, V), which is far less work for a
        large vocabulary
        """
        head = self._needed("mlm_head")
        hidden = self.forward(ids, padding, segments)  # (B, S, D)
        if places is not None:
            places = _boolean("places", places, hidden.shape[:2])
            if not places.any():
                raise ValueError("places has no True: at least one place must be scored")
        self._asked, self._places = "mlm_logits", places
        return head(hidden if places is None else hidden[places])

    def backward(self, dout):
        """From dout, in the shape of the last output, to the gradients of all parameters used for it.

        Ids have no gradient: returns None.
        """
        dx = dout
        if self._asked == "classify":
            dx = self.pooler.backward(self.classifier_dropout.backward(self.classifier.backward(dout)))
        elif self._asked == "mlm_logits":
            dx = self.mlm_head.backward(dout)
            if self._places is not None:
                dplaces, dx = dx, np.zeros((*self._places.shape, dx.shape[-1]), dx.dtype)  # (N, D), (B, S, D)
                dx[self._places] = dplaces
        elif self._asked in ("token_classifier", "span_head"):
            dx = self.classifier_dropout.backward(getattr(self, self._asked).backward(dout))
        for block in reversed(self.blocks[self.first_learning :]):
            dx = block.backward(dx)
        if self.first_learning is not None:
            return
        dx = self.position.backward(self.norm.backward(self.dropout.backward(dx)))  # (B, S, D)
        self.embedding.backward(dx)  # a sum hands its gradient to all its terms
        self.segment.backward(dx)

    def _padding(self, ids, padding):
        padding = ids == self.config.pad_id if padding is None else _boolean("padding", padding, ids.shape)
        empty = padding.all(axis=1)
        if empty.any():
            raise ValueError(f"ids has nothing but padding in row {int(empty.argmax())}")
        return padding

    def _segments(self, ids, segments):
        if segments is None:
            return np.zeros_like(ids)
        segments = as_ids(segments, self.config.type_vocab_size, "segments")
        if segments.shape != ids.shape:
            raise ValueError(f"segments must have the shape of ids, {ids.shape}, got {segments.shape}")
        return segments

    def _needed(self, name):
        module = getattr(self, name)
        if module is None:
            option = {"classifier": "num_classes=…", "token_classifier": "token_classes=…"}.get(name, f"{name}=True")
            raise ValueError(f"this model has no {name}; create it with {option}")
        return module


def _boolean(name, values, shape):
    """A Boolean array of the shape of ids."""
    values = as_array(values, name, "Booleans")
    if values.dtype != bool:
        raise TypeError(f"{name} must be Boolean, got {values.dtype}")
    if values.shape != shape:
        raise ValueError(f"{name} must have the shape of ids, {shape}, got {values.shape}")
    return values
