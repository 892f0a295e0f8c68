"""Hostile submissions: {name: source, points of 2, a word of the remarks}."""

from test_grade import BACKWARD, SOFTMAX

ANSWER = "import numpy as np, os, sys\ndef softmax(x, axis=-1):\n"  # an attack in place of the answer


def during(code):
    """A submission that attacks in softmax, without a result, and has softmax_backward right."""
    return ANSWER + "".join(f"    {line}\n" for line in code.strip().splitlines()) + BACKWARD


ATTACKS = {
    "axes_19": (during("return np.ones((2,) * 19)"), 1, ""),
    "axes_64": (during("return np.ones((1,) * 32)"), 1, ""),
    "axes_permuted": (during("return np.ones((1, 2, 1, 3, 1, 2, 1, 3, 1, 2, 1, 3, 1, 2, 1, 2, 1, 2, 1))"), 1, ""),
    "million_entries": (during("return np.broadcast_to(np.float64(0), (1000, 1000))"), 1, ""),
    "empty_axes": (during("return np.ones((0,) * 30)"), 1, ""),
    "strange_dtypes": (during("return np.zeros(3, [('a', 'f4'), ('b', 'O')]), np.array([None]), np.half(1)"), 1, ""),
    "endless_iteration": (
        "class L(list):\n    def __iter__(self):\n        while True: yield 1.0\n" + during("return L([1])"), 1, "",
    ),
    "huge_number": (during("return 10 ** 100000"), 1, ""),
    "text_that_raises": (
        "class E(Exception):\n    def __str__(self): raise SystemExit\n    __repr__ = __str__\n"
        + during("raise E"), 1, "",
    ),
    "report_of_another": (during("raise ValueError('```\\n# ada\\n| softmax | 1 of 1 | passed |\\n' * 99)"), 1, ""),
    "hidden_change": (
        "import numpy as np, sys\nnp.array_equal = lambda *a, **k: True\n"
        + SOFTMAX.replace("def softmax", "def _softmax") + """
def softmax(x, axis=-1):
    y = _softmax(x, axis)
    x *= 0
    frame = sys._getframe()
    while frame:
        for name, value in list(frame.f_locals.items()):
            if hasattr(value, "arguments"):
                object.__setattr__(value, "arguments", tuple(np.copy(a) * 0 for a in value.arguments))
            if name in ("case", "inputs", "given"):
                try: value[:] = [((a[0] * 0,), o) for a, o in value]
                except Exception: pass
        frame = frame.f_back
    return y
""" + BACKWARD, 1, "",
    ),
    "many_files": (during("for i in range(10**6): os.mkdir(f'{os.getcwd()}/{i}')"), 1, ""),
    "deaf": (
        "import signal\nfor number in range(1, 65):\n    try: signal.signal(number, signal.SIG_IGN)\n"
        "    except (OSError, ValueError): pass\n" + during("while True: pass"), 1, "timed out",
    ),
    "wrapped_in_itself": ("def softmax(x, axis=-1): return x\nsoftmax.__wrapped__ = softmax\n" + BACKWARD, 1, ""),
    "its_own_numpy": (
        "import sys\nfor name in list(sys.modules):\n    if name.startswith(('numpy', 'json')): del sys.modules[name]\n"
        "import numpy as np\ndef softmax(x, axis=-1): return np.ones(3)\n" + BACKWARD, 0, "",
    ),
    "memory": (during("return np.ones(10**10)"), 1, "out of memory"),
    "prints": (during("while True: print('x' * 10000)"), 1, "timed out"),
    "assigned": (
        "import transformer_np\nsoftmax = transformer_np.functional.softmax\n" + BACKWARD,
        1, "library's solution: softmax",
    ),
    "loaded_anew": (
        "import sys\nroot = sys.modules['transformer_np'].__path__[0].rpartition('/')[0]\n"
        "for name in list(sys.modules):\n    if name.startswith('transformer_np'): del sys.modules[name]\n"
        "sys.meta_path[:] = sys.meta_path[1:]\nsys.path.insert(0, root)\n"
        "from transformer_np.functional import softmax, softmax_backward\n", 0, "has a line that fails",
    ),
    "old_line_ends": ((SOFTMAX + BACKWARD).replace("\n", "\r"), 2, ""),
    "os_exit": (during("os._exit(0)"), 1, "exit code 0"),
    "numpy": (
        "import numpy as np\nnp.allclose = np.array_equal = np.isfinite = lambda *a, **k: True\n"
        "np.abs = np.exp = lambda x: 0 * x\n"
        "def softmax(x, axis=-1):\n    return np.exp(x)\ndef softmax_backward(dy, y, axis=-1):\n    return y\n", 0, "",
    ),
    "called": (
        "from transformer_np import functional as F\n" + during("return F.softmax(x, axis)"),
        1, "library's solution: softmax",
    ),
    "read": (
        "import transformer_np.functional as F\n" + during(
            "space = {'__package__': 'transformer_np'}\nexec(open(F.__file__).read(), space)\n"
            "return space['softmax'](x, axis)"), 1, "",
    ),
    "deletes": (  # FOLDER: with the submissions
        during("import shutil\nshutil.rmtree('FOLDER', ignore_errors=True)\nos.remove('FOLDER')"), 1, "",
    ),
    "steals": (
        during("import glob\nfor file in glob.glob('FOLDER/**/*.py', recursive=True):\n"
               "    exec(open(file).read(), space := {})\n    if 'softmax' in space: return space['softmax'](x, axis)"),
        1, "",
    ),
    "what_the_memory_holds": (during("if np.any(np.empty(9) != 77): os._exit(77)\nreturn x"), 1, ""),
    "not_utf8": (b"x = '\xff\xe9'\n", 0, "could not be loaded"),
    "large": (b"#" * (2 << 20), 0, "larger than 1 MiB"),
    "checks": (SOFTMAX + "from transformer_np.homework import check\nassert check('softmax', softmax).passed\n", 1, ""),
}  # fmt: skip

