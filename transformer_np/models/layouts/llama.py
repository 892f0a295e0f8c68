"""The layout of Llama, Mistral, Qwen2 and Qwen3: names, shapes and settings (Touvron et al. 2023, as in Hugging Face's
LlamaForCausalLM). SmolLM's files are Llama's.

Their matrices are (d_out, d_in), the transpose of ours. Mistral adds a window, Qwen2 biases of queries, keys and
values, Qwen3 a norm of the queries and keys of each head. Files of transformers 5 have
rope_parameters; older files have rope_theta and rope_scaling.
"""

import re

from .layout import Stored, is_tied, matrix, refuse, required

MODEL_TYPES, PREFIX = ("llama", "mistral", "qwen2", "qwen3"), "model."
BUFFERS = re.compile(r"layers\.\d+\.self_attn\.rotary_emb\.inv_freq")  # the frequencies, which follow from the settings
SLIDING = "sliding_attention"  # a layer with a window
TIED, COPIES, ALWAYS = False, {"lm_head.weight": "embed_tokens.weight"}, ()
HEADS = {"score.": "classes of texts", "classifier.": "classes of tokens", "qa_outputs.": "answers"}


def read_config(settings, weights):
    """config.json and the tensors of the file  ->  the arguments of LlamaConfig

    attention_dropout is ignored: our attention weights have no dropout.
    """
    refuse(settings, {"hidden_act": "silu", "mlp_bias": False, "partial_rotary_factor": 1.0})
    theta, scaling = _rotary(settings)
    biased = bool(settings.get("attention_bias")) and settings["model_type"] in ("llama", "qwen3")
    num_layers = required(settings, "num_hidden_layers")
    return dict(
        vocab_size=required(settings, "vocab_size"), max_len=required(settings, "max_position_embeddings"),
        d_model=required(settings, "hidden_size"), num_heads=required(settings, "num_attention_heads"),
        num_kv_heads=settings.get("num_key_value_heads"), d_head=settings.get("head_dim"), num_layers=num_layers,
        d_ff=required(settings, "intermediate_size"), rope_theta=theta, rope_scaling=scaling,
        window=_window(settings, num_layers), eps=float(settings.get("rms_norm_eps", 1e-6)),
        qkv_bias=settings["model_type"] == "qwen2" or biased, output_bias=biased,
        norm_heads=settings["model_type"] == "qwen3",
        tie_embeddings=is_tied(settings, weights, "embed_tokens.weight", default=False),
    )  # fmt: skip


def _rotary(settings):
    """rope_theta and rope_scaling of LlamaConfig."""
    given = settings.get("rope_scaling") or settings.get("rope_parameters") or {}
    if not isinstance(given, dict):
        raise ValueError(f"rope_scaling must be a JSON object with a rope_type, got {given!r}")
    if any(isinstance(value, dict) for value in given.values()):
        raise ValueError("rope_parameters differ by layer, which is not supported; supported is one set for all layers")
    refuse(given, {"partial_rotary_factor": 1.0})
    theta = float(given.get("rope_theta") or settings.get("rope_theta") or 10000.0)
    kind = given.get("rope_type", given.get("type", "default"))
    if kind == "default":
        return theta, None
    numbers = {key: value for key, value in given.items() if key not in ("rope_type", "type", "rope_theta")}
    if kind == "llama3":
        numbers.setdefault("original_max_position_embeddings", settings.get("max_position_embeddings"))
    return theta, {"rope_type": kind, **numbers}


def _window(settings, num_layers):
    """The window of LlamaConfig, one for all layers: sliding_window counts the token itself, ours does not."""
    width = None
    if settings["model_type"] == "mistral":
        width = settings.get("sliding_window", 4096)
    elif settings["model_type"] in ("qwen2", "qwen3") and settings.get("use_sliding_window"):
        width = settings.get("sliding_window", 4096)
        first = settings.get("max_window_layers", 28)
        kinds = set((settings.get("layer_types") or [])[:num_layers])
        kinds = kinds or {kind for kind, has in (("full_attention", first > 0), (SLIDING, num_layers > first)) if has}
        if len(kinds) > 1:
            some = "sliding_window holds for some layers only"
            raise ValueError(f"{some}, which is not supported; supported is all or none")
        width = width if kinds == {SLIDING} else None
    return None if width is None else width - 1


def write_config(config):
    """LlamaConfig  ->  config.json of the model type that has these biases and this window"""
    c = config
    settings = {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": c.vocab_size,
        "max_position_embeddings": c.max_len, "hidden_size": c.d_model, "num_attention_heads": c.num_heads,
        "num_key_value_heads": c.num_kv_heads, "head_dim": c.d_head, "num_hidden_layers": c.num_layers,
        "intermediate_size": c.d_ff, "hidden_act": "silu", "rms_norm_eps": c.eps, "rope_theta": c.rope_theta,
        "rope_scaling": c.rope_scaling, "attention_dropout": 0.0, "tie_word_embeddings": c.tie_embeddings,
        "bos_token_id": None, "eos_token_id": None,
    }  # fmt: skip
    if c.window is not None:
        settings |= {"model_type": "mistral", "architectures": ["MistralForCausalLM"], "sliding_window": c.window + 1}
    if c.output_bias:
        settings["attention_bias"] = True
    elif c.qkv_bias:
        settings |= {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"]}
    if c.norm_heads:
        settings |= {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]}
    if settings["model_type"] in ("qwen2", "qwen3"):
        settings |= {"use_sliding_window": c.window is not None, "max_window_layers": 0}
    return settings


def body(config):
    """{name without prefix: Stored} for the tensors inside the prefix"""
    tensors = {"embed_tokens.weight": Stored(("embedding.table",))}
    for i in range(config.num_layers):
        theirs, ours = f"layers.{i}", f"blocks.{i}"
        for x in "qkvo":
            tensors |= matrix(f"{theirs}.self_attn.{x}_proj", f"{ours}.attention.w_{x}")
        for x in "qk" if config.norm_heads else "":
            tensors[f"{theirs}.self_attn.{x}_norm.weight"] = Stored((f"{ours}.attention.norm_{x}.gamma",))
        for x in "qkv" * config.qkv_bias + "o" * config.output_bias:
            tensors[f"{theirs}.self_attn.{x}_proj.bias"] = Stored((f"{ours}.attention.b_{x}",))
        for name, w in (("gate", "w_gate"), ("up", "w1"), ("down", "w2")):
            tensors |= matrix(f"{theirs}.mlp.{name}_proj", f"{ours}.feed_forward.{w}")
        tensors[f"{theirs}.input_layernorm.weight"] = Stored((f"{ours}.add_norm1.norm.gamma",))
        tensors[f"{theirs}.post_attention_layernorm.weight"] = Stored((f"{ours}.add_norm2.norm.gamma",))
    return {**tensors, "norm.weight": Stored(("norm.gamma",))}


def heads(config):
    """{name: Stored} for the tensors outside the prefix"""
    return {} if config.tie_embeddings else matrix("lm_head", "output.w")


def writable(model):
    """The model; ValueError if Hugging Face would refuse it."""
    c = model.config
    if c.norm_heads and c.qkv_bias and not c.output_bias:
        raise ValueError("norm_heads with qkv_bias needs output_bias in Hugging Face's layout of Qwen3")
    if c.output_bias and c.window is not None and not c.norm_heads:
        raise ValueError("output_bias does not go with a window in Hugging Face's layout")
    if c.d_model % c.num_heads:
        sizes = f"{c.num_heads} heads for d_model = {c.d_model}"
        raise ValueError(f"num_heads must divide d_model in Hugging Face's layout, got {sizes}")
    return model
