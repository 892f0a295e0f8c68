"""A model's architecture as boxes and arrows, with a shape at every arrow."""

from dataclasses import dataclass
from itertools import chain, pairwise

from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from ..layers import PositionalEncoding, RMSNorm
from ..models import Bert, TransformerXL
from ..models.decoder_only import DecoderOnly
from ..models.encoder_decoder import EncoderDecoder
from .style import EDGE, HATCH, LABEL, TEXT, Picture, styled

# Inches
BOX, HEIGHT = 2.8, 0.46  # of a box
MASK_LINE = 0.17  # more height for the masks of an attention
ARROW = 0.34  # an arrow with its shape
STUB = 0.24  # the piece of an arrow inside a block where the residual path leaves
DETOUR = 0.17  # the distance of the residual path from the boxes
FRAME = 0.3  # from the boxes to the frame around a block
APART = 1.35  # between two columns

EMBED, ATTEND, FEED, NORM, HEAD = "#fbe3d0", "#fdf3c4", "#cfe6f5", "#e7e3f0", "#d8ecd3"  # black text is readable on all


@dataclass
class _Box:
    """A layer: its title, a detail, the modules with its parameters, and the number of these."""

    title: str
    detail: str
    modules: tuple
    colour: str
    residual: bool = False  # whether the residual path joins here
    count: str = ""
    masks: str = ""  # of an attention

    @property
    def height(self):
        return HEIGHT + MASK_LINE * bool(self.masks)


@dataclass
class _Block:
    """Equal blocks, of which one is drawn: its boxes, and the shape between them."""

    name: str
    modules: list
    parts: list  # lists of boxes, one per sub-layer with its residual path
    shape: str


@dataclass
class _Words:
    """The text at an end of a column."""

    text: str


@styled
def architecture(model):
    """A model as boxes and arrows, from its ids at the bottom to its output at the top.

    model: a Transformer, T5, GPT, Llama, Bert or TransformerXL. After a forward the arrows show the shapes of that
        forward; otherwise B, S and T stand for batch size, source and target length.

    How to read it: an arrow carries an array of the shape beside it. A box is a layer, with the number of its
    parameters at the lower right ("tied": it shares those of the embedding). The frame stands for a stack of equal
    blocks. The line around a layer is the residual path: the layer's input is added to its output. In an
    encoder–decoder the line across carries the encoder's output, the memory, to the cross-attention of every decoder
    block, which makes its keys and values of it. An attention names its masks with their shapes. A white box is no part
    of the model: the softmax stands in the loss and in decoding. Every block keeps the shape of its input; only the
    last projection changes it.

    Raises TypeError for anything but these models.
    """
    kinds = {EncoderDecoder: _encoder_decoder, DecoderOnly: _decoder_only, Bert: _bert, TransformerXL: _transformer_xl}
    for kind, draw in kinds.items():
        if isinstance(model, kind):
            return _draw(f"{type(model).__name__}: {model.num_parameters():,} parameters", *draw(model))
    raise TypeError(f"model must be a Transformer, T5, GPT, Llama, Bert or TransformerXL, got {type(model).__name__}")


# --- the contents of each model's picture -----------------------------------------------------------------------------


def _encoder_decoder(model):
    c = model.config
    B, S = _sizes("B", "S", model.src_input, [block.attention for block in model.encoder])
    Bt, T = _sizes("B", "T", model.tgt_input, [block.self_attention for block in model.decoder])
    D, V = c.d_model, c.tgt_vocab_size
    source, target = _shape(B, S, D), _shape(Bt, T, D)
    encoder = [_Words("source ids"), _shape(B, S)]
    encoder += _embedding(model.src_input, c.src_vocab_size, source, getattr(model, "encoder_bias", None))
    padding = f"padding mask {_shape(B, 1, 1, S)}"
    if model.encoder:
        parts = "attention", "feed_forward"
        encoder += [_block("encoder", model.encoder, parts, source, (B, S, S), masks=[padding]), source]
    if model.encoder_norm:
        encoder += [_norm("Layer norm", model.encoder_norm), source]
    encoder += [_Words("memory")]
    decoder = [_Words("target ids so far"), _shape(Bt, T)]
    decoder += _embedding(model.tgt_input, V, target, getattr(model, "decoder_bias", None))
    if model.decoder:
        names = "self_attention", "cross_attention", "feed_forward"
        causal = f"causal mask {_shape(T, T)}" + f", padding {_shape(Bt, 1, 1, T)}" * model.pads_target
        masks = [causal, padding]
        decoder += [_block("decoder", model.decoder, names, target, (Bt, T, T), (Bt, T, S), masks=masks), target]
    if model.decoder_norm:
        decoder += [_norm("Layer norm", model.decoder_norm), target]
    decoder += [
        _Box("Linear", f"{D} → {V}", (model.output,), HEAD),
        *_softmax(_shape(Bt, T, V)),
    ]
    return encoder, decoder


