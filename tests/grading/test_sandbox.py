"""What a submission is kept in by: each wall on its own, and what comes back through the last opening."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from transformer_np.grading.sandbox import isolation, wire
from transformer_np.grading.sandbox.answers import needs_library
from transformer_np.homework import all_exercises

LINUX = sys.platform == "linux"


def in_a_process(code, **values):
    """Run code in a process of its own; returns what it printed."""
    head = "".join(f"{name} = {value!r}\n" for name, value in values.items())
    done = subprocess.run(
        [sys.executable, "-c", head + textwrap.dedent(code)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


# --- messages --------------------------------------------------------------------------------------------------------


def round_trip(output):
    content = wire.pack({"kind": "tried"}, output)
    text, arrays = wire.HEADER.unpack(content[: wire.HEADER.size])
    body = content[wire.HEADER.size :]
    assert len(body) == text + arrays
    return wire.unpack(body[:text], body[text:])["output"]


def test_results_come_back_as_they_were():
    output = (np.arange(6.0).reshape(2, 3), [1, 2.5, None, True], np.float32(0.1), (np.array([True]), np.zeros((0, 2))))
    got = round_trip(output)
    assert isinstance(got, tuple)
    assert got[1] == [1, 2.5, None, True]
    for one, other in ((got[0], output[0]), (got[2], output[2]), (got[3][0], output[3][0]), (got[3][1], output[3][1])):
        assert np.asarray(other).dtype == one.dtype
        np.testing.assert_array_equal(one, other)
    assert np.isnan(round_trip(float("nan")))
    assert round_trip(...) is ...
    np.testing.assert_array_equal(round_trip(np.arange(6).reshape(2, 3).T), np.arange(6).reshape(2, 3).T)
    np.testing.assert_array_equal(round_trip(np.arange(3, dtype=">f8")), np.arange(3.0))


def test_other_things_come_back_as_their_names():
    for thing in ({"a": 1}, "text", np.array([object()]), np.array(["a"]), object()):
        assert type(round_trip(thing)).__name__ == type(thing).__name__


def test_what_is_too_large_is_not_sent():
    endless = []
    endless.append(endless)
    for output in (np.zeros(wire.MOST_BYTES), [0] * 100_000, endless):
        with pytest.raises(wire.TooLarge):
            wire.pack({}, output)


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b"[" * 100_000,
        b'{"output": {"a": ["|O", [1], 0]}}',
        b'{"output": {"a": ["<f8", [1000000000], 0]}}',
        b'{"output": {"a": ["<f8", [-1], 0]}}',
        b'{"output": {"a": ["<f8", [1], -8]}}',
        b'{"output": {"a": ["<f8", [true], 0]}}',
        b'{"output": {"a": ["<f8", "x", 0]}}',
        b'{"output": {"a": [["<f8"], [1], 0]}}',
        b'{"output": {"x": "a", "y": 1}}',
        b'{"output": "text"}',
        b'{"output": {"q": 1}}',
        b'{"output": ' + b'{"l": [' * 10 + b"]}" * 10 + b"}",
    ],
)  # fmt: skip
def test_other_messages_are_refused(said):
    with pytest.raises(ValueError):
        wire.unpack(said, b"12345678")


def test_text_is_made_plain():
    assert wire.plain_text("a\x1b[31mb\r\n\u202ec\ud800") == "a [31mb \n c "
    assert len(wire.plain_text("x" * 9999, 10)) == 10


# --- walls -----------------------------------------------------------------------------------------------------------


def test_what_is_hidden_is_not_readable(tmp_path, monkeypatch):
    packages = tmp_path / "site-packages"
    for name in ("numpy", "transformer_np", "other/inner"):
        (packages / name).mkdir(parents=True)
    monkeypatch.syspath_prepend(str(packages))
    read, listed = isolation.readable_places([str(packages / "transformer_np"), str(packages / "other" / "inner")])
    assert str(packages / "numpy") in read
    assert {str(packages), str(packages / "other")} <= set(listed)
    assert [path for path in read if path.startswith(str(tmp_path))] == [str(packages / "numpy")]


TRIES = """
import os, sys
def outcome(do):
    try:
        do()
        return "done"
    except OSError:
        return "refused"
