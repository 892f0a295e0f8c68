"""pytest in a student's folder."""

import json
import os
import re
import sys
import tempfile
import warnings
from functools import partial
from importlib.metadata import entry_points

import pytest
from shared import python, write_answers

from transformer_np import cli
from transformer_np.homework import limit
from transformer_np.support.platform import can_fork

pytestmark = pytest.mark.skipif(not can_fork(), reason="this system does not copy processes")
PLUGIN = "transformer_np.commands.homework_pytest"
QUIET = "-p no:cacheprovider -p no:anyio --rootdir .".split()  # anyio's plugin, where there is one, loads trio


@pytest.fixture
def homework(tmp_path, monkeypatch):
    """A student's folder with three exercises: one right, one wrong, one not started."""
    monkeypatch.chdir(tmp_path)
    cli.main(["homework", "start", ".", "--only", "embedding", "relu", "softmax_backward"])
    answers = {"embedding": "return table[ids]", "softmax_backward": "return dy * y * (1 - y)"}
    write_answers(tmp_path / "homework.py", answers)
    (tmp_path / "progress.json").write_text("{}\n", encoding="utf-8")
    return tmp_path


def run(folder, *arguments):
    """pytest in a copy of this process, which has loaded the package: exit code and output."""
    arguments = [*plugin(), *QUIET, *arguments]
    with tempfile.TemporaryFile() as said:
        child = os.fork()
        if not child:
            try:
                os.dup2(said.fileno(), 1)
                os.dup2(said.fileno(), 2)
                sys.stdout = sys.stderr = open(1, "w", encoding="utf-8", buffering=1, closefd=False)
                warnings.resetwarnings()
                os.chdir(folder)
                os._exit(pytest.main(arguments))
            finally:
                os._exit(99)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said.seek(0)
        return code, said.read().decode()


def run_anew(folder):
    """The same in a new process."""
    done = python("-m", "pytest", *plugin(), *QUIET, cwd=folder)
    return done.returncode, done.stdout + done.stderr


def plugin():
    installed = any(entry.value == PLUGIN for entry in entry_points(group="pytest11"))  # not by an older installation
    return () if installed else ("-p", PLUGIN)


@pytest.mark.long
def test_one_test_per_exercise(homework):
    code, out = run(homework, "-v")
    assert code == 1 and "homework.py: 1 of 3 exercises right, 1 wrong" in out
    outcomes = re.findall(r"homework.py::(\w+) (PASSED|SKIPPED|FAILED)", out)
    assert outcomes == [("embedding", "PASSED"), ("relu", "SKIPPED"), ("softmax_backward", "FAILED")]
    assert "the diagonal of the Jacobian alone" in " ".join(out.split())
    assert "Traceback" not in out and "judging" not in out
    noted = json.loads((homework / "progress.json").read_text(encoding="utf-8"))
    outcomes = {name: entry["outcome"] for name, entry in noted.items()}
    assert outcomes == {"embedding": "passed", "softmax_backward": "wrong gradient"}
    code, out = run(homework, "homework.py", "-k", "relu", "-rs")
    assert code == 0 and "1 skipped, 2 deselected" in out
    assert "Next: transformer-np homework hint relu" in " ".join(out.split())


def test_its_commands_name_the_file_from_where_pytest_runs(homework):
    file, above = homework.parent.name + f"/{homework.name}/homework.py", homework.parents[1]
    out = " ".join(run(above, file, "-rs")[1].split())
    assert f"homework check {file} softmax_backward --seed" in out and f"hint relu --file {file}" in out
    assert f"(transformer-np homework hint relu --file {file})" in run(above, file, "-k", "not softmax")[1]


@pytest.mark.long
def test_a_file_that_cannot_be_imported(homework):
    (homework / "homework.py").write_text("# transformer-np homework\n1 / 0\n", encoding="utf-8")
    code, out = run(homework)
    assert code == 2 and "homework.py has a line that fails. ZeroDivisionError" in out


@pytest.mark.long
def test_code_in_c_that_does_not_return_is_shown(homework, monkeypatch):
    file = homework / "homework.py"
    text = file.read_text(encoding="utf-8").replace("raise NotImplementedError", "return sum(range(10**12))", 1)
    file.write_text(text, encoding="utf-8")
    monkeypatch.setattr(limit, "TimeLimit", partial(limit.TimeLimit, 0.2))
    monkeypatch.setattr(limit, "GRACE", 0.5)
    code, out = run(homework, "-k", "relu")
    assert code == 1 and re.search(r'Timeout .*File "\S+homework.py", line \d+ in relu\n', out, re.DOTALL)


@pytest.mark.long
def test_a_thread_of_the_file_does_not_keep_pytest(homework):
    file, forever = (
        homework / "homework.py",
        "import threading\nthreading.Thread(target=threading.Event().wait).start()\n",
    )
    file.write_text(file.read_text(encoding="utf-8") + forever, encoding="utf-8")
    code, out = run_anew(homework)
    assert code == 1 and "1 of 3 exercises right, 1 wrong" in out


@pytest.mark.long
def test_elsewhere_nothing_is_collected_or_loaded(tmp_path):
    (tmp_path / "homework.py").write_text("x = 1\n", encoding="utf-8")
    (tmp_path / "test_other.py").write_text("import sys\ndef test():\n    assert 'numpy' not in sys.modules\n")
    code, out = run_anew(tmp_path)
    assert (code, "1 passed" in out) == (0, True)


@pytest.mark.long
@pytest.mark.parametrize("patterns", ["*.py", pytest.param("test_*.py homework.py", marks=pytest.mark.release)])
def test_a_pattern_that_matches_the_file_counts_no_exercise_twice(patterns, homework):
    code, out = run(homework, "-o", f"python_files={patterns}", "-q")
    assert (code, "1 of 3 exercises right, 1 wrong" in out) == (1, True)


# --- files that hide a module -----------------------------------------------------------------------------------------

TRACE = "open('executed', 'w').close()\n"


@pytest.mark.long
@pytest.mark.parametrize("name, hidden", [("numpy.py", "the package"), ("random.py", "Python's own module")])
def test_a_file_of_the_students_that_hides_a_module(name, hidden, homework):
    (homework / name).write_text(TRACE)
    told = f"Your file {name} hides {hidden} {name[:-3]}: rename it."
    checked = python(*"-m transformer_np homework check homework.py embedding".split(), cwd=homework)
    assert (checked.returncode, checked.stderr) == (0, f"{told}\n")
    if name == "numpy.py":  # pytest itself imports random before it reads a plugin
        code, out = run_anew(homework)
        assert (code, told in out, "1 of 3 exercises right" in out) == (1, True, True)
    assert not (homework / "executed").exists()


@pytest.mark.long
def test_no_submission_is_imported_from_the_current_folder(tmp_path):
    for name in ("numpy.py", "random.py", "json.py", "signal.py", "tqdm.py"):
        (tmp_path / name).write_text(TRACE + f"open({str(tmp_path / 'executed')!r}, 'w').close()\n")
    (tmp_path / "course.toml").write_text('exercises = ["relu"]\n')
    command = "-m transformer_np homework grade . --course course.toml -q --trust --seconds 5".split()
    graded = python(*command, cwd=tmp_path)
    assert (graded.returncode, graded.stdout.count("0 of 1")) == (0, 5), graded.stderr
    assert not (tmp_path / "executed").exists()
