"""Single edits of a syntax tree, such as a different operator, axis or name, the smallest ones first.

An edit replaces one node by another. None of them dodges a case: no condition becomes a constant, nothing is wrapped in
an `if`, and no number is replaced by an unrelated one.
"""

import ast
import builtins
from dataclasses import replace
from functools import cache
from itertools import combinations

from .edit import Edit
from .rearranged import of_several_places
from .syntax import Names, base_of, counts_up, expression, is_name, is_named_result, is_value, name_of, places

_FORMS = {  # kind: {form: what it may have to be}; a letter stands for any expression
    "operator": {
        "a + b": "a - b; b - a; a * b", "a - b": "a + b", "a * b": "a / b; a + b; a @ b",
        "a / b": "a * b; a // b; a - b",
        "a // b": "-(-a // b); a / b; a % b", "a % b": "a // b", "a @ b": "a * b", "a ** b": "a * b", "a | b": "a & b",
        "a & b": "a | b", "a and b": "a or b", "a or b": "a and b",
    },
    "comparison": {
        "a < b": "a <= b; a > b; a >= b", "a <= b": "a < b; a >= b; a > b", "a > b": "a >= b; a < b; a <= b",
        "a >= b": "a > b; a <= b; a < b", "a == b": "a != b", "a != b": "a == b", "a is b": "a is not b",
        "a is not b": "a is b", "a in b": "a not in b", "a not in b": "a in b",
    },
    "order": {"a - b": "b - a", "a / b": "b / a", "a @ b": "b @ a", "f(g(a))": "g(f(a))",
              "(1 - a) * b + a * c": "a * b + (1 - a) * c", "(1 - a) * b + a * c / d": "a * b + (1 - a) * c / d",
              "a * b + (1 - a) * c": "(1 - a) * b + a * c", "a * b + (1 - a) * c / d": "(1 - a) * b + a * c / d"},
    "inverted": {"not a": "a", "~a": "a", "a if t else b": "b if t else a"},
    "sign": {"-a": "a"},
    "transpose": {
        "x.T": "x; np.moveaxis(x, -1, 0); np.moveaxis(x, 0, -1)", "x.mT": "x", "np.swapaxes(x, a, b)": "x",
        "x.swapaxes(a, b)": "x", "np.transpose(x, a)": "x", "x.transpose(a, b)": "x", "x.transpose(a, b, c)": "x",
        "x.transpose(a, b, c, d)": "x", "x.transpose(a)": "x",
    },
    "dtype": {"np.zeros(a)": "np.zeros(a, bool)", "np.ones(a)": "np.ones(a, bool)", "a.astype(b)": "a.astype(bool)"},
    "function": {"np.isnan(a)": "~np.isfinite(a)", "np.isinf(a)": "~np.isfinite(a)"},
    "number": {  # the first maximum
        "np.zeros(a)": "np.full(a, -np.inf)", "np.zeros(a, b)": "np.full(a, -np.inf, b)",
        "np.zeros(a, dtype=b)": "np.full(a, -np.inf, b)", "np.zeros_like(a)": "np.full_like(a, -np.inf)",
    },
    "not a copy": {
        "dict(a)": "{k: v.copy() for k, v in a.items()}", "a.copy()": "{k: v.copy() for k, v in a.items()}",
        "list(a)": "[v.copy() for v in a]", "[a] * b": "[a for _ in range(b)]",
    },
    "reversed": {
        "range(a)": "reversed(range(a))", "range(a, b)": "reversed(range(a, b))",
        "range(a, b, -1)": "range(b + 1, a + 1)", "d.items()": "sorted(d.items(), key=lambda item: item[1])",
    },
}  # fmt: skip
_AROUND = {  # kind: what is often missing around a value x, and what is seldom
    "sign": ("-x", ""), "missing bound": ("max(0, x); min(1, x)", ""), "missing factor": ("x / 2; 2 * x", "1 / x"),
    "missing term": ("", "x + 1; x - 1"),
    "missing function": ("np.sqrt(x); 1 - x; np.square(x)", "np.exp(x); np.log(x); np.tanh(x); np.abs(x)"),
}  # fmt: skip
_AROUND_RESULTS = {
    "lost axis": "x[..., None]; x[..., 0]", "missing function": "float(x); np.nan_to_num(x)",
    "transpose": "np.moveaxis(x, -1, 0); np.moveaxis(x, 0, -1); np.swapaxes(x, 1, 2)",
}  # fmt: skip
_VIEWS = ("reshape", "ravel", "view", "swapaxes", "moveaxis", "transpose", "squeeze", "asarray")
_TURNED, _INVERTED = "np.swapaxes(x, -1, -2)", "~x"
_LIKE = (
    ("sum", "mean"), ("sum", "max"), ("mean", "max"), ("max", "min"), ("var", "std"), ("sin", "cos"), ("any", "all"),
    ("argmax", "argmin"), ("triu", "tril"), ("maximum", "minimum"), ("zeros", "ones"), ("zeros_like", "ones_like"),
    ("abs", "square"), ("floor", "round"), ("floor", "ceil"), ("log", "log2"), ("log", "log10"), ("exp", "exp2"),
    ("empty", "zeros"), ("empty_like", "zeros_like"), ("repeat", "tile"), ("random", "standard_normal"),
    ("dot", "outer"), ("dot", "multiply"), ("silu", "gelu"), ("sorted", "list"),
)  # fmt: skip
_REDUCTIONS = ("sum", "mean", "max", "min", "var", "std", "argmax", "any", "all", "norm", "cumsum")
_ALIKE = ast.BinOp | ast.Call | ast.Assign | ast.AugAssign | ast.Subscript | ast.Name  # often wrong more than once
_PRECEDENCE = {ast.Add: 0, ast.Sub: 0, ast.Mult: 1, ast.Div: 1, ast.FloorDiv: 1, ast.Mod: 1, ast.MatMult: 1, ast.Pow: 2}


