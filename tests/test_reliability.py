"""What docs/reliability.md promises: damaged files, surroundings, signals and two processes in one folder."""

import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from shared import A_STEP_IS_DONE, fails, flags_of, made, python, stderr_until

from transformer_np import cli, models
from transformer_np.data import read_text, read_vectors
from transformer_np.decoding import beam_search, generate, greedy_decode, sampling_distribution
from transformer_np.inspection.samples import MODELS, small_model
from transformer_np.layers import Embedding
from transformer_np.models import GPT, BertConfig, GPTConfig, LlamaConfig, T5Config, TransformerConfig
from transformer_np.models.base import fitting
from transformer_np.module import Parameter
from transformer_np.pretrained import load_pretrained
from transformer_np.support import files, memory
from transformer_np.tasks import runs
from transformer_np.tasks.classify import ClassifyOptions, ClassifyTask
from transformer_np.tasks.text import GPTOptions, GPTTask, TextGenerator
from transformer_np.training import Adam, load_checkpoint, load_model, save_checkpoint
from transformer_np.training.checkpoint import model_header, model_tensors
from transformer_np.training.history import Record

posix = pytest.mark.skipif(os.name != "posix", reason="signals, locks and pipes of POSIX")
ROOT = str(Path(cli.__file__).parents[1])
SMALL = GPTConfig(9, max_len=6, d_model=4, num_heads=2, num_layers=1)
TEXT = "some words of a text that is long enough to learn from. " * 30
OPTIONS = {"block_size": 8, "batch_size": 2, "layers": 1, "heads": 2, "d_model": 8, "steps": 3}


@pytest.fixture
def model():
    return GPT(SMALL).eval()


@pytest.fixture
def pair():
    sizes = {"d_model": 4, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1, "d_ff": 5}
    return made(TransformerConfig(9, 9, **sizes)).eval()


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A text and the folder of a run."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "text.txt").write_text(TEXT, encoding="utf-8")
    GPTTask().train(GPTOptions(text=folder / "text.txt", **OPTIONS), folder / "run", progress=False)
    return folder


# --- numbers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_logits_that_are_not_finite(model, pair, bad):
    """Not token 0, without a word."""
    model.blocks[0].feed_forward.b2.data = np.full(4, bad)
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match="the logits of step 1 are not finite"):
        generate(model, [[1, 2]], 3)
    pair.output.b.data = np.array([0, bad] + [0] * 7)
    for search in (greedy_decode, beam_search):
        with pytest.raises(ValueError, match="the logits of step 1 are not finite"):
            search(pair, [[3, 4]], max_len=3)
    with pytest.raises(ValueError, match="not finite"):
        sampling_distribution(np.array([0.0, bad]))
    assert sampling_distribution(np.array([0.0, -np.inf])).tolist() == [1, 0]  # an excluded token


def test_the_step_of_logits_that_are_not_finite(pair, monkeypatch):
    real, calls = pair.decode, []
    monkeypatch.setattr(pair, "decode", lambda *a: calls.append(1) or real(*a) * (np.nan if len(calls) == 3 else 1))
    pair.output.b.data = np.array([0.0] * 3 + [50.0] + [0.0] * 5)  # never the end token
    with pytest.raises(ValueError, match="the logits of step 3 are not finite"):
        greedy_decode(pair, [[3, 4]], max_len=5)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite(tmp_path, model, bad):
    name = "blocks.0.attention.b_k"
    state = {**model.state_dict(), name: np.full(4, bad, np.float32)}
    with pytest.raises(ValueError, match=f"{name} must be finite"):
        model.load_state_dict(state)
    save_checkpoint(tmp_path / "c", {f"model.{n}": x for n, x in state.items()}, model_header(model))
    with pytest.raises(ValueError, match=rf"c does not fit the model: {name} must be finite"):
        load_model(tmp_path / "c")
    model.position.table.data = np.full((6, 4), bad)
    model.save_pretrained(tmp_path / "folder")
    with pytest.raises(ValueError, match=r"model\.safetensors: .*wpe\.weight holds NaN or infinity"):
        load_pretrained(GPT, tmp_path / "folder")
    with pytest.raises(ValueError, match="row 1 holds NaN"):
        Embedding.from_vectors(np.array([[1.0, 2.0], [bad, 1.0]]))


