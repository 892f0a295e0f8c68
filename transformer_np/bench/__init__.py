"""How fast the package is on this machine: `transformer-np bench`.

`races` says who runs against whom, `measure` lets them run in turn, each in a process of its own (`contestants`, and
`child` inside it), `profile` looks into one step, `report` writes it down. What the contestants do is in `work`, and in
`torch_work` for PyTorch, which is loaded nowhere else.

This file is loaded with the command line and has nothing but names.
"""

TRAINING = {  # what can be trained
    "small": "encoder-decoder of 2 + 2 layers, d 64, 16 + 16 tokens, batch 32",
    "gpt": "nanoGPT's CPU model: 4 layers, d 128, block 64, batch 12",
    "bert": "4 layers, d 128, 64 tokens, batch 16, masked words",
    "xl": "Transformer-XL of 4 layers, d 128, segment and memory 64, batch 12",
    "base": "the paper's base model: 6 + 6 layers, d 512, 32 + 32 tokens, batch 16",
}
WHAT = {
    **TRAINING,
    "generate": "text from the gpt with and without cache, batch 1",
    "attention": "forward and backward, batch 4, 8 heads of 64, 512 to 4096 tokens",
}
DEFAULT = ("small", "gpt", "bert", "xl", "generate")  # what takes about two minutes