def edits_of(tree, without=(), order=()):
    """The Edits of a function or class; without: the names of methods that stay as they are; order: its parameters in
    that of a right answer, if it has another one"""
    yield from of_several_places(tree, without, order)
    names, alike = Names(tree), {}
    stored = [n for n in ast.walk(tree) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)]
    in_targets = {n for target in stored for n in ast.walk(target)}  # seldom the mistake
    of_shapes = {n for part in filter(_is_of_shape, ast.walk(tree)) for n in ast.walk(part.slice)}
    for parent, field, index, node, is_size in places(tree, without):
        for number, group in enumerate(_GROUPS[:2] if is_size else _GROUPS):
            for kind, new in group(node, parent, field, names):
                if is_size and kind == "name":
                    continue
                when = _order(number, kind, node, parent, new, in_targets, of_shapes, names)
                edit = Edit(kind, when, node, parent, field, index, new)
                if number < 2 and isinstance(node, _ALIKE):
                    alike.setdefault(_same_edit(edit, names), []).append(edit)
                yield edit
    for key, edits in alike.items():
        if len(edits) > 1:
            yield replace(edits[0], group=0.5 if key == "kept" else 1.5, also=tuple(edits[1:]))


def _is_of_shape(node):
    """Whether a node is a size, `x.shape[…]`."""
    return isinstance(node, ast.Subscript) and getattr(node.value, "attr", "") == "shape"


