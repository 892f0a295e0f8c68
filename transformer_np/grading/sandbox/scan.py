"""Read a submission's source for imports to report to the teacher."""

import ast

from .answers import PACKAGE

# libraries that have the answers
FRAMEWORKS = ("torch", "tensorflow", "jax", "jaxlib", "keras", "autograd", "cupy", "mlx", "tinygrad")
COMPUTE = (*FRAMEWORKS, "scipy", "sklearn", "numba", "sympy", "theano", "aesara", "pytensor", "flax", "transformers")
_BY_NAME = ("importlib", "__import__", "inspect.getsource", "open(", "exec(", "eval(", "runpy", "pkgutil", "zipimport")


def scan(content, names):
    """Remarks for the teacher on a file. names: the names of the exercises"""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found, aliases = [], {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == PACKAGE and not node.level:
            for alias in node.names:
                aliases[alias.asname or alias.name] = alias.name
                if alias.name in names:
                    found.append(f"imports the library's {alias.name}")
                if alias.name == "*":
                    found.append(f"imports everything from {node.module}")
        elif isinstance(node, ast.Import | ast.ImportFrom):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            for alias in node.names if isinstance(node, ast.Import) else ():
                if alias.name.partition(".")[0] == PACKAGE:
                    aliases[alias.asname or PACKAGE] = alias.name
            found += [f"imports {name}" for m in modules if (name := m.partition(".")[0]) in COMPUTE]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in names:
            root = node.value
            while isinstance(root, ast.Attribute):
                root = root.value
            if isinstance(root, ast.Name) and root.id in aliases:
                found.append(f"uses the library's {node.attr}")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value.partition(".")[0]  # __import__("torch")
            if name in COMPUTE and any(word.encode() in content for word in _BY_NAME):
                found.append(f"has the name of {name} in a text")
    if PACKAGE.encode() in content:
        found += [f"has {PACKAGE} and {word} in its text" for word in _BY_NAME if word.encode() in content]
    return sorted(set(found))[:20]