def _decoder_only(model):
    c = model.config
    B, T = _sizes("B", "T", model, [block.attention for block in model.blocks])
    S = _keys(model.blocks[0].attention, T)
    x = _shape(B, T, c.d_model)
    table = f"{c.vocab_size} × {c.d_model}"
    entrance = [_Box("Embedding", table, (model.embedding,), EMBED), x]
    if getattr(model, "position", None) is not None:  # a GPT may have others
        entrance += [_position(model.position), x]
    masks = [f"causal mask {_shape(T, S)}" + f", window {c.window}" * (c.window is not None)]
    return (
        [
            _Words("ids"),
            _shape(B, T),
            *entrance,
            _block("decoder", model.blocks, ("attention", "feed_forward"), x, (B, T, S), masked=True, masks=masks),
            x,
            _norm("Layer norm", model.norm),
            x,
            _Box("Linear", f"{c.d_model} → {c.vocab_size}", (model.output,), HEAD),
            *_softmax(_shape(B, T, c.vocab_size)),
        ],
    )


def _transformer_xl(model):
    c = model.config
    B, T = _sizes("B", "T", model, [block.attention for block in model.blocks])
    S = _keys(model.blocks[0].attention, f"{c.mem_len} + {T}")
    x = _shape(B, T, c.d_model)
    column = [
        _Words("ids"),
        _shape(B, T),
        _Box("Embedding", f"{c.vocab_size} × {c.d_model}", (model.embedding,), EMBED),
        x,
        _block(
            "recurrent",
            model.blocks,
            ("attention", "feed_forward"),
            x,
            (B, T, S),
            kind="Relative attention",
            masks=[f"causal mask ({T}, {S})"],
        ),
        x,
    ]
    if model.norm is not None:
        column += [_norm("Layer norm", model.norm), x]
    column += [_Box("Linear", f"{c.d_model} → {c.vocab_size}", (model.output,), HEAD)]
    return ([*column, *_softmax(_shape(B, T, c.vocab_size))],)


def _bert(model):
    c = model.config
    B, S = _sizes("B", "S", model, [block.attention for block in model.blocks])
    x = _shape(B, S, c.d_model)
    tables = f"{c.vocab_size}, {c.max_len} and {c.type_vocab_size} × {c.d_model}"
    modules = model.embedding, model.position, model.segment
    column = [
        _Words("ids"),
        _shape(B, S),
        _Box("Word + position + segment", tables, modules, EMBED),
        x,
        _norm("Layer norm", model.norm),
        x,
        _block(
            "encoder",
            model.blocks,
            ("attention", "feed_forward"),
            x,
            (B, S, S),
            masks=[f"padding mask {_shape(B, 1, 1, S)}"],
        ),
        x,
    ]
    mlm, classes = [], []
    if model.mlm_head is not None:
        detail = f"{c.d_model} → {c.d_model} → {c.vocab_size}"
        head = _Box("Masked-word head", detail, (model.mlm_head,), HEAD)
        mlm = [head, _shape(B, S, c.vocab_size), _Words("logits of the masked words")]
    if model.pooler is not None:
        classes = [_Box("Pooler", "first token, tanh", (model.pooler,), HEAD), _shape(B, c.d_model)]
        if model.classifier is None:
            classes += [_Words("vector of the text")]
        else:
            head = _Box("Classifier", f"{c.d_model} → {c.num_classes}", (model.classifier,), HEAD)
            classes += [head, _shape(B, c.num_classes), _Words("logits of the classes")]
    if mlm and classes:
        return column + mlm, classes
    return (column + (mlm or classes or [_Words("hidden vectors")]),)