def _order(number, kind, node, parent, new, in_targets, of_shapes, names):
    """When an edit is tried: after those with a smaller number."""
    if counts_up(node) or counts_up(parent):
        return 3  # without a counter a mean, for example, is a sum
    if kind == "operator" and isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Div) and not isinstance(new.op, ast.Mult):
            return 1.3  # n // (n - 1) and n - (n - 1) are 1, as if they were not there
        if any(getattr(part, "value", None) == 1 for part in (node.left, node.right)):
            return 1.3  # of n - 1, the number is wrong more often
    if kind == "number" and node in of_shapes and isinstance(parent, ast.UnaryOp):
        return 1.5  # x.shape[-1]: more often it is used where another size belongs
    if kind == "name" and isinstance(node, ast.Assign) and node.targets[0].id in names.parameters:
        return 0.5  # the array itself must change
    if kind == "name" and (node in in_targets or isinstance(node, ast.Assign)):
        return 1.6
    if number == 3 and isinstance(parent, ast.Assign | ast.AugAssign | ast.Return):  # all of a statement
        return 1.2 if isinstance(parent, ast.AugAssign) else 1.8
    return number


def _same_edit(edit, names):
    """A key that is equal for the same edit of the same expression, of an axis, of an assignment to a parameter, and
    of one to an index that occurs several times."""
    if edit.kind == "repeated":
        return edit.kind
    if isinstance(edit.node, ast.Assign) and edit.kind == "name":
        return "kept" if edit.node.targets[0].id in names.parameters else edit
    if edit.kind in ("axis", "lost axis") and isinstance(edit.new, ast.Call):
        return edit.kind, *(ast.unparse(k) for k in edit.new.keywords if k.arg in ("axis", "keepdims"))
    if isinstance(edit.new, ast.AST) and edit.kind not in ("order", "extra line"):
        line = edit.node.lineno if isinstance(edit.node, ast.Name) else 0  # of a name only if it is in the same line
        return edit.kind, ast.dump(edit.node), ast.dump(edit.new), line
    return edit


# --- forms ------------------------------------------------------------------------------------------------------------


@cache
def _forms():
    """{(type of a node, of its operator): [(kind, form, what it may have to be)]}"""
    forms = {}
    for kind, of_kind in _FORMS.items():
        for form, others in of_kind.items():
            tree, others = expression(form), [expression(other) for other in others.split("; ")]
            forms.setdefault(_type_of(tree), []).append((kind, tree, others))
    return forms


def _type_of(node):
    operator = getattr(node, "op", None) or next(iter(getattr(node, "ops", ())), None)
    return type(node), type(operator)


def match(form, node, found):
    """Whether a node has a form; found: {letter: what stands for it}"""
    if isinstance(form, ast.Name) and len(form.id) == 1:
        found[form.id] = node
        return isinstance(node, ast.expr) and not isinstance(node, ast.Starred)
    if isinstance(form, list):
        return len(form) == len(node) and all(match(a, b, found) for a, b in zip(form, node, strict=True))
    if isinstance(form, ast.AST):
        parts = ((part, getattr(node, field, None)) for field, part in ast.iter_fields(form) if field != "ctx")
        return type(form) is type(node) and all(match(*pair, found) for pair in parts)
    return form == node


_parsed = cache(expression)


def filled(form, found):
    """A form with nodes in the place of its letters."""
    if isinstance(form, list):
        return [filled(part, found) for part in form]
    if not isinstance(form, ast.AST):
        return form
    if getattr(form, "id", None) in found:
        return found[form.id]
    return type(form)(**{field: filled(part, found) for field, part in ast.iter_fields(form)})


def _around(texts, node):
    """The expressions of some texts with a node in the place of x."""
    return [filled(_parsed(text), {"x": node}) for text in texts.split("; ") if text]


# --- the edits, in groups ---------------------------------------------------------------------------------------------


