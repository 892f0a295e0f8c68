"""The speed of the package on this machine: `transformer-np bench`.

`races` defines the contestants of each race, `measure` runs them in turn, each in its own process (`contestants`, with
`child` inside), `profile` times the parts of one step, `report` formats the results. The work of the contestants is in
`work` and, for PyTorch, in `torch_work`. `whole` runs whole training commands and PyTorch's script `torch_train`.
`tasks` measures what is learned, not how fast.

The command line loads this file, so it contains only names.
"""

TRAINING = {  # training runs
    "small": "an encoder-decoder of 2 + 2 layers, d 64, 16 + 16 tokens, batch 32",
    "gpt": "nanoGPT's CPU model: 4 layers, d 128, block 64, batch 12, exact GELU",
    "bert": "a BERT of 4 layers, d 128, 64 tokens, batch 16, masked words",
    "xl": "a Transformer-XL of 4 layers, d 128, segment and memory 64, batch 12",
    "base": "the paper's base model: 6 + 6 layers, d 512, 32 + 32 tokens, batch 16",
}
WHAT = {
    **TRAINING,
    "generate": "text from the gpt with and without cache, batch 1",
    "train": "the whole command `train gpt`, 1,000 steps, with start, data, validation and saving",
    "translate": "the whole command `train translate`, 800 steps",
    "classify": "the whole command `train classify`, 600 steps",
    "tasks": "how well `train translate` learns to sort, reverse, copy, shift letters, write dates and add",
    "attention": "forward and backward, batch 4, 8 heads of 64, 512 to 4096 tokens",
}
WHOLE = ("train", "translate", "classify")
DEFAULT = ("small", "gpt", "bert", "xl", "generate")  # takes about two minutes
