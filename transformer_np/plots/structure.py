"""A model's architecture as boxes and arrows, with a shape at every arrow."""

from ..layers import GatedFeedForward, PositionalEncoding, RMSNorm
from ..models import Bert, TransformerXL
from ..models.decoder_only import DecoderOnly
from ..models.encoder_decoder import EncoderDecoder
from ..support.counts import counted
from .boxes import Block, Box, Words, draw
from .picture import styled

EMBED, ATTEND, FEED, NORM, HEAD = "#fbe3d0", "#fdf3c4", "#cfe6f5", "#e7e3f0", "#d8ecd3"  # black text is readable on all


@styled
def architecture(model):
    """A model as boxes and arrows, from its ids at the bottom to its output at the top.

    model: a Transformer, T5, GPT, Llama, Bert or TransformerXL. After a forward pass, the arrows show its shapes;
        otherwise B, S and T stand for batch size, source and target length.

    How to read it: an arrow carries an array of the shape beside it. A box is a layer, with the number of its
    parameters at the lower right ("tied": it shares those of the embedding). The frame stands for a stack of equal
    blocks. The line around a layer is the residual path: the layer's input is added to its output. In an
    encoder–decoder the line across carries the encoder's output, the memory, to the cross-attention of every decoder
    block, which computes its keys and values from it. An attention names its masks with their shapes. A white box is
    not part of the model: the softmax is in the loss and in decoding. Every block keeps the shape of its input; only
    the last projection changes it.

    Raises TypeError for anything but these models.
    """
    kinds = {EncoderDecoder: _encoder_decoder, DecoderOnly | TransformerXL: _decoder_only, Bert: _bert}
    for kind, columns in kinds.items():
        if isinstance(model, kind):
            return draw(f"{type(model).__name__}: {model.num_parameters():,} parameters", *columns(model))
    raise TypeError(f"model must be a Transformer, T5, GPT, Llama, Bert or TransformerXL, got {type(model).__name__}")


# --- the contents of each model's picture -----------------------------------------------------------------------------


def _encoder_decoder(model):
    c = model.config
    B, S = _sizes("S", model.src_input, [block.attention for block in model.encoder])
    Bt, T = _sizes("T", model.tgt_input, [block.self_attention for block in model.decoder])
    D, V = c.d_model, c.tgt_vocab_size
    source, target = _shape(B, S, D), _shape(Bt, T, D)
    encoder = [Words("source ids"), _shape(B, S)]
    encoder += _embedding(model.src_input, c.src_vocab_size, source, getattr(model, "encoder_bias", None))
    padding = f"padding mask {_shape(B, 1, 1, S)}"
    if model.encoder:
        parts = "attention", "feed_forward"
        encoder += [_block("encoder", model.encoder, parts, source, (B, S, S), masks=[padding]), source]
    if model.encoder_norm:
        encoder += [_norm("Layer norm", model.encoder_norm), source]
    encoder += [Words("memory")]
    decoder = [Words("target ids so far"), _shape(Bt, T)]
    decoder += _embedding(model.tgt_input, V, target, getattr(model, "decoder_bias", None))
    if model.decoder:
        names = "self_attention", "cross_attention", "feed_forward"
        causal = f"causal mask {_shape(T, T)}" + f", padding {_shape(Bt, 1, 1, T)}" * model.pads_target
        masks = [causal, padding]
        decoder += [_block("decoder", model.decoder, names, target, (Bt, T, T), (Bt, T, S), masks=masks), target]
    if model.decoder_norm:
        decoder += [_norm("Layer norm", model.decoder_norm), target]
    decoder += [Box("Linear", f"{D} → {V}", (model.output,), HEAD), *_softmax(_shape(Bt, T, V))]
    return encoder, decoder


def _decoder_only(model):
    c, recurrent = model.config, isinstance(model, TransformerXL)
    B, T = _sizes("T", model, [block.attention for block in model.blocks])
    S = _keys(model.blocks[0].attention, f"{c.mem_len} + {T}" if recurrent else T)
    x = _shape(B, T, c.d_model)
    embedding = Box("Embedding", f"{c.vocab_size} × {c.d_model}", (model.embedding,), EMBED)
    column = [Words("ids"), _shape(B, T), embedding, x]
    if getattr(model, "position", None) is not None:  # a GPT may have others
        column += [_position(model.position), x]
    window = getattr(c, "window", None)
    masks = [f"causal mask {_shape(T, S)}" + ("" if window is None else f", window {window}")]
    name, kind = ("recurrent", "Relative attention") if recurrent else ("decoder", None)
    layers = "attention", "feed_forward"
    column += [_block(name, model.blocks, layers, x, (B, T, S), masked=True, masks=masks, kind=kind), x]
    if model.norm is not None:
        column += [_norm("Layer norm", model.norm), x]
    column += [Box("Linear", f"{c.d_model} → {c.vocab_size}", (model.output,), HEAD)]
    return ([*column, *_softmax(_shape(B, T, c.vocab_size))],)