def _small(node, parent, field, names):
    if isinstance(parent, ast.Return) and not isinstance(node, ast.Tuple):
        yield "not a copy", *_around("np.array(x)", node)
    if isinstance(parent, ast.Dict) and field == "values":  # {**node}
        yield "not a copy", *_around("{k: v.copy() for k, v in x.items()}", node)
    if isinstance(node, ast.Name) and isinstance(getattr(parent, "op", None), ast.MatMult):
        yield "transpose", *_around(_TURNED, node)
    is_index = isinstance(node, ast.Name) and (field in ("slice", "lower", "upper") or isinstance(parent, ast.Tuple))
    is_bound = field == "args" and name_of(parent.func) in ("range", "min", "max")
    if is_index or (is_bound and not isinstance(node, ast.Constant)):
        yield from (("missing term", new) for new in _around("x + 1; x - 1", node))
    for kind, form, others in _forms().get(_type_of(node), ()):
        found = {}
        if match(form, node, found):
            yield from ((kind, filled(other, found)) for other in others)
    yield from (("brackets", new) for new in _rebracketed(node) if not _is_idle(new))
    if isinstance(node, ast.AugAssign):
        if isinstance(node.target, ast.Name):
            new = ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value)
            yield "writes into its input", ast.Assign([node.target], new)
        forms = [of for kind, _, of in _forms().get((ast.BinOp, type(node.op)), ()) if kind == "operator"]
        for other in [form.op for of in forms for form in of]:
            yield "operator", ast.AugAssign(node.target, other, node.value)
        yield "added", ast.Assign([node.target], node.value)
        if isinstance(node.target, ast.Subscript) and isinstance(node.op, ast.Add):
            added = ast.Call(expression("np.add.at"), [node.target.value, node.target.slice, node.value], [])
            yield "repeated", ast.Expr(added)
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
        is_unpacked = isinstance(node.value, ast.Name | ast.Attribute)
        for parts in _in_other_order(node.targets[0].elts) if is_unpacked else ():
            yield "order", ast.Assign([ast.Tuple(parts, ast.Store())], node.value)
    elif isinstance(node, ast.Assign) and len(node.targets) == 1:
        yield from _assignments(node, node.targets[0], names)
    elif isinstance(node, ast.Subscript) and ast.unparse(node.slice) in ("(..., None)", "(..., np.newaxis)"):
        if "axis" in names.at(node):
            yield "axis", ast.Call(expression("np.expand_dims"), [node.value, expression("axis")], [])
    elif isinstance(node, ast.Constant):
        yield from _numbers(node, parent)
        if isinstance(node.value, str) and isinstance(parent, ast.Compare):
            yield from (("name", ast.Constant(text)) for text in names.texts - {node.value})
    elif isinstance(node, ast.Attribute) or (isinstance(node, ast.Name) and field == "func"):
        name = name_of(node)
        for other in [pair[pair[0] == name] for pair in _LIKE if name in pair]:
            is_part = isinstance(node, ast.Attribute)
            yield "function", ast.Attribute(node.value, other, node.ctx) if is_part else ast.Name(other, ast.Load())
    elif field == "test" and isinstance(node, ast.Name) and node.id in names.optional:
        yield "truth value", expression(f"{node.id} is not None")
    elif isinstance(node, ast.If) and not isinstance(node.test, ast.Compare):
        yield "inverted", ast.If(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
    if isinstance(node, ast.Call):
        yield from _calls(node, names)
    if isinstance(node, ast.List) and isinstance(parent, ast.Call | ast.Assign | ast.For):
        yield from (("order", ast.List(parts, node.ctx)) for parts in _in_other_order(node.elts))
    if field == "iter" and not (isinstance(node, ast.Call) and name_of(node.func) in ("range", "enumerate")):
        yield "reversed", *_around("[*x][::-1]", node)
    if (isinstance(parent, ast.If) and field == "test" and not parent.orelse) or field == "ifs":
        yield "extra condition", ast.Constant(True)
    if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
        for parts in _in_other_order(node.value.elts):
            yield "order of results", ast.Return(ast.Tuple(parts, ast.Load()))


def _in_other_order(parts):
    """The lists in which two parts have each other's place."""
    for i, j in combinations(range(len(parts)), 2):
        other = list(parts)
        other[i], other[j] = other[j], other[i]
        yield other


def _rebracketed(node):
    """(a ∘ b) • c as a ∘ (b • c), as (a • c) ∘ b and back, s ∘ (a ∘ b) • c as s ∘ (a ∘ (b • c)), f(a) • c as f(a • c)
    and back, s ∘ f(a) • c as s ∘ f(a • c), and a • b if … else c as a • (b if … else c) and back."""
    if isinstance(node, ast.Call) and len(node.args) == 1 and isinstance(a := node.args[0], ast.BinOp):
        yield ast.BinOp(ast.Call(node.func, [a.left], node.keywords), a.op, a.right)
    if isinstance(node, ast.IfExp):
        one, other = node.body, node.orelse
        if isinstance(one, ast.BinOp):
            yield ast.BinOp(one.left, one.op, ast.IfExp(node.test, one.right, other))
        if isinstance(other, ast.BinOp):
            yield ast.BinOp(ast.IfExp(node.test, one, other.left), other.op, other.right)
    if not isinstance(node, ast.BinOp) or type(node.op) not in _PRECEDENCE:
        return
    a, c = node.left, node.right
    if isinstance(a, ast.Call) and len(a.args) == 1:
        yield ast.Call(a.func, [ast.BinOp(a.args[0], node.op, c)], a.keywords)
    if isinstance(a, ast.BinOp) and isinstance(f := a.right, ast.Call) and len(f.args) == 1:
        yield ast.BinOp(a.left, a.op, ast.Call(f.func, [ast.BinOp(f.args[0], node.op, c)], f.keywords))
    if _binds_otherwise(a, node):
        yield ast.BinOp(a.left, a.op, ast.BinOp(a.right, node.op, c))
        yield ast.BinOp(ast.BinOp(a.left, node.op, c), a.op, a.right)
    if isinstance(a, ast.BinOp) and _binds_otherwise(b := a.right, node):
        yield ast.BinOp(a.left, a.op, ast.BinOp(b.left, b.op, ast.BinOp(b.right, node.op, c)))
    if _binds_otherwise(c, node):
        yield ast.BinOp(ast.BinOp(a, node.op, c.left), c.op, c.right)


def _is_idle(node):
    """Whether 1 is a factor or a divisor in some brackets, where it changes nothing."""
    products = [n for n in ast.walk(node) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult | ast.Div)]
    idle = [n.right for n in products] + [n.left for n in products if isinstance(n.op, ast.Mult)]
    return any(getattr(part, "value", None) == 1 for part in idle)


