"""What holds for every task: its options, its folder, its interruptions, and what its run is used with."""

import json
import os
import re
import signal
import time
from dataclasses import fields
from typing import get_args

import numpy as np
import pytest
from shared import call, done, fails, flags_of, interrupted

from transformer_np import cli
from transformer_np.support.files import LOCK, held
from transformer_np.tasks import all_tasks, runs
from transformer_np.tasks.task import HOW
from transformer_np.training import load_checkpoint

WORDS = "ana sings loudly now rui reads quietly today eva runs quickly never".split()
PAIRS = [(a, b) for a in WORDS for b in WORDS]
SIZES = {"layers": 1, "heads": 2, "d_model": 8, "d_ff": 10, "dropout": 0.2, "batch_size": 8, "warmup": 3}
ENCODER = {**SIZES, "max_len": 9}
OWN = {"head": "untied", "bias": "yes", "clip": 0.3, "optimizer": "adamw", "beta1": 0.8, "weight_decay": 0.3}
MEMORY = {"segment_len": 4, "mem_len": 3, "eval_mem_len": 7}
FILES = {
    "pairs": "".join(f"{a} {b}\t{b} {a}\n" for a, b in PAIRS),
    "data": "".join(f"{'early' if a < b else 'late'}\t{a} {b}\n" for a, b in PAIRS),
    "text": "\n".join(f"{a} {b} {a}" for a, b in PAIRS),
}
CASES = {
    "translate": {"pairs": "pairs", **ENCODER, "label_smoothing": 0.3, "lr": 0.01},
    "gpt": {"text": "text", **SIZES, **OWN, "block_size": 7, "lr": 0.01},
    "classify": {"data": "data", **ENCODER, "label_smoothing": 0.1, "optimizer": "muon"},
    "mlm": {"text": "text", **ENCODER, "weight_decay": 0.3},
    "xl": {"text": "text", **SIZES, **MEMORY, "norm": "pre", "optimizer": "muon", "clip": 0.4},
    "t5": {"tasks": "spans", "text": "text", **SIZES, "d_head": 3, "block_size": 16, "vocab_size": 280},
    "word2vec": {"text": "text", "batch_size": 20, "d_model": 6, "window": 3, "min_count": 1, "subsample": 0.01},
}
TASKS = {task.kind: task for task in all_tasks()}
every_task = pytest.mark.parametrize("kind", TASKS)


@pytest.fixture(autouse=True)
def files(here):
    """All files, in the folder of the test."""
    for name, text in FILES.items():
        (here / name).write_text(text, encoding="utf-8")


def train(kind, folder, steps=7, how=None, **more):
    options = TASKS[kind].Options(**{**CASES[kind], "steps": steps, "seed": 3, **more})
    return TASKS[kind].train(options, folder, progress=False, **how or {})


def state(folder):
    """Everything in the checkpoint of a run, except for the seconds that it took."""
    tensors, header = load_checkpoint(folder / runs.CHECKPOINT)
    return {**{name: array.tobytes() for name, array in tensors.items()}, **header, "seconds": None}


# --- options ---------------------------------------------------------------------------------------------------------


def wrong_values(field):
    """Values that the metadata of an option exclude; numbers of another kind: tests/test_every_number.py."""
    kind, accepted = (*get_args(field.type), field.type)[0], field.metadata
    if kind is int:
        return [accepted["least"] - 1]
    if kind is float:
        return {"(0, ∞)": [0.0], "[0, ∞)": [-1.0], "[0, 1)": [1.0, -0.5], "[0, 1]": [1.5, -0.5]}[accepted["interval"]]
    return [] if kind is bool else ["other", 3] if accepted["choices"] else [3, b"a"]


@every_task
def test_every_option_is_checked(kind):
    Options = TASKS[kind].Options
    for field in fields(Options):
        for value in wrong_values(field) + [None] * (field.default is not None):
            with pytest.raises((TypeError, ValueError), match=field.name):
                Options(**{field.name: value})


