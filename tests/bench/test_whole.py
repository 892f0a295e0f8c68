"""The race of whole commands: it runs what it says, in turn, and its PyTorch script has the settings of ours."""

import ast
import importlib.util
from contextlib import suppress
from datetime import date
from pathlib import Path

import pytest

from transformer_np import cli
from transformer_np.bench import WHOLE, tasks, whole
from transformer_np.bench.whole import Command
from transformer_np.data.tokenizers import BOS, EOS, PAD, UNK
from transformer_np.tasks.task import SAVE_SECONDS, VALIDATION_SHARE
from transformer_np.tasks.text import BLOCK, VALIDATION_TOKENS, GPTOptions
from transformer_np.tasks.translation import TranslationOptions

SCRIPT = Path(whole.__file__).with_name("torch_train.py")


def test_a_command_is_run_and_its_loss_read(tmp_path):
    command = Command("it", ["-c", "import sys; print('x', sys.argv[1:]); print('validation loss 1.25\\nexact 9.5%')"])
    for seed in range(2):
        command.run(seed, tmp_path)
    assert command.losses == ["1.25"] * 2 and command.shares == ["9.5%"] * 2
    assert len(command.seconds) == len(command.processors) == 2 and min(command.seconds) > 0


@pytest.mark.parametrize("code", ["raise SystemExit('no luck')", "print('no loss')"])
def test_a_command_that_fails(tmp_path, code):
    with pytest.raises(ChildProcessError, match="it failed with code") as caught:
        Command("it", ["-c", code]).run(0, tmp_path)
    assert ("no luck" in str(caught.value)) == ("luck" in code)


def test_the_table():
    times = [10.0, 12.0, 11.0]
    ours = Command("train gpt", [], times, times, ["1.9", "1.8", "1.7"], ["90.0%"], 200_000_000)
    other = Command("PyTorch: gpt", [], [20.0, 22.0, 22.0], [None] * 3, ["1.6"] * 3, [], None)
    head, _, first, second = (line.split(" | ") for line in whole.tables([[ours, other]]).splitlines())
    assert [cell.strip() for cell in first[1:]] == ["10.0, 12.0, 11.0"] * 2 + ["", "1.9, 1.8, 1.7", "90.0%", "200 |"]
    assert second[3].strip() == "0.50 (0.50–0.52)" and second[2].strip() == "?, ?, ?" and len(head) == 7


@pytest.mark.parametrize(
    ("name", "against_torch"), [*((name, True) for name in WHOLE), ("translate", False), ("tasks", False)]
)
def test_the_commands_take_turns_on_the_same_data(tmp_path, monkeypatch, name, against_torch):
    ran = []
    monkeypatch.setattr(Command, "run", lambda self, seed, out: ran.append((self, seed)))
    if name == "tasks":
        monkeypatch.setattr(tasks, "PAIRS", dict.fromkeys(tasks.TASKS, 60))
    groups = list(whole.groups(name, None, against_torch, tmp_path))
    for group in groups:
        given = [command.arguments for command in group]
        (kind,) = {arguments[arguments.index("train") + 1] for arguments in given if "-m" in arguments}
        files = {arguments[arguments.index(whole.FLAGS[kind]) + 1] for arguments in given}
        assert len(files) == 1 and whole.READ[kind](*files)
        assert any(command.name.startswith("PyTorch") for command in group) == against_torch
        assert not any(str(tmp_path) in command.name for command in group)
    whole.run(groups[0], 2)
    assert ran == [(command, 0) for command in groups[0]] + [(command, 1) for command in reversed(groups[0])]


