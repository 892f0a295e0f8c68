"""Random bad arguments, damaged files and odd surroundings: `python -m tests.fuzz --minutes 5`.

Every try is drawn from (seed, number), so that `--seed 3 --only 1234` repeats one. The findings go to a file, one JSON
object per line, and their counts to stdout. The exit code is 1 if anything was found.

A finding is an error that docs/reliability.md does not promise: another type than ValueError, TypeError, OSError or
MemoryError, a message of more than three lines, a damaged file read as another content, a traceback of a command, a try
that takes longer than TIMEOUT on an idle machine.
"""

import argparse
import inspect
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
TIMEOUT = 120  # seconds of one try on an idle machine
PROMISED = (ValueError, TypeError, OSError, MemoryError, ModuleNotFoundError, NotImplementedError)
NOT_CALLED = {"MPITeam", "Workers", "team_of", "connect", "last_words", "english_portuguese"}  # they start something

# arguments that are objects of this package: for another object, Python's own AttributeError is enough
OBJECTS = {
    *(
        "config", "model", "parameters", "parameter", "embedding", "tokenizer", "tokenizers", "batches", "parts",
        "split",
    ),
    *(
        "optimizer", "objective", "attention", "sublayer", "norm", "position", "relative_bias", "schedule", "decays",
        "total",
    ),
    *(
        "run", "setup", "trainer", "vocabulary", "parent", "cache", "task", "options", "data", "only", "checkpoint",
        "header", "gradients",
    ),
}  # fmt: skip


class Finding(Exception):
    """A promise that was broken."""


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, metavar="NUMBER", help="repeat the one try with this number")
    parser.add_argument("--out", default="fuzz-findings.jsonl", metavar="FILE")
    args = parser.parse_args(argv)
    counts, found = Counter(), []
    with tempfile.TemporaryDirectory() as folder:
        kinds = {"arguments": arguments(), "files": damaged_files(Path(folder)), "command line": command_lines(folder)}
        names, chances = list(kinds), [0.55, 0.35, 0.1]  # a command takes a second, a call a millisecond
        end, number = time.monotonic() + 60 * args.minutes, 0
        while time.monotonic() < end:
            number = number + 1 if args.only is None else args.only
            rng = np.random.default_rng([args.seed, number])
            kind = names[rng.choice(len(names), p=chances)]
            what, message = tried(kinds[kind], rng)
            counts[kind] += 1
            if message:
                counts[f"findings, {kind}"] += 1
                found.append({"seed": args.seed, "number": number, "kind": kind, "what": what, "message": message})
                print(f"{number}: {kind}: {what}: {message}"[:400], file=sys.stderr)
            if args.only is not None:
                break
    Path(args.out).write_text("".join(json.dumps(one) + "\n" for one in found), encoding="utf-8")
    for name, count in sorted(counts.items()):
        print(f"{name}: {count:,}")
    print(f"findings in {args.out}" if found else "nothing found")
    return bool(found)


def tried(kind, rng):
    """One try  ->  what was tried, and what is wrong with its outcome or None."""
    what, act = kind(rng)
    before = signal.signal(signal.SIGALRM, _too_slow)
    signal.alarm(limit())
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            act()
    except PROMISED as error:
        lines = str(error).splitlines()
        if len(lines) > 3 or len(str(error)) > 2000:
            return what, f"a message of {len(lines)} lines, {len(str(error))} characters: {str(error)[:200]}"
    except Finding as finding:
        return what, str(finding)
    except Exception as error:
        return what, f"{type(error).__name__}: {str(error)[:200]}"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return what, None


def limit():
    """The seconds of one try: more on a busy machine, where everything takes longer."""
    return int(TIMEOUT * max(1, os.getloadavg()[0] / (os.cpu_count() or 1)))


def _too_slow(*_):
    raise Finding(f"it takes longer than {TIMEOUT} seconds of an idle machine")


# --- arguments -------------------------------------------------------------------------------------------------------


