"""Our models built from PyTorch's own modules, with our parameters.

PyTorch's matrices are (d_out, d_in), the transpose of ours; one matrix product gives queries, keys and values.
"""

import torch
from torch import nn
from torch.nn import functional as F

from ..functional import sinusoidal_encoding
from . import torch_train

LONGEST = 1024  # the most tokens of memory and segment of a Transformer-XL


def torch_model(ours):
    """The PyTorch counterpart of one of our models, with the same parameters."""
    config, state = ours.config, {name: torch.from_numpy(values) for name, values in ours.state_dict().items()}
    with torch.no_grad():
        return MODELS[type(ours).__name__](config, _Copy(state))


class _Copy:
    """Copies our parameters, found by their names, into PyTorch's modules."""

    def __init__(self, state):
        self.state = state

    def table(self, embedding, name):
        embedding.weight.copy_(self.state[f"{name}.table"])

    def linear(self, linear, *names):
        """Copy one or several of our linear maps side by side into one of PyTorch's. A name stands for a matrix and its
        bias: "x.w1" for x.w1 and x.b1; without a bias in PyTorch there is none in ours.
        """
        linear.weight.copy_(torch.cat([self.state[name].t() for name in names]))
        if linear.bias is not None:
            linear.bias.copy_(torch.cat([self.state[_bias_of(name)] for name in names]))

    def norm(self, norm, name):
        norm.weight.copy_(self.state[f"{name}.gamma"])
        if norm.bias is not None:
            norm.bias.copy_(self.state[f"{name}.beta"])

    def layer(self, layer, name, **attentions):
        """Copy into an nn.TransformerEncoderLayer or nn.TransformerDecoderLayer. attentions: {its name: ours}"""
        for theirs, ours in attentions.items():
            attention, ours = getattr(layer, theirs), f"{name}.{ours}"
            attention.in_proj_weight.copy_(torch.cat([self.state[f"{ours}.w_{part}"].t() for part in "qkv"]))
            attention.in_proj_bias.copy_(torch.cat([self.state[f"{ours}.b_{part}"] for part in "qkv"]))
            self.linear(attention.out_proj, f"{ours}.w_o")
        norms = [getattr(layer, f"norm{number}") for number in range(1, 2 + len(attentions))]
        self.feed_forward_and_norms(layer, name, norms)

    def feed_forward_and_norms(self, layer, name, norms):
        self.linear(layer.linear1, f"{name}.feed_forward.w1")
        self.linear(layer.linear2, f"{name}.feed_forward.w2")
        for number, norm in enumerate(norms, start=1):
            self.norm(norm, f"{name}.add_norm{number}.norm")


def _bias_of(name):
    """encoder.0.attention.w_q -> encoder.0.attention.b_q"""
    module, _, matrix = name.rpartition(".")
    return f"{module}.{matrix.replace('w', 'b')}"


class EncoderDecoder(torch_train.Translator):
    """The translator of the script, of any sizes: nn.Transformer between positional encodings and output."""

    def __init__(self, config, copy):
        c = config
        sizes = c.d_model, c.num_heads, c.num_encoder_layers, c.d_ff
        super().__init__(c.src_vocab_size, c.tgt_vocab_size, *sizes, dropout=0.0, longest=c.max_len)
        stacks = self.transformer
        stacks.encoder.norm = stacks.decoder.norm = None  # post-norm has none after a stack
        self.output = nn.Linear(c.d_model, c.tgt_vocab_size, bias=not c.tie_embeddings)
        copy.table(self.source, "src_input.embedding")
        if c.tie_embeddings:
            self.target = self.source
            self.output.weight = self.target.weight
        else:
            copy.table(self.target, "tgt_input.embedding")
            copy.linear(self.output, "output.w")
        for i, layer in enumerate(stacks.encoder.layers):
            copy.layer(layer, f"encoder.{i}", self_attn="attention")
        for i, layer in enumerate(stacks.decoder.layers):
            copy.layer(layer, f"decoder.{i}", self_attn="self_attention", multihead_attn="cross_attention")


class GPT(torch_train.GPT):
    """The GPT of the script: nanoGPT's CPU model, with PyTorch's fused attention."""

    def __init__(self, config, copy):
        c = config
        super().__init__(c.vocab_size, c.d_model, c.num_heads, c.num_layers, c.max_len)
        copy.table(self.token, "embedding")
        copy.table(self.position, "position")
        copy.norm(self.norm, "norm")
        for i, block in enumerate(self.blocks):
            copy.linear(block.qkv, *(f"blocks.{i}.attention.w_{part}" for part in "qkv"))
            copy.linear(block.out, f"blocks.{i}.attention.w_o")
            copy.feed_forward_and_norms(block, f"blocks.{i}", (block.norm1, block.norm2))

    @torch.no_grad()
    def generate(self, ids, max_new_tokens):
        """Generate as nanoGPT does: process the whole context again for every token."""
        for _ in range(max_new_tokens):
            logits = self(ids[:, -self.position.num_embeddings :])[:, -1]
            drawn = torch.multinomial(F.softmax(logits, dim=-1), num_samples=1)
            ids = torch.cat((ids, drawn), dim=1)
        return ids