def test_a_large_value_is_short_in_a_message():
    for name in ("tie_embeddings", "dtype", "dropout", "d_ff", "activation"):
        with pytest.raises((TypeError, ValueError)) as caught:
            GPTConfig(**{"vocab_size": 9, name: np.ones((20, 20))})
        assert len(str(caught.value)) < 300 and "\n" not in str(caught.value)


# --- memory ----------------------------------------------------------------------------------------------------------

LARGE = 2_000_000
TOO_LARGE = [
    GPTConfig(9, num_layers=LARGE), GPTConfig(10**13), GPTConfig(9, max_len=10**13), LlamaConfig(9, d_ff=10**12),
    BertConfig(9, num_layers=10**15), T5Config(9, d_model=10**7), TransformerConfig(9, 9, num_decoder_layers=10**18),
    models.TransformerXLConfig(9, d_model=2 * 10**6, num_heads=2, num_layers=2, d_ff=5, mem_len=5),
    models.Word2VecConfig(10**12),
]  # fmt: skip


@pytest.mark.parametrize("config", TOO_LARGE)
def test_a_model_that_cannot_fit_is_refused_before_it_is_made(config, monkeypatch):
    monkeypatch.setattr(memory, "memory_limit", lambda: 2**34)
    with pytest.raises(MemoryError, match=r"needs at least [\d.,e+]+ [GTPE]iB of memory, but there are 16 GiB"):
        made(config)


@pytest.mark.parametrize("name", MODELS)
def test_what_a_model_needs_at_least(name, monkeypatch):
    """Never more than it has, and not much less, whichever of its sizes is large."""
    from transformer_np.models import base

    said = []
    monkeypatch.setattr(base, "check_memory", lambda what, needed: said.append(needed))
    for changed in ("vocab_size", "d_ff", "max_len"):
        model = small_model(name, **{changed: 900} if hasattr(small_model(name).config, changed) else {})
        config = fitting(model.config, type(model.config))
        layers = sum(getattr(config, f"num_{which}layers", 0) for which in ("", "encoder_", "decoder_"))
        needed, has = said[-1] - base.OBJECTS * layers, 4 * model.num_parameters()
        if config.position_table and name == "Transformer":
            has += 4 * config.max_len * config.d_model  # the sinusoids are no parameters
        assert 0.39 * has < needed <= has


def test_long_texts_wide_beams_and_training_that_cannot_fit(model, pair, monkeypatch):
    with pytest.raises(MemoryError, match="max_new_tokens = 1000000000000000 needs at least"):
        generate(model, [[1]], 10**15)
    with pytest.raises(MemoryError, match="beam_size = 1000000000000000 needs at least"):
        beam_search(pair, [[3]], beam_size=10**15, max_len=64)
    monkeypatch.setattr(memory, "memory_limit", lambda: 4000)
    with pytest.raises(MemoryError, match=r"training 1,000 parameters needs at least 15\.6 KiB"):
        Adam([Parameter(np.ones(1000, np.float32))])


# --- checkpoints -----------------------------------------------------------------------------------------------------


def test_every_flipped_bit_of_a_checkpoint_is_found(tmp_path, model):
    path = tmp_path / "checkpoint"
    save_checkpoint(path, model_tensors(model), {**model_header(model), "step": 3})
    whole = path.read_bytes()
    before = load_checkpoint(path)
    rng = np.random.default_rng(0)
    for place in rng.permutation(len(whole))[:300]:
        spoiled = bytearray(whole)
        spoiled[place] ^= 1 << rng.integers(8)
        path.write_bytes(spoiled)
        try:
            tensors, header = load_checkpoint(path)
        except ValueError as error:
            assert str(path) in str(error) and "\n" not in str(error)
        else:  # a bit without a meaning, such as in padding
            assert header == before[1] and all(np.array_equal(tensors[name], before[0][name]) for name in before[0])
    spoiled = bytearray(whole)
    spoiled[-2] ^= 1
    path.write_bytes(spoiled)
    with pytest.raises(ValueError, match=r"is damaged: model.* does not have the checksum"):
        load_checkpoint(path)


