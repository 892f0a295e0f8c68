"""The command line as it is typed: results on stdout, one clear line on stderr for what goes wrong, exit codes."""

import argparse
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from shared import call, done, fails, python, stdin

from transformer_np import __version__, cli
from transformer_np import functional as F
from transformer_np.commands import say_words
from transformer_np.inspection import gradcheck
from transformer_np.support import transliteration
from transformer_np.tasks.runs import CHECKPOINT, DESCRIPTION

WORDS = (
    [("Ana", "Ana"), ("he", "ele"), ("Maria", "Maria")],
    [("sings", "canta"), ("reads", "lê")],
    [("now", "já"), ("today", "hoje")],
)
PAIRS = [tuple(map(" ".join, zip(*words, strict=True))) for words in itertools.product(*WORDS)]
TINY = "--batch-size 4 --layers 1 --heads 2 --d-model 8 --d-ff 10 --max-len 9 --warmup 5 --pairs pairs.tsv".split()


def fails_at_once(capsys, *args):
    """Like `fails`, and that line is all there is on stderr: nothing had begun."""
    found, out, err = call(capsys, *args)
    assert (found, out, len(err.splitlines())) == (2, "", 1), err
    return err.removeprefix("transformer-np: error: ").rstrip("\n")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a run."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "pairs.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in PAIRS), encoding="utf-8")
    paths = ["--pairs", str(folder / "pairs.tsv"), "--out", str(folder / "run")]
    assert cli.main(["train", "translate", *TINY, *paths, "--steps", "6"]) == 0
    return folder / "run"


@pytest.fixture(autouse=True)
def here(here):
    """Every test in a folder of its own, with pairs.tsv in it."""
    (here / "pairs.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in PAIRS), encoding="utf-8")
    return here


@pytest.fixture
def run(trained, here):
    """A copy of the trained run, to be used and spoiled."""
    return shutil.copytree(trained, here / "run")


# --- help ------------------------------------------------------------------------------------------------------------


PARSER = cli.build_parser()


def every_command(parser=PARSER, path=()):
    """The words of every command there is, and of every group of commands."""
    yield path
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, sub in action.choices.items():
                yield from every_command(sub, (*path, name))


COMMANDS = list(every_command())


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: " ".join(path) or "transformer-np")
def test_every_help_has_an_example_that_is_accepted(capsys, path):
    code, out, err = call(capsys, *path, "--help")
    assert (code, err) == (0, "")
    assert out.startswith(" ".join(("usage: transformer-np", *path)))
    example = re.search(r"^example: transformer-np (.+)", out, re.MULTILINE)[1]
    assert example.startswith(" ".join(path[:1]))
    PARSER.parse_args(shlex.split(example))


def test_version_and_bad_use(capsys):
    assert call(capsys, "--version") == (0, f"transformer-np {__version__}\n", "")
    assert call(capsys) == (0, cli.build_parser().format_help(), "")
    assert re.search("invalid choice: 'trian'.*; did you mean train[?]$", fails(capsys, "trian"))
    assert fails(capsys, "train", "gtp").endswith("; did you mean gpt?")
    assert fails(capsys, "train", "translate", "--tokens", "wrod").endswith("; did you mean word?")
    assert "did you mean" not in fails(capsys, "dance")
    assert fails(capsys, "train").endswith("required: KIND, one of translate, gpt, classify, mlm, xl, t5, word2vec")
    assert "required: PICTURE, one of attention, heads, " in fails(capsys, "plot")
    assert fails(capsys, "train", "gpt", "--stps", 5).endswith("arguments: --stps 5; did you mean --steps?")
    assert fails(capsys, "train", "gpt", "--hedas=5").endswith("; did you mean --heads?")
    for value in ("gpt --steps=--", "gpt --lr=--", "gpt --tokens=--", "gpt --workers=--"):
        assert "invalid" in (said := fails(capsys, "train", *value.split())) or "must be" in said
    assert "unrecognized arguments: --colour" in fails(capsys, "gradcheck", "--colour")
    assert "--resume needs the folder of the run: --out DIR" == fails_at_once(capsys, "train", "gpt", "--resume")
    code, _, err = call(capsys, "homework", "status", "homework.py", "relu")
    assert code == 2 and "homework status: error: unrecognized arguments: relu" in err  # below its usage


