"""Hostile submissions: {name: source, points of 2, a word of the remarks}. `invented` has more."""

from test_grade import BACKWARD, SOFTMAX

ANSWER = "import numpy as np, os, sys\ndef softmax(x, axis=-1):\n"  # an attack in place of the answer


def during(code):
    """A submission that attacks in softmax, without a result, and has softmax_backward right."""
    return ANSWER + "".join(f"    {line}\n" for line in code.strip().splitlines()) + BACKWARD


# name: source, points, a word of the remarks
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
