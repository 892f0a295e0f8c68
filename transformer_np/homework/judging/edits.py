"""Single edits of a syntax tree, such as a different operator, axis or name, the smallest ones first.

An edit replaces one node by another. None of them dodges a case: no condition becomes a constant, nothing is wrapped in
an `if`, and no number is replaced by an unrelated one.
"""

import ast
from dataclasses import replace
from itertools import combinations, pairwise

from .edit import Edit
from .syntax import Names, counts, expression, is_name, is_named_result, is_value, name_of, places

_SWAPS = {
    ast.Add: (ast.Sub, ast.Mult),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div, ast.Add, ast.MatMult),
    ast.Div: (ast.Mult, ast.FloorDiv, ast.Sub),
    ast.FloorDiv: (ast.Div, ast.Mod),
    ast.Mod: (ast.FloorDiv,),
    ast.MatMult: (ast.Mult,),
    ast.Pow: (ast.Mult,),
    ast.BitOr: (ast.BitAnd,),
    ast.BitAnd: (ast.BitOr,),
}
_COMPARISONS = {
    ast.Lt: (ast.LtE, ast.Gt, ast.GtE),
    ast.LtE: (ast.Lt, ast.GtE, ast.Gt),
    ast.Gt: (ast.GtE, ast.Lt, ast.LtE),
    ast.GtE: (ast.Gt, ast.LtE, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_ALIKE = (
    ("sum", "mean"), ("sum", "max"), ("mean", "max"), ("max", "min"), ("var", "std"), ("sin", "cos"),
    ("argmax", "argmin"), ("triu", "tril"), ("maximum", "minimum"), ("zeros", "ones"), ("zeros_like", "ones_like"),
    ("abs", "square"), ("floor", "round"), ("floor", "ceil"), ("log", "log2"), ("log", "log10"), ("exp", "exp2"),
    ("empty", "zeros"), ("empty_like", "zeros_like"), ("repeat", "tile"), ("any", "all"), ("silu", "gelu"),
    ("random", "standard_normal"), ("sorted", "list"), ("range", "reversed"), ("min", "max"),
    ("dot", "outer"), ("dot", "multiply"),
)  # fmt: skip
_REDUCTIONS = ("sum", "mean", "max", "min", "var", "std", "argmax", "any", "all", "norm", "cumsum")
_AXES = (-1, -2, 0, 1)
_AT_THE_END = ("(..., None)", "(..., np.newaxis)")


def edits_of(tree, without=()):
    """The Edits of a function or class; without: the names of methods that stay as they are"""
    names, alike = Names(tree), {}
    stored = [n for n in ast.walk(tree) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)]
    in_targets = {n for target in stored for n in ast.walk(target)}  # seldom the mistake
    parts = [n for n in ast.walk(tree) if isinstance(n, ast.Subscript) and getattr(n.value, "attr", "") == "shape"]
    of_shapes = {n for part in parts for n in ast.walk(part.slice)}
    for parent, field, index, node, is_size in places(tree, without):
        for number, group in enumerate(_GROUPS[:2] if is_size else _GROUPS):
            for kind, new in group(node, parent, field, names):
                if is_size and kind == "name":
                    continue
                order = number
                if number == 3 and isinstance(parent, ast.Assign | ast.AugAssign | ast.Return):  # all of a statement
                    order = 1.2 if isinstance(parent, ast.AugAssign) else 1.8
                if kind == "name" and (node in in_targets or isinstance(node, ast.Assign)):
                    order = 1.6
                counter = node if isinstance(node, ast.AugAssign) else parent
                if isinstance(counter, ast.AugAssign) and isinstance(counter.value, ast.Constant):
                    order = 3  # without a counter a mean, for example, is a sum
                if kind == "number" and node in of_shapes and isinstance(parent, ast.UnaryOp):
                    order = 1.5  # x.shape[-1]: more often it is used where another size belongs
                if kind == "operator" and isinstance(node.op, ast.Div) and not isinstance(new.op, ast.Mult):
                    order = 1.3  # n // (n - 1) and n - (n - 1) are 1, as if they were not there
                edit = Edit(kind, order, node, parent, field, index, new)
                if number < 2 and isinstance(node, ast.BinOp | ast.Call | ast.Assign | ast.Subscript):
                    alike.setdefault(_same_edit(edit, names), []).append(edit)
                yield edit
    for key, edits in alike.items():
        if len(edits) > 1:
            yield replace(edits[0], group=0.5 if key == "kept" else 1.5, also=tuple(edits[1:]))
    yield from _exchanged(tree)
    yield from _indented(tree)
    for parent in ast.walk(tree):
        for field in () if getattr(parent, "name", "") in without else ("body", "orelse"):
            lines = getattr(parent, field, None)
            for i, (line, below) in enumerate(pairwise(lines) if isinstance(lines, list) else ()):
                if not any(isinstance(one, ast.FunctionDef | ast.Return) or counts(one) for one in (line, below)):
                    other = Edit("order of lines", 1, below, parent, field, i + 1, line)
                    yield Edit("order of lines", 1, line, parent, field, i, below, (other,))


def _same_edit(edit, names):
    """A key that is equal for the same edit of the same expression, of an axis, and of an assignment to a parameter."""
    if isinstance(edit.node, ast.Assign) and edit.kind == "name":
        return "kept" if edit.node.targets[0].id in names.parameters else edit
    if edit.kind == "axis" and isinstance(edit.new, ast.Call):
        return "axis", *(ast.unparse(k) for k in edit.new.keywords if k.arg in ("axis", "keepdims"))
    if isinstance(edit.new, ast.AST) and edit.kind not in ("order", "extra line"):
        return edit.kind, ast.dump(edit.node), ast.dump(edit.new)
    return edit


# --- the edits, in groups ---------------------------------------------------------------------------------------------


def _small(node, parent, field, names):
    if _is_factor(node, parent):
        yield "transpose", ast.Call(expression("np.swapaxes"), [node, expression("-1"), expression("-2")], [])
    if isinstance(node, ast.BinOp):
        for operator in _SWAPS.get(type(node.op), ()):
            if not (operator is ast.Mult and getattr(node.right, "value", None) == 1):  # that is an extra part
                yield "operator", ast.BinOp(node.left, operator(), node.right)
        if isinstance(node.op, ast.Sub | ast.Div | ast.MatMult):
            yield "order", ast.BinOp(node.right, node.op, node.left)
        yield from _rebracketed(node)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        for operator in _COMPARISONS.get(type(node.ops[0]), ()):
            yield "comparison", ast.Compare(node.left, [operator()], node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield "operator", ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.AugAssign):
        if isinstance(node.target, ast.Name):
            read = ast.Name(node.target.id, ast.Load())
            new = ast.BinOp(read, node.op, node.value)
            yield "writes into its input", ast.Assign([node.target], new)
        for operator in _SWAPS.get(type(node.op), ()):
            if not (operator is ast.Mult and getattr(node.value, "value", None) == 1):  # that is an extra line
                yield "operator", ast.AugAssign(node.target, operator(), node.value)
        yield "added", ast.Assign([node.target], node.value)
        if isinstance(node.target, ast.Subscript) and isinstance(node.op, ast.Add):
            added = ast.Call(expression("np.add.at"), [node.target.value, node.target.slice, node.value], [])
            yield "repeated", ast.Expr(added)
    elif isinstance(node, ast.Assign) and len(node.targets) == 1:
        yield from _assignments(node, node.targets[0], names)
    elif isinstance(node, ast.UnaryOp):
        yield "inverted" if isinstance(node.op, ast.Not | ast.Invert) else "sign", node.operand
    elif isinstance(node, ast.Expr) and _is_equality(node.value):
        target = ast.Name(node.value.left.id, ast.Store())
        yield "not assigned", ast.Assign([target], node.value.comparators[0])
    elif isinstance(node, ast.Subscript) and ast.unparse(node.slice) in _AT_THE_END and "axis" in names.at(node):
        yield "axis", ast.Call(expression("np.expand_dims"), [node.value, expression("axis")], [])
    elif isinstance(node, ast.Constant):
        yield from _numbers(node, parent)
        if isinstance(node.value, str) and isinstance(parent, ast.Compare):
            yield from (("name", ast.Constant(text)) for text in names.texts - {node.value})
    elif isinstance(node, ast.Attribute):
        if node.attr in ("T", "mT"):
            yield "transpose", node.value
        if node.attr == "T":  # of more than two axes
            yield "transpose", _expression_with("np.moveaxis(x, -1, 0)", node.value)
            yield "transpose", _expression_with("np.moveaxis(x, 0, -1)", node.value)
        for pair in _ALIKE:
            if node.attr in pair:
                yield "function", ast.Attribute(node.value, pair[pair[0] == node.attr], node.ctx)
    elif field == "test" and isinstance(node, ast.Name) and node.id in names.optional:
        yield "truth value", expression(f"{node.id} is not None")
    elif isinstance(node, ast.IfExp):
        yield "inverted", ast.IfExp(node.test, node.orelse, node.body)
        body, orelse = node.body, node.orelse  # a * b if … else c as a * (b if … else c), and the other way round
        if isinstance(body, ast.BinOp):
            yield "brackets", ast.BinOp(body.left, body.op, ast.IfExp(node.test, body.right, orelse))
        if isinstance(orelse, ast.BinOp):
            yield "brackets", ast.BinOp(ast.IfExp(node.test, body, orelse.left), orelse.op, orelse.right)
    elif isinstance(node, ast.If) and not isinstance(node.test, ast.Compare):
        yield "inverted", ast.If(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
    if isinstance(node, ast.Assign | ast.AugAssign) and field in ("body", "orelse"):
        for name in sorted({n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)} & names.optional):
            yield "missing condition", ast.If(expression(f"{name} is not None"), [node], [])
    if isinstance(node, ast.Call):
        yield from _calls(node, names)
        if len(node.args) == 1 and isinstance(node.args[0], ast.BinOp):  # f(a + b) as f(a) + b
            a = node.args[0]
            yield "brackets", ast.BinOp(ast.Call(node.func, [a.left], node.keywords), a.op, a.right)
    if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
        for i, j in combinations(range(len(node.value.elts)), 2):
            parts = list(node.value.elts)
            parts[i], parts[j] = parts[j], parts[i]
            yield "order of results", ast.Return(ast.Tuple(parts, ast.Load()))


def _is_equality(node):
    """Whether a node asks whether a variable equals something."""
    return isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq) and isinstance(node.left, ast.Name)


