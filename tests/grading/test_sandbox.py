"""What a submission is kept in by: each wall on its own, and what comes back through the last opening."""

import marshal
import sys
import textwrap
from types import CodeType

import numpy as np
import pytest
from shared import python

from transformer_np.grading.sandbox import calls, keeper, package, session, wire
from transformer_np.grading.sandbox.session import Limits, Task, try_submission
from transformer_np.homework import all_exercises
from transformer_np.homework.judging.trials import Trials


def in_a_process(code, **values):
    """Run code in a process of its own; returns what it printed."""
    head = "".join(f"{name} = {value!r}\n" for name, value in values.items())
    done = python("-c", head + textwrap.dedent(code))
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


# --- messages --------------------------------------------------------------------------------------------------------


def test_what_is_too_large_is_not_sent():
    endless = []
    endless.append(endless)
    for output in (np.zeros(wire.MOST_BYTES), [0] * 100_000, endless):
        with pytest.raises(wire.TooLarge):
            wire.pack({}, output)


NO_MESSAGES = [b"", b"\xff", b"[]", b"{}", b"[" * 100_000, b'{"output": 1}', b'{"output": 1, "after": {"t": []}}']
NO_OUTPUTS = [
    b'{"a": ["|O", [1], 0]}', b'{"a": ["<f8", [10000000], 0]}', b'{"a": ["<f8", [-1], 0]}', b'{"a": ["<f8", [1], -8]}',
    b'{"a": ["<f8", [true], 0]}', b'{"a": ["<f8", "x", 0]}', b'{"a": [["<f8"], [1], 0]}', b'{"q": 1}', b'{"o": "|V8,"}',
    b'{"n": ["<f8", [-1], 0]}', b'{"d": [[[], 1]]}', b"9" * 10_000, b"[" + b'{"m": []},' * 30_000 + b"1]",
]  # fmt: skip


def with_output(output):
    return b'{"after": [], "output": %s}' % output


@pytest.mark.parametrize("said", [*NO_MESSAGES, *map(with_output, NO_OUTPUTS)], ids=range(20))
def test_other_messages_are_refused(said):
    assert wire.unpack(with_output(b'{"a": ["<f8", [1], 0]}'), bytes(8))["output"].shape == (1,)
    with pytest.raises(ValueError):
        wire.unpack(said, bytes(8))


def test_several_arrays_cannot_be_larger_than_their_bytes():
    said = with_output(b'[%s{"a": ["<f8", [1000000], 0]}]' % (b'{"a": ["<f8", [1000000], 0]},' * 9))
    with pytest.raises(ValueError, match="bytes are missing"):
        wire.unpack(said, bytes(8_000_000))


def test_text_is_made_plain():
    assert wire.plain_text("a\x1b[31mb\r\n\u202ec\ud800") == "a [31mb \n c "
    assert len(wire.plain_text("x" * 9999, 10)) == 10