@every_task
def test_every_option_is_a_flag_and_arrives(kind, monkeypatch, capsys):
    task, given = TASKS[kind], {**CASES[kind], "steps": 3, "seed": 5}
    asked = {}
    monkeypatch.setattr(type(task), "train", lambda self, *args, **how: asked.update(args=args, **how) or 1 / 0)
    how = ["--validate-every", "2", "--save-every", "0.5", "--keep", "last", "--workers", "1"]
    assert cli.main(["train", kind, *flags_of(given), "--out", "here", *how]) == 3
    assert asked["args"] == (task.Options(**given), "here")
    expected = {"workers": 1, "validate_every": 2, "save_seconds": 0.5, "keep": "last"}
    assert {name: asked[name] for name in HOW} == expected
    assert "--batch-size must be at least 1, got 0" in fails(capsys, "train", kind, "--batch-size", 0)


ARRIVES = {name: [name] for name in "d_model d_ff d_head max_len dropout bias mem_len eval_mem_len batch_size".split()}
ARRIVES |= {"label_smoothing": ["label_smoothing"], "weight_decay": ["weight_decay"], "clip": ["clip_norm"]}
ARRIVES |= {"layers": ["num_layers", "num_encoder_layers", "num_decoder_layers"]}
ARRIVES |= {"heads": ["num_heads"], "head": ["tie_embeddings"]}  # in a model, an objective, an optimizer or batches


@every_task
def test_every_option_arrives_in_the_training_and_another_seed_makes_another(kind):
    task, setups = TASKS[kind], []
    for seed in (3, 3, 4):
        options = task.Options(**CASES[kind], steps=2, seed=seed)
        data = task.load(options)
        setups.append(task.setup(options, data, task.train_tokenizers(options, data)))
    parts = setups[0], setups[0].objective, setups[0].optimizer, setups[0].batches, setups[0].model.config
    there = {name: value for part in parts for name, value in vars(part).items()}
    for name in CASES[kind].keys() & ARRIVES.keys():
        found, given = {there[own] for own in ARRIVES[name] if own in there}, CASES[kind][name]
        assert found == {{"untied": False, "yes": True}.get(given, given)} or (kind, name) == ("t5", "batch_size"), name
    if kind in ("translate", "gpt"):  # of the paper, and as asked for
        expected = {"translate": ((0.9, 0.98), 1e-9), "gpt": ((0.8, 0.99), 1e-8)}
        assert (there["betas"], there["eps"]) == expected[kind]
    for part in (lambda setup: vars(setup.batches.batch(0)), lambda setup: setup.model.state_dict()):
        once, same, other = ([np.asarray(a).tobytes() for a in part(setup).values()] for setup in setups)
        assert once == same and (once != other or kind == "xl")


# --- folders ---------------------------------------------------------------------------------------------------------


@every_task
def test_what_cannot_be_trained_leaves_nothing_behind(kind, here):
    (name,) = CASES[kind].keys() & FILES.keys()
    with pytest.raises(FileNotFoundError, match="there is no file nowhere"):
        train(kind, here / "run", **{name: "nowhere"})
    if "heads" in CASES[kind] and kind != "t5":
        with pytest.raises(ValueError, match="num_heads must divide d_model, got 3 heads for d_model = 8"):
            train(kind, here / "run", heads=3)
    assert not (here / "run").exists()


