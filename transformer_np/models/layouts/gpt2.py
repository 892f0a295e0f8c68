"""GPT-2's layout: names, shapes and settings (Radford et al. 2019, as in Hugging Face's GPT2LMHeadModel).

Its matrices are (d_in, d_out) like ours; queries, keys and values lie side by side in one c_attn (D, 3D).
"""

import re
from dataclasses import replace

from ...layers.initial import blank
from .layout import ACTIVATION_NAMES, Stored, activation, is_tied, refuse, required

MODEL_TYPES, PREFIX = ("gpt2",), "transformer."
BUFFERS = re.compile(r"h\.\d+\.attn\.(bias|masked_bias)")  # the causal mask
TIED, COPIES, ALWAYS = True, {"lm_head.weight": "wte.weight"}, ()
HEADS = {"score.": "classes of texts", "classifier.": "classes of tokens", "multiple_choice_head.": "multiple choice"}


def read_config(settings, weights):
    """config.json and the tensors of the file  ->  the arguments of GPTConfig

    dropout is resid_pdrop: our attention weights have no dropout.
    """
    refuse(settings, {"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False})
    refuse(settings, {"add_cross_attention": False})
    return dict(
        vocab_size=required(settings, "vocab_size"),
        max_len=required(settings, "n_positions", "n_ctx", "max_position_embeddings"),
        d_model=required(settings, "n_embd", "hidden_size"),
        num_heads=required(settings, "n_head", "num_attention_heads"),
        num_layers=required(settings, "n_layer", "num_hidden_layers"), d_ff=settings.get("n_inner"),
        dropout=settings.get("resid_pdrop", 0.1), activation=activation(settings, "activation_function", "gelu_new"),
        tie_embeddings=is_tied(settings, weights, "wte.weight", default=True),
        layer_norm_eps=float(settings.get("layer_norm_epsilon", 1e-5)),
    )  # fmt: skip


def write_config(config):
    """GPTConfig  ->  config.json"""
    c = config
    return {
        "architectures": ["GPT2LMHeadModel"], "vocab_size": c.vocab_size, "n_positions": c.max_len,
        "n_embd": c.d_model, "n_head": c.num_heads, "n_layer": c.num_layers, "n_inner": c.d_ff,
        "activation_function": ACTIVATION_NAMES[c.activation], "layer_norm_epsilon": c.layer_norm_eps,
        "resid_pdrop": c.dropout, "embd_pdrop": c.dropout, "attn_pdrop": 0.0, "tie_word_embeddings": c.tie_embeddings,
        "bos_token_id": None, "eos_token_id": None,
    }  # fmt: skip


def body(config):
    """{name without prefix: Stored} for the tensors under the prefix"""
    tensors = {"wte.weight": Stored(("embedding.table",)), "wpe.weight": Stored(("position.table",))}
    for i in range(config.num_layers):
        theirs, ours = f"h.{i}", f"blocks.{i}"
        for n in (1, 2):
            tensors[f"{theirs}.ln_{n}.weight"] = Stored((f"{ours}.add_norm{n}.norm.gamma",))
            tensors[f"{theirs}.ln_{n}.bias"] = Stored((f"{ours}.add_norm{n}.norm.beta",))
        for kind, letter in (("weight", "w"), ("bias", "b")):
            tensors[f"{theirs}.attn.c_attn.{kind}"] = Stored(tuple(f"{ours}.attention.{letter}_{x}" for x in "qkv"))
            tensors[f"{theirs}.attn.c_proj.{kind}"] = Stored((f"{ours}.attention.{letter}_o",))
            tensors[f"{theirs}.mlp.c_fc.{kind}"] = Stored((f"{ours}.feed_forward.{letter}1",))
            tensors[f"{theirs}.mlp.c_proj.{kind}"] = Stored((f"{ours}.feed_forward.{letter}2",))
    return {**tensors, "ln_f.weight": Stored(("norm.gamma",)), "ln_f.bias": Stored(("norm.beta",))}


def heads(config):
    """{name: Stored} for the tensors outside the prefix"""
    return {} if config.tie_embeddings else {"lm_head.weight": Stored(("output.w",), transposed=True)}


def writable(model):
    """The model. A model without biases is replaced by an equal one whose biases are 0, because GPT-2 has biases.

    Raises ValueError for an activation that GPT-2 lacks, a window, and other positions, heads or norms than GPT-2's.
    """
    c = model.config
    if c.window is not None:
        raise ValueError(f"window is {c.window}, but GPT-2 has none: each token sees all before it")
    if c.num_kv_heads not in (None, c.num_heads):
        raise ValueError(f"num_kv_heads is {c.num_kv_heads}, but GPT-2 has as many as num_heads = {c.num_heads}")
    for field, its_own in {"positions": "learned", "norm": "layer"}.items():
        if getattr(c, field) != its_own:
            raise ValueError(f'{field} is "{getattr(c, field)}", but GPT-2 has "{its_own}"')
    name = c.activation
    if name not in ACTIVATION_NAMES:
        raise ValueError(f"activation is {name!r}, which GPT-2 cannot have; it can have {', '.join(ACTIVATION_NAMES)}")
    if c.bias:
        return model
    with blank():
        twin = type(model)(replace(c, bias=True))
    twin.load_state_dict(model.state_dict(), strict=False)
    return twin
