"""Make pytorch.safetensors: what PyTorch computes for three small encoder–decoders, in float64.

    pip install torch==2.13.0 numpy safetensors
    PYTHONPATH=. python tests/reference/make_reference.py        (from the top of the repository)

Only this script needs PyTorch, the tests do not. It stores, for every case: logits, loss, the gradient of every
parameter, and the losses before the first and after each of ten steps of Adam. The weights are not stored: `draw` gives
the same ones to both sides. PyTorch's side is built of PyTorch's own modules; only parameter names are ours.
"""

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


def build(c):
    """The model of case c, with the weights of `draw`, and {our name: how to read that tensor off its .grad}."""
    import torch
    from torch import nn

    D, eps = c["d_model"], c.get("layer_norm_eps", 1e-5)
    read = {}

    def fill(parameter, name, transposed=False):
        """Fill a parameter of PyTorch with our weights; PyTorch's matrices are (d_out, d_in)."""
        shape = tuple(parameter.shape)[::-1] if transposed else tuple(parameter.shape)
        values = torch.from_numpy(draw(name, shape))
        with torch.no_grad():
            parameter.copy_(values.T if transposed else values)
        read[name] = lambda: (parameter.grad.T if transposed else parameter.grad).numpy().copy()

    def fill_part(parameter, name, part, transposed=False):
        """The same for the q, k or v part of a parameter that PyTorch stores as one."""
        rows = slice(part * D, (part + 1) * D)
        values = torch.from_numpy(draw(name, (D, D) if transposed else (D,)))
        with torch.no_grad():
            parameter[rows] = values.T if transposed else values
        read[name] = lambda: (parameter.grad[rows].T if transposed else parameter.grad[rows]).numpy().copy()

    def linear(d_in, d_out, w, b):
        layer = nn.Linear(d_in, d_out)
        fill(layer.weight, w, transposed=True)
        fill(layer.bias, b)
        return layer

    def norm(name):
        layer = nn.LayerNorm(D, eps=eps)
        fill(layer.weight, f"{name}.gamma")
        fill(layer.bias, f"{name}.beta")
        return layer

    def attention(name):
        layer = nn.MultiheadAttention(D, c["num_heads"], batch_first=True)
        for part, letter in enumerate("qkv"):
            fill_part(layer.in_proj_weight, f"{name}.w_{letter}", part, transposed=True)
            fill_part(layer.in_proj_bias, f"{name}.b_{letter}", part)
        fill(layer.out_proj.weight, f"{name}.w_o", transposed=True)
        fill(layer.out_proj.bias, f"{name}.b_o")
        return layer

    def feed_forward(name):
        middle = nn.GELU() if c.get("activation") == "gelu" else nn.ReLU()
        first = linear(D, c["d_ff"], f"{name}.w1", f"{name}.b1")
        return nn.Sequential(first, middle, linear(c["d_ff"], D, f"{name}.w2", f"{name}.b2"))

    def positions(length):
        position, i = torch.arange(length)[:, None], torch.arange(0, D, 2)
        angle = position * torch.exp(-i * np.log(10000.0) / D)
        return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :D]

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.src_table = nn.Embedding(c["src_vocab_size"], D)
            fill(self.src_table.weight, "src_input.embedding.table")
            self.tgt_table, self.output = nn.Embedding(c["tgt_vocab_size"], D), nn.Linear(D, c["tgt_vocab_size"])
            if c.get("tie_embeddings"):
                self.tgt_table.weight = self.src_table.weight
                self.output = nn.Linear(D, c["tgt_vocab_size"], bias=False)
                self.output.weight = self.src_table.weight
            else:
                fill(self.tgt_table.weight, "tgt_input.embedding.table")
                self.output = linear(D, c["tgt_vocab_size"], "output.w", "output.b")
            self.layers, self.norms = nn.ModuleDict(), nn.ModuleDict()
            for stack in ("encoder", "decoder"):
                for i in range(c[f"num_{stack}_layers"]):
                    block = f"{stack}.{i}"
                    kinds = ["attention"] if stack == "encoder" else ["self_attention", "cross_attention"]
                    for number, kind in enumerate([*kinds, "feed_forward"], start=1):
                        make = feed_forward if kind == "feed_forward" else attention
                        self.layers[f"{block}.{kind}".replace(".", "/")] = make(f"{block}.{kind}")
                        self.norms[f"{block}.{kind}".replace(".", "/")] = norm(f"{block}.add_norm{number}.norm")
                if c.get("norm_first"):
                    self.norms[stack] = norm(f"{stack}_norm")

        def sublayer(self, name, x, call):
            layer, norm = self.layers[name.replace(".", "/")], self.norms[name.replace(".", "/")]
            if c.get("norm_first"):
                return x + call(layer, norm(x))
            return norm(x + call(layer, x))

        def stack(self, name, x, steps):
            for i in range(c[f"num_{name}_layers"]):
                for kind, call in steps.items():
                    x = self.sublayer(f"{name}.{i}.{kind}", x, call)
            return self.norms[name](x) if c.get("norm_first") else x

        def forward(self, src, tgt):
            future = torch.ones(tgt.shape[1], tgt.shape[1]).triu(1).bool()
            feed = lambda layer, x: layer(x)  # noqa: E731
            memory = self.stack(
                "encoder",
                D**0.5 * self.src_table(src) + positions(src.shape[1]),
                {"attention": lambda layer, x: layer(x, x, x, key_padding_mask=src == 0)[0], "feed_forward": feed},
            )
            x = self.stack(
                "decoder",
                D**0.5 * self.tgt_table(tgt) + positions(tgt.shape[1]),
                {
                    "self_attention": lambda layer, x: layer(x, x, x, key_padding_mask=tgt == 0, attn_mask=future)[0],
                    "cross_attention": lambda layer, x: layer(x, memory, memory, key_padding_mask=src == 0)[0],
                    "feed_forward": feed,
                },
            )
            return self.output(x)

    return Model(), read


def compute(name):
    """Everything that is stored for one case."""
    import torch

    model, read = build(CASES[name])
    src, tgt_in, tgt_out = (torch.from_numpy(ids) for ids in (SRC, TGT_IN, TGT_OUT))

    def forward():
        logits = model(src, tgt_in)
        how = {"ignore_index": 0, "label_smoothing": LABEL_SMOOTHING}
        return logits, torch.nn.functional.cross_entropy(logits.flatten(0, 1), tgt_out.flatten(), **how)

    optimizer, losses = torch.optim.Adam(model.parameters(), **ADAM), []
    for step in range(ADAM_STEPS + 1):
        logits, loss = forward()
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            stored = {"logits": logits.detach().numpy().copy(), "loss": np.array(loss.item())}
            stored |= {f"grad.{key}": np.ascontiguousarray(get()) for key, get in read.items()}
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