def test_a_checkpoint_without_checksums_is_read(tmp_path):
    from safetensors.numpy import save

    (tmp_path / "old").write_bytes(save({"a": np.ones(2)}, {"transformer_np": '{"step": 3}'}))
    assert load_checkpoint(tmp_path / "old")[1] == {"step": 3}


def test_a_vocabulary_of_another_run(learned, tmp_path):
    run = shutil.copytree(learned / "run", tmp_path / "run")
    TextGenerator.load(run)
    description = json.loads((run / runs.DESCRIPTION).read_text(encoding="utf-8"))
    words = description["tokenizer"]["vocabulary"]
    words[-1], words[-2] = words[-2], words[-1]
    (run / runs.DESCRIPTION).write_text(json.dumps(description), encoding="utf-8")
    with pytest.raises(ValueError, match="was trained with another vocabulary"):
        TextGenerator.load(run)
    with pytest.raises(ValueError, match="belongs to another run: its vocabulary"):
        GPTTask().train({}, run, resume=True, progress=False)


# --- files -----------------------------------------------------------------------------------------------------------

DAMAGED = [b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"a": ' * 50_000, b"nan", b"[1]", b'"text"', b"9" * 5000]


@pytest.mark.parametrize("content", DAMAGED, ids=lambda content: repr(content[:8]))
def test_damaged_json(tmp_path, content, capsys):
    """One line with the file's name; and commands that look for the newest run pass it over."""
    path = tmp_path / runs.DESCRIPTION
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"run\.json|the kind None"):
        runs.read_run(tmp_path, "gpt")
    (tmp_path / runs.CHECKPOINT).write_bytes(content)
    with pytest.raises(FileNotFoundError, match="no trained model found"):
        runs.newest_run("gpt", below=tmp_path)
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"config\.json"):
        load_pretrained(GPT, tmp_path)
    with pytest.raises(ValueError, match="truncated, damaged or not a safetensors file"):
        load_checkpoint(tmp_path / runs.CHECKPOINT)


def test_a_description_with_a_damaged_value(learned, tmp_path):
    """Whatever value is damaged, the error is one line that names the file or what does not fit."""
    whole = json.loads((learned / "run" / runs.DESCRIPTION).read_text(encoding="utf-8"))
    shutil.copytree(learned / "run", tmp_path / "run")
    path, refused = tmp_path / "run" / runs.DESCRIPTION, 0
    places = [(inside, name) for inside in (whole, whole["options"], whole["tokenizer"]) for name in inside]
    for inside, name in places:
        before = inside[name]
        for value in (None, -1, 1.5, "x", [], {"a": 1}, [[1]], 10**30):
            inside[name] = value
            path.write_text(json.dumps(whole), encoding="utf-8")
            try:
                GPTTask().read(path.parent)
            except ValueError as error:
                assert "\n" not in str(error) and len(str(error)) < 400
                refused += 1
        inside[name] = before
    assert refused > 100
    path.write_text(json.dumps({**whole, "workers": "x"}), encoding="utf-8")
    with pytest.raises(ValueError, match=r"run\.json is damaged: workers must be a whole number"):
        GPTTask().train({}, path.parent, resume=True, progress=False)
    with pytest.raises(ValueError, match="tokens is missing"):
        ClassifyTask().check_stored(ClassifyOptions())


