"""T5's layout: names, shapes and settings (Raffel et al. 2020, as in Hugging Face's T5ForConditionalGeneration).

Its matrices are (d_out, d_in), the transpose of ours. v1.0 scales the input of its tied output projection; v1.1 has a
separate output projection and does not scale.
"""

import re

from .layout import Stored, given, matrix, refuse, required

MODEL_TYPES, PREFIX = ("t5",), ""
# unused: old files have this bias, but no version of the model adds it to anything
BUFFERS = re.compile(r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight")
HEADS = {"classification_head.": "classes of texts", "classifier.": "classes of tokens"}

ACTIVATIONS = {"relu": "relu", "gated-gelu": "gated_gelu"}
EMBEDDING, OUTPUT = "shared.weight", "lm_head.weight"
TIED, ALWAYS = True, ("decoder.embed_tokens.weight", "encoder.embed_tokens.weight")
COPIES = dict.fromkeys((*ALWAYS, OUTPUT), EMBEDDING)


def read_config(settings, weights):
    """config.json and the tensors of the file  ->  the arguments of T5Config

    dropout is dropout_rate: our attention weights and the inside of our feed-forward network have no dropout.
    """
    refuse(settings, {"is_encoder_decoder": True})
    kind = settings.get("feed_forward_proj", "relu")
    if kind not in ACTIVATIONS:
        known = ", ".join(ACTIVATIONS)
        raise ValueError(f"feed_forward_proj is {kind!r}, which is not supported; supported are {known}")
    tied = bool(given(settings, "tie_word_embeddings", True))
    scaled = bool(given(settings, "scale_decoder_outputs", tied))  # the key of newer files, which all say "tied"
    tied = scaled or (tied and OUTPUT not in weights)
    copies = [name for name in COPIES if name in weights and (tied or name in ALWAYS)]
    for name in copies:
        if EMBEDDING in weights and not weights.equal(name, EMBEDDING):
            raise ValueError(f"{name} must equal {EMBEDDING}, but differs")
    layers = required(settings, "num_layers")
    pad_id = given(settings, "pad_token_id", 0)
    eos_id = given(settings, "eos_token_id", 1)
    return dict(
        vocab_size=required(settings, "vocab_size"), d_model=required(settings, "d_model"),
        num_heads=required(settings, "num_heads"), d_head=required(settings, "d_kv"), num_encoder_layers=layers,
        num_decoder_layers=given(settings, "num_decoder_layers", layers), d_ff=required(settings, "d_ff"),
        dropout=given(settings, "dropout_rate", 0.1), activation=ACTIVATIONS[kind], tie_embeddings=tied,
        scale_output=scaled or not tied, num_buckets=given(settings, "relative_attention_num_buckets", 32),
        max_distance=given(settings, "relative_attention_max_distance", 128),
        layer_norm_eps=float(given(settings, "layer_norm_epsilon", 1e-6)), pad_id=pad_id,
        eos_id=eos_id[0] if isinstance(eos_id, list) and eos_id else eos_id,
        bos_id=given(settings, "decoder_start_token_id", pad_id), max_len=given(settings, "n_positions", 512),
    )  # fmt: skip


def write_config(config):
    """T5Config  ->  config.json"""
    c = config
    return {
        "architectures": ["T5ForConditionalGeneration"], "is_encoder_decoder": True, "vocab_size": c.vocab_size,
        "d_model": c.d_model, "num_heads": c.num_heads, "d_kv": c.d_head, "num_layers": c.num_encoder_layers,
        "num_decoder_layers": c.num_decoder_layers, "d_ff": c.d_ff, "dropout_rate": c.dropout,
        "feed_forward_proj": {ours: theirs for theirs, ours in ACTIVATIONS.items()}[c.activation],
        "tie_word_embeddings": c.tie_embeddings, **({} if c.scale_output else {"scale_decoder_outputs": False}),
        "relative_attention_num_buckets": c.num_buckets, "relative_attention_max_distance": c.max_distance,
        "layer_norm_epsilon": c.layer_norm_eps, "pad_token_id": c.pad_id, "eos_token_id": c.eos_id,
        "decoder_start_token_id": c.bos_id, "n_positions": c.max_len,
    }  # fmt: skip


def body(config):
    """{name: Stored} for all tensors but the output projection"""
    tensors = {EMBEDDING: Stored(("src_input.embedding.table",))}
    of_encoder = {"SelfAttention": "attention"}
    of_decoder = {"SelfAttention": "self_attention", "EncDecAttention": "cross_attention"}
    for side, num_layers, attentions in (
        ("encoder", config.num_encoder_layers, of_encoder), ("decoder", config.num_decoder_layers, of_decoder),
    ):  # fmt: skip
        bias = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"  # of all layers
        tensors |= {bias: Stored((f"{side}_bias.table",))} if num_layers else {}
        for i in range(num_layers):
            theirs, ours = f"{side}.block.{i}.layer", f"{side}.{i}"
            for n, (their_attention, our_attention) in enumerate(attentions.items()):
                for x in "qkvo":
                    tensors |= matrix(f"{theirs}.{n}.{their_attention}.{x}", f"{ours}.{our_attention}.w_{x}")
            last = len(attentions)
            network = f"{theirs}.{last}.DenseReluDense"
            if config.activation == "relu":
                tensors |= matrix(f"{network}.wi", f"{ours}.feed_forward.w1")
            else:
                tensors |= matrix(f"{network}.wi_0", f"{ours}.feed_forward.w_gate")
                tensors |= matrix(f"{network}.wi_1", f"{ours}.feed_forward.w1")
            tensors |= matrix(f"{network}.wo", f"{ours}.feed_forward.w2")
            for n in range(last + 1):
                tensors[f"{theirs}.{n}.layer_norm.weight"] = Stored((f"{ours}.add_norm{n + 1}.norm.gamma",))
        tensors[f"{side}.final_layer_norm.weight"] = Stored((f"{side}_norm.gamma",))
    return tensors


def heads(config):
    """{name: Stored} for the output projection"""
    return {} if config.tie_embeddings else matrix("lm_head", "output.w")