def _binds_otherwise(part, node):
    kinds = [_PRECEDENCE.get(type(getattr(n, "op", None))) for n in (part, node)]
    return isinstance(part, ast.BinOp) and None not in kinds and kinds[0] != kinds[1]


def _assignments(node, target, names):
    is_place = isinstance(target, ast.Subscript)
    is_known = isinstance(target, ast.Name) and target.id in names.at(node)
    if name_of(getattr(node.value, "func", None)) in _VIEWS or not isinstance(node.value, ast.Call):
        if is_place or not names.changed.isdisjoint({base_of(target), base_of(node.value)}):
            yield "not a copy", ast.Assign([target], *_around("x.copy()", node.value))
    if is_place and isinstance(target.value, ast.Name):
        copied = ast.parse(f"{target.value.id} = {target.value.id}.copy()").body[0]
        yield "writes into its input", ast.If(ast.Constant(True), [copied, node], [])
    if is_place or is_known:
        yield "overwritten", ast.AugAssign(target, ast.Add(), node.value)
    if is_known:
        whole = ast.Subscript(ast.Name(target.id, ast.Load()), ast.Slice(), ast.Store())
        yield "name", ast.Assign([whole], node.value)


def _numbers(node, parent):
    value, others = node.value, ()
    if isinstance(value, bool):
        if not isinstance(parent, ast.If | ast.While):
            yield "flag", ast.Constant(not value)
    elif isinstance(value, int):
        others = (value + 1, value - 1, -value, 2 * value, 1 - value, -1 - value)
        others += (value / 2, 10 * value, value / 10) if value > 2 else ()
    elif isinstance(value, float):
        others = (-value, 1 - value, 10 * value, value / 10, 2 * value, value / 2)
    for other in others:
        if other != value and (other or not isinstance(parent, ast.AugAssign)):  # += 0 is an extra line
            yield "number", ast.Constant(other)