@posix
def test_pipes_and_devices_are_refused(tmp_path):
    """They would be read without end, or not at all."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        for read in (read_text, read_vectors, files.read_json):
            with pytest.raises(ValueError, match="is a device or a pipe"):
                read(path)


def test_a_file_is_read_with_a_bound(tmp_path, monkeypatch):
    """Asking for the limit at once would take as much memory in a browser; lists of lists take 70 times their bytes."""
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert files.read_bytes(path, most=5) == b"12345" and files.read_bytes(Path("/proc/self/stat"))
    with pytest.raises(ValueError, match="file has more than 4 bytes, expected a poem"):
        files.read_bytes(path, "a poem", most=4)
    asked = []

    class Asking(io.FileIO):
        def read(self, size=-1):
            asked.append(size)
            return super().read(size)

    monkeypatch.setattr(files, "open", Asking, raising=False)
    assert files.read_json(path) == 12345 and max(asked) <= files.PIECE
    monkeypatch.undo()
    path.write_text("[" + "[]," * files.MOST_VALUES + "[]]", encoding="utf-8")
    with pytest.raises(ValueError, match="file is damaged: it has more than 1,000,000 values"):
        files.read_json(path)
    path.write_text(json.dumps([",[{" * files.MOST_VALUES]), encoding="utf-8")  # in a string they are no values
    assert len(files.read_json(path)[0]) == 3 * files.MOST_VALUES


@posix
def test_a_temporary_file_is_of_one_writer_and_removed_after_a_crash(tmp_path):
    path, names = tmp_path / "a.txt", []

    def write(temporary):
        names.append(temporary.name)
        if len(names) == 1:  # another writer of the same file, while the first is at it
            files.write_text(path, "second")
        assert temporary.exists()
        temporary.write_text("first", encoding="utf-8")

    files.write_atomically(path, write)
    assert path.read_text(encoding="utf-8") == "first"
    left = tmp_path / names[0]
    left.write_text("of a killed process", encoding="utf-8")
    files.write_text(path, "third")
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


@posix
def test_a_full_disk_is_named_with_the_file(tmp_path):
    """Also of the losses beside a checkpoint; and the lock of a folder is none of what cannot be written."""
    import resource

    from transformer_np import plots

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
        with pytest.raises(OSError, match=r"too large: .*a\.txt'"):
            files.write_text(tmp_path / "a.txt", "text")
        for ending in ("png", "svg", "pdf"):  # not the AttributeError that matplotlib raises for .pdf
            with pytest.raises(OSError, match=rf"too large: .*b\.{ending}'"):
                plots.mask(np.eye(3, dtype=bool)).savefig(tmp_path / f"b.{ending}")
        with pytest.raises(OSError, match=r"too large: .*a\.history'"):
            Record(np.ones((3, 2))).save(tmp_path / "a.safetensors")
        with files.held(tmp_path / "run"):
            pass
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert [path.name for path in tmp_path.iterdir()] == ["a.history"]
    files.write_text("/dev/null", "text")  # a device is written directly
    assert not os.path.isfile("/dev/null")


# --- runs ------------------------------------------------------------------------------------------------------------


@posix
def test_two_runs_in_one_folder(learned, tmp_path):
    options = GPTOptions(text=learned / "text.txt", **OPTIONS)
    with files.held(tmp_path / "run"):
        for resume, given in ((False, options), (True, {})):
            with pytest.raises(FileExistsError, match=rf"is in use by process {os.getpid()} on .*: wait until"):
                GPTTask().train(given, tmp_path / "run", resume=resume, progress=False)
        assert [path.name for path in (tmp_path / "run").iterdir()] == [files.LOCK]
    assert not (tmp_path / "run").exists()  # it was empty
    GPTTask().train(options, tmp_path / "run", progress=False)
    assert files.LOCK not in [path.name for path in (tmp_path / "run").iterdir()]


@posix
def test_a_crash_leaves_no_lock(tmp_path):
    code = "import os, sys; from transformer_np.support.files import held\n"
    code += "with held(sys.argv[1]): os.kill(os.getpid(), 9)"
    assert python("-c", code, str(tmp_path / "run")).returncode == -signal.SIGKILL
    assert (tmp_path / "run" / files.LOCK).exists()
    with files.held(tmp_path / "run"):
        pass
    assert (tmp_path / "run").exists() and not list((tmp_path / "run").iterdir())


def long_run(learned, folder, *more):
    """The words of a training run that nobody waits for."""
    command = ["train", "gpt", "--text", str(learned / "text.txt"), "--out", str(folder), *more]
    return [*command, *flags_of({**OPTIONS, "steps": 100_000})]


@pytest.mark.long
@posix
@pytest.mark.parametrize(("number", "workers"), [(signal.SIGTERM, "1"), (signal.SIGHUP, "2"), (signal.SIGINT, "2")])
def test_a_signal_saves(learned, tmp_path, number, workers):
    """A terminal sends it to all processes."""
    words = long_run(learned, tmp_path / "a run", "--workers", workers)
    command = [sys.executable, "-m", "transformer_np", *words]
    with subprocess.Popen(command, bufsize=0, stderr=subprocess.PIPE, start_new_session=True) as process:
        stderr_until(process, A_STEP_IS_DONE)
        os.killpg(process.pid, number)
        err = process.stderr.read().decode()  # to its end, when no worker is left
        assert process.wait() == 130, err
    header = load_checkpoint(tmp_path / "a run" / runs.CHECKPOINT)[1]
    assert err.splitlines()[-2:] == [
        f"interrupted after step {header['step']}; everything is saved. Continue with",
        f"  transformer-np train gpt --out '{tmp_path / 'a run'}' --resume",
    ]


@pytest.mark.long
@posix
@pytest.mark.parametrize(
    "moment",
    [rb"\| +argparse\n", rb"\| +numpy\n", rb"transformer_np.functional.core\n", A_STEP_IS_DONE],
    ids=["the command line", "numpy", "the package", "a step"],
)
def test_two_signals_in_a_row(learned, tmp_path, moment):
    """While the package is imported, or when a step is done: no traceback, whatever the second one meets."""
    words = long_run(learned, tmp_path / "run")
    command = [sys.executable, "-X", "importtime", "-m", "transformer_np", *words]
    for gap in (0, 0.02):
        with subprocess.Popen(command, bufsize=0, stderr=subprocess.PIPE) as process:
            stderr_until(process, moment)
            process.send_signal(signal.SIGINT)
            time.sleep(gap)
            process.send_signal(signal.SIGINT)
            err = process.stderr.read().decode()
        assert process.returncode == 130 and "Traceback" not in err, err
        shutil.rmtree(tmp_path / "run", ignore_errors=True)


@posix
@pytest.mark.parametrize("timer", ["threading.Timer", "Early"], ids=["later", "before the timer has started"])
def test_a_signal_in_a_callback_of_python_is_not_lost(timer):
    code = (
        "import signal, sys, threading, time, weakref; from transformer_np import __main__, cli\n"
        "class Early(threading.Timer):\n    def start(self):\n        threading.Timer = self.usual\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        f"Early.usual, threading.Timer = threading.Timer, {timer}\n"
        "def interrupted(_):\n    signal.raise_signal(signal.SIGINT)\n"
        "def run():\n    thing = {1}\n    watch = weakref.ref(thing, interrupted)\n    del thing\n"
        "    for _ in range(2000):\n        time.sleep(0.01)\n"
        "cli.main = run\nsys.exit(__main__.main())\n"
    )
    done = python("-c", code)
    assert (done.returncode, done.stderr) == (130, "transformer-np: error: interrupted\n")


@posix
@pytest.mark.parametrize(
    "code",
    [
        "exec('raise KeyboardInterrupt')",  # Python kills the process at its end
        "class Interrupts:\n    def __set_name__(self, *_):\n        raise KeyboardInterrupt\n"
        "class Holds:\n    field = Interrupts()",  # Python raises RuntimeError before 3.12
    ],
    ids=["text", "class"],
)
def test_a_signal_while_a_class_is_made(tmp_path, code):
    (tmp_path / "program.py").write_text(
        "import sys; from transformer_np import __main__, cli\n"
        f"def build_parser(*_):\n    exec({code!r}, {{}})\ncli.build_parser = build_parser\nsys.exit(__main__.main())"
    )
    done = python("-m", "program", "info", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (130, "transformer-np: error: interrupted\n")


AT_A_LINE = """
import signal, sys
def again(frame, event, _):
    global lines
    lines -= event == "line"
    if event == "line" and lines == 0: signal.raise_signal(signal.SIGINT)
    return again
