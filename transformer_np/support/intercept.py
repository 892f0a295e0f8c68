"""Standing in for functions and methods while a block runs: the one way to do it.

`methods` is for one object, `calls` for this thread, `rebind` for everything that reads a name. Nothing else in the
package changes a function or a method that is not its own.
"""

import sys
import threading
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps

_PACKAGE = __package__.partition(".")[0]
_stand_ins: ContextVar = ContextVar("_stand_ins", default=None)  # {function: what is called instead}, of this thread
_switches: dict = {}  # {function: [its switch, how many blocks need it]}
_lock = threading.RLock()


@contextmanager
def methods(owner, stand_ins):
    """Inside the block, this one object, class or module has these methods, {name: function}; other objects of its
    class keep theirs."""
    before = {name: vars(owner)[name] for name in stand_ins if name in vars(owner)}
    of = type if isinstance(owner, type) else object  # not Module.__setattr__
    try:
        for name, function in stand_ins.items():
            of.__setattr__(owner, name, function)
        yield
    finally:
        for name in stand_ins.keys() & vars(owner).keys():
            if name in before:
                of.__setattr__(owner, name, before[name])
            else:
                of.__delattr__(owner, name)


@contextmanager
def calls(stand_ins):
    """Inside the block, {function: stand-in} are called in place of functions of this package, in this thread alone.

    Blocks may be nested: a stand-in calls what was called before, if it is made from the function that
    `called_instead_of` returns. They may overlap in several threads.
    """
    outer = _stand_ins.get() or {}
    stand_ins = {original(function): stand_in for function, stand_in in stand_ins.items()}
    with _lock:
        for function in stand_ins:
            switch = _switches.setdefault(function, [_switch(function), 0])
            switch[1] += 1
        rebind([(function, _switches[function][0]) for function in stand_ins], namespaces())
    before = _stand_ins.set(outer | stand_ins)
    try:
        yield
    finally:
        _stand_ins.reset(before)
        with _lock:
            ended = []
            for function in stand_ins:
                _switches[function][1] -= 1
                if not _switches[function][1]:
                    ended.append((_switches.pop(function)[0], function))
            rebind(ended, namespaces())


def called_instead_of(function):
    """What a call of this function calls in this thread: the function itself outside of `calls`."""
    function = original(function)
    return (_stand_ins.get() or {}).get(function, function)


def original(function):
    """The function for which a switch was bound, if it is one."""
    return getattr(function, "switches", function)


def _switch(function):
    @wraps(function)
    def switch(*args, **kwargs):
        return called_instead_of(function)(*args, **kwargs)

    switch.switches = function
    return switch


def rebind(pairs, namespaces):
    """Bind every name in these namespaces that is bound to an old object to its new one; pairs: [(old, new), …]."""
    new_of = {id(old): new for old, new in pairs}
    for names in namespaces:
        for name, value in list(names.items()):
            if id(value) in new_of:
                names[name] = new_of[id(value)]


def namespaces(without=None):
    """The global names of all loaded modules of this package, without those of one part such as "homework"."""
    part = f"{_PACKAGE}.{without}."
    return [
        vars(module)
        for name, module in list(sys.modules.items())
        if module is not None and is_of_package(name) and not f"{name}.".startswith(part)
    ]


def is_of_package(name):
    return str(name).partition(".")[0] == _PACKAGE