def arguments():
    """A public function or class with right arguments but for one."""
    from tests.test_every_number import GIVEN, OF, public

    values = [
        None, True, 0, -1, 1, 2, 3, 10**21, 10**5000, -(10**21), 0.5, 1.5, float("nan"), float("inf"), -0.0, 1e308,
        5e-324,
        1j, "", "3", "nan", b"x", [], [[]], [1, 2], [[1], [1, 2]], (), {}, {"a": 1}, object(), int, len, np.float32(2),
        np.int8(3), np.array(3), np.array(0.5), np.zeros(0), np.zeros((2, 0)), np.ones(3), np.ones((2, 3)),
        np.ones((3, 2)),
        np.ones((2, 3), np.float32), np.ones((2, 3), np.float16), np.full((2, 3), np.nan), np.full((2, 3), np.inf),
        np.ones((2, 3), complex), np.ones((2, 3), int), np.ones((2, 3), bool), np.array([["a", "b"]]),
        np.array([None, 1], object), np.ones((1,) * 12), np.ma.masked_array(np.ones((2, 3)), np.eye(2, 3)),
        np.array([10**12, 3]), np.datetime64("2020-01-01"), np.zeros((2, 3), "V4"), np.ones((2, 3))[::-1, ::-1],
        range(3), "x" * 100, "\ud800", "\x00", slice(3), Ellipsis, np.float64, "float16", "int8", iter([1, 2]),
    ]  # fmt: skip
    things = [(n, thing) for n, thing in public() if n not in NOT_CALLED and ".support." not in thing.__module__]

    def draw(rng):
        while True:
            name, thing = things[rng.integers(len(things))]
            given = {**GIVEN, **OF.get(name, {})}
            try:
                parameters = inspect.signature(thing).parameters
            except ValueError:
                continue
            if is_dataclass(thing):
                needed = [f.name for f in fields(thing) if f.default is MISSING and f.default_factory is MISSING]
            else:
                needed = [n for n, p in parameters.items() if p.default is p.empty and p.kind <= p.KEYWORD_ONLY]
            wrong = list(parameters)[rng.integers(len(parameters))] if parameters else None
            if wrong is not None and wrong not in OBJECTS and all(n in given for n in needed if n != wrong):
                break
        bad = values[rng.integers(len(values))]

        def act():
            result = thing(**{**{n: given[n] for n in needed if n != wrong}, wrong: bad})
            if inspect.isgenerator(result):
                list(result)

        return f"{name}({wrong}={_shown(bad)})", act

    return draw


def _shown(value):
    return (
        f"array of {value.dtype}{value.shape}"
        if isinstance(value, np.ndarray)
        else ascii(value)[:40]
        if not (isinstance(value, int) and abs(value) > 10**30)
        else "a huge number"
    )


# --- files -----------------------------------------------------------------------------------------------------------


