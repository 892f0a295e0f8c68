"""What is printed, drawn and judged does not depend on the last bits of sums, which differ between processors.

OpenBLAS and NumPy choose their kernels by the processor, and the environment can choose those of another one.
"""

import os
from pathlib import Path

import pytest
from shared import python

ROOT = Path(__file__).parents[1]
KERNELS = ["Haswell", "SkylakeX", "Zen"]
SAID = r"""
import io
from contextlib import redirect_stdout
from zlib import crc32

import numpy as np
from transformer_np import cli, plots
from transformer_np import functional as F
from transformer_np.homework import all_exercises, check
from transformer_np.layers import MultiHeadAttention
from transformer_np.models import GPT, GPTConfig

with redirect_stdout(io.StringIO()) as lecture:
    assert cli.main(["lecture", "--no-train"]) == 0
print(*lecture.getvalue().splitlines()[:-1], sep="\n")  # the last line is the time
for name, exercise in list(all_exercises().items())[::16]:
    for mistake in list(exercise.mistakes)[:3]:
        print(name, mistake, check(name, exercise.variant([mistake]), seed=0, quiet=True).message)

rng = np.random.default_rng(0)
layer = MultiHeadAttention(8, 2, rng=0)
layer(np.concatenate([rng.normal(size=(1, 4, 8)), np.zeros((1, 4, 8))], axis=1).astype(np.float32))  # ties
words = [f"w{i}" for i in range(8)]
model = GPT(GPTConfig(8, max_len=8, d_model=8, num_heads=2, num_layers=2)).eval(keep=True)
logits = model(np.arange(8)[None])[0]
vectors = rng.normal(size=(8, 5))
pictures = {
    "attention": plots.attention(layer.weights[0], words, words),
    "heads": plots.head_view(layer.weights[0], words, words),
    "lens": plots.logit_lens(np.stack([logits, logits[::-1]]), words, words),
    "words": plots.word_map(words, np.concatenate([vectors[:4], -vectors[:4]])),
}
for name, picture in pictures.items():
    file = io.BytesIO()
    picture.savefig(file, format="png")
    print(name, crc32(file.getvalue()))
"""


def said(tmp_path, **kernels):
    """What SAID prints in a process with these kernels."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **kernels}
    return python("-c", SAID, env=environment, cwd=tmp_path)


@pytest.mark.release
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_says_the_same(tmp_path, kernel):
    expected = said(tmp_path)
    assert expected.returncode == 0, expected.stderr
    assert said(tmp_path, OPENBLAS_CORETYPE=kernel).stdout == expected.stdout