def test_training_commands_of_the_user_are_compared(monkeypatch, capsys):
    def run(self, seed, out):
        assert self.arguments[:4] == ["-m", "transformer_np", "train", "gpt"]
        self.seconds.append(1.0)
        self.processors.append(1.0)
        self.losses.append(f"{self.arguments[-1]}.{seed}")

    monkeypatch.setattr(Command, "run", run)
    assert cli.main(["bench", "--train", "gpt --steps 4", "--train", "gpt --steps 5", "--rounds", "2"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("`transformer-np bench --train 'gpt --steps 4' --train 'gpt --steps 5' --rounds 2`")
    assert "4.0, 4.1" in out and "| train gpt --steps 5" in out and "5.0, 5.1" in out


def constants(file):
    """{name: value} of the constants at the top of a Python file."""
    found = {}
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign):
            with suppress(ValueError):  # STD is computed
                names = [name.id for name in getattr(node.targets[0], "elts", node.targets)]
                values = ast.literal_eval(node.value)
                found |= dict(zip(names, values if len(names) > 1 else [values], strict=True))
    return found


def test_the_script_has_the_settings_of_the_commands():
    o, t = GPTOptions(optimizer="adamw"), TranslationOptions(pairs="pairs.tsv")
    assert o.tokens == "char" and o.head == "tied" and o.bias == "no" and o.dropout == 0 and o.d_ff is None
    assert constants(SCRIPT) == {
        "BLOCK": BLOCK, "BATCH": o.batch_size, "LAYERS": o.layers, "HEADS": o.heads, "D": o.d_model,
        "LR": o.lr, "MIN_LR": o.min_lr, "WARMUP": o.warmup, "BETAS": (o.beta1, o.beta2),
        "NANOGPT_LR": 1e-3, "NANOGPT_STD": 0.02,
        "WEIGHT_DECAY": o.weight_decay, "CLIP": o.clip, "VALIDATION_ROWS": VALIDATION_TOKENS // BLOCK,
        "VALIDATION_SHARE": VALIDATION_SHARE, "SAVE_SECONDS": SAVE_SECONDS,
        "TRANSLATOR": {
            "d": t.d_model, "heads": t.heads, "layers": t.layers, "d_ff": t.d_ff, "dropout": t.dropout,
            "longest": t.max_len,
        },
        "TRANSLATE": {"batch": t.batch_size, "lr": t.lr, "warmup": t.warmup, "smoothing": t.label_smoothing},
        "PAD": PAD, "BOS": BOS, "EOS": EOS, "UNK": UNK,
    }  # fmt: skip
    assert {*whole.RACES["translate"][1], whole.RACES["translate"][2]} == {f"--steps {TranslationOptions().steps}"}


@pytest.mark.long
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
@pytest.mark.parametrize(("kind", "more"), [("gpt", "--nanogpt"), ("translate", "--chars")])
def test_the_script_trains(tmp_path, kind, more):
    (tmp_path / "data").write_text(whole.built_in(kind)[:50_000].rpartition("\n")[0], encoding="utf-8")
    [command] = whole._group(kind, tmp_path / "data", [], f"--steps 2 {more}")
    command.run(0, tmp_path / "out")
    assert len(command.losses) == 1 and len(command.shares) == (kind != "gpt")
    assert (tmp_path / "out" / "checkpoint.pt").exists()


# --- tasks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", tasks.TASKS)
def test_every_source_is_different_and_answered_right(task, monkeypatch):
    monkeypatch.setattr(tasks, "PAIRS", dict.fromkeys(tasks.TASKS, 1000))
    pairs = tasks.pairs(task, seed=1)
    assert len(dict(pairs)) == len(pairs) == 1000 and pairs != tasks.pairs(task, seed=2)
    for source, target in pairs[:200]:
        if task == "addition":
            assert sum(map(int, source.split("+"))) == int(target)
        elif task == "dates":
            assert str(date.fromisoformat(target).year)[2:] in source
        else:
            assert 3 <= len(source) <= 10 and len(target) == len(source)
    some = {"sort": ("cab", "abc"), "reverse": ("cab", "bac"), "copy": ("cab", "cab"), "Caesar": ("xyz", "abc")}
    if task in some:
        source, target = some[task]
        assert tasks.ON_WORDS[task](source) == target


@pytest.mark.release
def test_the_defaults_learn_to_sort(tmp_path):
    ((sort,), *_) = whole.groups("tasks", None, False, tmp_path)
    whole.run([sort], 1)
    assert float(sort.shares[0].rstrip("%")) >= 90