# of several lines: name, points, a word of the remarks; the code of softmax, or the whole file if it defines softmax
LONGER = r"""
--- search_the_stack | 1 |
frame, found, seen = sys._getframe(), [], set()
def look(thing, depth):
    if id(thing) in seen or depth > 5: return
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        if thing is not x and thing.shape == x.shape: found.append(thing)
    elif isinstance(thing, dict): [look(v, depth + 1) for v in list(thing.values())]
    elif isinstance(thing, (list, tuple)): [look(v, depth + 1) for v in thing]
    elif hasattr(thing, "__dict__"): look(vars(thing), depth + 1)
while frame:
    look(dict(frame.f_locals), 0)
    look(dict(frame.f_globals), 0)
    frame = frame.f_back
right = [y for y in found if np.allclose(y.sum(axis), 1)]
return right[0] if right else x

--- leave_a_message | 1 |
import glob, os, numpy as np
def places():
    return [os.getcwd(), "/tmp", "/mnt", "/dev/shm", "/var/tmp", os.path.expanduser("~")]
def softmax(x, axis=-1):
    for place in places():
        try: open(f"{place}/message", "w").write("softmax was here")
        except OSError: pass
    return x
def softmax_backward(dy, y, axis=-1):
    for place in places():
        if os.path.exists(f"{place}/message"): os._exit(77)
    return y * (dy - (dy * y).sum(axis, keepdims=True))

--- threads_that_go_on | 1 | disturbed
import threading
def go_on():
    while True:
        for fd in range(3, 64):
            try: os.write(fd, b"x" * 50)
            except OSError: pass
for _ in range(20): threading.Thread(target=go_on, daemon=True).start()
return x

--- more_memory | 1 |
import resource
resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
return x

--- trace | 0 |
import sys, numpy as np
def trace(frame, event, arg):
    for name, value in list(frame.f_locals.items()):
        if isinstance(value, dict) and "crash" in value: value["crash"] = None; value["case"] = 0
    return trace
sys.settrace(trace); sys.setprofile(trace)
def softmax(x, axis=-1):
    raise ValueError

--- other_words | 0 |
import json, os, struct, sys
for name, module in list(sys.modules.items()):
    if name.endswith(("wire", "attempt", "worker", "session")):
        for key in list(vars(module)):
            if not key.startswith("__"): setattr(module, key, lambda *a, **k: b"")
json.dumps = lambda *a, **k: "{}"
def softmax(x, axis=-1): return x

--- deep | 1 |
sys.setrecursionlimit(9**9)
class A:
    __getattr__ = lambda s, n: getattr(s, 2 * n)
return A().x

"""


