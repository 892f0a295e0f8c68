"""Reading a syntax tree: where an edit may be made, and which names it may use."""

import ast
from inspect import getsource, signature
from textwrap import dedent

STEP = "_step_of_a_loop"  # the call that counts the steps of a loop, which no edit may change


def counts(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and is_name(node.value.func, STEP)


_TAKE_SIZES = ("arange", "range", "zeros", "ones", "full", "empty", "reshape", "broadcast_to", "tile", "repeat", "eye",
               "tri", "linspace", "integers", "choice", "permutation", "random", "standard_normal", "normal", "uniform",
               "binomial", "rand", "randn", "randint", "resize", "pad")  # fmt: skip
_TAKE_ARRAYS = ("reshape", "broadcast_to", "tile", "repeat", "resize", "pad")


def places(tree, without=()):
    """(parent, field, index, node, is_size) of every node that may be replaced; annotations, defaults and docstrings
    are not. is_size: whether the node is part of a size of an array, which must not grow."""
    of_sizes = {
        name.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and name_of(node.func) in _TAKE_SIZES
        for size in node.args[_takes_array_first(node) :]
        for name in ast.walk(size)
        if isinstance(name, ast.Name)
    }
    left = [(tree, False)]
    while left:
        parent, is_size = left.pop(0)
        if getattr(parent, "name", "") in without:
            continue
        for field, value in ast.iter_fields(parent):
            if field in ("annotation", "returns", "decorator_list", "bases"):
                continue
            if field == "args" and not isinstance(parent, ast.Call):
                continue
            here = is_size or _is_size(parent, field, of_sizes)
            for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if isinstance(node, ast.AST) and not counts(node):
                    left.append((node, here))
                    if isinstance(node, ast.expr | ast.stmt | ast.keyword):
                        yield parent, field, index, node, here


def _takes_array_first(call):
    """Whether a function's first argument is an array, as in np.reshape(x, sizes)."""
    return (
        name_of(call.func) in _TAKE_ARRAYS and isinstance(call.func, ast.Attribute) and is_name(call.func.value, "np")
    )


def _is_size(parent, field, of_sizes):
    """Whether a field of a node holds sizes of arrays."""
    if isinstance(parent, ast.Attribute):
        return parent.attr == "shape"
    if isinstance(parent, ast.Assign | ast.AugAssign) and field == "value":
        targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
        return any(isinstance(n, ast.Name) and n.id in of_sizes for target in targets for n in ast.walk(target))
    return isinstance(parent, ast.Call) and field in ("args", "keywords") and name_of(parent.func) in _TAKE_SIZES


def name_of(function):
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


class Names:
    """The names that an edit may use: parameters and variables of the enclosing functions, from their first line on."""

    def __init__(self, tree):
        self.first = {}  # {enclosing function: {name: line}}
        self.parameters = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
        self._around = {}
        for function in ast.walk(tree):  # from the outside to the inside
            if isinstance(function, ast.FunctionDef | ast.Lambda):
                names = dict(self.first.get(self._around.get(function), {}))
                for node in ast.walk(function):
                    self._around[node] = function
                    if isinstance(node, ast.arg) and node.arg not in ("self", "cls"):
                        names.setdefault(node.arg, node.lineno - 1)
                    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                        names.setdefault(node.id, node.lineno)
                self.first[function] = names
        defaults = [
            (arg.arg, default.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.arguments) and node.defaults
            for arg, default in zip(node.args[-len(node.defaults) :], node.defaults, strict=True)
            if isinstance(default, ast.Constant)
        ]
        self.optional = {name for name, value in defaults if value is None}
        self.texts = {value for _, value in defaults if isinstance(value, str)}
        stored = [n.targets[0].id for n in ast.walk(tree) if isinstance(n, ast.Assign) and hasattr(n.targets[0], "id")]
        read = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
        self.once = {name for name in stored if stored.count(name) == read.count(name) == 1}
        self.tests = [node.test for node in ast.walk(tree) if isinstance(node, ast.If)]
        products = [n for n in ast.walk(tree) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult | ast.Div)]
        self.factors = {ast.unparse(n.right): n for n in products if isinstance(n.right, ast.Call)}  # such as / sqrt(K)
        every = {name for first in self.first.values() for name in first}
        self.others = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - every  # not of a function
        self.computed = every - self.parameters
        self.attributes = sorted(
            {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and is_name(n.value, "self")}
        )

    def at(self, node):
        """The names that exist before a node's line."""
        return [name for name, line in self.first.get(self._around.get(node), {}).items() if line < node.lineno]


def is_name(node, name):
    return isinstance(node, ast.Name) and node.id == name


def expression(text):
    return ast.parse(text, mode="eval").body


def is_named_result(node, parent, names):
    """Whether a node is a computed variable that is returned as it is: its definition is the place of the mistake."""
    if not isinstance(node, ast.Name) or node.id not in names.computed:
        return False
    return isinstance(parent, ast.Return) or (isinstance(parent, ast.Tuple) and node.id in names.once)