def _embedding(module, vocab_size, x, bias=None):
    """The boxes of an input embedding. bias: the RelativePositionBias shared by all blocks above, counted here once"""
    d_model = module.embedding.table.shape[1]
    if bias is not None:
        buckets, heads = bias.table.shape
        detail = f"{vocab_size} × {d_model}; {buckets} × {heads}"
        return [_Box("Embedding; bias of distances", detail, (module, bias), EMBED), x]
    title = "Embedding" + " × √D" * (module.scale != 1)
    boxes = [_Box(title, f"{vocab_size} × {d_model}", (module.embedding,), EMBED), x]
    return boxes if module.position is None else [*boxes, _position(module.position), x]


def _position(module):
    """The box where positions are added: a learned table, or sinusoids without parameters."""
    length, d_model = module.table.shape
    kind = "sinusoids" if isinstance(module, PositionalEncoding) else "learned"
    return _Box("+ position", f"{kind} {length} × {d_model}", (module,), EMBED)


def _softmax(shape):
    """From the logits to the probabilities of the next token."""
    box = _Box("Softmax", "in the loss and in decoding", (), "white")
    return [shape, box, shape, _Words("probabilities of the next token")]


def _norm(title, norm, residual=False):
    D = norm.gamma.shape[0]
    if isinstance(norm, RMSNorm):
        return _Box(title.replace("Layer", "RMS"), f"γ ({D})", (norm,), NORM, residual)
    return _Box(title, f"γ ({D})" if norm.beta is None else f"γ ({D}), β ({D})", (norm,), NORM, residual)


def _block(name, blocks, layers, shape, *weights, masks, masked=False, kind=None):
    """A stack of equal blocks; weights: batch, queries and keys of each attention; masks: a text for each of these"""
    block, weights, masks = blocks[0], list(weights), list(masks)
    parts = []
    for i, layer in enumerate(layers, 1):
        module, add_norm = getattr(block, layer), getattr(block, f"add_norm{i}")
        if layer == "feed_forward":
            D, F = module.w1.shape
            title = "Feed-forward" if module.w_gate is None else "Gated feed-forward"
            box = _Box(title, f"{D} → {F} → {D}", (module,), FEED)
        else:
            B, T, S = weights.pop(0)
            cross, hidden = layer == "cross_attention", masked or layer == "self_attention"
            title = kind or ("Cross-attention" if cross else "Masked self-attention" if hidden else "Self-attention")
            if getattr(module, "rotary", None) is not None:
                title = "Rotary self-attention"
            detail = f"weights {_shape(B, module.num_heads, T, S)}"
            box = _Box(f"{title}, {_heads(module)}", detail, (module,), ATTEND, masks=masks.pop(0))
        if add_norm.norm_first:
            norm, add = _norm("Layer norm", add_norm.norm), _Box("Add", "", (), NORM, residual=True)
            parts.append([norm, box, add])
        else:
            parts.append([box, _norm("Add & norm", add_norm.norm, residual=True)])
    return _Block(name, blocks, parts, shape)


def _heads(attention):
    """How many heads; 6/2 heads are six of queries that share two of keys and values."""
    count = attention.num_heads
    if getattr(attention, "num_kv_heads", count) != count:
        return f"{count}/{attention.num_kv_heads} heads"
    return "1 head" if count == 1 else f"{count} heads"


def _sizes(B, length, entrance, attentions):
    """Batch and length of the last forward, or the letters."""
    for attention in attentions:
        weights = _kept(attention, "weights")
        if weights is not None:  # tiled attention keeps what the weights are made of, first of all the queries
            shape = weights[0].shape if isinstance(weights, tuple) else weights.shape
            return shape[0], shape[2]
    ids = _kept(entrance.embedding, "ids")
    return (B, length) if ids is None else ids.shape