def test_an_argument_that_may_be_missing_can_follow_a_flag():
    for words, *values in ("check a.py --watch relu", "a.py", "relu"), ("check --watch a.py", "a.py", None):
        args = cli.build_parser().parse_args(["homework", *words.split()])
        assert [args.watch, args.file, args.name] == [True, *values]
    args = cli.build_parser().parse_args("homework run a.py --steps 3 train".split())
    assert (args.file, args.steps, args.what) == ("a.py", 3, "train")


def test_help_loads_nothing_heavy():
    code = "import sys\nfrom transformer_np import cli\ntry: cli.main(sys.argv[1:])\nexcept SystemExit: pass\n"
    heavy = {"numpy", "matplotlib", "tqdm", "difflib", "transformer_np.models"}
    code += f"print(sorted({heavy} & set(sys.modules)), file=sys.stderr)"
    for line in ("", "--help", "--version", "translate --help", "homework --help", "train --help", "plot --help"):
        result = python("-c", code, *line.split())
        assert result.stdout and result.stderr == "[]\n"


@pytest.mark.parametrize(
    "message, shown",
    [
        ("d_model must be at least 1, got 0", "--d-model must be at least 1, got 0"),
        ("num_heads must divide d_model, got 3", "--heads must divide --d-model, got 3"),
        ("with heads 2, not 4; only steps may change", "with --heads 2, not 4; only --steps may change"),
        ("the text is empty: there is no text", "the text is empty: there is no text"),
        ("rank is 99, more than a matrix has", "--lora is 99, more than a matrix has"),
        ("save_seconds must lie in [0, ∞)", "--save-every must lie in [0, ∞)"),
        ("steps is 5, but lr is 3", "--steps is 5, but --lr is 3"),
        ("a.txt, line 3: the seed is bad", "a.txt, line 3: the seed is bad"),
        ("c.toml, line 1: steps must be a list", "c.toml, line 1: steps must be a list"),
        ("runs/a has a run of the kind 'xl', not 'gpt'", "runs/a has a run of the kind 'xl', not 'gpt'"),
    ],
)
def test_messages_name_the_flags(message, shown):
    command = ["plot", "attention"] if "kind" in message else ["train", "gpt"]  # the first has a flag --kind
    args = cli.build_parser(command[0]).parse_args(command)
    assert cli.with_flags(message, args) == shown
    assert cli.with_flags(message, None) == message