def _calls(node, names):
    function = name_of(node.func)
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    is_reduction, array = function in _REDUCTIONS, getattr(node.func, "value", node)
    arrays = node.args[: is_name(array, "np")]  # and then the axis

    def with_keywords(**values):
        kept = [keyword for keyword in node.keywords if keyword.arg not in values]
        args = arrays if is_reduction and "axis" in values else node.args
        return ast.Call(node.func, args, kept + [ast.keyword(arg, value) for arg, value in values.items()])

    def without(name):
        return ast.Call(node.func, node.args, [keyword for keyword in node.keywords if keyword.arg != name])

    true = ast.Constant(True)
    if "order" in given:
        yield "extra argument", without("order")
    if "dtype" in given:
        yield "dtype", with_keywords(dtype=ast.Name("float", ast.Load()))
    axes = [expression(axis) for axis in ("-1", "-2", "0", "1")]
    axes += [ast.Name(name, ast.Load()) for name in names.at(node) if name in ("axis", "axes", "rows")]
    axes += _around("tuple(range(x.ndim - 1))", (*arrays, array)[0])
    if is_reduction and "keepdims" not in given and function not in ("argmax", "cumsum"):
        yield "lost axis", with_keywords(keepdims=true)
    before = [ast.dump(axis) for axis in (*node.args[len(arrays) :], given.get("axis")) if axis]
    for axis in (a for a in axes if ast.dump(a) not in before) if is_reduction or "axis" in given else ():
        yield "axis", with_keywords(axis=axis)
        if is_reduction and "keepdims" not in given:
            yield "axis", with_keywords(axis=axis, keepdims=true)
    if is_reduction and ("axis" in given or node.args):
        yield "axis", without("axis")
    if "keepdims" in given:
        yield "lost axis", with_keywords(keepdims=ast.Constant(getattr(given["keepdims"], "value", None) is not True))
    if "dtype" in names.at(node) and function in ("zeros", "ones", "full", "where", "empty"):
        yield "missing argument", filled(expression("x.astype(dtype)"), {"x": node})
    if function in ("sorted", "min", "max") and len(node.args) == 1:
        if "key" in given:
            yield "reversed", ast.Call(node.func, _around("sorted(x)", node.args[0]), node.keywords)
        elif isinstance(node.args[0], ast.Name):
            yield "missing argument", with_keywords(key=ast.Attribute(node.args[0], "get", ast.Load()))
    for parts in _in_other_order(node.args) if function not in ("tile", "repeat", "full") else ():
        yield "order", ast.Call(node.func, parts, node.keywords)  # numbers as sizes would make huge arrays
    passed = {value.id for value in (*node.args, *given.values()) if isinstance(value, ast.Name)}
    left = [name for name in names.at(node) if name not in passed and name not in ("x", "dout")]
    if ast.unparse(node.func).startswith("self."):  # a part of a block
        for name in left:
            for word in (name, *(word for word in ("mask", "cache") if word not in given and word != name)):
                yield "missing argument", with_keywords(**{word: ast.Name(name, ast.Load())})
    elif isinstance(node.func, ast.Name) and not hasattr(builtins, function):
        used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} | {*given}
        same = {name: ast.Name(name, ast.Load()) for name in left if name in names.parameters - used}
        for some in [*({name: value} for name, value in same.items()), *([same] if len(same) > 1 else [])]:
            yield "missing argument", with_keywords(**some)
    elif not node.args and not given:  # such as default_rng()
        yield from (("missing argument", ast.Call(node.func, [ast.Name(name, ast.Load())], [])) for name in left)