class Bert(nn.Module):
    """nn.TransformerEncoder between the three embeddings and the masked-word head. Padding is masked."""

    def __init__(self, config, copy):
        super().__init__()
        c = self.config = config
        self.token, self.position = nn.Embedding(c.vocab_size, c.d_model), nn.Embedding(c.max_len, c.d_model)
        self.segment = nn.Embedding(c.type_vocab_size, c.d_model)
        self.norm = nn.LayerNorm(c.d_model, c.layer_norm_eps)
        layer = nn.TransformerEncoderLayer(
            c.d_model, c.num_heads, c.d_ff, dropout=0.0, activation=c.activation, layer_norm_eps=c.layer_norm_eps,
            batch_first=True,
        )  # fmt: skip
        self.encoder = nn.TransformerEncoder(layer, c.num_layers, enable_nested_tensor=False)
        self.head = nn.Linear(c.d_model, c.d_model)
        self.head_norm = nn.LayerNorm(c.d_model, c.layer_norm_eps)
        self.head_bias = nn.Parameter(copy.state["mlm_head.b"].clone())
        for embedding, name in ((self.token, "embedding"), (self.position, "position"), (self.segment, "segment")):
            copy.table(embedding, name)
        copy.norm(self.norm, "norm")
        copy.linear(self.head, "mlm_head.linear.w")
        copy.norm(self.head_norm, "mlm_head.norm")
        for i, layer in enumerate(self.encoder.layers):
            copy.layer(layer, f"blocks.{i}", self_attn="attention")

    def forward(self, ids, places):
        """ids (B, S), places (B, S) Boolean  ->  logits (N, V) at the places"""
        x = self.token(ids) + self.position(torch.arange(ids.shape[1])) + self.segment(torch.zeros_like(ids))
        x = self.encoder(self.norm(x), src_key_padding_mask=ids == self.config.pad_id)
        x = self.head_norm(F.gelu(self.head(x[places])))
        return F.linear(x, self.token.weight, self.head_bias)  # tied


class TransformerXL(nn.Module):
    """A Transformer-XL. PyTorch has no relative attention, so this model uses PyTorch's operations and autograd."""

    def __init__(self, config, copy):
        super().__init__()
        c = self.config = config
        self.token = nn.Embedding(c.vocab_size, c.d_model)
        self.blocks = nn.ModuleList(RecurrentBlock(c, copy, f"blocks.{i}") for i in range(c.num_layers))
        self.register_buffer("encodings", torch.from_numpy(sinusoidal_encoding(LONGEST, c.d_model)).flip(0))
        copy.table(self.token, "embedding")

    def forward(self, ids, mems):
        """ids (B, T), mems of the previous segment or None  ->  logits (B, T, V), new mems"""
        x = self.token(ids) * self.config.d_model**0.5
        new_mems = []
        for block, memory in zip(self.blocks, mems or [None] * len(self.blocks), strict=True):
            source = x if memory is None else torch.cat([memory, x], dim=1)  # (B, S, D)
            new_mems.append(source[:, -self.config.mem_len :].detach())
            x = block(x, source, self.encodings[-source.shape[1] :])
        return F.linear(x, self.token.weight), new_mems  # tied


class RecurrentBlock(nn.Module):
    def __init__(self, config, copy, name):
        super().__init__()
        c, self.num_heads = config, config.num_heads
        self.q, self.k, self.v, self.r, self.o = (nn.Linear(c.d_model, c.d_model, bias=False) for _ in range(5))
        self.content_bias, self.position_bias = (
            nn.Parameter(copy.state[f"{name}.attention.{part}"][:, None].clone()) for part in "uv"
        )  # (H, 1, K)
        self.norm1, self.norm2 = (nn.LayerNorm(c.d_model, c.layer_norm_eps) for _ in range(2))
        self.linear1, self.linear2 = nn.Linear(c.d_model, c.d_ff), nn.Linear(c.d_ff, c.d_model)
        for part in "qkvro":
            copy.linear(getattr(self, part), f"{name}.attention.w_{part}")
        copy.feed_forward_and_norms(self, name, (self.norm1, self.norm2))

    def forward(self, x, source, encodings):
        """x (B, T, D), source (B, S, D), which ends with x, encodings (S, D), the largest distance first"""
        B, T, D = x.shape
        S = source.shape[1]
        q, k, v = self._heads(self.q(x)), self._heads(self.k(source)), self._heads(self.v(source))  # (B, H, …, K)
        r = self._heads(self.r(encodings)[None])  # (1, H, S, K)
        by_distance = (q + self.position_bias) @ r.transpose(2, 3)  # (B, H, T, S), one column per distance
        shifted = F.pad(by_distance, (1, 0)).view(B, -1, S + 1, T)[:, :, 1:].reshape(by_distance.shape)
        scores = ((q + self.content_bias) @ k.transpose(2, 3) + shifted) * q.shape[-1] ** -0.5
        future = torch.ones(T, S, dtype=torch.bool).triu(S - T + 1)
        weights = F.softmax(scores.masked_fill(future, -torch.inf), dim=-1)
        attended = (weights @ v).transpose(1, 2).reshape(B, T, D)
        x = self.norm1(x + self.o(attended))
        return self.norm2(x + self.linear2(F.relu(self.linear1(x))))

    def _heads(self, x):
        return x.view(*x.shape[:2], self.num_heads, -1).transpose(1, 2)


MODELS = {"Transformer": EncoderDecoder, "GPT": GPT, "Bert": Bert, "TransformerXL": TransformerXL}
