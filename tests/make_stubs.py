"""Make the stubs that editors read: of the package, whose parts are loaded on first use, and of its functions.

    python tests/make_stubs.py

Annotations would hide the formulas of `functional`. So its types are in a stub. The types of the arguments come from
`@shapes`, from the defaults and from the examples in inspection/samples.py; the types of the results come from a call
of each function.
"""

import inspect
import textwrap
from pathlib import Path

import numpy as np

import transformer_np
from transformer_np import functional as F
from transformer_np.inspection.samples import EXAMPLES, arguments_of

PACKAGE = Path(transformer_np.__file__).parent
HEAD = '"""Made by tests/make_stubs.py for editors and type checkers."""\n'
TYPES = {  # of the arguments whose type neither `@shapes` nor the default nor the example of a call says
    "S": "int | None", "approximate": 'Literal["tanh", "none"]', "dloss": "float | np.floating | np.ndarray",
    "dtype": "DTypeLike", "ignore_index": "int | None", "mask": "np.ndarray | tuple[np.ndarray, ...] | None",
    "rng": "np.random.Generator | int", "scaling": "Mapping[str, str | float] | None",
}  # fmt: skip


def type_of(name, default):
    """The type of an argument that is no array of floats."""
    example = EXAMPLES.get(name) if default is inspect.Parameter.empty else default
    if name in TYPES or not isinstance(example, np.ndarray):
        return TYPES.get(name, type(example).__name__)
    return "np.ndarray" if example.dtype == bool else "ArrayLike"


def argument(parameter, stated):
    """An argument as the stub has it: "b: ArrayLike | None = None"."""
    name, default = parameter.name, parameter.default
    if default is inspect.Parameter.empty:
        return f"{name}: {'ArrayLike' if name in stated else type_of(name, default)}"
    kind = "ArrayLike | None" if name in stated else type_of(name, default)
    shown = f"np.{default.__name__}" if isinstance(default, type) else repr(default).replace("'", '"')
    return f"{name}: {kind} = {shown}"


def result(value):
    """The type of a result as the stub has it."""
    if isinstance(value, tuple):
        return f"tuple[{', '.join(map(result, value))}]"
    return "np.ndarray" if isinstance(value, np.ndarray) else "np.floating"


def signature(name):
    """A function in the stub, with its docstring, which editors show beside it."""
    function = F.FUNCTIONS[name]
    stated = getattr(function, "shapes", {})
    returned = function(*arguments_of(name, np.random.default_rng(0)).values())
    arguments = [argument(parameter, stated) for parameter in inspect.signature(function).parameters.values()]
    line = f"def {name}({', '.join(arguments)}) -> {result(returned)}:"
    if len(line) > 120:
        rows = "".join(f"    {argument},\n" for argument in arguments)
        line = f"def {name}(\n{rows}) -> {result(returned)}:"
    about = textwrap.indent(inspect.getdoc(function), "    ", lambda text: bool(text.strip()))
    return f'{line}\n    r"""{about.strip()}\n    """\n'


def stub_of_functions():
    """functional/__init__.pyi"""
    lines = [signature(name) for name in F.__all__]
    imports = "from collections.abc import Callable, Mapping\nfrom typing import Literal\n\n"
    imports += "import numpy as np\nfrom numpy.typing import ArrayLike, DTypeLike\n"
    names = "".join(f'    "{name}",\n' for name in F.__all__)
    return "\n".join(
        [
            HEAD + "\n" + imports, "TILE: int\nFUNCTIONS: Mapping[str, Callable]\n", f"__all__ = [\n{names}]\n",
            *lines, "",
        ]
    )  # fmt: skip


def aliased(names):
    """Names for an import in a stub: Jedi takes `name as name` alone for public."""
    return ", ".join(f"{name} as {name}" for name in names)


def stub_of_the_package():
    """transformer_np/__init__.pyi: every name with the place where it lives."""
    lines = [f"from . import {aliased(transformer_np._MODULES)}"]
    for home in sorted(set(transformer_np._HOMES.values())):
        names = [name for name, lives in transformer_np._HOMES.items() if lives == home]
        lines.append(f"from .{home} import {aliased(names)}")
    names = "".join(f'    "{name}",\n' for name in transformer_np.__all__)
    return "\n".join([HEAD, *lines, "", "__version__: str", f"__all__ = [\n{names}]", ""])


def stubs():
    """{file: text}"""
    return {
        PACKAGE / "__init__.pyi": stub_of_the_package(),
        PACKAGE / "functional" / "__init__.pyi": stub_of_functions(),
    }


if __name__ == "__main__":
    for file, text in stubs().items():
        file.write_text(text, encoding="utf-8")