def longer(text):
    for block in text.strip().removeprefix("--- ").split("\n--- "):
        head, _, code = block.partition("\n")
        name, points, word = (part.strip() for part in head.split("|"))
        yield name, (code if "def softmax(" in code else during(code), int(points), word)


ATTACKS |= longer(LONGER)

# --- against the parts of the sandbox ---------------------------------------------------------------------------------

# an attack when the file is loaded
LOADS = "import os, sys, time, fcntl, mmap, resource, signal, socket, threading, numpy as np\n"
SOCKETS = """
for fd in range(3, 64):
    try: {}
    except OSError: pass
"""
LIBC = "import ctypes\nlibc = ctypes.CDLL(None)\n"
FORGED = """
import json, struct
def message(**words):
    text = json.dumps({"output": None, "after": [], **words}).encode()
    return struct.pack("<II", len(text), 0) + text
def send(content):
    for fd in range(3, 64):
        try: os.write(fd, content)
        except OSError: pass
"""
LIBRARY = "np.__file__"  # a file of the host
BIND = "kept = socket.socket(socket.AF_UNIX)\nkept.bind('\\0left')"
CARRIED = {  # what the first process does, and how the next one sees it
    "a_queue_of_system_v": ("libc.msgget(7, 0o1666)", "libc.msgget(7, 0) >= 0"),
    "a_posix_queue": ("libc.mq_open(b'/left', 66, 0o666, None)", "libc.mq_open(b'/left', 0) >= 0"),
    "posix_memory": ("libc.shm_open(b'/left', 66, 0o666)", "libc.shm_open(b'/left', 0, 0) >= 0"),
    "a_name_of_a_socket": (BIND, "socket.socket(socket.AF_UNIX).connect('\\0left') is None"),
    "a_host_name": ("libc.sethostname(b'left', 4)", "os.uname().nodename == 'left'"),
    "a_lock_of_the_host": (
        f"os.kept = open({LIBRARY})\nfcntl.flock(os.kept, 2)", f"fcntl.flock(open({LIBRARY}), 6) is not None",
    ),
    "a_lease": (f"os.kept = open({LIBRARY})\nfcntl.fcntl(os.kept, 1024, 0)",
                f"fcntl.fcntl(open({LIBRARY}), 1025) != 2"),
    "the_time_of_a_device": (
        "try: os.utime('/dev/null', (7, 7))\nexcept OSError: pass", "os.stat('/dev/null').st_mtime == 7",
    ),
    "the_mode_of_a_device": (
        "try: os.chmod('/dev/null', 0o600)\nexcept OSError: pass", "os.stat('/dev/null').st_mode & 0o777 == 0o600",
    ),
    "the_time_by_an_open_file": (
        "for number in range(3):\n    try: os.utime(number)\n    except OSError: pass",
        "time.time() - os.stat('/dev/null').st_mtime < 5",
    ),
    "when_a_file_was_read": (f"open({LIBRARY}).read()", f"time.time() - os.stat({LIBRARY}).st_atime < 0.5"),
    "an_attribute": (
        f"for file in ({LIBRARY}, '/tmp'): libc.setxattr(file.encode(), b'user.left', b'1', 1, 0)",
        f"os.listxattr({LIBRARY}) or os.listxattr('/tmp')",
    ),
    "numbers_of_threads": (
        "for _ in range(500):\n    thread = threading.Thread(target=int)\n    thread.start()\n    thread.join()",
        "libc.gettid() > 9",
    ),
    "below_its_folder": (
        "libc.umount2(b'/tmp', 2)\nos.makedirs('/tmp/left', exist_ok=True)", "os.path.exists('/tmp/left')",
    ),
    "a_process": ("if libc.fork() == 0: time.sleep(60)", "any(libc.kill(pid, 0) == 0 for pid in range(2, 300))"),
    "a_child_of_its_parent": (  # CLONE_PARENT
        "if libc.syscall(56, 0x8000 | 17, 0, 0, 0, 0) == 0: time.sleep(60)",
        "any(libc.kill(pid, 0) == 0 for pid in range(2, 300))",
    ),
}  # fmt: skip
CARRIES = f"""
import ctypes, fcntl, os, socket, threading, time
import numpy as np
libc = ctypes.CDLL(None)
def softmax(x, axis=-1):
    for leave, _ in {CARRIED!r}.values():
        try:
            exec(leave, dict(globals()))
        except OSError:
            pass
def softmax_backward(dy, y, axis=-1):
    found = []
    for name, (_, find) in {CARRIED!r}.items():
        try:
            found += [name] if eval(find, dict(globals())) else []
        except OSError:
            pass
    raise ValueError(found)
"""
EXHAUSTS = {
    "a_byte_out_of_band": (  # for which the reader would wait without an end
        LOADS + LIBC + during(
            "for fd in range(3, 64): libc.sendto(fd, b'x', ctypes.c_size_t(1), 1, None, 0)\ntime.sleep(10**6)"),
        1, "timed out",
    ),
    "all_pages_but_one": (
        LOADS + LIBC + "libc.mmap.restype = ctypes.c_void_p\nBYTES = ctypes.c_size_t(64 << 20)\n" + during(
            "shared = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS\nfor _ in range(3):\n"
            "    page = libc.mmap(None, BYTES, 3, shared, -1, ctypes.c_long(0))\n"
            "    if libc.munmap(ctypes.c_void_p(page + 4096), ctypes.c_size_t((64 << 20) - 4096)): return x\n"
            "os._exit(77)"), 1, "",
    ),
    "threads_with_small_stacks": (
        LOADS + during(
            "threading.stack_size(32768)\nfor _ in range(3000): threading.Thread(target=time.sleep, args=(60,)).start()"
            "\nos._exit(77)"), 1, "",
    ),
    "long_links": (LOADS + during("for i in range(10**5): os.symlink('x' * 4000, str(i))\nos._exit(77)"), 1, ""),
    "files_without_a_name": (
        LOADS + during("kept = []\nfor i in range(50):\n    kept.append(open('f', 'wb', 0))\n"
                       "    kept[-1].write(bytes(4 << 20))\n    os.unlink('f')\nos._exit(77)"), 1, "",
    ),
    "buffers_of_sockets": (
        LOADS + during(
            "kept = []\nwhile True:\n    kept.append(socket.socketpair())\n    kept[-1][0].setblocking(False)\n"
            "    try:\n        while True: kept[-1][0].send(bytes(1 << 16))\n    except BlockingIOError: pass"), 1, "",
    ),
    "shared_pages": (LOADS + during("kept = mmap.mmap(-1, 3 << 30)\nkept.write(b'x')\nos._exit(77)"), 1, ""),
    "closes_its_way_back": (LOADS + during("os.closerange(3, 64)\nwhile True: time.sleep(1)"), 1, ""),
    "code_of_the_limit": (LOADS + during("os._exit(137)"), 1, "SIGKILL"),
    "names_that_are_not_there": (
        LOADS + during("for i in range(10**9):\n    try: os.stat(f'/packages/{i}')\n    except OSError: pass"),
        1, "timed out",
    ),
}  # fmt: skip
ATTACKS |= {
    "no_blocking": (LOADS + SOCKETS.format("os.set_blocking(fd, False)") + SOFTMAX + BACKWARD, 2, ""),
    "large_and_not_blocking": (
        LOADS + SOCKETS.format("os.set_blocking(fd, False)") + during("return np.ones((900, 900))"), 0, "",
    ),
    "locked": (LOADS + SOCKETS.format("fcntl.flock(fd, fcntl.LOCK_EX)") + SOFTMAX + BACKWARD, 2, ""),
    "forged_end_of_loading": (
        LOADS + FORGED
        + "send(message(kind='loaded', file='forged_end_of_loading.py', crash=None, defined=['softmax']))\n" + SOFTMAX,
        0, "disturbed",
    ),
    "forged_beginning_of_a_piece": (LOADS + FORGED + "send(message(kind='piece'))\n" + SOFTMAX, 0, "disturbed"),
    "forged_passes": (
        LOADS + FORGED + during(
            "for case in range(99): send(message(kind='tried', exercise='softmax', case=case, passed=True, share=1.0))"
        ), 1, "disturbed",
    ),
    "half_a_header": (LOADS + FORGED + during("send(b'\\x01')\ntime.sleep(1000)"), 1, "timed out"),
    "header_of_4_gib": (LOADS + FORGED + during("send(b'\\xff' * 8)\ntime.sleep(1000)"), 1, "disturbed"),
    "one_byte_a_second": (LOADS + FORGED + during("while True: send(b'\\x01'); time.sleep(0.5)"), 1, ""),
    "many_cores": (
        LOADS + during(
            "def spin():\n    a = np.ones((300, 300))\n    while True: a @ a\n"
            "for _ in range(16): threading.Thread(target=spin, daemon=True).start()\nspin()"
        ), 1, "timed out",
    ),
    "ignores_its_limit": (
        LOADS + "signal.signal(signal.SIGXCPU, signal.SIG_IGN)\n" + during("while True: pass"), 1, "timed out",
    ),
    "kill_the_keeper": (
        LOADS + "for number in range(1, 65):\n    for pid in (1, -1, 2, os.getppid()):\n"
        "        try: os.kill(pid, number)\n        except OSError: pass\n" + SOFTMAX, 1, "",
    ),
    "limits_of_the_keeper": (
        "import resource\nfor what in range(16):\n    try: resource.prlimit(1, what, (0, 0))\n"
        "    except (OSError, ValueError): pass\n" + SOFTMAX + BACKWARD, 2, "",
    ),
    "without_a_folder": (LOADS + "import shutil\nshutil.rmtree(os.getcwd(), True)\n" + SOFTMAX + BACKWARD, 2, ""),
    "close_all": (LOADS + "os.closerange(0, 10**6)\n" + SOFTMAX, 1, "ended"),  # the line alone is left out
    "other_pipe": (LOADS + "r, w = os.pipe()\nfor fd in range(3, 60):\n    os.dup2(w, fd)\n" + SOFTMAX, 1, ""),
    "at_exit": ("import atexit, os\natexit.register(os._exit, 77)\n" + SOFTMAX + BACKWARD, 2, ""),
    "aborts": ("import os\n" + during("os.abort()"), 1, "SIG"),
    "stops_itself": ("import os, signal\n" + during("os.kill(os.getpid(), signal.SIGSTOP)\nos.abort()"), 1, ""),
    "wrong_code": (
        "def softmax(x, axis=-1): return x\nsoftmax.__code__ = softmax.__code__.replace(co_code=b'\\x64\\xff' * 40)\n"
        + BACKWARD, 1, "",
    ),
    "meta_path": (
        "import sys\nfor finder in sys.meta_path:\n    if hasattr(finder, 'modules'):\n"
        "        for name in finder.modules:\n"
        "            exec(__import__('marshal').loads(finder.modules[name][1]), {'__name__': name})\n"
        + SOFTMAX, 1, "",  # the loop alone is left out
    ),
    "calls_the_grader": (
        "import sys\nfrom transformer_np.grading.judges import Judge\nfrom transformer_np.homework import Verdict\n"
        "softmax = Verdict('softmax', 'passed', '', share=1.0)\n" + BACKWARD, 0, "",
    ),
    "reads_its_stack": (
        during("frame = sys._getframe().f_back\nwhile frame:\n    if 'job' in frame.f_locals: raise ValueError("
               "[k for k in frame.f_locals['job']])\n    frame = frame.f_back\nreturn x"), 1, "",
    ),
    "verdict_as_result": (during("return {'outcome': 'passed', 'share': 1.0}"), 1, ""),
    "own_array": (
        "import numpy as np\nclass A(np.ndarray):\n    def tobytes(self, *a): return b'x'\n"
        "    def astype(self, *a, **k): return self\n    nbytes = 0\n" + during("return np.ones((3, 3)).view(A)"),
        1, "",
    ),
    "masked": (during("return np.ma.masked_all(x.shape)"), 1, ""),
    "memory_map": (during("return np.memmap('f', dtype='f8', mode='w+', shape=(10**5,))"), 1, ""),
    "overlapping": (during("return np.lib.stride_tricks.as_strided(x, x.shape[:1] + (10**4,) * 3, (0,) * 4)"), 1, ""),
    "recursive_import": ("from recursive_import import softmax\n" + SOFTMAX, 1, "imports what is not there"),
    "same_name_as_ours": ("import sys\nsys.modules['numpy'] = None\n" + SOFTMAX, 0, "imports what is not there"),
    "name_of_a_remark": (
        "class timed_out(Exception): pass\n" + during("class E(Exception): pass\nE.__name__ = 'TimeoutError'\n"
        "raise E('the time for the whole submission was used up')"), 1, "",
    ),
    "blames_the_grader": (
        during("raise RuntimeError('it disturbed the way back to the grader; ada could not be tried')"), 1, "",
    ),
    "markup": ("raise ValueError('<script>alert(1)</script><img src=x onerror=y>')\n" + SOFTMAX, 1, "has a line that"),
    "generator_of_all": ("def softmax(x, axis=-1):\n    while True: yield x\n" + BACKWARD, 1, ""),
    "collector_off": ("import gc\ngc.disable(); gc.freeze()\n" + SOFTMAX + BACKWARD, 2, ""),
    "warnings_as_errors": ("import warnings\nwarnings.simplefilter('error')\n" + SOFTMAX + BACKWARD, 2, ""),
    "splice": (
        LOADS + during("r, w = os.pipe()\nos.write(w, b'y' * 4000)" + SOCKETS.format("os.splice(r, fd, 4000)")),
        1, "",
    ),
    "calls_of_32_bits": (
        LOADS + "import ctypes, mmap\npage = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE, 7)\n"
        "page.write(bytes.fromhex('b802000000cd80c3'))\n"
        "fork = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))\n"
        + during("if fork() > 0: os._exit(77)\nreturn x"), 1, "",
    ),
    "many_signals": (LOADS + during("while True: os.kill(1, signal.SIGCHLD)"), 1, "timed out"),
    "another_clock": (
        "import time\ntime.monotonic = time.time = time.process_time = lambda: -1e9\n" + during("while True: pass"),
        1, "timed out",
    ),
    "text_of_megabytes": (
        during("class E(Exception): pass\nE.__name__ = 'E' * 10**7\nraise E('\\u202e\\x1b' * 10**6)"), 1, "",
    ),
    "cause_in_circles": (during("a, b = KeyError(), KeyError()\na.__cause__, b.__cause__ = b, a\nraise a"), 1, ""),
    "code_when_unpickled": (
        "import os, numpy as np\nclass P:\n    def __reduce__(self): return os._exit, (77,)\n"
        + during("return np.array([P()], dtype=object)"), 1, "",
    ),
    "records": (during("return np.zeros(3, np.dtype([('x', 'f8')], metadata={'a': open}))"), 1, ""),
    "crash_of_other_kinds": (
        LOADS + FORGED + during("send(message(kind='tried', exercise='softmax', case=0, crash={'kind': {'a': 1}, "
                                "'text': [[]], 'where': 0}))\nos._exit(0)"), 1, "",
    ),
    "rules_of_other_kinds": (
        LOADS + FORGED + during("send(message(kind='tried', exercise='softmax', case=0, crash=None, broken=5, "
                                "shares='x', called={'a': 1}, after=[{'a': ['<f8', [0], 0]}]))\nos._exit(0)"),
        1, "",
    ),
    "more_definitions_than_are_tried": (  # each is a process
        "import transformer_np.grading.sandbox.worker as worker\n"
        "worker.MOST_TRIED, ranked = 500, worker.ranked\nworker.ranked = lambda *a: ranked(*a) * 500\n" + SOFTMAX, 0,
        "disturbed",
    ),
    "definitions_of_other_kinds": (
        "import transformer_np.grading.sandbox.worker as worker\npack = worker.pack\n"
        "def forged(message, *more):\n    if 'definitions' in message: message['definitions'] = 5\n"
        "    return pack(message, *more)\nworker.pack = forged\n" + SOFTMAX, 0, "disturbed",
    ),
    "a_definition_of_another_kind": (
        "import transformer_np.grading.sandbox.worker as worker\npack = worker.pack\n"
        "def forged(message, *more):\n    if 'definitions' in message: message['definitions'] = [[{}, 1, 1, '']]\n"
        "    return pack(message, *more)\nworker.pack = forged\n" + SOFTMAX, 0, "disturbed",
    ),
    "trees_without_end": (SOFTMAX + BACKWARD + ("    y = a" + "*1" * 300 + "\n") * 700, 2, "could not be compared"),
    "threads_at_the_end": (
        "import threading, os, time\ndef late():\n    time.sleep(0.3)\n    os._exit(77)\n"
        "threading.Thread(target=late).start()\n" + SOFTMAX, 0, "",
    ),
}  # fmt: skip
ATTACKS |= EXHAUSTS
# these disturb their own process at a moment that the machine decides, and may still earn their right softmax_backward
BY_CHANCE = {"threads_at_the_end", "large_and_not_blocking"}