def _keys(attention, otherwise):
    """How many keys an attention had in the last forward."""
    weights = _kept(attention, "weights")
    if weights is None:
        return otherwise
    return weights[1].shape[2] if isinstance(weights, tuple) else weights.shape[3]


def _kept(module, name):
    try:
        return module.kept(name)
    except RuntimeError:  # no forward yet
        return None


def _shape(*sizes):
    return f"({', '.join(map(str, sizes))})"


def _parameters(modules, counted=()):
    """The number of parameters in these modules together, without those already counted."""
    unique = {id(p): p.data.size for module in modules for p in module.parameters() if id(p) not in counted}
    return sum(unique.values())


def _count_parameters(columns):
    """Set the number of parameters of each box. A tied parameter counts in the first box that has it."""
    counted = set()
    for item in (item for column in columns for item in column):
        boxes = [item] if isinstance(item, _Box) else [*chain(*item.parts)] if isinstance(item, _Block) else []
        for box in boxes:
            if box.modules:
                own = _parameters(box.modules, counted)
                box.count = f"{own:,}" if own else "tied" if _parameters(box.modules) else ""
                counted |= {id(p) for module in box.modules for p in module.parameters()}


# --- drawing it -------------------------------------------------------------------------------------------------------


def _height(column):
    """The height of a column in inches."""
    return sum(_item_height(item) for item in column)


def _item_height(item):
    if isinstance(item, _Block):
        return sum(STUB + sum(box.height + STUB for box in part) for part in item.parts) + 2 * PADDING
    return item.height if isinstance(item, _Box) else {_Words: LABEL, str: ARROW}[type(item)]


PADDING = 0.06  # between the frame and the first branch, and above the last box


def _draw(title, *columns):
    """The figure of one or two columns. The second is beside the first, or for Bert on top of it."""
    _count_parameters(columns)
    beside = len(columns) == 2 and isinstance(columns[1][0], _Words)
    margin = EDGE + LABEL + FRAME
    width = 2 * margin + BOX + (len(columns) - 1) * (BOX + APART)
    heights = [_height(column) for column in columns]
    start = 0.0 if beside or len(columns) == 1 else _height(columns[0][: _branch(columns[0]) + 1])
    height = 2 * EDGE + max(heights[0], start + heights[-1]) + LABEL + 2 * EDGE
    figure = Picture(figsize=(width, height))
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(0, height))
    axes.set_axis_off()
    page = _Page(axes)
    middle = margin + BOX / 2
    first = page.column(columns[0], middle, EDGE, side=-1)
    if beside:
        second = page.column(columns[1], middle + BOX + APART, EDGE, side=1)
        if second.cross is not None:
            x, y = middle + BOX / 2 + FRAME + 0.3, second.cross
            page.line((middle + 0.3, first.top - LABEL / 2), (x, first.top - LABEL / 2), (x, y), second.cross_left)
            axes.text((x + second.cross_left[0] - FRAME) / 2, y + 0.02, "K, V", ha="center", va="bottom", size=TEXT - 1)
    elif len(columns) == 2:  # the other head, from the same vectors
        x, y = middle + BOX + APART, EDGE + start
        page.column(columns[1], x, y, side=1)
        page.line((middle, y - 0.75 * ARROW), (x, y - 0.75 * ARROW), (x, y))
    figure.suptitle(title, y=1 - EDGE / height, va="top")
    return figure


def _branch(column):
    """The index of the arrow after the blocks."""
    return next(i for i, item in enumerate(column) if isinstance(item, _Block)) + 1


