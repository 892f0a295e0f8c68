"""Attacks that were invented after reading the sandbox: {name: source, points of 2, a word of the remarks}."""

from attacks import during
from test_grade import BACKWARD, SOFTMAX

LOADS = "import os, sys, time, fcntl, signal, threading, numpy as np\n"  # an attack when the file is loaded
PIPES = """
for fd in range(3, 64):
    try: {}
    except OSError: pass
"""
LIBC = "import ctypes\nlibc = ctypes.CDLL(None)\n"
FORGED = """
import json, struct
def message(**words):
    text = json.dumps({"output": None, "after": {"l": []}, **words}).encode()
    return struct.pack("<II", len(text), 0) + text
def send(content):
    for fd in range(3, 64):
        try: os.write(fd, content)
        except OSError: pass
"""
INVENTED = {
    "packets": (LOADS + PIPES.format("fcntl.fcntl(fd, fcntl.F_SETFL, os.O_DIRECT)") + SOFTMAX + BACKWARD, 2, ""),
    "no_blocking": (LOADS + PIPES.format("os.set_blocking(fd, False)") + SOFTMAX + BACKWARD, 2, ""),
    "small_pipe": (LOADS + PIPES.format("fcntl.fcntl(fd, 1031, 4096)") + SOFTMAX + BACKWARD, 2, ""),
    "small_and_not_blocking": (
        LOADS + PIPES.format("fcntl.fcntl(fd, 1031, 4096); os.set_blocking(fd, False)")
        + during("return np.ones((900, 900))"), 0, "",
    ),
    "locked": (LOADS + PIPES.format("fcntl.flock(fd, fcntl.LOCK_EX)") + SOFTMAX + BACKWARD, 2, ""),
    "signals_on_pipes": (
        LOADS + PIPES.format("fcntl.fcntl(fd, fcntl.F_SETOWN, 1); fcntl.fcntl(fd, fcntl.F_SETFL, os.O_ASYNC)")
        + SOFTMAX + BACKWARD, 2, "",
    ),
    "deep_message": (
        LOADS + during(
            "import struct\ntext = b'[' * 500000\nfor fd in range(3, 64):\n"
            "    try: os.write(fd, struct.pack('<II', len(text), 0) + text)\n    except OSError: pass"
        ), 1, "disturbed",
    ),
    "forged_end_of_loading": (
        LOADS + FORGED
        + "send(message(kind='loaded', file='forged_end_of_loading.py', crash=None, defined=['softmax']))\n" + SOFTMAX,
        0, "disturbed",
    ),
    "forged_passes": (
        LOADS + FORGED + during(
            "for case in range(99): send(message(kind='tried', exercise='softmax', case=case, passed=True, share=1.0))"
        ), 1, "disturbed",
    ),
    "forged_layers": (
        LOADS + FORGED + during("send(message(kind='ready', layers=['none'], scratch='/'))\nreturn x"), 1, "disturbed",
    ),
    "half_a_header": (LOADS + FORGED + during("send(b'\\x01')\ntime.sleep(1000)"), 1, "timed out"),
    "header_of_4_gib": (LOADS + FORGED + during("send(b'\\xff' * 8)\ntime.sleep(1000)"), 1, "disturbed"),
    "one_byte_a_second": (
        LOADS + FORGED + during("while True: send(b'\\x01'); time.sleep(0.5)"), 1, "",
    ),
    "text_of_half_a_sign": (
        LOADS + FORGED + during("send(struct.pack('<II', 2, 0) + b'\\xff\\xfe')\nreturn x"), 1, "disturbed",
    ),
    "many_cores": (
        LOADS + during(
            "def spin():\n    a = np.ones((300, 300))\n    while True: a @ a\n"
            "for _ in range(16): threading.Thread(target=spin, daemon=True).start()\nspin()"
        ), 1, "timed out",
    ),
    "ignores_its_limit": (
        LOADS + "signal.signal(signal.SIGXCPU, signal.SIG_IGN)\n" + during("while True: pass"), 1, "timed out",
    ),
    "low_priority": (
        LOADS + "os.nice(19)\nos.sched_setaffinity(0, {0})\n" + during("while True: pass"), 1, "timed out",
    ),
    "sleeps": (during("import time\ntime.sleep(10**6)"), 1, "timed out"),
    "loads_for_ever": ("import time\ntime.sleep(10**6)\n" + SOFTMAX, 0, "timed out while loading"),
    "kill_the_keeper": (
        LOADS + "for number in range(1, 65):\n    for pid in (1, -1, 2, os.getppid()):\n"
        "        try: os.kill(pid, number)\n        except OSError: pass\n" + SOFTMAX, 0, "",
    ),
    "limits_of_the_keeper": (
        "import resource\nfor what in range(16):\n    try: resource.prlimit(1, what, (0, 0))\n"
        "    except (OSError, ValueError): pass\n" + SOFTMAX + BACKWARD, 2, "",
    ),
    "priority_of_the_keeper": (
        "import os\ntry: os.setpriority(os.PRIO_PROCESS, 1, 19)\nexcept OSError: pass\n" + SOFTMAX + BACKWARD, 2, "",
    ),
    "fork_bomb_without_python": (
        LOADS + "import ctypes\nfor _ in range(10000): ctypes.CDLL(None).fork()\n" + SOFTMAX + BACKWARD, 2, "",
    ),
    "new_namespaces": (
        LOADS + "import ctypes\nassert ctypes.CDLL(None).unshare(0x10000000) == 0\n" + SOFTMAX, 0, "AssertionError",
    ),
    "a_keyring": (
        LOADS + "import ctypes\nassert ctypes.CDLL(None).syscall(248, b'user', b'a', b'b', 1, -3) > 0\n" + SOFTMAX,
        0, "AssertionError",
    ),
    "io_uring": (
        LOADS + "import ctypes\nassert ctypes.CDLL(None).syscall(425, 8, bytes(200)) >= 0\n" + SOFTMAX, 0, "Assertion",
    ),
    "other_architecture": (
        LOADS + "import ctypes\nassert ctypes.CDLL(None).syscall(0x40000000 + 57) > 0\n" + SOFTMAX, 0, "Assertion",
    ),
    "shared_memory": (
        "from multiprocessing.shared_memory import SharedMemory\nSharedMemory('all', True, 8)\n" + SOFTMAX,
        0, "not be loaded",
    ),
    "left_in_the_folder_above": (
        LOADS + "if os.path.exists('../left'): os._exit(77)\nopen('../left', 'w').close()\n" + SOFTMAX + BACKWARD,
        2, "",
    ),
    "folder_without_rights": (
        LOADS + "os.makedirs('a/b'); open('a/b/c', 'w').close()\n"
        "for place in ('a/b', 'a', '.'): os.chmod(place, 0)\n"
        + SOFTMAX + BACKWARD, 2, "",
    ),
    "very_deep_folder": (
        LOADS + "for _ in range(1500): os.mkdir('d'); os.chdir('d')\n" + SOFTMAX + BACKWARD, 2, "",
    ),
    "memory_of_files": (
        LOADS + "for i in range(10**6): os.memfd_create(str(i)); open(str(i), 'w').write('x' * 4000000)\n" + SOFTMAX,
        0, "",
    ),
    "without_a_folder": (LOADS + "import shutil\nshutil.rmtree(os.getcwd(), True)\n" + SOFTMAX + BACKWARD, 2, ""),
    "close_all": (LOADS + "os.closerange(0, 10**6)\n" + SOFTMAX, 0, "ended"),
    "other_pipe": (LOADS + "r, w = os.pipe()\nfor fd in range(3, 60):\n    os.dup2(w, fd)\n" + SOFTMAX, 0, ""),
    "at_exit": ("import atexit, os\natexit.register(os._exit, 77)\n" + SOFTMAX + BACKWARD, 2, ""),
    "aborts": ("import os\n" + during("os.abort()"), 1, "SIGABRT"),
    "stops_itself": ("import os, signal\n" + during("os.kill(os.getpid(), signal.SIGSTOP)\nos.abort()"), 1, ""),
    "wrong_code": (
        "def softmax(x, axis=-1): return x\nsoftmax.__code__ = softmax.__code__.replace(co_code=b'\\x64\\xff' * 40)\n"
        + BACKWARD, 1, "",
    ),
    "meta_path": (
        "import sys\nfor finder in sys.meta_path:\n    if hasattr(finder, 'modules'):\n"
        "        for name in finder.modules:\n"
        "            exec(__import__('marshal').loads(finder.modules[name][1]), {'__name__': name})\n"
        + SOFTMAX, 0, "",
    ),
    "rewrites_the_worker": (
        "import sys\nfor name, module in list(sys.modules.items()):\n    if 'worker' in name or 'given' in name:\n"
        "        module._write = lambda *a: None; module.pack = lambda *a: b''\n" + SOFTMAX, 0, "ended",
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
    "recursive_import": ("from recursive_import import softmax\n" + SOFTMAX, 0, "not be loaded"),
    "same_name_as_ours": ("import sys\nsys.modules['numpy'] = None\n" + SOFTMAX, 0, "not be loaded"),
    "name_of_a_remark": (
        "class timed_out(Exception): pass\n" + during("class E(Exception): pass\nE.__name__ = 'TimeoutError'\n"
        "raise E('the time for the whole submission was used up')"), 1, "",
    ),
    "blames_the_grader": (
        during("raise RuntimeError('it disturbed the way back to the grader; ada could not be tried')"), 1, "",
    ),
    "markup": ("raise ValueError('<script>alert(1)</script><img src=x onerror=y>')\n" + SOFTMAX, 0, "not be loaded"),
    "generator_of_all": ("def softmax(x, axis=-1):\n    while True: yield x\n" + BACKWARD, 1, ""),
    "collector_off": ("import gc\ngc.disable(); gc.freeze()\n" + SOFTMAX + BACKWARD, 2, ""),
    "warnings_as_errors": ("import warnings\nwarnings.simplefilter('error')\n" + SOFTMAX + BACKWARD, 2, ""),
    "splice": (
        LOADS + during("r, w = os.pipe()\nos.write(w, b'y' * 4000)" + PIPES.format("os.splice(r, fd, 4000)")),
        1, "disturbed",
    ),
    "pipes_of_the_keeper": (
        LOADS + LIBC + during("keeper = libc.syscall(434, 1, 0)\nfor fd in range(64):\n"
                              "    if libc.syscall(438, keeper, fd, 0) >= 0: os._exit(77)\nreturn x"), 1, "",
    ),
    "memory_of_the_keeper": (
        LOADS + LIBC
        + "class Part(ctypes.Structure):\n    _fields_ = [('a', ctypes.c_void_p), ('n', ctypes.c_size_t)]\n"
        "here = ctypes.create_string_buffer(8)\nto, of = Part(ctypes.addressof(here), 8), Part(id(os), 8)\n"
        + during("if libc.process_vm_readv(1, ctypes.byref(to), 1, ctypes.byref(of), 1, 0) > 0: os._exit(77)"), 1, "",
    ),
    "shared_memory_of_system_v": (
        LOADS + LIBC + "assert libc.shmget(7, 100, 0o3666) >= 0\n" + SOFTMAX, 1, "",  # 0o3000: it must be new
    ),
    "mounts": (
        LOADS + LIBC + during("if libc.mount(b'n', b'/tmp', b'tmpfs', 0, 0) == 0 or libc.chroot(b'/tmp') == 0: "
                              "os._exit(77)\nreturn x"), 1, "",
    ),
    "half_a_thread": (  # shares the memory, but is a process
        LOADS + LIBC + during("if libc.syscall(56, 0x4100 | 17, 0, 0, 0, 0) >= 0: os._exit(77)\nreturn x"), 1, "",
    ),
    "calls_of_32_bits": (
        LOADS + "import ctypes, mmap\npage = mmap.mmap(-1, 4096, prot=7)\n"
        "page.write(bytes.fromhex('b802000000cd80c3'))\n"
        "fork = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))\n"
        + during("if fork() > 0: os._exit(77)\nreturn x"), 1, "SIGSYS",
    ),
    "many_signals": (LOADS + during("while True: os.kill(1, signal.SIGCHLD)"), 1, "timed out"),
    "another_clock": (
        "import time\ntime.monotonic = time.time = time.process_time = lambda: -1e9\n" + during("while True: pass"),
        1, "timed out",
    ),
    "file_of_a_tebibyte": (
        LOADS + during("os.posix_fallocate(os.open('f', os.O_CREAT | os.O_RDWR), 0, 1 << 40)"), 1, "",
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
    "number_of_a_megabyte": (
        LOADS + FORGED + during("t = b'{\"output\": ' + b'9' * 900000 + b'}'\nsend(struct.pack('<II', len(t), 0) + t)"),
        1, "disturbed",
    ),
    "no_case": (
        LOADS + FORGED + during("send(message(kind='tried', exercise='softmax', case=float('nan'), crash=None))"),
        1, "disturbed",
    ),
    "crash_of_other_kinds": (
        LOADS + FORGED + during("send(message(kind='tried', exercise='softmax', case=0, crash={'kind': {'a': 1}, "
                                "'text': [[]], 'where': 0}))\nos._exit(0)"), 1, "",
    ),
    "lists_as_keys": (
        LOADS + FORGED + during("send(message(kind='tried', exercise='softmax', case=0, crash=None, "
                                "output={'d': [{'t': [{'l': []}, 1]}]}))"), 1, "disturbed",
    ),
    "rules_of_other_kinds": (
        LOADS + FORGED + during("send(message(kind='tried', exercise='softmax', case=0, crash=None, broken=5, "
                                "shares='x', called={'a': 1}, after={'l': [{'a': ['<f8', [0], 0]}]}))\nos._exit(0)"),
        1, "",
    ),
    "results_ahead_of_loading": (
        LOADS + FORGED
        + "send(message(kind='loaded', file='results_ahead_of_loading.py', crash=None, defined=['softmax']))\n"
        "for n in range(25): send(message(kind='tried', exercise='softmax', case=n, crash=None, broken=[]))\n"
        "os._exit(0)\n", 0, "",
    ),
    "trees_without_end": (SOFTMAX + BACKWARD + ("    y = a" + "*1" * 300 + "\n") * 1600, 2, "could not be compared"),
    "threads_at_the_end": (
        "import threading, os, time\ndef late():\n    time.sleep(0.3)\n    os._exit(77)\n"
        "threading.Thread(target=late).start()\n" + SOFTMAX, 0, "",
    ),
}  # fmt: skip
# these disturb their own process at a moment that the machine decides, and may still earn their right softmax_backward
BY_CHANCE = {"threads_at_the_end", "small_and_not_blocking"}