read = os.path.dirname(os.__file__)
for do in (
    lambda: open(secret).read(),
    lambda: os.open(secret, os.O_RDONLY),
    lambda: open(inside + "/new", "w").close(),
    lambda: open(outside + "/new", "w").close(),
    lambda: os.remove(secret),
    lambda: os.listdir(outside),
    lambda: open(os.__file__).close(),
):
    print(outcome(do))
"""


@pytest.fixture
def places(tmp_path):
    (tmp_path / "inside").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    return {
        "secret": str(tmp_path / "outside" / "secret"),
        "inside": str(tmp_path / "inside"),
        "outside": str(tmp_path / "outside"),
    }


def test_landlock_refuses_other_files(places):
    code = """
    from transformer_np.grading.sandbox import isolation, limits
    import os
    limits.no_new_privileges()
    print(isolation.landlock([os.path.dirname(os.__file__)], [], [inside]))
    """
    active, *found = in_a_process(textwrap.dedent(code) + TRIES, **places)
    if active != "True":
        pytest.skip("this system has no Landlock")
    assert found == ["refused", "refused", "done", "refused", "refused", "refused", "done"]
    assert os.path.exists(places["secret"])


@pytest.mark.long
def test_the_audit_hook_refuses_other_files(places):
    code = """
    from transformer_np.grading.sandbox import isolation
    import os
    isolation.audit([os.path.dirname(os.__file__)], [], [inside])
    """
    found = in_a_process(textwrap.dedent(code) + TRIES, **places)
    assert found == ["refused", "refused", "done", "refused", "refused", "refused", "done"]


@pytest.mark.long
def test_the_audit_hook_refuses_processes_and_sockets():
    code = """
    import gc, os, socket, subprocess
    from transformer_np.grading.sandbox import isolation
    isolation.audit([os.path.dirname(os.__file__)], [], [])
    for do in (os.fork, lambda: os.system("true"), lambda: subprocess.run(["true"]), lambda: os.kill(os.getpid(), 0),
               gc.get_objects, socket.socket):
        try:
            do()
            print("done")
        except (PermissionError, RuntimeError):
            print("refused")
    """
    assert in_a_process(code) == ["refused"] * 6


@pytest.mark.skipif(not LINUX, reason="Linux only")
def test_seccomp_refuses_processes_and_sockets_but_not_threads():
    code = """
    import os, socket, subprocess, threading
    from transformer_np.grading.sandbox import isolation, limits
    limits.no_new_privileges()
    print(isolation.seccomp())
    for do in (os.fork, lambda: subprocess.run(["true"]), socket.socket, lambda: os.kill(os.getppid(), 0),
               lambda: os.execv("/bin/true", ["true"]), lambda: os.chmod("/tmp", 0o777)):
        try:
            do()
            print("done")
        except PermissionError:
            print("refused")
    thread = threading.Thread(target=print, args=("thread",))
    thread.start()
    thread.join()
    """
    active, *found = in_a_process(code)
    if active != "True":
        pytest.skip("this system has no seccomp")
    assert found == ["refused"] * 6 + ["thread"]


@pytest.mark.long
@pytest.mark.skipif(not LINUX, reason="Linux only")
def test_root_without_capabilities_may_not_raise_its_limits():
    code = """
    import resource
    from transformer_np.grading.sandbox import limits
    limits.set_limits(1 << 30, 60)
    limits.drop_capabilities()
    print(resource.getrlimit(resource.RLIMIT_AS)[0] <= 1 << 30)
    try:
        resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
        print("raised")
    except ValueError:
        print("refused")
    """
    assert in_a_process(code) == ["True", "refused"]


# --- the answers -----------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_the_library_is_emptied():
    code = """
    import gc, types
    import numpy as np
    from transformer_np.grading.sandbox import answers
    answers.load_library()
    import transformer_np.homework.sheets.softmax as sheet
    from transformer_np import functional as F, layers, module, training
    held, exercise = F.softmax, sheet.SOFTMAX
    answers.empty_everything([])
    answers.hollow_the_rest()
    from transformer_np.plots import attention as hollow
    class Own(layers.LayerNorm):
        def __init__(self): pass
        def forward(self, x): return super().forward(x)
    x = np.ones((2, 3))
    for do in (lambda: held(x), lambda: exercise.variant()(x), lambda: exercise.variant(["no exponential"])(x),
               lambda: Own().forward(x), lambda: F.cross_entropy(x, x), lambda: training.Adam([]), hollow,
               lambda: F.softmax(x)):
        try:
            do()
            print("done")
        except answers.LibrarySolution:
            print("refused")
    print(module.Parameter(x).grad.sum(), F.TILE, "transformer_np.functional.core.softmax" in answers.called)
    from transformer_np.homework import check
    print(check("softmax", None).passed)
    """
    found = in_a_process(code)
    assert found == ["refused"] * 8 + ["0.0 256 True", "True"]


@pytest.mark.long
def test_of_a_block_only_itself_is_emptied():
    code = """
    import numpy as np
    from types import SimpleNamespace
    from transformer_np.grading.sandbox import answers
    answers.load_library()
    from transformer_np import functional, layers, models
    from transformer_np.layers import blocks
    exercises = [SimpleNamespace(reference=r, name=r.__name__, parts=("forward", "backward"))
                 for r in (blocks.AddNorm, blocks.EncoderBlock, blocks.DecoderBlock)]
    answers.empty_one(exercises[1], [], exercises)
    x = np.ones((1, 2, 4), np.float32)
    def outcome(do):
        try:
            do()
            return "done"
        except answers.LibrarySolution:
            return "refused"
    print(outcome(lambda: blocks.AddNorm(4).forward(x, lambda x: x)))
    print(outcome(lambda: layers.MultiHeadAttention(4, 2)(x)))
    print(outcome(lambda: blocks.EncoderBlock(4, 2, 8)))
    print(outcome(lambda: blocks.EncoderBlock(4, 2, 8)(x)))
    print(outcome(lambda: blocks.DecoderBlock(4, 2, 8)(x, x)))
    gpt = models.GPT(models.GPTConfig(vocab_size=5, d_model=4, num_heads=2, num_layers=1))
    print(outcome(lambda: gpt(np.array([[1, 2]]))))
    """
    assert in_a_process(code) == ["done", "done", "done", "refused", "refused", "refused"]


@pytest.mark.long
def test_of_a_search_its_helpers_are_emptied_too():
    code = """
    import numpy as np
    from types import SimpleNamespace
    from transformer_np.grading.sandbox import answers
    answers.load_library()
    from transformer_np import decoding, functional
    exercises = [SimpleNamespace(reference=r, name=r.__name__, parts=())
                 for r in (decoding.beam_search, decoding.greedy_decode)]
    search, row = decoding.beam_search, decoding._search_row
    answers.empty_one(exercises[0], [], exercises)
    for do in (lambda: search(None, None), lambda: row(None), lambda: functional.softmax(np.ones(2))):
        try:
            do()
            print("done")
        except answers.LibrarySolution:
            print("refused")
    """
    assert in_a_process(code) == ["refused", "refused", "done"]


def test_which_drives_need_more_of_the_library_than_parameters():
    drives = {name: exercise.drive for name, exercise in all_exercises().items()}
    needing = {name for name, drive in drives.items() if needs_library(drive)}
    assert needing == {"AddNorm", "EncoderBlock", "DecoderBlock"}
