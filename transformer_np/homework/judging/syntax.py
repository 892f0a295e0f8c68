"""Reading a syntax tree: where an edit may be made, which names it may use, and the order of parameters."""

import ast
from inspect import signature

from ..definitions import tree_of

STEP = "_step_of_a_loop"  # the call that counts the steps of a loop, which no edit may change


def counts(node):
    """Whether a statement counts the steps of a loop."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and is_name(node.value.func, STEP)


def counts_up(node):
    """Whether a statement adds 1 to a variable."""
    return isinstance(node, ast.AugAssign) and getattr(node.value, "value", None) == 1


_TAKE_SIZES = ("arange", "range", "zeros", "ones", "full", "empty", "reshape", "broadcast_to", "tile", "repeat", "eye",
               "tri", "linspace", "integers", "choice", "permutation", "random", "standard_normal", "normal", "uniform",
               "binomial", "rand", "randn", "randint", "resize", "pad")  # fmt: skip
_TAKE_ARRAYS = ("reshape", "broadcast_to", "tile", "repeat", "resize", "pad")


def places(tree, without=()):
    """(parent, field, index, node, is_size) of every node that may be replaced; annotations, defaults, docstrings and
    the patterns of `case` are not. is_size: whether the node is part of a size of an array, which must not grow."""
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
            if field in ("annotation", "returns", "decorator_list", "bases", "pattern"):
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


def base_of(node):
    """The name of the variable or attribute that an expression is a part or a view of."""
    while isinstance(node, ast.Subscript | ast.Call):
        node = node.value if isinstance(node, ast.Subscript) else getattr(node.func, "value", None)
    return name_of(node)


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
                        names[node.id] = min(node.lineno, names.get(node.id, node.lineno))
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
        parts = [n for n in ast.walk(tree) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)]
        self.changed = {base_of(n.target) for n in ast.walk(tree) if isinstance(n, ast.AugAssign)}
        self.changed |= {*map(base_of, parts)}
        self.once = {name for name in stored if stored.count(name) == read.count(name) == 1}
        products = [n for n in ast.walk(tree) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult | ast.Div)]
        self.factors = {ast.unparse(n.right): n for n in products if isinstance(n.right, ast.Call)}  # such as / sqrt(K)
        absolute = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and name_of(n.func) == "abs"]
        signs = {n: ast.Call(expression("np.sign"), n.args, []) for n in absolute}  # which may have to come back
        self.factors |= {ast.unparse(n): ast.BinOp(n, ast.Mult(), sign) for n, sign in signs.items()}
        every = {name for first in self.first.values() for name in first}
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
    name = getattr(node, "operand", node)  # no factor makes anything of infinity
    return not (is_name(name, "self") or is_name(name, "np") or getattr(name, "attr", "") in ("shape", "inf"))


def order_of(exercise, function):
    """The parameters of an answer, of which this is the syntax tree, in the order of the exercise; () if they are in
    it, or others are among them."""
    own = [arg.arg for arg in function.args.args] if isinstance(function, ast.FunctionDef) else []
    right = tuple(name for name in signature(exercise.reference).parameters if name in own)
    return right if len(right) == len(own) and right != tuple(own) else ()


def function_in(source, name):
    """The syntax tree of the only function of this name in the source of a file, or None."""
    tree = tree_of(source)
    nodes = [node for node in tree.body if getattr(node, "name", "") == name] if tree else []
    return nodes[0] if len(nodes) == 1 else None
