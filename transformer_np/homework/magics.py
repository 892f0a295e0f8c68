"""The cells of a notebook as IPython runs them: Python, of which its magics and shell commands are calls."""

import ast
import re
import warnings
from functools import cache

_RUN_BY = ("time", "capture", "prun")  # magics whose cell is Python of the notebook itself
_RUN = re.compile(
    r"^get_ipython\(\)\.run_line_magic\('run', '(?:-\w )*(?:\./)?((?:[A-Za-z_]\w*/)*[A-Za-z_]\w*)(?:\.py)?'\)$", re.M
)


class NeedsIPython(ValueError):
    """A notebook cannot be read without IPython."""

    def __init__(self):
        how = "pip install 'transformer-np[notebooks]'"
        super().__init__(f"notebooks are read with IPython, which is not installed here: {how}")


def as_python(text):
    """(Python code, text that is no code of the notebook's) of a cell: IPython's own transformer decides what is a
    magic or a shell command, and makes a call of `get_ipython()` of it. `%run file.py` gives the notebook the names of
    that file, as an import does. Raises NeedsIPython."""
    manager = _transformers()
    blank = len(text) - len(text.lstrip("\r\n"))
    before, body = "\n" * text[:blank].count("\n"), text[blank:]
    head, _, rest = body.partition("\n")
    magic = re.match(r"%%(\w+)(.*)", head)
    if magic and magic[1] in _RUN_BY:
        output = re.match(r"\s*(?:--\S+\s+)*([A-Za-z_]\w*)\s*$", magic[2]) if magic[1] == "capture" else None
        code, others = as_python(rest)
        return f"{before}{f'{output[1]} = get_ipython()' if output else ''}\n{code}", others
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            code = manager.transform_cell(body if body.endswith("\n") else f"{body}\n")
        except (SyntaxError, ValueError, IndexError, RecursionError):  # it is shown when the cell is executed
            code = body
    code = _RUN.sub(lambda found: f"from {found[1].replace('/', '.')} import *", code)
    return before + code, rest if magic else ""


def from_cells(text):
    """The Python code of a .py file that only IPython understands, such as one with cells and magics. SyntaxError if
    there is no magic in it, or no IPython here."""
    if not re.search(r"^(?:[%!]|>>> )", text, re.MULTILINE):
        raise SyntaxError
    try:
        return as_python(text)[0]
    except NeedsIPython:
        raise SyntaxError from None


def timed(name, cells):
    """The code of the last of IPython's cells that `%%time` ran and that defines a function or class, or "": of these
    cells alone IPython keeps no lines."""
    for cell in reversed(cells):
        magic = re.match(r"get_ipython\(\)\.run_cell_magic\('time', '.*?', (.*)\)\s*$", cell, re.DOTALL)
        if magic and re.search(rf"^(?:def|class) {name}\b", body := ast.literal_eval(magic[1]), re.MULTILINE):
            return _transformers().transform_cell(body)
    return ""


@cache
def _transformers():
    try:
        from IPython.core.inputtransformer2 import TransformerManager
    except ImportError:
        raise NeedsIPython from None
    return TransformerManager()
