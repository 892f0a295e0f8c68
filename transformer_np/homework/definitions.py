"""The definitions in a syntax tree: the names that statements bind, change and read, and what is a stub."""

import ast
import re
import symtable
import warnings

DEFINES = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
KEPT = "#| "  # begins the lines of a text that is not Python in the page's homework.py: the others can be imported
NO_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)  # what `parsed` raises of a text that is none
_UNREAD = re.compile(r"^(?:(?:async\s+)?(?:def|class)\s+(\w+)|(\w+)\s*=[^=]).*(?:\n(?![^\s)]).*)*", re.MULTILINE)


def parsed(code):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of an escape such as "\d"
        return compile(code, "<answers>", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def tree_of(code):
    """The syntax tree of some code, a text or bytes; None if it is no Python."""
    try:
        return parsed(code)
    except NO_PYTHON:
        return None


def unread(text):
    """(name, text, number of its first line, from 0) of the definitions in a text that is no Python, as far as its
    lines tell."""
    for match in _UNREAD.finditer(text):
        yield match[1] or match[2], match[0].rstrip(), text.count("\n", 0, match.start())


def first_line(node):
    return min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])


def stored(node):
    """The names that a statement binds, without those inside of functions and classes."""
    if isinstance(node, DEFINES):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif not isinstance(node, ast.Lambda):
        for child in ast.iter_child_nodes(node):
            yield from stored(child)


def modules_of(node):
    """The modules that a statement imports by their whole names."""
    if isinstance(node, ast.ImportFrom):
        return [] if node.level else [node.module]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []


def bindings(body, in_notebook=False, top=None):
    """(name, node, statement of the module) for every name that the statements of a module bind, in order. A block
    under `if __name__ == "__main__"` is executed in a notebook only."""
    for node in body:
        first = top or node
        if isinstance(node, ast.If) and _is_main(node.test):
            yield from bindings(node.body if in_notebook else node.orelse, in_notebook, first)
        elif isinstance(node, ast.If | ast.For | ast.While | ast.With | ast.Try | ast.TryStar | ast.Match):
            for block in ("body", "orelse", "finalbody"):
                yield from bindings(getattr(node, block, ()), in_notebook, first)
            for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
                yield from bindings(part.body, in_notebook, first)
        else:
            yield from ((name, node, first) for name in stored(node))


def _is_main(test):
    texts = {n.value for n in ast.walk(test) if isinstance(n, ast.Constant)}
    return "__name__" in names_in(test) and "__main__" in texts


def inner(body, in_notebook):
    """(name, node, where) of the functions and classes that are not at the top level of a module."""
    for node in body:
        if isinstance(node, ast.If) and _is_main(node.test) and not in_notebook:
            for name, inner, _ in bindings(node.body):
                yield name, inner, 'under `if __name__ == "__main__":`, which is not executed here'
        for inner in ast.walk(node) if isinstance(node, DEFINES | ast.If) else ():
            if isinstance(inner, DEFINES):
                kind = "class" if isinstance(inner, ast.ClassDef) else "function"
                for child in inner.body:
                    if isinstance(child, DEFINES):
                        yield child.name, child, f"inside of the {kind} `{inner.name}`"


def is_stub(node, parts=()):
    """Whether a definition has no body yet: of a class, whether none of the methods to write has one."""
    if isinstance(node, ast.ClassDef):
        methods = {n.name: n for n in node.body if isinstance(n, ast.FunctionDef)}
        return bool(parts) and all(name not in methods or is_stub(methods[name]) for name in parts)
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    return bool(dead_from(node)) or all(isinstance(n, ast.Pass) or _is_dots(n) or _is_not_written(n) for n in node.body)


def dead_from(node):
    """The line of a `raise NotImplementedError` that a student has left above the code of a function, or 0."""
    body = [n for n in getattr(node, "body", ()) if not isinstance(n, ast.Pass) and not _is_dots(n)]
    return body[0].lineno if len(body) > 1 and _is_not_written(body[0]) else 0


def _is_dots(node):
    """Whether a statement is a value alone: `...`, or a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_not_written(node):
    if not isinstance(node, ast.Raise) or node.exc is None:
        return False
    error = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    return isinstance(error, ast.Name) and error.id == "NotImplementedError"


def read_by(code):
    """The names of the module that some code reads: neither parameters nor variables of its functions."""
    try:
        left, found = [symtable.symtable(code, "<answers>", "exec")], set()
    except SyntaxError:  # of `await` outside of a function, which a notebook allows
        return names_in(parsed(code))
    while left:
        table = left.pop()
        found |= {s.get_name() for s in table.get_symbols() if s.is_global() or table.get_type() == "module"}
        left += table.get_children()
    return found


def touched(node, modules=()):
    """The names that a statement binds, and those of what it changes: x in `x[0] = 1`, `x.y = 1`, `x += 1`,
    `x.append(1)` and, with np among the modules, `np.add.at(x, 0, 1)`."""
    names, targets = set(stored(node)), getattr(node, "targets", [getattr(node, "target", None)])
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        call = node.value
        targets = [call.func] if isinstance(call.func, ast.Attribute) else []
        targets = call.args if root(call.func) in modules else targets
    return names | {begin for begin in map(root, targets) if begin}


def root(node):
    """The name that an expression such as `x.y[0].z` begins with, or ""."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def names_in(node):
    """All names in a statement, those of its own variables included."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def by_name(body, bound=stored):
    """{name: the statements that bind it}"""
    nodes = {}
    for node in body:
        for name in dict.fromkeys(bound(node)):
            nodes.setdefault(name, []).append(node)
    return nodes


def reached(nodes, names, read=names_in):
    """The names among these statements, {name: those that bind it}, that some names need, themselves included."""
    found, waiting = set(), list(names)
    while waiting:
        name = waiting.pop()
        if name in nodes and name not in found:
            found.add(name)
            waiting += [other for node in nodes[name] for other in read(node)]
    return found
