"""What tests in several folders import."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import tracemalloc
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from transformer_np import cli, models
from transformer_np.training import Trainer


def call(capsys, *args):
    """Exit code, stdout and stderr of a command."""
    try:
        code = cli.main([str(arg) for arg in args])
    except SystemExit as stop:  # argparse
        code = stop.code
    return code, *capsys.readouterr()


def done(capsys, *args):
    """The command succeeds; its stdout."""
    code, out, err = call(capsys, *args)
    assert code == 0, err
    return out


def fails(capsys, *args, code=2):
    """The command fails with this exit code and nothing on stdout; what the last line of stderr says."""
    found, out, err = call(capsys, *args)
    assert (found, out) == (code, ""), err
    assert "Traceback" not in err
    match = re.fullmatch(r"transformer-np.*: error: (.+)", err.splitlines()[-1])
    assert match, err
    return match[1]


def stdin(monkeypatch, data):
    """These bytes are what commands read where they get no text, whatever encoding Python takes them for."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="latin-1"))


def wait_until(condition, seconds=300):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def peak_of(function):
    """Bytes at most held while a function runs, above what there was before."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def alive(pid):
    """Whether a process is there and has not ended; one that nobody asks how it ended stays in the list."""
    stat = Path(f"/proc/{pid}/stat")
    try:
        os.kill(pid, 0)
        return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def assert_same(model, other):
    """The same parameters to the bit, and of the same types."""
    one, two = model.state_dict(), other.state_dict()
    assert one.keys() == two.keys()
    for name, values in one.items():
        assert values.dtype == two[name].dtype and np.array_equal(values, two[name]), name


def made(config):
    """The model of a configuration, whose class has its name."""
    return getattr(models, type(config).__name__.removesuffix("Config"))(config)


def write_answers(file, answers):
    """Fill in the stubs of a student's file, {name: the body}."""
    text = file.read_text(encoding="utf-8")
    for name, body in answers.items():
        begin = text.index("raise NotImplementedError", text.index(f"def {name}("))
        text = text[:begin] + body + text[begin + len("raise NotImplementedError") :]
    file.write_text(text, encoding="utf-8")


def data_of(page):
    """What the explorer has written into its page."""
    return json.loads(re.search(r'id="data">(.*?)</script>', page.read_text("utf-8"), re.DOTALL)[1])


def flags_of(options):
    """The flags of a command that set these options, {name: value}."""
    return [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]


def stderr_until(process, pattern):
    """What a process says on stderr until the pattern is in it; for ever if it says something else."""
    said = b""
    while not re.search(pattern, said):
        assert process.poll() is None, said
        said += os.read(process.stderr.fileno(), 1000)
    return said


def python(*arguments, **options):
    """What Python does with these arguments, in a process of its own."""
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, **{"capture_output": True, "encoding": "utf-8", "timeout": 300, **options})


def resize(browser, width, height=900):
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


@contextmanager
def interrupted(*steps):
    """Inside the block, Ctrl-C comes in these steps of a training run, counted from 1."""
    one_step = Trainer._one_step

    def stopping(self, batch, due=False):
        if self.step + 1 in steps:
            os.kill(os.getpid(), signal.SIGINT)
        return one_step(self, batch, due)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "_one_step", stopping)
        yield


def few_of(cases, few):
    """The cases of a test as parameters; all but a few are long."""
    return [pytest.param(*case, marks=() if case in few else pytest.mark.long) for case in cases]


# before the arguments of a command that takes code in C for stuck after half a second, not after five
IMPATIENT = ["-c", "import sys\nfrom transformer_np import __main__, homework\n"
             "homework.limit.GRACE = 0.5\nsys.exit(__main__.main())"]  # fmt: skip
A_STEP_IS_DONE = rb" [1-9]\d*/\d+ \["  # on the bar of a training run
