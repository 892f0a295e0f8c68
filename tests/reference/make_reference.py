"""Make pytorch.safetensors: what PyTorch computes for three small encoder–decoders, in float64.

    pip install torch==2.13.0 numpy safetensors
    PYTHONPATH=. python tests/reference/make_reference.py        (from the top of the repository)

Only this script needs PyTorch, the tests do not. It stores, for every case: logits, loss, the gradient of every
parameter, and the losses before the first and after each of ten steps of Adam. The weights are not stored: `draw` gives
the same ones to both sides. PyTorch's side is built of PyTorch's own modules; only parameter names are ours.
"""

import re
from pathlib import Path

import numpy as np

PATH = Path(__file__).with_name("pytorch.safetensors")
ADAM = {"lr": 1e-2, "betas": (0.9, 0.98), "eps": 1e-9}
ADAM_STEPS = 10
LABEL_SMOOTHING = 0.1

# B 4, S 7, T 6, D 15, H 3, K 5, F 10, V 11 and 13
SIZES = {"src_vocab_size": 11, "tgt_vocab_size": 13, "d_model": 15, "num_heads": 3, "d_ff": 10, "max_len": 9}
REST = {"num_encoder_layers": 2, "num_decoder_layers": 2, "dropout": 0.0, "dtype": "float64"}
CASES = {
    "post_norm": {**SIZES, **REST},
    "pre_norm": {**SIZES, **REST, "norm_first": True, "layer_norm_eps": 0.01},
    "tied_gelu": {**SIZES, **REST, "src_vocab_size": 13, "tie_embeddings": True, "activation": "gelu"},
}
SRC = np.array([[4, 9, 4, 7, 3, 10, 2], [5, 4, 4, 2, 0, 0, 0], [6, 8, 3, 3, 7, 2, 0], [2, 0, 0, 0, 0, 0, 0]])
TGT = np.array([[1, 12, 5, 5, 6, 2], [1, 4, 11, 2, 0, 0], [1, 7, 7, 3, 2, 0], [1, 9, 2, 0, 0, 0]])
TGT_IN, TGT_OUT = TGT, np.pad(TGT[:, 1:], ((0, 0), (0, 1)))  # what comes next; 0 is padding


def draw(name, shape):
    """The weights of one parameter, of order 1: γ around 1, vectors 0.5, matrices 1/√rows."""
    values = np.random.default_rng(list(name.encode())).standard_normal(shape)
    if name.endswith("gamma"):
        return 1 + 0.3 * values
    return 0.5 * values if len(shape) == 1 else values / shape[0] ** 0.5


# --- PyTorch's side --------------------------------------------------------------------------------------------------


OURS = (  # patterns of names in PyTorch's layers, and what they are in ours
    (r"\.layers\.", "."), (r"^encoder(.*)\.self_attn\.", r"encoder\1.attention."),
    (r"\.self_attn\.", ".self_attention."), (r"\.multihead_attn\.", ".cross_attention."),
    (r"in_proj_weight$", "w_q w_k w_v"), (r"in_proj_bias$", "b_q b_k b_v"),
    (r"out_proj\.weight$", "w_o"), (r"out_proj\.bias$", "b_o"),
    (r"linear(\d)\.weight$", r"feed_forward.w\1"), (r"linear(\d)\.bias$", r"feed_forward.b\1"),
    (r"\.norm(\d)\.", r".add_norm\1.norm."), (r"coder\.norm\.", "coder_norm."),
    (r"norm\.weight$", "norm.gamma"), (r"norm\.bias$", "norm.beta"),
    (r"^(src|tgt)\.weight$", r"\1_input.embedding.table"),
    (r"^output\.weight$", "output.w"), (r"^output\.bias$", "output.b"),
)  # fmt: skip