def is_read(node):
    """Whether a node is an expression whose value is read: not a target of an assignment."""
    return isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load)


def is_value(node, parent, field):
    """Whether a node is a value that other code computes with."""
    if not is_read(node) or isinstance(node, ast.Constant) or field in ("func", "slice", "test", "iter"):
        return False
    if isinstance(node, ast.Tuple | ast.Slice | ast.Lambda | ast.List | ast.Dict | ast.Starred | ast.JoinedStr):
        return False
    if isinstance(parent, ast.Attribute | ast.Expr | ast.FormattedValue | ast.Slice | ast.Raise):
        return False
    if isinstance(parent, ast.keyword | ast.Compare | ast.withitem):
        return False
    return not (
        is_name(node, "self") or is_name(node, "np") or (isinstance(node, ast.Attribute) and node.attr == "shape")
    )


def lines_behind(family, wrong):
    """{line of an assignment: 0, 1 or 9} for a function that returns several results: whether only results of these
    numbers are computed from it, some of them, or none."""
    tree = next(iter(family.trees.values()))
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n is not tree]
    inner = {n for function in functions for n in ast.walk(function)}
    returned = [n.value.elts for n in ast.walk(tree) if isinstance(n, ast.Return) and isinstance(n.value, ast.Tuple)]
    returned = [elements for elements in returned if not inner & {*elements}]
    if not isinstance(tree, ast.FunctionDef) or not returned or max(wrong) >= min(map(len, returned)):
        return {}
    lines = [n for n in ast.walk(tree) if isinstance(n, ast.Assign | ast.AugAssign)]
    written = [(_names_in(n, ast.Store), _names_in(n, ast.Load), n.lineno) for n in lines]
    written += [({function.name}, _names_in(function, ast.Load), function.lineno) for function in functions]

    def behind(numbers):
        names = set().union(*(_names_in(returned[-1][i], ast.Load) for i in numbers))
        while more := {name for stored, read, _ in written if stored & names for name in read} - names:
            names |= more
        return names

    of_wrong, of_right = behind(wrong), behind(set(range(len(returned[-1]))) - wrong)
    return {line: 9 if not stored & of_wrong else int(bool(stored & of_right)) for stored, _, line in written}


def _names_in(node, kind):
    """The names that a node reads, or writes; `x[i] = …` writes into x and reads it."""
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, kind)}
    if kind is ast.Store:
        parts = {n for n in ast.walk(node) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)}
        names |= {n.value.id for n in parts if isinstance(n.value, ast.Name)}
    return names


def strange_slice(frame, line):
    """(a slice of a running function, not after a line of it, its end, the number of the end): one such as `x[:-n]`
    with n = 0, or `x[: T - n]` with n > T; None if there is none."""
    nodes, line = _code_of(frame, line)
    for node in nodes:
        if isinstance(node, ast.Subscript) and node.lineno <= line:
            for part in node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]:
                end = part.upper if isinstance(part, ast.Slice) and part.lower is None else None
                if isinstance(end, ast.UnaryOp) and isinstance(end.op, ast.USub) and _number(end.operand, frame) == 0:
                    return ast.unparse(node), ast.unparse(end.operand), 0
                if isinstance(end, ast.BinOp) and isinstance(end.op, ast.Sub) and (_number(end, frame) or 0) < 0:
                    return ast.unparse(node), ast.unparse(end), _number(end, frame)
    return None


def handed_over(frame, line, parameter):
    """(code of the argument, function, its parameters) of a call in a line of a running function that hands something
    over as this parameter, or None."""
    nodes, line = _code_of(frame, line)
    for node in nodes:
        if isinstance(node, ast.Call) and node.lineno <= line <= node.end_lineno:
            try:
                function = eval(ast.unparse(node.func), frame.f_globals, frame.f_locals)
                names = [*signature(getattr(function, "forward", function)).parameters]
            except Exception:  # it is no function, or a part of it has no value
                continue
            given = dict(zip(names, node.args, strict=False)) | {k.arg: k.value for k in node.keywords}
            if parameter in given:
                return ast.unparse(given[parameter]), ast.unparse(node.func), names
    return None


def _code_of(frame, line):
    """The nodes of a running function's code, [] if it cannot be read, and the number of a line of the file in it."""
    try:
        nodes = [*ast.walk(ast.parse(dedent(getsource(frame.f_code))))]
    except (OSError, SyntaxError):
        nodes = []
    return nodes, line - frame.f_code.co_firstlineno + 1


def _number(node, frame):
    """The number that a sum or product of variables is in a running function, or None."""
    space = {name: value for name, value in frame.f_locals.items() if type(value) is int}
    known = (ast.BinOp, ast.Constant, ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Load)
    parts = [*ast.walk(node)]
    if isinstance(node, ast.Constant) or not all(
        isinstance(n, known) or getattr(n, "id", None) in space for n in parts
    ):
        return None
    try:
        return eval(ast.unparse(node), {"__builtins__": {}}, space)
    except (ArithmeticError, TypeError):  # such as n // 0, or a text in it
        return None
