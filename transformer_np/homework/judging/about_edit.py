"""The sentence on an edit that makes an answer right: what is wrong there, not what the edit is."""

import ast

import numpy as np

from .edit import KINDS

MOST_LETTERS = 60  # of code in a sentence
MOST_SIZES, MOST_CALLS = 5, 4  # that a sentence names; in which a number is looked for
_FUNCTIONS = {
    "np.sqrt(": "the root", "np.square(": "the square", "np.exp(": "the exponential", "np.log(": "the logarithm",
    "np.tanh(": "tanh", "np.abs(": "the absolute value", "1 - ": "1 minus the value", "float(": "the number",
}  # fmt: skip
_STRICT_OR_NOT = ({ast.Lt, ast.LtE}, {ast.Gt, ast.GtE})
_OF_NUMBERS = ("name", "number")


def about(edit):
    """The sentence of a kind of edit, about the code that is edited."""
    code, new = ast.unparse(edit.node), ast.unparse(edit.new)
    if edit.kind == "name" and any((ast.unparse(o.node), ast.unparse(o.new)) == (new, code) for o in edit.also):
        return f"`{code}` and `{new}` are in each other's place."
    if edit.kind == "name" and isinstance(edit.node, ast.Assign):
        return f"This gives the name `{edit.node.targets[0].id}` to something new; the array itself stays as it was."
    if len(code) > MOST_LETTERS:
        return KINDS[edit.kind]
    if edit.kind == "name" or (edit.kind == "number" and isinstance(edit.new, ast.Name)):
        what = "another of your variables or arguments" if isinstance(edit.new, ast.Name) else "something else"
        return f"The results are right with {what} in place of `{code}`."
    if edit.kind == "axis" and isinstance(edit.node, ast.Subscript):
        return f"`{code}` adds an axis at the end, which is right for the last `axis` only: see keepdims."
    if edit.kind == "axis" and isinstance(edit.new, ast.Call):
        has_axis, needs_axis = map(_has_axis, (edit.node, edit.new))
        if has_axis != needs_axis:
            all_or_some = ("all axes", "over some of them only"), ("some axes only", "over all of them")
            over, right = all_or_some[not needs_axis]
            return f"`{code}` goes over {over}: it must go {right}."
    numbers = [getattr(n, "value", None) for n in (edit.node, edit.new)]
    if edit.kind == "number" and all(type(n) is int for n in numbers) and abs(numbers[0] - numbers[1]) == 1:
        return f"Off by one: `{code}` is one too {'small' if numbers[0] < numbers[1] else 'large'} here."
    if edit.kind == "comparison" and {type(edit.node.ops[0]), type(edit.new.ops[0])} in _STRICT_OR_NOT:
        return f"`{code}` is wrong where both sides are equal."
    if edit.kind == "extra part":
        kinds = {ast.Add: "a term", ast.Sub: "a term", ast.Mult: "a factor", ast.Div: "a factor"}
        if isinstance(edit.node, ast.Call):
            name = ast.unparse(edit.node.func if edit.new in edit.node.args else ast.Name(edit.node.func.attr))
            return f"The results are right without `{name}` in `{code}`."
        part = kinds.get(type(edit.node.op), "a part")
        return f"The results are right without {part} of `{code}`."
    if edit.kind == "missing factor":
        return f"The results are right if `{code}` is multiplied or divided by the right value."
    if edit.kind == "missing function" and "nan_to_num" in new:
        return f"`{code}` is NaN where it must be a number: is there 0/0 or ∞ − ∞ in it, or in what it uses?"
    if edit.kind == "missing function":
        which = next((text for function, text in _FUNCTIONS.items() if new.startswith(function)), "a function")
        return f"The results are right with {which} of `{code}` in its place."
    if edit.kind == "function" and code.rpartition(".")[2] in ("empty", "empty_like"):
        return f"`{code}` sets no numbers: they are whatever the memory holds, until a line writes them."
    if edit.kind == "function":
        return f"`{code.rpartition('.')[2]}` is not the function that belongs here."
    if edit.kind == "operator" and isinstance(edit.node, ast.BinOp):
        return (
            f"`{ast.unparse(ast.BinOp(ast.Name('a'), edit.node.op, ast.Name('b')))[2:-2]}` is the wrong operator here."
        )
    return KINDS[edit.kind]


def _has_axis(call):
    """Whether a reduction such as x.sum(…) or np.sum(x, …) is told which axes to reduce."""
    is_of_numpy = isinstance(call.func, ast.Attribute) and getattr(call.func.value, "id", "") == "np"
    return len(call.args) > is_of_numpy or any(keyword.arg == "axis" for keyword in call.keywords)


def about_numbers(edit, sides):
    """A sentence on the single number that an edit changes, in the first case that shows it, or ""."""
    if edit.kind not in _OF_NUMBERS or edit.also or sides is None:
        return ""
    tree = next(tree for tree in sides.family.trees.values() if any(n is edit.parent for n in ast.walk(tree)))
    around = [n for n in ast.walk(tree) if isinstance(n, ast.expr) and edit.node in ast.walk(n)]
    given = {arg.arg for arg in ast.walk(next(iter(sides.family.trees.values()))) if isinstance(arg, ast.arg)}
    around = [n for n in around if not isinstance(n, ast.Constant | ast.UnaryOp) and getattr(n, "id", "") not in given]
    nodes = {n: edit.new if n is edit.node else n for n in sorted(around, key=lambda n: len(ast.unparse(n)))}
    before = {number: sides.values(number)[0] for number in sides.failed[:MOST_CALLS]}
    edit.make()
    try:
        edited = sides.with_edit()
    finally:
        edit.undo()
    after = {number: edited.values(number)[0] for number in before}
    for node, now in nodes.items():
        code = ast.unparse(node)
        for number in before if len(code) <= MOST_LETTERS else ():
            old, new = _number_of(node, before[number]), _number_of(now, after[number])
            if old is not None and new is not None and old != new:
                often = len(before[number].get(node, "1")) > 1
                first = " when this line first runs" if often else ""
                right = f"the results are right with {new:.5g} in its place"
                right = f"it is {new:.5g} there in an answer with right results" if often else right
                off = "Off by one. " if isinstance(old, int) and abs(old - new) == 1 else ""
                return f"{off}{_sizes_in(sides.found[number], code)}, `{code}` is {old:.5g}{first}; {right}."
    return ""


def _sizes_in(finding, code):
    """ "With T = 5, step = 1": the first sizes and numbers of a case, without the one that is the code itself."""
    sizes = dict(finding.case.sizes)
    sizes |= {name: value for name, value in finding.arguments.items() if type(value) in (int, float)}
    sizes.pop(code, None)
    said = ", ".join(f"{name} = {value:.5g}" for name, value in list(sizes.items())[:MOST_SIZES])
    return f"With {said}" if said else "In a call that fails"


def _number_of(node, values):
    """The single number that a node is worth first, or None."""
    value = values[node][0] if node in values else getattr(node, "value", None)
    value = value.item() if isinstance(value, np.generic) else value
    return value if type(value) in (int, float) else None
