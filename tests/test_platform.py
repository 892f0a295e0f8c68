"""A platform without processes, threads, timers and locks: a browser, imitated in a process. A real one runs in
tests/homework/test_page.py."""

import sys

import pytest
from shared import python

LIKE_A_BROWSER = """
import faulthandler, os, signal, subprocess, sys, sysconfig, threading, time, types

def refused(*_, **__):
    raise RuntimeError("can't start new thread")

def unknown(*_, **__):
    raise OSError(138, "emscripten does not support processes.")

import numpy, multiprocessing.reduction  # built for this system
numpy.intp, count = numpy.int32, numpy.bincount  # 32 bits

def bincount(x, *more, **options):
    return count(x.astype(numpy.intp, casting="safe"), *more, **options)

numpy.bincount = bincount
sysconfig.get_config_vars()
sys.platform = "emscripten"
sys.modules |= {"fcntl": types.ModuleType("fcntl"), "resource": types.ModuleType("resource")}
threading.Thread.start = faulthandler.dump_traceback_later = refused
os.fork = os.replace = os.rename = subprocess.Popen = unknown  # this fork is there, and fails
del signal.setitimer, os.sched_getaffinity
time.process_time = lambda: 0.0  # it stands still
"""


def in_a_browser(folder, text):
    """What Python prints, in `folder`."""
    done = python("-c", LIKE_A_BROWSER + text, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


CHECKS = """
from transformer_np.homework import check, load

def answer(x):
    return numpy.where(x > 0, x, 0.1)

open("homework.py", "w").write("import numpy as np\\n\\ndef relu(x):\\n    return np.maximum(x, 0)\\n")
print(check("relu", load("homework.py").answers["relu"], quiet=True).outcome)
print(check("relu", answer, quiet=True).outcome)

def embedding_backward(dy, ids, num_embeddings):
    often = numpy.bincount(ids.ravel(), minlength=num_embeddings)
    dtable = numpy.zeros((num_embeddings, dy.shape[-1]), dy.dtype)
    numpy.add.at(dtable, ids, dy)
    return dtable * (often > 0)[:, None]

print(check("embedding_backward", embedding_backward, quiet=True).outcome)
print(open("progress.json").read())
"""


def test_checks_and_their_record(tmp_path):
    (tmp_path / "progress.json").write_text("{}\n")
    right, wrong, with_counts, *record = in_a_browser(tmp_path, CHECKS).splitlines()
    assert (right, wrong, with_counts) == ("passed", "wrong value", "passed")
    assert '"outcome": "passed"' in "".join(record)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["homework.py", "progress.json"]  # no temporary file


LOOP = """
from transformer_np.homework import check

def answer(x):
    while True:
        try:
            x = x + 1
        except:
            pass

print(check("relu", answer, quiet=True, time_limit=0.5).message)
"""


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python 3.11 cannot watch the clock, and runs in no browser")
def test_a_loop_ends_by_the_clock(tmp_path):
    assert in_a_browser(tmp_path, LOOP).startswith("relu: crashed. It took longer than 0.5 s. This line was running:")


FILES = """
from transformer_np.support.files import read_json, write_text
write_text("new.json", "[1, 2, 3]")
write_text("new.json", "[4]")
print(read_json("new.json"), time.process_time() > 0)
from transformer_np.cli import main
open("text.txt", "w").write("one two three four five six " * 40)
train = "train gpt --text text.txt --steps 3 --block-size 8 --layers 1 --heads 1 --d-model 8 --batch-size 2 -q --out r"
print(main(train.split()), main("generate --model r one --max-new-tokens 3".split()))
"""


def test_files_and_a_training_run(tmp_path):
    files, *_, run = in_a_browser(tmp_path, FILES).splitlines()
    assert (files, run) == ("[4] True", "0 0")
    assert not [file for file in tmp_path.rglob("*.new*")]


REFUSED = """
from transformer_np.cli import main
open("text.txt", "w").write("one two three four five six " * 40)
os.makedirs("class/ana")
open("class/ana/homework.py", "w").write("def relu(x):\\n    return x\\n")
sys.stderr = sys.stdout
for command in (
    "train gpt --text text.txt --steps 3 --block-size 8 --layers 1 --heads 1 --d-model 8 --workers 2 -q",
    "homework grade class", "bench attention --quick", "complexity --quick",
):
    print(main(command.split()))
from transformer_np.training.choice import team_of
try:
    team_of("mpi")
except ValueError as error:
    print(error)
"""


def test_what_needs_processes_is_refused_in_a_sentence(tmp_path):
    lines = in_a_browser(tmp_path, REFUSED).splitlines()
    reason = "other processes, and Python in a browser has none: use Python on a computer"
    said = [line for line in lines if reason in line]
    assert len(said) == 5, "\n".join(lines)
    assert lines.count("2") == 4