"""


@posix
def test_a_signal_while_another_is_handled():
    """A second signal at any line of the handler, or of what it calls: it waits for nothing that it holds itself."""
    code = (
        f"from transformer_np.support.processes import stopping_softly\n{AT_A_LINE}"
        "for number in range(1, 40):\n    lines = number\n    try:\n"
        "        with stopping_softly() as asked_to_stop:\n            sys.settrace(again)\n"
        "            signal.raise_signal(signal.SIGINT)\n    except KeyboardInterrupt:\n        pass\n"
        "    sys.settrace(None)\n    assert asked_to_stop()\n"
    )
    done = python("-c", code)
    assert done.returncode == 0, done.stderr


@posix
def test_a_second_signal_while_the_first_ends_the_process():
    """At any line that follows the first one in `__main__`: the message and the exit code, and no traceback."""
    code = (
        f"from transformer_np import __main__, cli\n{AT_A_LINE}"
        "def run():\n    sys.settrace(again); sys._getframe(1).f_trace = again\n    raise KeyboardInterrupt\n"
        "cli.main = run\n"
        "for number in range(1, 200):\n    lines, sys.stderr = number, sys.__stderr__\n"
        "    signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "    code = __main__.main()\n    sys.settrace(None)\n    assert code == 130, number\n"
        "assert lines > 0  # the last one comes too late\n"
    )
    done = python("-c", code)
    assert done.returncode == 0 and set(done.stderr.splitlines()) == {"transformer-np: error: interrupted"}, done.stderr


@pytest.mark.long
@posix
def test_nohup_is_obeyed():
    """A signal that is ignored when the training begins stays ignored."""
    code = (
        "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from transformer_np.support.processes import stopping_softly\n"
        "with stopping_softly() as asked_to_stop:\n"
        "    os.kill(os.getpid(), signal.SIGHUP); print(asked_to_stop())\n"
        "    os.kill(os.getpid(), signal.SIGTERM); print(asked_to_stop())"
    )
    done = python("-c", code)
    assert done.stdout.split() == ["False", "True"], done.stderr


# --- the command line ------------------------------------------------------------------------------------------------


def shell(command, **options):
    """A line for the shell, in which $T is the command."""
    environment = {**os.environ, "PYTHONPATH": ROOT, "T": f"{sys.executable} -m transformer_np"}
    return subprocess.run(["sh", "-c", command], capture_output=True, env=environment, timeout=120, **options)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("generate x --model ''", "--model is empty"),
        ("generate x --model=", "--model is empty"),
        ("train gpt --layers 1000000000000000000000", "layers must be at most"),
        ("train gpt --layers 1000000000000", "of memory, but there are"),
        ("homework grade --memory 1e300 .", "below 1e9"),
        pytest.param("neighbours --vectors /dev/zero a", "is a device or a pipe", marks=posix),
    ],
)
def test_an_error_is_short(here, capsys, command, message):
    assert message in fails(capsys, *shlex.split(command))


@pytest.mark.long
@posix
@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("$T translate <&-", b"no trained model found"),
        ("head -c 3000000 /dev/zero | $T embed --pretrained /nonexistent", b"error"),
        ("$T lecture --no-train >&-", b""),
        ("$T lecture --no-train 2>&-", b""),
        ("env -i PYTHONPATH=$PYTHONPATH PYTHONIOENCODING=ascii $T lecture --no-train", b""),
        ("$T --version >/dev/full || true", b""),
    ],
)
def test_whatever_the_surroundings(tmp_path, command, error):
    done = shell(command, cwd=tmp_path)
    assert done.returncode == (2 if error else 0) and error in done.stderr
    assert not any(word in done.stderr for word in (b"Traceback", b"Error", b"a bug"))
    assert len(done.stderr.partition(b"error:")[2].splitlines()) <= 3


def test_an_error_without_a_text_and_a_bug(capsys, monkeypatch):
    for error, code, message in (
        (MemoryError(), 2, "out of memory: choose smaller sizes"),
        (MemoryError("1 EiB"), 2, "out of memory: 1 EiB"),
        (RecursionError("deep"), 3, "a bug, please report it: RecursionError: deep"),
        (ValueError("a\nb\n\nc\nd\x1b[31m"), 2, "a\nb\nc d\\x1b[31m"),
        (KeyError("k"), 3, "a bug, please report it: KeyError: 'k'"),
    ):
        parser = cli.build_parser()
        monkeypatch.setattr(cli, "build_parser", lambda *_, parser=parser: parser)

        def run(args, error=error):
            raise error

        monkeypatch.setattr(parser, "parse_args", lambda argv, run=run: SimpleNamespace(run=run))
        assert cli.main(["x"]) == code
        assert message in capsys.readouterr().err


def test_the_tests_that_the_page_names_are_there():
    page = (Path(ROOT) / "docs" / "reliability.md").read_text(encoding="utf-8")
    there = "".join(file.read_text(encoding="utf-8") for file in (Path(ROOT) / "tests").rglob("test_*.py"))
    assert [name for name in set(re.findall(r"`(test_\w+)`", page)) if f"def {name}(" not in there] == []