def damaged_files(folder):
    """A file of each kind, damaged in one of many ways, and its reader."""
    from transformer_np.data import read_labelled, read_pairs, read_text, read_vectors, write_vectors
    from transformer_np.homework.course import read_course
    from transformer_np.models import GPT, T5, Bert, BertConfig, GPTConfig, T5Config
    from transformer_np.pretrained import load_any
    from transformer_np.tasks.text import GPTOptions, GPTTask, TextGenerator
    from transformer_np.training import load_checkpoint

    text = folder / "text.txt"
    text.write_text("a few words of a text that is long enough. " * 30, encoding="utf-8")
    small = {"block_size": 8, "batch_size": 2, "layers": 1, "heads": 2, "d_model": 8, "steps": 2}
    GPTTask().train(GPTOptions(text=text, **small), folder / "run", progress=False)
    sizes = {"d_model": 8, "num_heads": 2, "d_ff": 6}
    GPT(GPTConfig(9, max_len=6, num_layers=1, **sizes)).save_pretrained(folder / "gpt2")
    Bert(BertConfig(9, max_len=6, num_layers=1, **sizes)).save_pretrained(folder / "bert")
    T5(T5Config(9, d_head=4, num_encoder_layers=1, num_decoder_layers=1, **sizes)).save_pretrained(folder / "t5")
    (folder / "pairs.tsv").write_text("one\tum\ntwo\tdois\n" * 20, encoding="utf-8")
    (folder / "labelled.tsv").write_text("good\tfine film\nbad\tdull film\n" * 20, encoding="utf-8")
    (folder / "course.toml").write_text("partial = true\n[points]\nsoftmax = 2\n", encoding="utf-8")
    for name, binary, D in (("text.vec", False, 3), ("binary.vec", True, 3), ("one.vec", True, 1)):
        write_vectors(folder / name, ["a", "b", "c"], np.arange(3 * D, dtype=np.float32).reshape(3, D) / 7, binary)
    whole = load_checkpoint(folder / "run/checkpoint.safetensors")

    def checkpoint(path):
        tensors, header = load_checkpoint(path)
        if header != whole[1] or any(not np.array_equal(tensors[name], whole[0][name]) for name in whole[0]):
            raise Finding("a damaged checkpoint was read as another content")

    readers = [
        ("run/checkpoint.safetensors", checkpoint),
        ("run/checkpoint.safetensors", lambda path: TextGenerator.load(path.parent)),
        ("run/run.json", lambda path: TextGenerator.load(path.parent)),
        ("run/run.json", lambda path: GPTTask().train({"steps": 2}, path.parent, resume=True, progress=False)),
        *((f"{kind}/{file}", lambda path: load_any(path.parent))
          for kind in ("gpt2", "bert", "t5") for file in ("config.json", "model.safetensors")),
        *((name, read_vectors) for name in ("text.vec", "binary.vec", "one.vec")),
        ("pairs.tsv", read_pairs), ("labelled.tsv", read_labelled), ("text.txt", read_text), ("course.toml",
        read_course),
    ]  # fmt: skip

    def draw(rng):
        name, read = readers[rng.integers(len(readers))]
        how, content = damaged((folder / name).read_bytes(), rng)

        def act():
            place = folder / "damaged"
            shutil.rmtree(place, ignore_errors=True)
            if "/" in name:
                shutil.copytree(folder / name.split("/")[0], place)
            place.mkdir(exist_ok=True)
            path = place / Path(name).name
            path.write_bytes(content)
            read(path)

        return f"{name}, {how}", act

    return draw


def damaged(content, rng):
    """How the content of a file is damaged, and the damaged content."""
    at = int(rng.integers(len(content)))
    length = int(rng.integers(1, 40))
    pieces = [
        b'"', b"{", b"}", b"[", b"0", b"-1", b"1e999", b"null", b"NaN", b"9" * 30, b"\xff", b"\0", b"\n", b"\t", b" ",
    ]  # fmt: skip
    piece = pieces[rng.integers(len(pieces))]
    ways = {
        "cut off": lambda: content[:at],
        "a bit flipped": lambda: content[:at] + bytes([content[at] ^ 1 << int(rng.integers(8))]) + content[at + 1 :],
        "bytes lost": lambda: content[:at] + content[at + length :],
        "bytes twice": lambda: content[: at + length] + content[at:],
        "random bytes": lambda: content[:at] + rng.bytes(length) + content[at + length :],
        f"{piece!r} in between": lambda: content[:at] + piece + content[at:],
        f"{piece!r} in its place": lambda: content[:at] + piece + content[at + len(piece) :],
        "a number replaced": lambda: _number_replaced(content, piece, rng),
        "empty": lambda: b"",
        "nested deeply": lambda: (b"[", b'{"a":')[int(rng.integers(2))] * 100_000,
        "zeros": lambda: bytes(len(content)),
    }
    how = list(ways)[rng.integers(len(ways))]
    return f"{how} at {at}", ways[how]()


def _number_replaced(content, piece, rng):
    import re

    found = list(re.finditer(rb"(?<=[:\[ ])[\d.]+", content))
    if not found:
        return content + piece
    one = found[rng.integers(len(found))]
    return content[: one.start()] + piece + content[one.end() :]


# --- the command line ------------------------------------------------------------------------------------------------


