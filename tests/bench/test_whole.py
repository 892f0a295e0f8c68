"""The race of whole commands: it runs what it says, in turn, and its PyTorch script has the settings of ours."""

import ast
import importlib.util
import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from transformer_np import cli
from transformer_np.bench import WHOLE, whole
from transformer_np.bench.whole import Command, WholeOutcome
from transformer_np.bench.work import CommandProducts
from transformer_np.data.tokenizers import BOS, EOS, PAD, UNK
from transformer_np.tasks import mlm
from transformer_np.tasks.classify import OWN_DATA, WARM_TEXTS, ClassifyOptions
from transformer_np.tasks.task import SAVE_SECONDS, VALIDATION_SHARE
from transformer_np.tasks.text import VALIDATION_TOKENS, GPTOptions
from transformer_np.tasks.translation import TranslationOptions

SCRIPT = Path(whole.__file__).with_name("torch_train.py")


def test_a_command_is_run_and_its_loss_read(tmp_path):
    command = Command("it", ["-c", "import sys; print('x', sys.argv[1:]); print('validation loss 1.25')"])
    for _ in range(2):
        command.run(tmp_path)
    assert command.losses == [1.25, 1.25] and len(command.seconds) == 2 and min(command.seconds) > 0


@pytest.mark.parametrize("code", ["raise SystemExit('no luck')", "print('no loss')"])
def test_a_command_that_fails(tmp_path, code):
    with pytest.raises(ChildProcessError, match="it failed with code") as caught:
        Command("it", ["-c", code]).run(tmp_path)
    assert ("no luck" in str(caught.value)) == ("luck" in code)


def test_the_table():
    ours = Command("ours, train gpt", [], [10.0, 12.0, 11.0], [1.9, 1.8, 1.7], 200_000_000)
    other = Command(whole.TORCH, [], [20.0, 22.0, 22.0], [1.6, 1.6, 1.6], None)
    text = whole.table(WholeOutcome("train", 1000, "a.txt", [ours, other], 2, 4.4))
    assert "1,000 steps on a.txt" in text and f"ours, train gpt / {whole.TORCH}: 0.50 (0.50 - 0.52)" in text
    assert "1.8000" in text and "200" in text and "?" in text and "exact in PyTorch, as in nanoGPT" in text
    assert (
        "ours with 2 workers: matrix products of the steps at the speed of NumPy's BLAS 4.4 s (40%), the rest 6.6 s"
        in (text)
    )
    alone = whole.table(WholeOutcome("classify", 1000, "a.tsv", [ours], 1, None))
    assert "a BERT" in alone and alone.endswith("ours with 1 process") and "PyTorch" not in alone


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("against_torch", [False, True])
def test_the_commands_take_turns_on_the_same_data(tmp_path, monkeypatch, name, against_torch):
    ran, race = [], whole.RACES[name]

    def run(self, out):
        ran.append(self)
        *_, kind, flag, data, steps, number = given = [a for a in self.arguments if a not in ("--optimizer", "adamw")]
        assert (given != self.arguments) == (against_torch and self.name != whole.TORCH)  # whose optimizer is AdamW
        assert (kind, flag, steps, number) == (race.kind, race.flag, "--steps", "7")
        assert whole._READ[name](data)
        out.mkdir()
        (out / "run.json").write_text('{"workers": 2}')
        self.seconds.append(1.0)

    class Desk:
        def __init__(self, entry):
            assert entry.work == CommandProducts.__name__ and entry.arguments["workers"] == 2

        __enter__ = build = lambda self: self

        def __exit__(self, *_):
            pass

        def run(self, steps):
            return 0.5 * steps

    monkeypatch.setattr(Command, "run", run)
    monkeypatch.setattr(whole, "Contestant", Desk)
    outcome = whole.run_whole(name, None, 7, 2, against_torch)
    names = [f"ours, train {race.kind}", whole.TORCH][: 1 + against_torch]
    assert [command.name for command in ran] == [*names, *reversed(names)]
    assert outcome.products == (3.5 if name == "train" else None) and outcome.workers == 2
    json.dumps(outcome, default=vars)


@pytest.mark.long
def test_the_products_of_a_worker(tmp_path):
    file = tmp_path / "text.txt"
    file.write_text("to be or not to be, " * 60)
    one, two = (CommandProducts(str(file), workers, 10) for workers in (1, 2))
    rows = [work.replay._products[0][1].shape[0] for work in (one, two)]
    assert rows == [12 * 64, 6 * 64] and one.run(1) > 0


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
    c = ClassifyOptions(**{**mlm.SIZES, **OWN_DATA})
    assert o.tokens == "char" and o.head == "tied" and o.bias == "no" and o.dropout == 0 and o.d_ff is None
    assert constants(SCRIPT) == {
        "BLOCK": o.block_size, "BATCH": o.batch_size, "LAYERS": o.layers, "HEADS": o.heads, "D": o.d_model,
        "LR": o.lr, "MIN_LR": o.min_lr, "WARMUP": o.warmup, "BETAS": (o.beta1, o.beta2),
        "WEIGHT_DECAY": o.weight_decay, "CLIP": o.clip, "VALIDATION_ROWS": VALIDATION_TOKENS // o.block_size,
        "VALIDATION_SHARE": VALIDATION_SHARE, "SAVE_SECONDS": SAVE_SECONDS,
        "TRANSLATOR": sizes(t),
        "TRANSLATE": {"batch": t.batch_size, "lr": t.lr, "warmup": t.warmup, "smoothing": t.label_smoothing},
        "CLASSIFIER": sizes(c),
        "CLASSIFY": {
            "batch": c.batch_size, "lr": c.lr, "warmup": WARM_TEXTS // c.batch_size, "smoothing": c.label_smoothing,
            "weight_decay": c.weight_decay,
        },
        "PAD": PAD, "BOS": BOS, "EOS": EOS, "UNK": UNK,
    }  # fmt: skip
    races = whole.RACES
    assert TranslationOptions().steps == races["translate"].steps and c.steps == races["classify"].steps


def sizes(o):
    return {
        "d": o.d_model,
        "heads": o.heads,
        "layers": o.layers,
        "d_ff": o.d_ff,
        "dropout": o.dropout,
        "longest": o.max_len,
    }


def test_without_pytorch_and_without_train(capsys, monkeypatch):
    monkeypatch.setattr("transformer_np.commands.bench.find_spec", lambda name: None)
    assert cli.main(["bench", "train", "--against", "torch"]) == 2
    assert 'pip install -e ".[bench]"' in capsys.readouterr().err
    assert cli.main(["bench", "gpt", "--text", "a.txt"]) == 2
    assert "WHAT needs one of them" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
@pytest.mark.parametrize("name", WHOLE)
def test_the_script_trains(tmp_path, name):
    (tmp_path / "data").write_text(whole._built_in(name)[:50_000].rpartition("\n")[0], encoding="utf-8")
    race = whole.RACES[name]
    how = [race.kind, race.flag, tmp_path / "data", "--steps", "2", "--out", tmp_path / "out"]
    done = subprocess.run([sys.executable, "-P", SCRIPT, *how], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].startswith("validation loss ") and (tmp_path / "out" / "checkpoint.pt").exists()