REFUSED = {
    "translate": [
        (FILES["pairs"], {"max_len": 2}, "no sentence pair is short enough for max_len = 2"),
        ("", {}, "has no sentence pairs"),
        ("ana\tana\n", {}, "too few examples to split in three: 1 different"),
        ("ana\tana\n" * 30, {}, "too few examples to split in three: 1 different"),
        ("a b\tc d\ne f\tg h\ni j\tk l\n", {}, "give no vocabulary: min_count is 2"),
    ],
    "gpt": [
        ("0123456789", {"block_size": 16}, "the training text has 9 tokens, but a block of 16 .* need 17"),
        ("0123456789", {"block_size": 8}, "the validation text has 1 token, but at least 2 are needed"),
        ("", {}, "text has no text"),
    ],
    "classify": [
        ("".join(f"+\t{a} {b}\n" for a, b in PAIRS), {}, r"all training texts have the label '\+'"),
        ("+\tana sings\n-\trui reads\n", {}, "too few examples to split in three"),
        ("".join(f"{'ab'[i % 2]}\t{i}\n" for i in range(30)), {}, "texts give no vocabulary: min_count is 2"),
    ],
    "mlm": [
        ("", {}, "has no text"),
        ("a b c", {}, "the text gives no vocabulary: min_count is 2"),
        ("a a b b " * 20 + "x" * 30, {}, "its validation part has no token of the vocabulary"),
    ],
    "xl": [
        ("a text that is too short " * 9, {"segment_len": 500}, "the training part of the text: .* or smaller sizes"),
        ("a text that is too short " * 3, {"segment_len": 8, "batch_size": 1}, "the validation part of the text: "),
    ],
    "t5": [
        ("a short text", {"block_size": 64}, "training part of the text: the text has .* a block 64: pass a longer"),
        ("word " * 300, {"block_size": 64}, "the validation part of the text: the text has .* tokens, a block 64"),
        (" \n ", {}, "has no text"),
        ("word " * 3000, {"tasks": "date,spans", "max_len": 5}, "no example is short enough for max_len = 5"),
    ],
    "word2vec": [
        ("", {}, "has no text"),
        ("a b c", {"window": 3}, "the text has 3 words, but a word and a window of 3 need 4"),
        ("a b c d e f " * 3, {"min_count": 5}, "the text gives no vocabulary: min_count is 5, but no token occurs"),
        ("a " * 50, {}, "a single word"),
        ("? ! . , " * 20, {}, "the text gives no vocabulary: there is no text"),
        ("a b " * 9 + "a q", {"min_count": 3}, "its validation part has no two words of the vocabulary"),
    ],
}


@pytest.mark.parametrize("kind, content, options, message", [(k, *c) for k, cases in REFUSED.items() for c in cases])
def test_data_that_cannot_be_learned_from_leave_nothing_behind(kind, content, options, message, here):
    (name,) = CASES[kind].keys() & FILES.keys()
    (here / name).write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        train(kind, here / "run", **options)
    assert not (here / "run").exists()


DAMAGED = {  # a fact in the description of a run, values that it cannot have, and the error
    "classify": ("labels", (None, ["early"], ["early", "late", "never"]), "it does not name 2 labels"),
    "t5": ("prefixes", (None, "sentiment: ", [1]), "it does not name the prefixes"),
}


@every_task
def test_the_run_is_what_its_folder_gives(kind, here):
    run = train(kind, here / "run")
    assert np.isfinite(run.validation_loss) and all(0 <= share <= 1 for share in run.measured.values())
    path = here / "run" / runs.DESCRIPTION
    description = json.loads(path.read_text(encoding="utf-8"))
    if "optimizer" in description["options"]:
        del description["options"]["optimizer"]  # as before there was another one
        path.write_text(json.dumps(description), encoding="utf-8")
        assert TASKS[kind].read(here / "run")[1].optimizer == "adamw"
    Result = TASKS[kind].Result
    of, loaded = Result.of(run), Result.load(here / "run")
    assert vars(of).keys() == vars(loaded).keys()
    if kind == "word2vec":
        assert of.words == loaded.words and np.array_equal(of.vectors, loaded.vectors)
    else:
        theirs = loaded.model.state_dict()
        assert all(np.array_equal(values, theirs[name]) for name, values in of.model.state_dict().items())
    name, values, message = DAMAGED.get(kind, ("options", ({"depth": 3},), ""))
    for value in values:
        path.write_text(json.dumps({**description, name: value}), encoding="utf-8")
        with pytest.raises(ValueError, match=rf"run\.json is damaged: .*{message}"):
            Result.load(here / "run")