class _Page:
    """Axes in inches to draw columns on."""

    def __init__(self, axes):
        self.axes = axes
        self.top = self.cross = self.cross_left = None

    def column(self, items, x, y, side):
        """Draw the items from y upwards, centred at x. side: −1 for residual paths on the left, 1 on the right; the
        shapes are on the other side."""
        drawn = _Page(self.axes)
        for item in items:
            if isinstance(item, str):
                drawn.line((x, y), (x, y + ARROW))
                drawn.shape(x, y + ARROW / 2, item, side)
            elif isinstance(item, _Box):
                drawn.box(item, x, y)
            elif isinstance(item, _Words):
                drawn.axes.text(x, y + LABEL / 2, item.text, ha="center", va="center", size=TEXT)
            else:
                drawn.block(item, x, y, side)
            y += _item_height(item)
        drawn.top = y
        return drawn

    def block(self, block, x, y, side):
        tall, edge = _item_height(block), x + side * (BOX / 2 + FRAME)
        frame = Rectangle((x - BOX / 2 - FRAME, y), BOX + 2 * FRAME, tall, facecolor="#f7f7f7", edgecolor=HATCH)
        frame.set(linewidth=0.8, zorder=0)
        self.axes.add_patch(frame)
        times = len(block.modules)
        of_all = [{id(p) for p in module.parameters()} for module in block.modules]
        each = _parameters(
            block.modules[:1], set.intersection(*of_all) if times > 1 else ()
        )  # without shared parameters
        label = f"{times} {block.name} block{'s' if times > 1 else ''}, {each:,} parameters" + " each" * (times > 1)
        rotation = 90 if side < 0 else 270
        self.axes.text(edge + side * LABEL / 2, y + tall / 2, label, ha="center", va="center", rotation=rotation)
        self.axes.plot([x, x], [y, y + PADDING], color="black", linewidth=0.9, snap=False)
        y += PADDING
        for i, part in enumerate(block.parts):
            branch = y + STUB / 2 - 0.02
            if i:
                self.shape(x, branch - STUB + 0.02, block.shape, side)
            for box in part:
                self.line((x, y), (x, y + STUB))
                if box is not part[0]:
                    self.shape(x, y + STUB / 2, block.shape, side)
                y += STUB
                self.box(box, x, y)
                if box.title.startswith("Cross"):
                    self.cross = y + box.height / 2
                    self.cross_left = (x - BOX / 2, self.cross)
                if box.residual:
                    beside = x + side * (BOX / 2 + DETOUR)
                    into = y + box.height / 2
                    self.line((x, branch), (beside, branch), (beside, into), (x + side * BOX / 2, into))
                y += box.height
            self.axes.plot([x, x], [y, y + STUB], color="black", linewidth=0.9, snap=False)
            y += STUB
        self.axes.plot([x, x], [y, y + PADDING], color="black", linewidth=0.9, snap=False)

    def box(self, box, x, y):
        self.axes.add_patch(
            FancyBboxPatch(
                (x - BOX / 2, y),
                BOX,
                box.height,
                boxstyle="round,pad=0,rounding_size=0.06",
                facecolor=box.colour,
                edgecolor=HATCH,
                linewidth=0.8,
                zorder=2,
            )
        )
        left, right, low = x - BOX / 2 + 0.08, x + BOX / 2 - 0.08, y + 0.12
        if box.masks:
            self.axes.text(left, low, box.masks, va="center", size=TEXT - 1, zorder=3)
            low += MASK_LINE
        if box.detail or box.count:
            self.axes.text(left, y + box.height - 0.13, box.title, va="center", size=TEXT, weight="bold", zorder=3)
            self.axes.text(left, low, box.detail, va="center", size=TEXT - 1, zorder=3)
            self.axes.text(right, low, box.count, va="center", ha="right", size=TEXT - 1, zorder=3)
        else:
            self.axes.text(left, y + box.height / 2, box.title, va="center", size=TEXT, weight="bold", zorder=3)

    def shape(self, x, y, text, side):
        """Write the shape at an arrow, on the side without a residual path."""
        self.axes.text(x - side * 0.07, y, text, ha="left" if side < 0 else "right", va="center", size=TEXT - 1)

    def line(self, *points):
        """Draw a line through the points, with an arrowhead at the last."""
        for start, end in pairwise(points[:-1]):
            self.axes.plot(*zip(start, end, strict=True), color="black", linewidth=0.9, zorder=1, snap=False)
        arrow = FancyArrowPatch(points[-2], points[-1], arrowstyle="-|>", mutation_scale=8, shrinkA=0, shrinkB=0)
        arrow.set(linewidth=0.9, color="black", zorder=1)
        self.axes.add_patch(arrow)