@pytest.mark.long
@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_a_console_without_utf8(encoding):
    environment = os.environ | {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    hint = python(*CHECK[1:3], "homework", "hint", "softmax_backward", "--level", 2, encoding=encoding, env=environment)
    assert (hint.returncode, hint.stderr) == (0, "") and "sum" in hint.stdout


def test_no_sign_of_a_formula_is_lost_without_utf8():
    def in_signs_of(text, encoding):
        return text.encode(encoding, transliteration.NAME).decode(encoding)

    formula = "dx = (dx̂ − mean(dx̂ · x̂)) / √(σ² + ε) ≤ Σᵢ 2πγᵢ · 10⁻⁸, ∂L/∂β → −∞, Kᵀ ∈ Φ"
    assert in_signs_of(formula, "ascii") == (
        "dx = (dx_hat - mean(dx_hat * x_hat)) / sqrt(sigma^2 + epsilon) <= sum_i 2 pi gamma_i * 10^-8, dL/dbeta -> "
        "-inf, K^T in Phi"
    )
    assert in_signs_of(formula, "cp1252").startswith("dx = (dx_hat - mean(dx_hat · x_hat)) / sqrt(sigma² + epsilon)")
    letters = (
        "".join(chr(n) for n in range(0x3B1, 0x3CA)) + "ΓΔΘΛΞΠΦΨΩ" + "₀₁₂₃₄₅₆₇₈₉⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻₊₋ᵀᵢⱼ≠≥≈∑∏∫∇⊙‖⌊⌋×±…—½ŵŷẑ"
    )
    for encoding in ("ascii", "cp1252", "latin-1", "cp437"):
        shown = [in_signs_of(letter, encoding) for letter in letters]
        assert not [s for s in shown if not s or "?" in s or "\\" in s]
        assert len(set(shown[:25])) >= 24  # both forms of σ are sigma
    assert in_signs_of("中 \udce9", "cp1252") == r"\u4e2d \xe9"


@pytest.mark.parametrize("command", [["plot", "attention"], ["translate", "--model", "run"]])
def test_a_text_that_is_not_utf8_is_named(capsys, run, command):
    message = fails(capsys, *command, "caf\udce9", *(["-o", "x.png"] if command[0] == "plot" else []))
    assert message == r"the argument caf\xe9 is not UTF-8"


@pytest.mark.parametrize("value", ["-1e-3", "-.5", "-2", "-1E5", "-inf"])
def test_a_negative_number_is_a_value(capsys, here, value):
    assert f"--lr must lie in (0, ∞), got {float(value):g}" in fails(capsys, *train("--lr", value))


# --- train -----------------------------------------------------------------------------------------------------------


def train(*more):
    return ("train", "translate", *TINY, "--steps", 3, "--out", "new", *more)


@pytest.mark.long
def test_without_out_the_next_free_folder_is_taken(capsys, here):
    for number in (1, 2):
        assert done(capsys, *train()[:-2]).endswith(f"\nsaved in runs/translate-{number}\n")
        assert (here / "runs" / f"translate-{number}" / CHECKPOINT).exists()


@pytest.mark.long
def test_odd_but_right_files_and_paths(capsys, here):
    """What a file may have besides pairs: tests/data/test_pairs.py."""
    file, out = here / "my pairs – ü.tsv", here / "run – é ß"
    lines = [f"{s}\t{t}\tCC-BY\t7\r\n" for s, t in PAIRS]
    file.write_bytes(b"\xef\xbb\xbf" + "".join([f"{'a ' * 50_000}\t{'b ' * 50_000}\r\n", *lines, *lines]).encode())
    code, printed, err = call(capsys, *train("--pairs", file, "--out", out))
    assert code == 0 and f"saved in {out}" in printed and "1 pair longer than 9 tokens left out" in err
    assert "training: 100%" in err and "3/3" in err
    assert sorted(os.listdir(out)) == ["checkpoint.history", CHECKPOINT, DESCRIPTION]
    code, printed, err = call(capsys, "translate", "--model", out, "Ana reads now")
    assert (code, err) == (0, "") and "\r" not in printed


@pytest.mark.parametrize(
    "arguments, message",
    [
        ("--lr fast", "argument --lr: invalid float value: 'fast'"),
        ("--tokens char", "no sentence pair is short enough for --max-len = 9"),
        ("--out pairs.tsv", "pairs.tsv is a file, expected the folder of a run"),
        ("--out pairs.tsv/a/run", "pairs.tsv is a file, expected a folder, for pairs.tsv/a/run"),
    ],
)
def test_options_that_will_not_do(capsys, here, arguments, message):
    assert message in fails(capsys, *train(*arguments.split()))
    assert os.listdir(here) == ["pairs.tsv"]


@pytest.mark.parametrize("steps, what", [(3, "the loss is nan at step 2"), (1, "the validation loss is nan at step 1")])
def test_a_training_that_diverges_is_a_failed_check(capsys, here, steps, what):
    message = fails(capsys, *train("--lr", "1e30", "--steps", steps), code=1)
    assert message == f"{what}: try a smaller learning rate"
    assert not (here / "new" / CHECKPOINT).exists()


# --- translate -------------------------------------------------------------------------------------------------------


def test_commands_for_a_program(capsys, here):
    """--json of the commands that use a run: one line of JSON per text, and nothing beside it."""
    tiny = "--steps 2 --layers 1 --heads 2 --d-model 8 --d-ff 10 --batch-size 4".split()
    (here / "labelled.tsv").write_text("".join(f"{t.split()[0]}\t{s}\n" for s, t in PAIRS * 2), encoding="utf-8")
    (here / "text.txt").write_text("one two three four\n" * 40, encoding="utf-8")
    done(capsys, "train", "classify", "--data", "labelled.tsv", "--max-len", 9, *tiny)
    code, out, err = call(capsys, "train", "gpt", "-q", "--text", "text.txt", "--block-size", 8, *tiny)
    assert (code, err) == (0, "") and out.startswith("steps 2\n") and "\nsaved in " in out
    code, out, err = call(capsys, "classify", "--json", "Ana sings xyz")
    found = json.loads(out)
    assert (code, err, found["unknown"], found["tokens_left_out"]) == (0, "", ["xyz"], 0)
    assert found["label"] == max(found["probabilities"], key=found["probabilities"].get) and len(found) == 7
    code, out, err = call(capsys, "generate", "--json", "--max-new-tokens", 5, "one", "two")
    lines = [json.loads(line) for line in out.splitlines()]
    assert (code, err, [line["prompt"] for line in lines]) == (0, "", ["one", "two"])
    assert call(capsys, "generate", "--max-new-tokens", 5, "one")[1] == lines[0]["text"] + "\n"


@pytest.mark.usefixtures("run")
def test_standard_input_line_by_line(capsys, monkeypatch):
    first = call(capsys, "translate", "Ana reads now")[1]
    stdin(monkeypatch, b"\xef\xbb\xbfAna reads now\r\n\r\n  Ana reads now  \n")
    assert call(capsys, "translate") == (0, f"{first}\n{first}", "")
    stdin(monkeypatch, b"")
    assert call(capsys, "translate") == (0, "", "")
    stdin(monkeypatch, "Ana reads já\n".encode())
    unknown, seen = call(capsys, "translate")[2].splitlines()
    assert unknown == "the model does not know: já"
    assert re.fullmatch(r"expect mistakes: it has seen \d words: (\w+ ?)+", seen)
    stdin(monkeypatch, b"Ana reads now\nAna l\xea\n")
    code, out, err = call(capsys, "translate")
    assert (code, out) == (2, first)
    assert err == "transformer-np: error: standard input, line 2: the byte 0xea is not UTF-8\n"


@pytest.mark.usefixtures("run")
def test_translations_for_a_program(capsys):
    code, out, err = call(capsys, "translate", "--json", "Ana Zigzags now", "Ana reads now")
    first, second = map(json.loads, out.splitlines())
    assert (code, err, first["unknown"], first["unseen"], second["unknown"]) == (0, "", ["Zigzags"], [], [])
    translation = call(capsys, "translate", second["text"])[1][:-1]
    assert second == {"text": "Ana reads now", "translation": translation, "unknown": [], "unseen": []}
    assert "exclude each other" in fails_at_once(capsys, "translate", "--json", "--show-steps", "Ana")


@pytest.mark.usefixtures("run")
def test_sentences_that_will_not_do(capsys):
    assert fails_at_once(capsys, "translate", " \t ") == "the sentence is empty: there is nothing to translate"
    assert fails_at_once(capsys, "translate", "now " * 10) == "the sentence has 10 tokens, the model reads at most 9"
    code, _, err = call(capsys, "translate", "now " * 9)
    assert (code, err) == (0, "the sentence has 9 tokens, but those in training had at most 3: expect mistakes\n")


@pytest.mark.usefixtures("run")
def test_show_steps(capsys):
    code, out, err = call(capsys, "translate", "--show-steps", "Ana reads now")
    title, heads, *steps, translation = out.splitlines()
    assert (code, err) == (0, "") and title == '"Ana reads now", one token at a time (log p in nats)'
    assert heads.split() == ["step", "token", "log", "p", "p", "runners-up"]
    tokens = []
    for number, line in enumerate(steps, 1):
        found = re.fullmatch(r" +(\d+)  (\S+) +(-\d+\.\d{4}) +(\d+\.\d)%  (\S+) -\d+\.\d\d, (\S+) -\d+\.\d\d", line)
        assert found, line
        assert int(found[1]) == number
        assert float(found[4]) / 100 == pytest.approx(np.exp(float(found[3])), abs=1e-3)
        tokens.append(found[2])
    assert " ".join(token for token in tokens if token != "<eos>") == translation


@pytest.mark.usefixtures("run")
def test_beam_search(capsys):
    done(capsys, "translate", "--beam", 3000, "--length-penalty", 10, "Ana reads now")
    assert "--beam must be at least 1, got 0" in fails(capsys, "translate", "--beam", 0, "Ana")
    assert "leave out --beam" in fails_at_once(capsys, "translate", "--beam", 2, "--show-steps", "Ana")
    assert "works only with beam search" in fails_at_once(capsys, "translate", "--length-penalty", "0.6", "Ana")
    for penalty in ("nan", "1e300", "-1"):
        assert "--length-penalty must lie in 0 … 10" in fails_at_once(capsys, "translate", "--length-penalty", penalty)


# --- plot ------------------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.usefixtures("run")
@pytest.mark.parametrize(
    "arguments, beginning",
    [
        ("pe --length 5 --d-model 6 -o a.png", b"\x89PNG"), ("mask --length 4 --window 1 -o a.pdf", b"%PDF"),
        ("attention Ana --layer 1 --head 2 -o a.SVG", b"<?xml"), ("attention Ana --kind decoder -o a.png", b"\x89PNG"),
        ("model-view Ana --kind encoder --slide Heads -o a.png", b"\x89PNG"),
        ("matrices three --head 2 --product 4 -o a.png", b"\x89PNG"),
        ("attention Ana --layers 1-1 -o a.png", b"\x89PNG"),
        ("contributions Ana --model run --other Ana -o a.png", b"\x89PNG"),
        ("attribution Ana --model run --after Ana --patch Maria -o a.svg", b"<?xml"),
    ],
)  # fmt: skip
def test_pictures(capsys, here, arguments, beginning):
    name = arguments.split()[-1]
    assert call(capsys, "plot", *arguments.split()) == (0, f"{name}\n", "")
    assert (here / name).read_bytes().startswith(beginning)


def test_an_unknown_blank_can_be_seen(capsys):
    say_words([" ", "x"])
    assert capsys.readouterr().err == "the model does not know: ' ', x\n"


@pytest.mark.usefixtures("run")
def test_pictures_name_unseen_words(capsys):
    for picture in ("attribution Zork_Ana --patch Ana_Zork", "contributions Ana --after Zork"):
        err = call(capsys, "plot", *picture.split(), "--model", "run", "-o", "a.png")[2]
        assert "the model does not know: " in err and "zork" in err.lower()


@pytest.mark.parametrize("is_shown", [True, False])
def test_without_a_name_a_picture_is_opened(capsys, here, tmp_path, monkeypatch, is_shown):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or is_shown)
    code, out, err = call(capsys, "plot", "mask", "--length", "3")
    path = Path(out.strip())
    assert code == 0 and path.name == "mask.png" and path.read_bytes().startswith(b"\x89PNG")
    assert opened == [path.as_uri()] and bool(err) != is_shown and "mask.png" not in os.listdir(here)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ("pe -o picture.gif", "-o picture.gif: the name must end in .png, .svg or .pdf"),
        ("pe --length 3 --d-model 4 -o nowhere/a.png", "-o nowhere/a.png: there is no folder nowhere"),
        ("pe --length 0 -o a.png", "must be at least 1"),
        ("matrices --product 8 -o a.png", "--product must lie in 1 … 7, got 8"),
        ("matrices eight --head 9 -o a.png", "head must lie in 1 … 8"),
        ("matrices norm --head 2 -o a.png", "head must lie in 1 … 1"),
        ("mask --length 100000 -o a.png", "argument --length: must be at most 2,000"),
        ("mask --length=-- -o a.png", "argument --length: invalid int value: '--'"),
        ("mask --window -1 -o a.png", "window must be at least 0, got -1"),
        ("attention Ana --layer 2 -o a.png", "--layer must lie in 1 … 1, got 2"),
        ("attention Ana --layer 1 --head 0 -o a.png", "--head must lie in 1 … 2, got 0"),
        ("attention Ana --head 1 -o a.png", "--head counts the heads of one layer: add --layer N"),
        ("attention Ana --model a --pretrained b -o a.png", "--pretrained: not allowed with argument --model"),
        ("attention Ana --layers 2-1 -o a.png", "--layers must be N-M with 1 ≤ N ≤ M ≤ 1, got 2-1"),
        ("attention Ana --layer 1 --layers 1-1 -o a.png", "choose one of the two"),
        ("contributions Ana --model run --target nobody -o a.png", "--target 'nobody' must be one token of the model"),
        ("attribution Ana --model run --patch Ana_Ana -o a.png", "'Ana_Ana' has 3 tokens, 'Ana' 1"),
        ("attention Ana --kind both -o a.png", "argument --kind: invalid choice: 'both'"),
    ],
)
def test_pictures_that_cannot_be_drawn(capsys, run, here, arguments, message):
    assert message in fails(capsys, "plot", *arguments.split())
    assert sorted(os.listdir(here)) == ["pairs.tsv", "run"]