# --- walls -----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(calls.allowed() is None, reason="this system has no libseccomp")
def test_the_filter_refuses_processes_and_sockets_but_not_threads():
    code = """
    import os, socket, subprocess, threading
    from transformer_np.grading.sandbox import calls, limits
    assert limits.refuse_calls(calls.allowed())
    for do in (os.fork, lambda: subprocess.run(["true"]), socket.socket, lambda: os.execv("/bin/true", ["true"])):
        try:
            do()
            print("done")
        except PermissionError:
            print("refused")
    thread = threading.Thread(target=print, args=("thread",))
    thread.start()
    thread.join()
    """
    assert in_a_process(code) == ["refused"] * 4 + ["thread"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux only")
def test_a_crash_leaves_no_core(tmp_path):
    code = """
    import os, resource
    from transformer_np.grading.sandbox import limits
    os.chdir(folder)
    resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
    for prepare in (int, lambda: limits.set_limits(4 << 30, 60, False)):
        if os.fork() == 0:
            prepare()
            os.abort()
        print(os.WCOREDUMP(os.wait()[1]))
    """
    dumped, hidden = in_a_process(code, folder=str(tmp_path))
    if dumped == "False":
        pytest.skip("this system collects no cores")
    assert hidden == "False"


def test_a_clock_stands_still_while_its_process_waits_for_a_processor_but_not_for_ever(monkeypatch):
    now, waited = [0.0], [0.0]
    monkeypatch.setattr(keeper.time, "monotonic", lambda: now[0])
    clock = keeper.Clock(10, lambda: waited[0])
    now[0], waited[0] = 25.0, 20.0
    assert (clock.spent, clock.left) == (5, 5)
    now[0] = waited[0] = 1000.0
    assert clock.left == 10 * (1 + keeper.MOST_WAITING) - 1000


# --- the package -----------------------------------------------------------------------------------------------------

BUILT = "AddNorm", "EncoderBlock", "DecoderBlock", "Optimizer", "Adam", "AdamW", "greedy_decode", "beam_search"


def test_the_module_of_an_answer_keeps_what_the_answer_builds_on():
    kept = {name: package.names_beside(all_exercises()[name]) for name in BUILT}
    for name, names in kept.items():
        assert name not in names
    blocks = {"AddNorm", "EncoderBlock", "DecoderBlock"}
    assert [kept[n] & blocks for n in ("AddNorm", "EncoderBlock", "DecoderBlock")] == [set(), {"AddNorm"}, {"AddNorm"}]
    optimizers = {"Optimizer", "Adam", "AdamW", "SGD"}
    assert kept["Optimizer"] & optimizers == set()
    assert kept["Adam"] & optimizers == {"Optimizer", "SGD"}
    assert kept["AdamW"] & optimizers == {"Optimizer", "SGD", "Adam"}
    assert not (kept["greedy_decode"] | kept["beam_search"]) & {"greedy_decode", "beam_search", "_search_row"}


def task_of(name, seed=1):
    return Task(Trials(all_exercises()[name], seed))


def texts_of(code):
    """The names and texts in the code of a module."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from texts_of(constant)
    yield from (c for c in code.co_consts if isinstance(c, str))
    yield from code.co_names


@pytest.mark.parametrize("name", ["dropout", "clip_grad_norm", "greedy_decode"])
def test_of_a_sheet_neither_answers_nor_mistakes_are_given(name):
    exercise, modules = all_exercises()[name], task_of(name).modules
    sheets = [marshal.loads(code) for module, (_, code) in modules.items() if ".sheets." in module]
    given = {text for code in sheets for text in texts_of(code)}
    assert exercise.drive.__name__ in given
    assert "EXERCISES" not in given
    assert not given & {*exercise.mistakes, *exercise.mistakes.values(), *exercise.hints}


@pytest.mark.long
def test_an_exercise_has_the_parts_that_it_is_built_from_and_no_others():
    """And its process comes before those that hold its answer."""
    tasks = {name: task_of(name) for name in all_exercises()}
    parts = {name: task.modules for name, task in tasks.items()}
    assert {name for name in parts if any(".functional" in m or ".training" in m for m in parts[name])} == set(BUILT)
    assert not any(".models" in module for name in BUILT[:6] for module in parts[name])
    for name in ("Optimizer", "Adam", "AdamW"):
        assert not any(".layers" in module or ".functional" in module for module in parts[name])
    held = 0
    for holder in tasks.values():
        for name, exercise in all_exercises().items():
            _, code = holder.modules.get(exercise.reference.__module__, (False, None))
            if code and name in {c.co_name for c in marshal.loads(code).co_consts if isinstance(c, CodeType)}:
                held += 1
                assert tasks[name].holds < holder.holds, (name, holder.name)
    assert held > 100


@pytest.mark.usefixtures("walls")
def test_the_processes_that_hold_more_of_the_library_come_later(monkeypatch):
    order, names = [], ["AdamW", "Adam", "softmax"]

    def go(run, total):
        order.append(run.task.name)
        run.defined = {*names}

    monkeypatch.setattr(session._Run, "go", go)
    try_submission({}, [task_of(name) for name in names], Limits(60))
    assert order == names[::-1]


SEES = {
    "other files": "open('/etc/passwd')", "the state of other files": "os.stat('/etc/passwd')",
    "by a folder's number": "os.open('etc/passwd', os.O_RDONLY, dir_fd=os.open('/', os.O_RDONLY))",
    "processes": "os.listdir('/proc')", "its library": "import transformer_np.module as m; open(m.__file__)",
    "scipy": "import scipy", "torch": "import torch", "onnx": "import onnx.reference", "cffi": "import cffi",
    "the list of mistakes": "from transformer_np.homework.sheets.softmax import SHEET; SHEET.notes.keys()",
    "a network": "import socket; socket.create_connection(('127.0.0.1', 80), 1)",
    "a program": "os.posix_spawn('/bin/true', ['true'], {})", "its parent": "os.kill(1, 9); raise OSError",
    "a keyring": "import ctypes; 1 / (1 + ctypes.CDLL(None).syscall(248, b'user', b'a', b'b', 1, -3))",
    "a place to write": "open('/packages/numpy/x', 'w')", "shared memory": "open('/dev/shm/x', 'w')",
}  # fmt: skip
PIPE_OF = "[libc.fcntl(end, {}, {}) for end in os.pipe()]"
LIBRARY = "np.__file__"  # a file of the host
REFUSED = {  # expressions that are not true
    "pages_of_files": f"libc.posix_fadvise(os.open({LIBRARY}, 0), 0, 0, 4) == 0",
    "pages_paged_out": "libc.madvise(ctypes.c_void_p(id(np.exp) & ~4095), 4096, 21) == 0",
    "pages_in_memory": "libc.mincore(ctypes.c_void_p(id(np.exp) & ~4095), 4096, bytes(9)) == 0",
    "detached_memory": "any(libc.shmget(0, 128 << 20, 0o1666) >= 0 for _ in range(16))",
    "many_semaphores": "any(libc.semget(0, 32000, 0o1666) >= 0 for _ in range(300))",
    "memory_files": "libc.memfd_create(b'm', 0) >= 0 or libc.syscall(447, 0) >= 0",
    "large_pipes": f"any(size > 65536 for size in {PIPE_OF.format(1031, '1 << 20')})",
    "owners_of_pipes": f"0 in {PIPE_OF.format(8, 1)}",  # F_SETOWN
    "signals_that_wait": (
        "(signal.pthread_sigmask(signal.SIG_BLOCK, [40]), [os.kill(os.getpid(), 40) for _ in range(1000)], "
        "len(list(iter(lambda: signal.sigtimedwait([40], 0), None))) > 100)[2]"
    ),
    "timers": "libc.timer_create(1, None, bytes(8)) == 0 or libc.timerfd_create(1, 0) >= 0",
    "watches": f"libc.inotify_init() >= 0 or libc.fcntl(os.open(os.path.dirname({LIBRARY}), 0), 1026, 1) == 0",
    "locked_memory": "libc.mlockall(1) == 0",
    "given_pages": "libc.vmsplice(os.pipe()[1], bytes(16), 1, 8) >= 0",
    "files_in_flight": "libc.sendmsg(0, None, 0) == 0 or ctypes.get_errno() == 14",
    "another_root": "libc.chroot(b'/tmp') == 0 or libc.syscall(155, b'/tmp', b'/tmp') == 0",
    "writable_again": "libc.mount(None, b'/', None, 0x1020, None) == 0 or os.mkdir('/left') is None",
    "processes_of_the_host": "libc.mount(b'proc', b'/tmp', b'proc', 0, None) == 0",
    "handles_of_files": "libc.open_by_handle_at(3, bytes(200), 0) >= 0 or libc.syscall(303, -100, b'/', 0, 0, 0) == 0",
    "a_device": "libc.mknod(b'disk', 0o60666, 254 << 8) == 0",
    "namespaces_of_others": "libc.setns(libc.pidfd_open(1, 0), 0x7E020000) == 0",
    "a_user_again": "any(libc.unshare(kind) == 0 for kind in (0x10000000, 0x20000, 0x8000000))",
    "root_again": "libc.setuid(0) == 0 or libc.setgroups(0, None) == 0 or libc.setresuid(0, 0, 0) == 0",
    "capabilities": "libc.capset(b'\\x22\\x05\\x08\\x20' + bytes(4), b'\\xff' * 24) == 0",
    "dumpable": "libc.prctl(4, 1, 0, 0, 0) == 0 or libc.personality(0x400000) >= 0",
    "a_program_by_its_loader": "os.execv('/lib64/ld-linux-x86-64.so.2', ['ld', '/bin/sh']) is None",
    "a_thread_in_a_network_of_its_own": (  # each takes memory of the kernel beside the limits
        "any(libc.clone(libc.pause, ctypes.c_void_p(ctypes.addressof(ctypes.create_string_buffer(65536)) + 65520), "
        "0x10D00 | kind, None) > 0 for kind in (0x20000, 0x40000000))"
    ),
    "huge_pages": (  # 2 MiB stay when all but 4 KiB are unmapped
        "(page := mmap.mmap(-1, 64 << 20, mmap.MAP_PRIVATE), page.madvise(mmap.MADV_HUGEPAGE), "
        "before := resource.getrusage(0).ru_minflt, [page.__setitem__(at, 1) for at in range(0, 64 << 20, 4096)], "
        "resource.getrusage(0).ru_minflt - before < 16000)[-1]"
    ),
    "a_thread_with_files_of_its_own": "libc.close_range(1000, 1001, 2) == 0",
    "a_clone_with_files_of_its_own": (  # 128 times the limit of open files, and of their buffers
        "libc.clone(libc.pause, ctypes.c_void_p(ctypes.addressof(ctypes.create_string_buffer(65536)) + 65520), "
        "0x10900, None) > 0"
    ),
    "clone_of_all": "libc.syscall(435, (ctypes.c_uint64 * 8)(0x10000000, 0, 0, 0, 17), 64) >= 0",
    "times_of_the_library": f"os.utime({LIBRARY}, (7, 7)) is None or os.chmod({LIBRARY}, 0o600) is None",
    "the_clock": "libc.clock_settime(0, bytes(16)) == 0 or libc.adjtimex(bytes(400)) >= 0",
    "the_log_of_the_kernel": "libc.klogctl(3, bytes(100), 100) >= 0 or libc.sync() == 5",
    "a_priority": "os.nice(19) == 19",
    "a_processor": "os.sched_setaffinity(0, {0}) is None",
    "calls_in_a_queue": "libc.syscall(425, 8, bytes(200)) >= 0",  # io_uring
    "another_architecture": "libc.syscall(0x40000000 + 57) > 0",
    "pipes_of_the_keeper": "any(libc.syscall(438, libc.syscall(434, 1, 0), fd, 0) >= 0 for fd in range(64))",
    "memory_of_the_keeper": (
        "libc.process_vm_readv(1, (ctypes.c_size_t * 2)(ctypes.addressof(ctypes.create_string_buffer(8)), 8), 1, "
        "(ctypes.c_size_t * 2)(id(os), 8), 1, 0) > 0"
    ),
    "half_a_thread": "libc.syscall(56, 0x4100 | 17, 0, 0, 0, 0) >= 0",  # shares the memory, but is a process
    "quotas_and_swap": "libc.swapoff(b'/') == 0 or libc.acct(b'/tmp/a') == 0 or libc.reboot(0) == 0",
}  # fmt: skip
TRIES = f"""
import ctypes, mmap, os, resource, signal
import numpy as np
libc = ctypes.CDLL(None)
def softmax(x, axis=-1):
    reached = {{}}
    for name, what in {SEES | {name: f"if not ({what}): raise OSError" for name, what in REFUSED.items()}!r}.items():
        try:
            exec(what, dict(globals()))
            reached[name] = "no error"
        except (OSError, ImportError, ZeroDivisionError):
            pass
        except BaseException as error:
            if type(error).__name__ != "LibrarySolution":
                reached[name] = repr(error)
    raise ValueError(reached)
"""


@pytest.mark.long
@pytest.mark.usefixtures("walls")
def test_what_a_submission_cannot_reach():
    tried = try_submission({"a.py": TRIES.encode()}, [task_of("softmax")], Limits(60))
    ((first, *_),) = tried.replies["softmax"]
    assert (first.crash.kind, first.crash.text) == ("ValueError", "{}")
