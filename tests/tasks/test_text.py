"""The text generator: data, options, training, resume, and its command."""

import shutil
from dataclasses import asdict

import numpy as np
import pytest
from shared import call, done, fails

from transformer_np import data
from transformer_np.data import split_text, validation_batches
from transformer_np.tasks import runs, text
from transformer_np.tasks.text import GPTOptions, GPTTask, TextGenerator

train_gpt = GPTTask().train

LINES = ["one two three four\n", "five six seven eight\n", "nine ten eleven twelve\n"]
TEXT = "".join(LINES) * 30
TINY = {"block_size": 16, "batch_size": 6, "layers": 1, "heads": 2, "d_model": 16, "d_ff": 20, "warmup": 3}


@pytest.fixture(autouse=True)
def here(here):
    """Every test in a folder of its own, with text.txt in it."""
    (here / "text.txt").write_text(TEXT, encoding="utf-8")
    return here


def train(folder, **options):
    return train_gpt(GPTOptions(**{"text": "text.txt", "steps": 6, **TINY, **options}), folder, progress=False)


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A run that knows the text by heart."""
    folder = tmp_path_factory.mktemp("gpt")
    (folder / "text.txt").write_text(TEXT, encoding="utf-8")
    options = {"text": folder / "text.txt", "steps": 300, "lr": 0.005, "min_lr": 0.0005, "layers": 2}
    return folder / "run", train(folder / "run", **{**options, "d_model": 32, "d_ff": 64})


# --- splitting and batches -------------------------------------------------------------------------------------------


def test_the_built_in_text():
    found = data.documentation_text()
    assert found == data.documentation_text() and len(found) > 300_000 and len(set(found)) < 200
    assert found.index('The "assert" statement') < found.index('The "while" statement')


def test_the_first_nine_tenths_are_to_learn_from():
    split = split_text("abcdefghij" * 10)
    assert split.train + split.validation == "abcdefghij" * 10 and len(split.validation) == 10
    with pytest.raises(ValueError, match=r"too short to split in two: it has 1 character$"):
        split_text("a")
    for share in (0, 1, -0.1, float("nan")):
        with pytest.raises(ValueError, match="validation must lie in"):
            split_text("abc", share)


@pytest.mark.parametrize("length, block_size, batch_size", [(50, 7, 3), (50, 7, 7), (43, 7, 3), (5, 7, 3), (2, 7, 1)])
def test_validation_asks_for_every_token_once_in_order(length, block_size, batch_size):
    batches = validation_batches(np.arange(length, dtype=np.uint8), block_size, batch_size)
    rows = [row for batch in batches for row in batch.ids]
    assert {batch.ids.dtype for batch in batches} == {batch.targets.dtype for batch in batches} == {np.dtype(np.int64)}
    assert np.concatenate(rows).tolist() == list(range(length - 1))
    assert all(np.array_equal(batch.targets, batch.ids + 1) for batch in batches)
    assert all(len(row) == block_size for row in rows[:-1])
    assert all(len(batch.ids) <= batch_size for batch in batches)


# --- options and training --------------------------------------------------------------------------------------------


def test_norms_and_biases_are_not_decayed(here):
    """A gradient of zero leaves only the decay."""
    run = train(here / "run", steps=1, bias="yes", optimizer="adamw")
    optimizer, model = run.setup.optimizer, run.setup.model
    before = {name: p.data.copy() for name, p in model.named_parameters()}
    optimizer.zero_grad()
    optimizer.averages["m"][...] = 0
    optimizer.lr = 0.5
    optimizer.step()
    for name, p in model.named_parameters():
        np.testing.assert_allclose(p.data, before[name] * (0.95 if p.data.ndim > 1 else 1), rtol=1e-6, err_msg=name)
    assert {p.data.ndim for p in model.parameters()} == {1, 2}


def test_the_defaults_are_nanogpts_but_for_the_optimizer():
    options = asdict(GPTOptions())
    expected = {"layers": 4, "heads": 4, "d_model": 128, "block_size": None, "batch_size": 12, "steps": 2000}
    expected |= {"dropout": 0, "optimizer": "muon", "warmup": 50, "beta1": 0.9, "beta2": 0.99, "clip": 1.0}
    assert options.items() >= {**expected, "weight_decay": 0.1, "tokens": "char", "head": "tied", "bias": "no"}.items()
    for width, lr in ((128, 2e-3), (512, 1e-3)):  # with the root of the width
        options = GPTOptions(d_model=width, optimizer="adamw")
        assert (options.lr, options.min_lr) == pytest.approx((lr, lr / 20))
        assert GPTOptions(d_model=width).lr == 0.03


def test_all_characters_of_the_text_are_in_the_vocabulary(here):
    (here / "text.txt").write_text(TEXT + "Z")  # in the part for validation
    tokenizer = train(here / "run", steps=1).tokenizers["tokenizer"]
    assert tokenizer.unknown(TEXT + "Z") == [] and set(tokenizer.vocabulary[4:]) == {*TEXT, "Z"}


def test_the_learning_rate_rises_and_falls(here):
    rates = train(here / "a", steps=20, warmup=4, lr=0.02, min_lr=0.001).trainer.history.learning_rates
    assert rates[:4] == pytest.approx([0.005, 0.01, 0.015, 0.02])
    assert rates[4:] == sorted(rates[4:], reverse=True) and rates[-1] == pytest.approx(0.001)
    rates = train(here / "b", steps=4, warmup=100, lr=0.02).trainer.history.learning_rates
    assert rates[:2] == pytest.approx([0.01, 0.02])  # a short training has a short warm-up
    assert train(here / "c", steps=1, warmup=100).trainer.step == 1


def test_byte_pairs(here):
    run = train(here / "run", tokens="bpe", vocab_size=280, steps=2)
    assert len(run.tokenizers["tokenizer"]) == run.setup.model.config.vocab_size == 280
    generator = TextGenerator.load(here / "run")
    found = generator.generate("é 漢 one", 5, rng=0)  # nothing is unknown
    assert found.startswith("é 漢 one") and found == TextGenerator.of(run).generate("é 漢 one", 5, rng=0)


# --- the generator ---------------------------------------------------------------------------------------------------


def test_special_tokens_are_never_drawn_and_no_text(learned, monkeypatch):
    generator = TextGenerator.of(learned[1])
    drawn = generator.generate("one", 60, temperature=1e6, rng=0)
    assert len(drawn) == 63  # all tokens are about equally likely, and a special one has no character
    written = np.array([[*generator.encode("one"), 3, 0, *generator.encode(" two"), 2, 1]])
    steps = (written[:, :end] for end in range(3, written.shape[1] + 1))
    monkeypatch.setattr(text, "generate_steps", lambda *args, **options: steps)
    assert generator.generate("one") == "one two"


def test_stop(learned, monkeypatch):
    generator, forwards = TextGenerator.of(learned[1]), []
    whole = generator.generate("one two", 60, temperature=0)
    assert whole.startswith("one two three four\n") and len(whole) == 67
    assert generator.generate("one two", 60, temperature=0, stop="\n") == "one two three four"  # one token
    assert generator.generate("one two", 60, temperature=0, stop="four") == "one two three "  # several
    assert generator.generate("one two", 60, temperature=0, stop="one two") != "one two"  # not in the prompt
    assert generator.generate("one two", 5, temperature=0, stop="xyz") == whole[:12]
    with pytest.raises(ValueError, match="stop is empty"):
        generator.generate("one", stop="")
    forward = generator.model.forward
    monkeypatch.setattr(generator.model, "forward", lambda *a, **o: forwards.append(1) or forward(*a, **o))
    generator.generate("one two", 60, temperature=0, stop="\n")
    assert len(forwards) == len(" three four\n")  # the rest is saved


# --- the commands ----------------------------------------------------------------------------------------------------


@pytest.fixture
def run(learned, here):
    """A copy of the run that has learned."""
    return shutil.copytree(learned[0], here / "run")


@pytest.mark.usefixtures("run")
def test_generate(capsys):
    options = ("--max-new-tokens", 12, "--temperature", 0)
    assert call(capsys, "generate", "--prompt", "one two", *options) == (0, "one two three four\n\n", "")
    assert call(capsys, "generate", "one two", *options, "--stop", "\n") == (0, "one two three four\n", "")
    out = done(capsys, "generate", *options, "--prompt", "one two", "five six")
    assert out == f"one two three four\n\n{'-' * 20}\nfive six seven eight\n"
    out = done(capsys, "generate", *options)  # from a new line
    assert any(line.startswith(out[:8]) for line in LINES)


@pytest.mark.usefixtures("run")
def test_a_text_does_not_depend_on_the_other_prompts(capsys):
    options = ("--max-new-tokens", 20, "--temperature", 2.0, "--seed", 4)
    alone = [call(capsys, "generate", prompt, *options)[1] for prompt in ("one", "five")]
    assert call(capsys, "generate", "one", "five", *options)[1] == f"{alone[0]}{'-' * 20}\n{alone[1]}"
    assert call(capsys, "generate", "one", *options[:-1], 5)[1] != alone[0]


@pytest.mark.usefixtures("run")
def test_a_long_prompt_is_warned_about(capsys):
    code, out, err = call(capsys, "generate", LINES[0] * 2, "--max-new-tokens", 3)
    assert code == 0 and out.startswith(LINES[0] * 2)
    assert err == "the prompt has 38 tokens, but the model sees at most 16: the first 22 are ignored\n"


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize("picture", ["attention", "heads", "model-view", "contributions", "attribution", "sampling"])
def test_a_picture_of_a_long_text_says_once_what_it_leaves_out(tmp_path, capsys, picture):
    folder = runs.newest_run("gpt")
    code, _, err = call(capsys, "plot", picture, LINES[0] * 2, "--model", folder, "-o", tmp_path / "picture.svg")
    assert (code, err) == (0, "the text is too long for the model: its first 22 tokens are ignored\n")


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize(
    "args, message",
    [
        (["--prompt", ""], "--prompt is empty: give it a value or leave it out"),
        (["one", "Zwölf Z"], "the training text of the model does not have: 'Z', 'ö'"),
        (["one", "--top-p", 1.5], "--top-p must lie in (0, 1], got 1.5"),
        (["one", "--temperature", -1], "--temperature must lie in [0, ∞), got -1.0"),
        (["one", "--seed", -1], "--seed must be at least 0, got -1"),
        (["one", "--stop", ""], "--stop is empty: give it a value or leave it out"),
    ],
)
def test_generate_refuses(capsys, args, message):
    assert fails(capsys, "generate", *args) == message