def _bert(model):
    c = model.config
    B, S = _sizes("S", model, [block.attention for block in model.blocks])
    x = _shape(B, S, c.d_model)
    tables = f"{c.vocab_size}, {c.max_len} and {c.type_vocab_size} × {c.d_model}"
    modules = model.embedding, model.position, model.segment
    column = [Words("ids"), _shape(B, S), Box("Word + position + segment", tables, modules, EMBED), x]
    masks = [f"padding mask {_shape(B, 1, 1, S)}"]
    column += [_norm("Layer norm", model.norm), x]
    column += [_block("encoder", model.blocks, ("attention", "feed_forward"), x, (B, S, S), masks=masks), x]
    mlm, classes = [], []
    if model.mlm_head is not None:
        detail = f"{c.d_model} → {c.d_model} → {c.vocab_size}"
        head = Box("Masked-word head", detail, (model.mlm_head,), HEAD)
        mlm = [head, _shape(B, S, c.vocab_size), Words("logits of the masked words")]
    for title, head in (("Token classifier", model.token_classifier), ("Span head", model.span_head)):
        if head is not None:
            detail, shape = f"{c.d_model} → {head.w.shape[1]}", _shape(B, S, head.w.shape[1])
            mlm += [Box(title, detail, (head,), HEAD), shape, Words("scores of the tokens")]
    if model.pooler is not None:
        classes = [Box("Pooler", "first token, tanh", (model.pooler,), HEAD), _shape(B, c.d_model)]
        if model.classifier is None:
            classes += [Words("vector of the text")]
        else:
            head = Box("Classifier", f"{c.d_model} → {c.num_classes}", (model.classifier,), HEAD)
            classes += [head, _shape(B, c.num_classes), Words("logits of the classes")]
    if mlm and classes:
        return column + mlm, classes
    return (column + (mlm or classes or [Words("hidden vectors")]),)


def _embedding(module, vocab_size, x, bias=None):
    """The boxes of an input embedding. bias: the RelativePositionBias shared by all blocks above, counted here once"""
    d_model = module.embedding.table.shape[1]
    if bias is not None:
        buckets, heads = bias.table.shape
        detail = f"{vocab_size} × {d_model}; {buckets} × {heads}"
        return [Box("Embedding; bias of distances", detail, (module, bias), EMBED), x]
    title = "Embedding" + " × √D" * (module.scale != 1)
    boxes = [Box(title, f"{vocab_size} × {d_model}", (module.embedding,), EMBED), x]
    return boxes if module.position is None else [*boxes, _position(module.position), x]


def _position(module):
    """The box where positions are added: a learned table, or sinusoids without parameters."""
    length, d_model = module.table.shape
    kind = "sinusoids" if isinstance(module, PositionalEncoding) else "learned"
    return Box("+ position", f"{kind} {length} × {d_model}", (module,), EMBED)


def _softmax(shape):
    """From the logits to the probabilities of the next token."""
    box = Box("Softmax", "in the loss and in decoding", (), "white")
    return [shape, box, shape, Words("probabilities of the next token")]


def _norm(title, norm, residual=False):
    D = norm.gamma.shape[0]
    if isinstance(norm, RMSNorm):
        return Box(title.replace("Layer", "RMS"), f"γ ({D})", (norm,), NORM, residual)
    return Box(title, f"γ ({D})" if norm.beta is None else f"γ ({D}), β ({D})", (norm,), NORM, residual)


def _block(name, blocks, layers, shape, *weights, masks, masked=False, kind=None):
    """A stack of equal blocks; weights: batch, queries and keys of each attention; masks: a text for each of these"""
    block, weights, masks = blocks[0], list(weights), list(masks)
    parts = []
    for i, layer in enumerate(layers, 1):
        module, add_norm = getattr(block, layer), getattr(block, f"add_norm{i}")
        if not hasattr(module, "w1" if layer == "feed_forward" else "num_heads"):  # a layer of one's own
            kind_of = FEED if layer == "feed_forward" else ATTEND
            hides = {} if layer == "feed_forward" else {"masks": masks.pop(0)}
            weights = weights[1:] if hides else weights
            box = Box(type(module).__name__, "", (module,), kind_of, **hides)
        elif layer == "feed_forward":
            D, F = module.w1.shape
            title = "Gated feed-forward" if isinstance(module, GatedFeedForward) else "Feed-forward"
            box = Box(title, f"{D} → {F} → {D}", (module,), FEED)
        else:
            B, T, S = weights.pop(0)
            cross, hidden = layer == "cross_attention", masked or layer == "self_attention"
            title = kind or ("Cross-attention" if cross else "Masked self-attention" if hidden else "Self-attention")
            if getattr(module, "rotary", None) is not None:
                title = "Rotary self-attention"
            detail = f"weights {_shape(B, module.num_heads, T, S)}"
            box = Box(f"{title}, {_heads(module)}", detail, (module,), ATTEND, masks=masks.pop(0))
        if add_norm.norm_first:
            norm, add = _norm("Layer norm", add_norm.norm), Box("Add", "", (), NORM, residual=True)
            parts.append([norm, box, add])
        else:
            parts.append([box, _norm("Add & norm", add_norm.norm, residual=True)])
    return Block(name, blocks, parts, shape)


def _heads(attention):
    """How many heads; 6/2 heads are six of queries that share two of keys and values."""
    count = attention.num_heads
    if getattr(attention, "num_kv_heads", count) != count:
        return f"{count}/{attention.num_kv_heads} heads"
    return counted(count, "head")


def _sizes(length, entrance, attentions):
    """Batch and length of the last forward pass, or the letters."""
    for attention in attentions:
        weights = _kept(attention, "weights")
        if weights is not None:  # tiled attention keeps what the weights are made of, first of all the queries
            shape = weights[0].shape if isinstance(weights, tuple) else weights.shape
            return shape[0], shape[2]
    ids = _kept(entrance.embedding, "ids")
    return ("B", length) if ids is None else ids.shape


def _keys(attention, otherwise):
    """How many keys an attention had in the last forward pass."""
    weights = _kept(attention, "weights")
    if weights is None:
        return otherwise
    return weights[1].shape[2] if isinstance(weights, tuple) else weights.shape[3]


def _kept(module, name):
    try:
        return module.kept(name)
    except RuntimeError:  # no forward pass yet
        return None


def _shape(*sizes):
    return f"({', '.join(map(str, sizes))})"