def command_lines(folder):
    """A command in surroundings that are not those of a terminal."""
    text = f"{folder}/text.txt"
    commands = [
        "$T --version", "$T lecture --no-train", "$T translate x", "$T generate x",
        f"$T generate x --model {folder}/run",
        f"$T generate x --model {folder}/run --max-new-tokens $N",
        f"$T generate x --model {folder}/run --temperature $N",
        f"$T generate x --model {folder}/gpt2", f"$T neighbours a --vectors {folder}/binary.vec", "$T gradcheck",
        f"$T neighbours a --count $N --vectors {folder}/text.vec", "$T plot pe -o a.png --length $N",
        "$T plot mask -o a.svg",
        "$T plot attention -o /nonexistent/a.png", "$T complexity", "$T homework status", "$T homework check $N",
        "$T homework start $N", "$T homework grade $N --memory $N", "$T homework hint softmax", "$T bench $N",
        "$T explore x",
        f"$T train gpt --text {text} --layers $N --steps 1", f"$T train gpt --text {text} --lr $N --steps 1",
        f"$T train gpt --text {text} --steps 1 --d-model $N --out new", "$T train gpt --text /dev/zero",
        "$T train translate --steps 0",
        f"$T train translate --pairs {folder}/pairs.tsv --steps 1 --batch-size $N --out new",
        "$T classify x --model $N",
        f"$T train word2vec --text {text} --steps 1 --window $N --out new", "$T embed x", "$T t5 x", "$T $N",
        "$T train $N",
        f"$T train classify --data {folder}/labelled.tsv --steps 1 --dropout $N --out new",
        f"$T explore x --model {folder}/run",
    ]  # fmt: skip
    values = [
        "''", "0", "-1", "1000000000000000000000", "1e300", "nan", "inf", "'\\xff'", "x", "/dev/null", "/", ".",
        "1.5", "3",
    ]  # fmt: skip
    values += [
        "$(printf '\\377')", "$(printf 'a\\033[31m')", "é", "--help", "=", "/dev/zero", "1000000000000", "-", "--",
    ]  # fmt: skip
    around = [
        "{}", "{} <&-", "{} >&-", "{} 2>&-", "{} </dev/null >&- 2>&-", "{} >/dev/full", "{} | head -c 1", "yes | {}",
        "env -u HOME {}", "HOME=/nonexistent {}", "PYTHONIOENCODING=ascii {}", "PYTHONIOENCODING=latin-1 {}",
        "LC_ALL=C {}",
        "TERM=dumb COLUMNS=1 {}", "COLUMNS=nonsense {}", "(ulimit -v 600000; {})", "(ulimit -f 1; {})",
        "(ulimit -n 20; {})",
        "head -c 3000000 /dev/zero | {}", "printf '\\377\\n' | {}", "TMPDIR=/nonexistent {}", "MPLBACKEND=nonsense {}",
        "OPENBLAS_NUM_THREADS=x {}",
    ]  # fmt: skip

    def draw(rng):
        command = commands[rng.integers(len(commands))]
        while "$N" in command:
            command = command.replace("$N", values[rng.integers(len(values))], 1)
        line = around[rng.integers(len(around))].format(command)

        def act():
            environment = {**os.environ, "T": f"{sys.executable} -m transformer_np", "PYTHONPATH": str(ROOT)}
            environment["PYTHONDONTWRITEBYTECODE"] = "1"  # `ulimit -f` would leave a part of a .pyc file for all others
            with tempfile.TemporaryDirectory() as place:
                process = subprocess.Popen(
                    ["sh", "-c", line], cwd=place, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE, start_new_session=True,
                )  # fmt: skip
                try:
                    _, err = process.communicate(timeout=limit() - 10)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)  # the session that this try has started
                    process.communicate()
                    raise Finding("it does not end") from None
            err = err.decode("utf-8", "replace")
            if "Traceback" in err or "a bug, please" in err:
                raise Finding(err.strip()[-300:])
            error = err.partition("error: ")[2]
            if process.returncode not in (0, 1, 2, 130) or len(error.splitlines()) > 3:
                raise Finding(f"exit code {process.returncode}, {len(error.splitlines())} lines: {err[-200:]!r}")

        return line, act

    return draw


if __name__ == "__main__":
    raise SystemExit(main())