def _names(node, parent, field, names):
    """A different variable, a part too many."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names.at(node):
        list_of = getattr(getattr(getattr(parent, "func", None), "value", None), "id", "")  # that is appended to
        for other in names.at(node):
            if other not in (node.id, list_of):  # np.array of a list that contains itself never ends
                yield "name", ast.Name(other, ast.Load())
    if isinstance(node, ast.Attribute) and is_name(node.value, "self") and isinstance(node.ctx, ast.Load):
        for other in names.attributes:
            if other != node.attr:
                yield "name", ast.Attribute(node.value, other, node.ctx)
    if isinstance(node, ast.BinOp):
        yield from (("extra part", part) for part in (node.left, node.right))
    if isinstance(node, ast.BoolOp):
        for n in range(len(node.values)):
            left = [*node.values[:n], *node.values[n + 1 :]]
            yield "extra part", ast.BoolOp(node.op, left) if len(left) > 1 else left[0]
    if isinstance(node, ast.Call) and (is_value(node, parent, field) or field == "iter"):
        if len(node.args) == 1 and not node.keywords:
            yield "extra part", node.args[0]
        if isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", "") not in ("np", "self"):
            yield "extra part", node.func.value
    if isinstance(node, ast.Subscript) and is_value(node, parent, field) and isinstance(node.ctx, ast.Load):
        yield "missing index", node.value
    if field == "body" and isinstance(node, ast.Assign | ast.AugAssign | ast.Expr | ast.If | ast.Assert | ast.Break):
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            yield "extra line", ast.Pass()


def _functions(node, parent, field, names, often=0):
    """A function that is often missing around a value, or seldom."""
    if not is_value(node, parent, field) or isinstance(node, ast.UnaryOp) or is_named_result(node, parent, names):
        return
    for kind, texts in _AROUND.items():
        yield from ((kind, new) for new in _around(texts[often], node))
    if isinstance(node, ast.Name) == (not often):
        if not (isinstance(node, ast.Name) and isinstance(getattr(parent, "op", None), ast.MatMult)):
            yield "transpose", *_around(_TURNED, node)
        yield "inverted", *_around(_INVERTED, node)
    for kind, texts in _AROUND_RESULTS.items() if often and isinstance(parent, ast.Return | ast.Tuple) else ():
        yield from ((kind, new) for new in _around(texts, node))


def _other_functions(node, parent, field, names):
    yield from _functions(node, parent, field, names, often=1)


def _missing(node, parent, field, names):
    """A factor or a term that is missing."""
    if isinstance(node, ast.Constant) and type(node.value) is int and not isinstance(parent, ast.keyword | ast.Slice):
        yield from (("number", ast.Name(name, ast.Load())) for name in names.at(node))
    if not is_value(node, parent, field) or is_named_result(node, parent, names):
        return
    if isinstance(node, ast.Call) and name_of(node.func) in ("zeros", "zeros_like", "empty", "empty_like"):
        return  # whatever is done to zeros changes only their dtype
    is_whole = isinstance(parent, ast.Assign | ast.AugAssign | ast.Return)
    is_whole |= isinstance(parent, ast.Call) and name_of(parent.func) == "append"
    for product in names.factors.values() if is_whole else ():
        yield "missing factor", ast.BinOp(node, product.op, product.right)
    inner = isinstance(parent, ast.BinOp) and isinstance(node, ast.Name | ast.Attribute)
    # a divided size would make up for a factor elsewhere
    forms = ("x * y",) if _is_of_shape(node) or name_of(getattr(node, "func", None)) == "len" else ("x * y", "x / y")
    for name in names.at(node):
        if is_name(node, name):  # x + x may only overflow
            continue
        other = {"y": ast.Name(name, ast.Load()), "x": node}
        yield from (("missing factor", filled(_parsed(form), other)) for form in forms)
        if not inner or isinstance(parent.op, ast.Mult | ast.Div | ast.MatMult | ast.Pow):
            yield from (("missing term", filled(_parsed(form), other)) for form in ("x + y", "x - y"))


_GROUPS = (_small, _names, _functions, _missing, _other_functions)