@every_task
def test_resume_refuses_other_options_and_other_data(kind, here):
    task, (name,) = TASKS[kind], CASES[kind].keys() & FILES.keys()
    train(kind, here / "run", steps=2)
    before = (here / "run" / runs.DESCRIPTION).read_bytes()
    with pytest.raises(ValueError, match=r"started with batch_size \d+, not 7, seed 3, not 4; only steps may change"):
        task.train({"batch_size": 7, "seed": 4}, here / "run", resume=True)
    with pytest.raises(ValueError, match=r"steps is 1, but the run in .* has already done 2"):
        task.train({"steps": 1}, here / "run", resume=True)
    with pytest.raises(ValueError, match="steps must be at least 1"):
        task.train({"steps": 0}, here / "run", resume=True)
    with pytest.raises(FileExistsError, match="already has a run: continue it with --resume"):
        train(kind, here / "run", seed=1)
    task.train({name: CASES[kind][name], "steps": 2}, here / "run", resume=True, progress=False)  # the same options
    (here / name).rename(here / "moved")
    with pytest.raises(FileNotFoundError, match="pass its option with the path"):
        task.train({"steps": 2}, here / "run", resume=True)
    task.train({name: str(here / "moved"), "steps": 2}, here / "run", resume=True, progress=False)
    before = (here / "run" / runs.DESCRIPTION).read_bytes()
    (here / "moved").write_text(FILES[name] * 2 if kind != "translate" else FILES[name] + "new\tnovo\n")
    with pytest.raises(ValueError, match="the data differ from those"):
        task.train({}, here / "run", resume=True)
    assert (here / "run" / runs.DESCRIPTION).read_bytes() == before
    (here / "moved").rename(here / name)
    assert train(kind, here / "run", steps=1, how={"overwrite": True}).trainer.step == 1


SAID = {  # about the data, on stderr, and the names of what is measured
    "translate": ("116 training pairs, 14 for validation", ["exact match on unseen sentences"]),
    "gpt": ("2,202 tokens to learn from, 245 for validation", []),
    "classify": ("116 texts to learn from, .* 2 labels: early, late", ["accuracy on unseen sentences"]),
    "mlm": ("131 texts to learn from", ["hidden tokens found on unseen sentences"]),
    "xl": ("2,202 tokens to learn from, 8 streams of 68 segments", []),
    "t5": ("spans: 1,284 tokens to learn from", ["spans: hidden tokens found, those before them given"]),
    "word2vec": ("12 different ones; 2 steps are 0.1 times", ["true neighbours told from drawn words in unseen text"]),
}


@every_task
def test_the_command(kind, here, capsys):
    """What it says, where it saves, and that the run goes on."""
    code, out, err = call(capsys, "train", kind, *flags_of(CASES[kind]), "--steps", 2)
    about, measured = SAID[kind]
    lines = [r"steps 2", r"wall time \d+\.\d s", *[r"words per minute [\d,]+"] * (kind == "word2vec")]
    lines += [r"validation loss \d\.\d{4}", *(rf"{name} \d+\.\d%" for name in measured), f"saved in runs/{kind}-1"]
    assert code == 0 and re.fullmatch("\n".join(lines) + "\n", out) and re.search(about, err)
    assert (here / "runs" / f"{kind}-1" / runs.DESCRIPTION).exists()
    resume = ("train", kind, "--out", f"runs/{kind}-1", "--resume")
    assert f"started with --batch-size {CASES[kind]['batch_size']}, not 7" in fails(capsys, *resume, "--batch-size", 7)
    assert done(capsys, *resume, "--steps", 3).startswith("steps 3\n")


COMMANDS = {"translate": "translate", "gpt": "generate", "classify": "classify", "t5": "t5"}


@pytest.mark.parametrize("kind", COMMANDS)
def test_a_command_without_a_model(kind, capsys):
    message = fails(capsys, COMMANDS[kind], "one")
    assert message.startswith(f"no trained model found here: train one with `transformer-np train {kind}`")