def _is_factor(node, parent):
    """Whether a node is a variable in a product of matrices."""
    return isinstance(node, ast.Name) and isinstance(getattr(parent, "op", None), ast.MatMult)


def _exchanged(tree):
    """Edits that exchange two parameters of a function everywhere."""
    if not isinstance(tree, ast.FunctionDef):
        return
    used = {}
    for parent, field, index, node, _ in places(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            used.setdefault(node.id, []).append((node, parent, field, index))
    for a, b in combinations([arg.arg for arg in tree.args.args if arg.arg in used], 2):
        both = [(place, ast.Name(other, ast.Load())) for one, other in ((a, b), (b, a)) for place in used[one]]
        first, *others = [Edit("name", 0.4, *place, new) for place, new in both]
        yield replace(first, also=tuple(others))


def _indented(tree):
    """Edits that move the last line of a loop behind it, and the line behind a loop into it."""
    for parent in ast.walk(tree):
        for field in ("body", "orelse"):
            lines = getattr(parent, field, None)
            for i, loop in enumerate(lines if isinstance(lines, list) else ()):
                if not isinstance(loop, ast.For | ast.While):
                    continue
                last, behind = loop.body[-1], lines[i + 1] if i + 1 < len(lines) else None
                if len(loop.body) > 2 and not isinstance(last, ast.FunctionDef | ast.Return):  # the first counts steps
                    after = Edit(
                        "indentation", 0.3, loop, parent, field, i, ast.If(ast.Constant(True), [loop, last], [])
                    )
                    place = len(loop.body) - 1
                    yield Edit("indentation", 0.3, last, loop, "body", place, ast.Pass(), (after,))
                if behind is not None and not isinstance(behind, ast.FunctionDef | ast.Return):
                    inside = Edit("indentation", 0.3, last, loop, "body", len(loop.body) - 1,
                                  ast.If(ast.Constant(True), [last, behind], []))  # fmt: skip
                    yield Edit("indentation", 0.3, behind, parent, field, i + 1, ast.Pass(), (inside,))


def _rebracketed(node):
    """a · b − c as a · (b − c) and back, a + b / c as (a + b) / c, f(a) + b as f(a + b), a ** b / c as a ** (b / c)."""
    a, c = node.left, node.right
    if isinstance(node.op, ast.Mult | ast.Div) and isinstance(a, ast.BinOp) and isinstance(a.op, ast.Pow):
        yield "brackets", ast.BinOp(a.left, a.op, ast.BinOp(a.right, node.op, c))
    if isinstance(node.op, ast.Mult | ast.Div) and isinstance(a, ast.BinOp) and isinstance(a.op, ast.Mult):
        b = a.right  # s · (a + b) · c as s · (a + b · c)
        if isinstance(b, ast.BinOp) and isinstance(b.op, ast.Add | ast.Sub):
            yield "brackets", ast.BinOp(a.left, a.op, ast.BinOp(b.left, b.op, ast.BinOp(b.right, node.op, c)))
    if isinstance(node.op, ast.Div) and isinstance(a, ast.BinOp) and isinstance(a.op, ast.Mult):
        b = a.right  # s · a ** b / c as s · a ** (b / c)
        if isinstance(b, ast.BinOp) and isinstance(b.op, ast.Pow):
            yield "brackets", ast.BinOp(a.left, a.op, ast.BinOp(b.left, b.op, ast.BinOp(b.right, node.op, c)))
    if isinstance(a, ast.Call) and len(a.args) == 1:
        yield "brackets", ast.Call(a.func, [ast.BinOp(a.args[0], node.op, c)], a.keywords)
    if isinstance(node.op, ast.Add | ast.Sub) and isinstance(a, ast.BinOp) and isinstance(a.op, ast.Mult | ast.Div):
        yield "brackets", ast.BinOp(a.left, a.op, ast.BinOp(a.right, node.op, c))
    if isinstance(node.op, ast.Add | ast.Sub) and isinstance(a, ast.BinOp) and isinstance(a.op, ast.Add | ast.Sub):
        b = a.right  # a + b · c − d as a + b · (c − d)
        if isinstance(b, ast.BinOp) and isinstance(b.op, ast.Mult | ast.Div):
            new = ast.BinOp(b.left, b.op, ast.BinOp(b.right, node.op, c))
            yield "brackets", ast.BinOp(a.left, a.op, new)
    if isinstance(node.op, ast.Add | ast.Sub) and isinstance(c, ast.BinOp) and isinstance(c.op, ast.Div):
        yield "brackets", ast.BinOp(ast.BinOp(a, node.op, c.left), c.op, c.right)
    if isinstance(node.op, ast.Mult | ast.Div) and isinstance(a, ast.BinOp) and isinstance(a.op, ast.Add | ast.Sub):
        yield "brackets", ast.BinOp(a.left, a.op, ast.BinOp(a.right, node.op, c))
    if isinstance(node.op, ast.Mult) and isinstance(c, ast.BinOp) and isinstance(c.op, ast.Add | ast.Sub):
        yield "brackets", ast.BinOp(ast.BinOp(a, node.op, c.left), c.op, c.right)


def _assignments(node, target, names):
    if isinstance(target, ast.Subscript):
        if isinstance(target.value, ast.Name):
            name = target.value.id
            copied = ast.parse(f"{name} = {name}.copy()").body[0]
            yield "writes into its input", ast.If(ast.Constant(True), [copied, node], [])
        if isinstance(node.value, ast.Name | ast.Attribute | ast.Subscript):
            yield "not a copy", ast.Assign([target], ast.Call(expression("np.array"), [node.value], []))
        yield "overwritten", ast.AugAssign(target, ast.Add(), node.value)
    elif isinstance(target, ast.Name) and target.id in names.at(node):
        yield "overwritten", ast.AugAssign(target, ast.Add(), node.value)
        whole = ast.Subscript(ast.Name(target.id, ast.Load()), ast.Slice(), ast.Store())
        yield "name", ast.Assign([whole], node.value)


def _numbers(node, parent):
    value = node.value
    if isinstance(value, bool):
        if not isinstance(parent, ast.If | ast.While):
            yield "flag", ast.Constant(not value)
    elif isinstance(value, int):
        for other in (value + 1, value - 1, -value, 2 * value, 1 - value, -1 - value):
            if other != value and (other or not isinstance(parent, ast.AugAssign)):  # += 0 is an extra line
                yield "number", ast.Constant(other)
        if value > 2:
            yield "number", ast.Constant(value / 2)
            yield "number", ast.Constant(10 * value)
            yield "number", ast.Constant(value / 10)
    elif isinstance(value, float):
        for other in (-value, 1 - value, 10 * value, value / 10, 2 * value, value / 2):
            if other != value:
                yield "number", ast.Constant(other)


def _calls(node, names):
    function = name_of(node.func)
    given = {keyword.arg: i for i, keyword in enumerate(node.keywords)}

    def with_keywords(**values):
        kept = [keyword for keyword in node.keywords if keyword.arg not in values]
        new = [ast.keyword(arg, value) for arg, value in values.items()]
        return ast.Call(node.func, node.args, kept + new)

    true = ast.Constant(True)
    if "dtype" in given:
        yield "dtype", with_keywords(dtype=ast.Name("float", ast.Load()))
    axes = [ast.Constant(axis) for axis in _AXES]
    axes += [ast.Name(name, ast.Load()) for name in names.at(node) if name in ("axis", "axes", "rows")]
    if function in _REDUCTIONS:
        if "keepdims" not in given and function not in ("argmax", "cumsum"):
            yield "lost axis", with_keywords(keepdims=true)
        for axis in axes:
            yield "axis", with_keywords(axis=axis)
            if "keepdims" not in given:
                yield "axis", with_keywords(axis=axis, keepdims=true)
        if "axis" in given or node.args:
            yield "axis", ast.Call(node.func, node.args, [k for k in node.keywords if k.arg != "axis"])
    elif "axis" in given:
        for axis in axes:
            yield "axis", with_keywords(axis=axis)
    if "keepdims" in given:
        yield (
            "lost axis",
            with_keywords(keepdims=ast.Constant(node.keywords[given["keepdims"]].value.value is not True)),
        )
    if "dtype" in names.at(node) and function in ("zeros", "ones", "full", "where", "empty"):
        yield (
            "missing argument",
            ast.Call(ast.Attribute(node, "astype", ast.Load()), [ast.Name("dtype", ast.Load())], []),
        )
    if (
        function in ("sorted", "min", "max")
        and "key" not in given
        and len(node.args) == 1
        and isinstance(node.args[0], ast.Name)
    ):
        yield "missing argument", with_keywords(key=ast.Attribute(node.args[0], "get", ast.Load()))
    for i, j in combinations(range(len(node.args)), 2) if function not in ("tile", "repeat", "full") else ():
        parts = list(node.args)  # numbers as sizes would make huge arrays
        parts[i], parts[j] = parts[j], parts[i]
        yield "order", ast.Call(node.func, parts, node.keywords)
    if function in ("swapaxes", "transpose") and isinstance(node.func, ast.Attribute):
        yield "transpose", node.args[0] if is_name(node.func.value, "np") and node.args else node.func.value
    passed = {arg.id for arg in node.args if isinstance(arg, ast.Name)}
    passed |= {keyword.value.id for keyword in node.keywords if isinstance(keyword.value, ast.Name)}
    if isinstance(node.func, ast.Attribute) and is_name(node.func.value, "self"):  # a part of a block
        for name in names.at(node):
            if name not in passed and name not in ("x", "dout"):
                yield "missing argument", with_keywords(**{name: ast.Name(name, ast.Load())})
                for word in ("mask", "cache"):
                    if word not in given and word != name:
                        yield "missing argument", with_keywords(**{word: ast.Name(name, ast.Load())})


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
        yield "extra part", node.left
        yield "extra part", node.right
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords and is_value(node, parent, field):
        yield "extra part", node.args[0]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not is_name(node.func.value, "np"):
        if is_value(node, parent, field) and not is_name(node.func.value, "self"):
            yield "extra part", node.func.value
    if isinstance(node, ast.Subscript) and is_value(node, parent, field) and isinstance(node.ctx, ast.Load):
        yield "missing index", node.value
    if field == "body" and isinstance(node, ast.Assign | ast.AugAssign | ast.Expr | ast.If | ast.Break):
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            yield "extra line", ast.Pass()


def _functions(node, parent, field, names):
    """A function that is often missing around a value."""
    if not is_value(node, parent, field) or isinstance(node, ast.UnaryOp) or is_named_result(node, parent, names):
        return
    yield "sign", ast.UnaryOp(ast.USub(), node)
    yield "missing factor", ast.BinOp(node, ast.Div(), ast.Constant(2))
    yield "missing factor", ast.BinOp(ast.Constant(2), ast.Mult(), node)
    yield "missing function", ast.Call(expression("np.sqrt"), [node], [])
    yield "missing function", ast.BinOp(ast.Constant(1), ast.Sub(), node)
    yield "missing function", ast.Call(expression("np.square"), [node], [])
    if isinstance(node, ast.Name):
        if not _is_factor(node, parent):
            yield "transpose", ast.Call(expression("np.swapaxes"), [node, expression("-1"), expression("-2")], [])
        yield "inverted", ast.UnaryOp(ast.Invert(), node)


def _other_functions(node, parent, field, names):
    """A function that is seldom missing around a value."""
    if not is_value(node, parent, field) or isinstance(node, ast.UnaryOp) or is_named_result(node, parent, names):
        return
    for text in ("np.exp", "np.log", "np.tanh", "np.abs"):
        yield "missing function", ast.Call(expression(text), [node], [])
    yield "missing factor", ast.BinOp(ast.Constant(1), ast.Div(), node)
    for operator in (ast.Add(), ast.Sub()):
        yield "missing term", ast.BinOp(node, operator, ast.Constant(1))
    if not isinstance(node, ast.Name):
        yield "transpose", ast.Call(expression("np.swapaxes"), [node, expression("-1"), expression("-2")], [])
        yield "inverted", ast.UnaryOp(ast.Invert(), node)
    if isinstance(parent, ast.Return | ast.Tuple):
        yield "lost axis", _expression_with("x[..., None]", node)
        yield "lost axis", _expression_with("x[..., 0]", node)
        yield "missing function", ast.Call(expression("float"), [node], [])
        yield "missing function", ast.Call(expression("np.nan_to_num"), [node], [])


def _expression_with(text, node):
    """The expression of a text with a node in the place of its x."""
    tree = expression(text)
    if isinstance(tree, ast.Call):
        tree.args[0] = node
    else:
        tree.value = node
    return tree


def _missing(node, parent, field, names):
    """A condition, a factor or a term that is missing."""
    if isinstance(node, ast.Assign | ast.AugAssign | ast.Expr) and field == "body":
        for test in names.tests:
            if {n.id for n in ast.walk(test) if isinstance(n, ast.Name)} <= {*names.at(node), *names.others}:
                yield "missing condition", ast.If(test, [node], [])
                yield "missing condition", ast.If(ast.UnaryOp(ast.Not(), test), [node], [])
    if isinstance(node, ast.Constant) and type(node.value) is int and not isinstance(parent, ast.keyword | ast.Slice):
        for name in names.at(node):
            yield "number", ast.Name(name, ast.Load())
    if not is_value(node, parent, field) or is_named_result(node, parent, names):
        return
    if isinstance(node, ast.Call) and name_of(node.func) in ("zeros", "zeros_like", "empty", "empty_like"):
        return  # whatever is done to zeros changes only their dtype
    for name in names.attributes if isinstance(node, ast.Name | ast.Call) else ():  # a part of a block
        for call in ("self.x(y)", "self.x.backward(y)"):
            new = expression(call.replace("x", name))
            new.args = [node]
            yield "missing part", new
    for product in names.factors.values() if isinstance(parent, ast.Assign | ast.AugAssign | ast.Return) else ():
        yield "missing factor", ast.BinOp(node, product.op, product.right)
    inner = isinstance(parent, ast.BinOp) and isinstance(node, ast.Name | ast.Attribute)
    for name in names.at(node):
        if is_name(node, name):  # x + x may only overflow
            continue
        other = ast.Name(name, ast.Load())
        yield "missing factor", ast.BinOp(node, ast.Mult(), other)
        yield "missing factor", ast.BinOp(node, ast.Div(), other)
        if not inner or isinstance(parent.op, ast.Mult | ast.Div | ast.MatMult | ast.Pow):
            yield "missing term", ast.BinOp(node, ast.Add(), other)
            yield "missing term", ast.BinOp(node, ast.Sub(), other)


_GROUPS = (_small, _names, _functions, _missing, _other_functions)