def build(c):
    """PyTorch's own layers for case c, with the weights of `draw`."""
    import torch
    from torch import nn

    sizes, eps, pre_norm = (c["d_model"], c["num_heads"], c["d_ff"]), c.get("layer_norm_eps", 1e-5), "norm_first" in c
    how = {"dropout": 0.0, "activation": c.get("activation", "relu"), "batch_first": True, "norm_first": pre_norm}
    how |= {"layer_norm_eps": eps}
    encoder, decoder = nn.TransformerEncoderLayer(*sizes, **how), nn.TransformerDecoderLayer(*sizes, **how)
    last = [nn.LayerNorm(c["d_model"], eps) if pre_norm else None for _ in range(2)]
    model = nn.ModuleDict({
        "src": nn.Embedding(c["src_vocab_size"], c["d_model"]), "tgt": nn.Embedding(c["tgt_vocab_size"], c["d_model"]),
        "encoder": nn.TransformerEncoder(encoder, c["num_encoder_layers"], last[0], enable_nested_tensor=False),
        "decoder": nn.TransformerDecoder(decoder, c["num_decoder_layers"], last[1]),
        "output": nn.Linear(c["d_model"], c["tgt_vocab_size"], bias=not c.get("tie_embeddings")),
    })  # fmt: skip
    if c.get("tie_embeddings"):
        model["tgt"].weight = model["output"].weight = model["src"].weight
    for name, parameter, rows in parts(model):
        values = draw(name, as_ours(name, parameter.data[rows]).shape)
        parameter.data[rows] = torch.from_numpy(values if name.endswith("table") else values.T.copy())
    return model


def parts(model):
    """(our name, a parameter of PyTorch, its rows that are ours) of all: PyTorch stores q, k and v as one."""
    for name, parameter in model.named_parameters():
        for pattern, replacement in OURS:
            name = re.sub(pattern, replacement, name)
        place, _, names = name.rpartition(".")
        names = names.split()
        size = len(parameter) // len(names)
        for i, last in enumerate(names):
            yield f"{place}.{last}", parameter, slice(i * size, (i + 1) * size)


def as_ours(name, tensor):
    """PyTorch's matrices are (d_out, d_in), but for tables."""
    return tensor.numpy().copy() if name.endswith("table") else tensor.numpy().T.copy()


def logits_of(model, src, tgt):
    import torch

    def embedded(name, ids):
        D = model[name].embedding_dim
        i = torch.arange(0, D, 2)
        angle = torch.arange(ids.shape[1])[:, None] * torch.exp(-i * np.log(10000.0) / D)
        positions = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :D]
        return D**0.5 * model[name](ids) + positions

    future = torch.ones(tgt.shape[1], tgt.shape[1]).triu(1).bool()
    masks = {"tgt_key_padding_mask": tgt == 0, "memory_key_padding_mask": src == 0}
    memory = model["encoder"](embedded("src", src), src_key_padding_mask=src == 0)
    return model["output"](model["decoder"](embedded("tgt", tgt), memory, tgt_mask=future, **masks))


def compute(name):
    """Everything that is stored for one case."""
    import torch

    model = build(CASES[name])
    src, tgt_in, tgt_out = (torch.from_numpy(ids) for ids in (SRC, TGT_IN, TGT_OUT))
    how = {"ignore_index": 0, "label_smoothing": LABEL_SMOOTHING}
    optimizer, losses = torch.optim.Adam(model.parameters(), **ADAM), []
    for step in range(ADAM_STEPS + 1):
        logits = logits_of(model, src, tgt_in)
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tgt_out.flatten(), **how)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            stored = {"logits": logits.detach().numpy().copy(), "loss": np.array(loss.item())}
            stored |= {f"grad.{key}": as_ours(key, parameter.grad[rows]) for key, parameter, rows in parts(model)}
        optimizer.step()
    return {f"{name}.{key}": value for key, value in {**stored, "adam_losses": np.array(losses)}.items()}


def main():
    import torch
    from safetensors.numpy import save_file

    torch.set_default_dtype(torch.float64)
    tensors = {}
    for name in CASES:
        tensors |= compute(name)
        print(name, tensors[f"{name}.adam_losses"].round(4))
    save_file(tensors, PATH, {"made by": f"{Path(__file__).name}, torch {torch.__version__}"})
    print(f"{PATH}: {len(tensors)} tensors, {PATH.stat().st_size} bytes")


if __name__ == "__main__":
    main()