# --- interruptions ---------------------------------------------------------------------------------------------------

ODD = {"validate_every": 2, "keep": "best", "save_seconds": 0.0}


@every_task
@pytest.mark.parametrize("how", [ODD, {**ODD, "keep": "last", "validate_every": 3}])
def test_interrupted_is_uninterrupted(kind, here, how):
    whole = train(kind, here / "whole", how=how)
    with interrupted(2, 5):
        assert train(kind, here / "parts", how=how).trainer.step == 2
        assert TASKS[kind].train({}, here / "parts", resume=True, progress=False).trainer.step == 5
    for _ in range(2):  # the second time nothing is left to do, and all is measured again
        resumed = TASKS[kind].train({}, here / "parts", resume=True, progress=False)
        assert state(here / "parts") == state(here / "whole")
        assert resumed.trainer.history.losses == whole.trainer.history.losses
        assert resumed.trainer.history.validation == whole.trainer.history.validation
        for name in ("validation_loss", "measured", "kept"):
            assert getattr(resumed, name) == getattr(whole, name)
    stored = json.loads((here / "parts" / runs.DESCRIPTION).read_text())
    assert {name: stored[name] for name in HOW} == {"workers": 1, **how}


def _free(folder):
    try:
        with held(folder):
            return True
    except FileExistsError:
        return False


def killed_until_done(kind, folder, how, kills, rng, longest):
    """Train in processes that are killed at random moments, `kills` times, and then to the end."""
    for number in range(kills + 1):
        while (folder / LOCK).exists() and not _free(folder):  # until the last worker has noticed
            time.sleep(0.01)
        if not (child := os.fork()):
            signal.signal(signal.SIGALRM, signal.SIG_DFL)  # which ends the process, as SIGKILL does
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(0, longest) if number < kills else 0)
            if (folder / runs.DESCRIPTION).exists():
                TASKS[kind].train({}, folder, resume=True, progress=False)
            else:
                train(kind, folder, how=how, steps=30)
            os._exit(0)
        rng.random()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in ((0, -signal.SIGALRM) if number < kills else (0,))


KILLED = [("translate", 6, 2), ("xl", 6, 2), ("gpt", 4, 1)]  # in the long run
MORE = [case for kind in TASKS for case in ((kind, 4, 1), (kind, 20, 1)) if case not in KILLED]


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("kind, kills, workers", KILLED + [pytest.param(*c, marks=pytest.mark.release) for c in MORE])
def test_killed_at_random_moments_is_uninterrupted(kind, here, kills, workers):
    """The number of processes is stored before the first step, and decides the last bits of sums."""
    how = {"validate_every": 3, "keep": "best", "save_seconds": 0.0, "workers": workers}
    whole = train(kind, here / "whole", how=how, steps=30)
    longest = 2 * whole.trainer.history.seconds + 0.1 * workers
    killed_until_done(kind, here / "killed", how, kills, np.random.default_rng(), longest)
    assert state(here / "killed") == state(here / "whole")


@pytest.mark.parametrize("kind", ["translate", "xl"])  # xl carries a memory from step to step
def test_a_deleted_checkpoint_is_said_as_it_is(kind, here):
    whole = train(kind, here / "run", steps=3)
    lines, again = [], {"resume": True, "progress": False}
    (here / "run" / runs.CHECKPOINT).unlink()
    resumed = TASKS[kind].train({}, here / "run", **again, report=lines.append)
    assert "checkpoint.history is there, but checkpoint.safetensors is not: it was deleted, or" in lines[-1]
    assert resumed.trainer.history.losses == whole.trainer.history.losses
    for name in (runs.CHECKPOINT, "checkpoint.history"):
        (here / "run" / name).unlink()
    TASKS[kind].train({}, here / "run", **again, report=lines.append)
    assert lines[-1] == "nothing was saved yet: this run starts from the beginning"
    (here / "run" / runs.CHECKPOINT).unlink()
    assert train(kind, here / "run", steps=1).trainer.step == 1  # there is no run to overwrite
