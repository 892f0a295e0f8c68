"""Make llama.safetensors: what Hugging Face's Llama, Qwen2 and Mistral compute for small folders in their layout.

    pip install torch==2.13.0 transformers==5.23.0 numpy safetensors
    PYTHONPATH=. python tests/reference/make_llama.py        (from the top of the repository)

Only this script needs PyTorch and transformers, the tests do not. Folders and values are made as in make_pretrained.
Stored are the logits, a greedy text, and the gradient of Σ dlogits · logits with respect to every tensor, by autograd,
in float64; the reference computes its norms in float32 all the same.
"""

from pathlib import Path

import numpy as np

try:
    from reference.make_pretrained import GPT_IDS as IDS
    from reference.make_pretrained import draw, store
except ModuleNotFoundError:  # run as a script
    from make_pretrained import GPT_IDS as IDS
    from make_pretrained import draw, store

PATH = Path(__file__).with_name("llama.safetensors")

# B 3, T 7, F 10, V 13, L 2; every case has its own D, H, G (heads of keys and values) and K
SHARED = {
    "vocab_size": 13, "hidden_size": 12, "intermediate_size": 10, "num_hidden_layers": 2,
    "max_position_embeddings": 40, "rms_norm_eps": 1e-3, "hidden_act": "silu", "bos_token_id": 1,
    "eos_token_id": None,
}  # fmt: skip
CASES = {
    # H·K is not D, the frequencies are scaled, the file is of the newer generation
    "llama": {
        **SHARED, "model_type": "llama", "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 4,
        "tie_word_embeddings": False,
        "rope_parameters": {
            "rope_theta": 50.0, "rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 2.0,
            "original_max_position_embeddings": 16,
        },
    },
    # biases on queries, keys and values; one head of keys and values for all
    "qwen2": {
        **SHARED, "model_type": "qwen2", "num_attention_heads": 3, "num_key_value_heads": 1,
        "tie_word_embeddings": True, "use_sliding_window": False, "sliding_window": 4, "max_window_layers": 2,
        "rope_theta": 100.0,
    },
    # each token sees itself and the two before it
    "mistral": {
        **SHARED, "model_type": "mistral", "num_attention_heads": 6, "num_key_value_heads": 3, "head_dim": 6,
        "tie_word_embeddings": False, "sliding_window": 3, "rope_theta": 30.0,
    },
    # tied; the file is of the older generation
    "smollm": {
        **SHARED, "model_type": "llama", "hidden_size": 20, "num_attention_heads": 10, "num_key_value_heads": 5,
        "tie_word_embeddings": True, "attention_bias": False, "mlp_bias": False, "pretraining_tp": 1,
        "rope_interleaved": False, "rope_scaling": {"type": "linear", "factor": 2.0}, "rope_theta": 20.0,
    },
}  # fmt: skip
NEW_TOKENS = 12


def names_and_shapes(case):
    """{name: shape} of the tensors in the file, written down from Hugging Face's models."""
    c = CASES[case]
    V, D, F = c["vocab_size"], c["hidden_size"], c["intermediate_size"]
    H, G = c["num_attention_heads"], c["num_key_value_heads"]
    K = c.get("head_dim", D // H)
    shapes = {"model.embed_tokens.weight": (V, D)}
    for layer in ("model.layers.0", "model.layers.1"):
        for x, width in (("q", H * K), ("k", G * K), ("v", G * K)):
            shapes[f"{layer}.self_attn.{x}_proj.weight"] = (width, D)
            if c["model_type"] == "qwen2":
                shapes[f"{layer}.self_attn.{x}_proj.bias"] = (width,)
        shapes[f"{layer}.self_attn.o_proj.weight"] = (D, H * K)
        shapes |= {f"{layer}.mlp.gate_proj.weight": (F, D), f"{layer}.mlp.up_proj.weight": (F, D)}
        shapes[f"{layer}.mlp.down_proj.weight"] = (D, F)
        shapes |= {f"{layer}.input_layernorm.weight": (D,), f"{layer}.post_attention_layernorm.weight": (D,)}
    shapes["model.norm.weight"] = (D,)
    return shapes if c["tie_word_embeddings"] else {**shapes, "lm_head.weight": (V, D)}


def tensors(case):
    return {name: draw(name, shape).astype(np.float32) for name, shape in names_and_shapes(case).items()}


def dlogits():
    """The gradient that the backward starts from, (B, T, V)."""
    return draw("dlogits", (*IDS.shape, SHARED["vocab_size"]))


# --- Hugging Face's side ---------------------------------------------------------------------------------------------


def compute(case, folder):
    """Everything that is stored for one case."""
    import torch
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64).eval()
    ids = torch.from_numpy(IDS)
    logits = model(ids).logits
    (logits * torch.from_numpy(dlogits())).sum().backward()
    gradients = {f"gradient.{name}": parameter.grad for name, parameter in model.named_parameters()}
    text = model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=NEW_TOKENS, do_sample=False, pad_token_id=0
    )
    with torch.no_grad():
        first, second = model(text).logits[:, IDS.shape[1] - 1 : -1].topk(2).values.unbind(-1)
    margin = float((first - second).min())
    assert margin > 1e-4, f"the greedy text hangs on a difference of {margin}"
    return {"logits": logits.detach(), "greedy": text, **gradients}


if __name__ == "__main__":
    store(PATH, __file__, CASES, tensors, compute)