# --- gradcheck -------------------------------------------------------------------------------------------------------


def test_gradients_that_are_right(capsys):
    code, out, err = call(capsys, "gradcheck", "linear", "LayerNorm")
    _, first, second, summary = out.splitlines()
    assert (code, err) == (0, "") and "WRONG" not in out
    assert re.fullmatch(r"linear +3  \d\.\de-\d\d in .+ at \(.+\)", first) and second.startswith("LayerNorm")
    assert summary == "2 checked in float64, none wrong (tolerance 1e-06)"
    verbose = call(capsys, "gradcheck", "--verbose", "LayerNorm")[1].splitlines()
    assert [line.split()[0] for line in verbose[2:-1]].count("gamma") == 1
    assert len(verbose) == 2 + 3 + 1  # x, γ and β


def test_a_wrong_gradient_is_found(capsys, monkeypatch):
    monkeypatch.setattr(F, "relu_backward", lambda dy, x: dy)
    code, out, _ = call(capsys, "gradcheck", "linear", "relu")
    assert code == 1
    assert [line.split()[0] for line in out.splitlines() if line.endswith("WRONG")] == ["relu"]
    assert out.splitlines()[-1] == "2 checked in float64, 1 wrong (tolerance 1e-06)"
    message = fails_at_once(capsys, "gradcheck", "linear", "gravity")
    assert "there is no check named 'gravity'; the checks are linear, " in message
    assert all(name in message for name in gradcheck.standard_checks()) and "did you mean" not in message
    assert fails_at_once(capsys, "gradcheck", "softmx").strip().endswith("; did you mean softmax?")


# --- the process -----------------------------------------------------------------------------------------------------


CHECK = [sys.executable, "-m", "transformer_np", "gradcheck", "linear"]
BUFFERED = {**os.environ, "PYTHONUNBUFFERED": ""}  # as it is by default: what is printed is written at the end


@pytest.mark.long
def test_a_reader_that_has_seen_enough():
    with subprocess.Popen(CHECK, env=BUFFERED, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


@pytest.mark.long
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_full_disk(here):
    """Behind stdout it is an error; behind stderr the messages are lost, the training run is not."""
    with open("/dev/full", "w") as full:
        result = subprocess.run(CHECK, env=BUFFERED, stdout=full, stderr=subprocess.PIPE, encoding="utf-8")
        assert (result.returncode, result.stderr) == (2, "transformer-np: error: [Errno 28] No space left on device\n")
        for arguments, code in ((train("--steps", "2"), 0), (["translate", "--model", "none"], 2)):
            command = [*CHECK[:3], *map(str, arguments)]
            assert subprocess.run(command, stdout=subprocess.DEVNULL, stderr=full).returncode == code
    assert (here / "new" / CHECKPOINT).exists()
