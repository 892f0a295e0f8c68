"""One edit of a syntax tree: how it is made, what it adds and takes away, and the sentence on it."""

import ast
from collections import Counter
from dataclasses import dataclass
from itertools import chain

from .family import family_with
from .words import WIDTH

MOVE = "order of lines"
ORDER = "order of parameters"
OTHER = "other code"  # the right answer's own, which no hint shows


@dataclass(frozen=True)
class Edit:
    """kind: a key of KINDS; group: 0 for the smallest; node: the expression or statement to mark

    make, undo: change the tree, and change it back
    """

    kind: str
    group: int
    node: ast.AST
    parent: ast.AST
    field: str
    index: int | None
    new: object
    also: tuple = ()  # Edits of the same expression elsewhere, made together with this one

    def make(self):
        for edit in self.also:
            edit.make()
        if not hasattr(self.new, "lineno"):  # a part of the old node keeps its own place
            ast.copy_location(self.new, self.node)
        ast.fix_missing_locations(self.new)
        self._put(self.new)

    def undo(self):
        self._put(self.node)
        for edit in self.also:
            edit.undo()

    @property
    def is_exchange(self):
        """Whether it exchanges names: one change, wherever it is made."""
        code, new = ast.unparse(self.node), ast.unparse(self.new)
        return self.kind == ORDER or any((ast.unparse(o.node), ast.unparse(o.new)) == (new, code) for o in self.also)

    def _put(self, node):
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node


_OPERATORS = (ast.operator, ast.cmpop, ast.unaryop, ast.boolop)


class Tokens:
    """The tokens of the trees of a Family: operators, numbers, and the names that all authors have. A variable that is
    written once is what it is made of, each token once; the names of others are their author's own.

    shared: the names of parameters that all authors have
    """

    def __init__(self, family, shared):
        self._trees = family.trees.values()
        nodes = [node for tree in self._trees for node in ast.walk(tree)]
        stored = Counter(n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        lines = [n for n in nodes if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name)]
        self._own = ({*stored} | {n.arg for n in nodes if isinstance(n, ast.arg)}) - shared
        self._once = {n.targets[0].id: n.value for n in lines if stored[n.targets[0].id] == 1}
        self._known = {}

    def of_all(self):
        return chain.from_iterable(map(self.of, self._trees))

    def of(self, tree):
        if tree not in self._known:
            self._known[tree] = []  # of a variable that is made of itself
            parts = map(self.of, ast.iter_child_nodes(tree))
            self._known[tree] = [*self._of_one(tree), *chain.from_iterable(parts)]
        return self._known[tree]

    def change_of(self, edit):
        """The tokens that an Edit adds, and takes away, {token: how many more}."""
        change = Counter()
        for part in (edit, *edit.also):
            change.update(self.of(part.new))
            change.subtract(self.of(part.node))
        return change

    def _of_one(self, node):
        if isinstance(node, _OPERATORS):
            return [type(node)]
        if isinstance(node, ast.Constant):
            return [repr(node.value)]
        if isinstance(node, ast.Attribute | ast.keyword):
            return [getattr(node, "attr", None) or node.arg]
        if not isinstance(node, ast.Name) or node.id not in self._own:
            return [node.id] if isinstance(node, ast.Name) else []
        is_read = isinstance(node.ctx, ast.Load) and node.id in self._once
        return dict.fromkeys(self.of(self._once[node.id])) if is_read else []


def parameters(family):
    """The names of the parameters of a Family's answer."""
    return {node.arg for node in ast.walk(family.tree) if isinstance(node, ast.arg)}


def undone_by(trials, named):
    """The tokens that undo some mistakes in a right answer, {token: how many more}; None of no mistakes."""
    listed = [h.name for h in named if h.name in trials.exercise.mistakes]
    listed = listed if trials.compatible(listed) else []
    undone = Counter(trials.ignored[h.name].argument for h in named if h.name in trials.ignored)
    is_known = bool(listed or undone)
    right, wrong = (family_with(trials.exercise, names) for names in ((), listed))
    if listed and right and wrong:
        undone.update(Tokens(right, parameters(right)).of_all())
        undone.subtract(Tokens(wrong, parameters(wrong)).of_all())
    return Counter({token: n for token, n in undone.items() if n}) if is_known else None


# --- the sentence on an edit ------------------------------------------------------------------------------------------


# kind: a sentence for the student, true if the edit makes the answer right; {0}: the code; {1}: a function
KINDS = {
    "operator": "{0} has the wrong operator.",
    "comparison": "The comparison {0} is wrong.",
    "order": "The order of the parts is wrong here.",
    "reversed": "This goes through in the wrong order.",
    "brackets": "Brackets are missing or in the wrong place here.",
    "number": "The results are right with a different number in place of {0}.",
    "flag": "This True or False is the wrong way around.",
    "axis": "The axis in {0} is wrong.",
    "lost axis": "This loses an axis that is needed afterwards: see keepdims.",
    "name": "The results are right with another of your variables or arguments in place of {0}.",
    "dtype": "The dtype here is wrong.",
    "function": "A different function belongs here.",
    "transpose": "A transpose is missing here, or there is one too many.",
    "sign": "The sign here is wrong.",
    "inverted": "The condition here is the wrong way around.",
    "truth value": "Ask whether this is None, not for its truth value.",
    "overwritten": "What was here before is overwritten: it must be added to (`=` and `+=`).",
    "repeated": "Where an index occurs several times, `x[i] += …` adds only once: use np.add.at.",
    "not a copy": "This is the same object and not a copy, so a change of one changes the other.",
    "added": "This adds to what was here before: it must be overwritten (`=` and `+=`).",
    "writes into its input": "This writes into an array that the caller still needs.",
    "extra part": "The results are right without a part of {0}: a term, a factor, a condition or a function.",
    "extra line": "The results are right without this line.",
    "extra condition": "The results are right without the condition {0}.",
    "missing function": "The results are right with {1} of {0} in its place.",
    "missing bound": "The results are right with a bound for {0}.",
    "missing factor": "The results are right if {0} is multiplied or divided by the right value.",
    "missing term": "The results are right if the right value is added to {0} or subtracted from it.",
    "missing argument": "An argument is missing in this call.",
    "extra argument": "The results are right without an argument of {0}.",
    "order of results": "The results are returned in the wrong order.",
    ORDER: "The parameters are in the wrong order.",
    MOVE: "The lines are in the wrong order here.",
    OTHER: "The results are right with other code in place of {0}.",
    "missing index": "The results are right with all of the array, not only this part.",
}
_AROUND = {
    "np.sqrt(": "the root", "np.square(": "the square", "np.exp(": "the exponential", "np.log(": "the logarithm",
    "np.tanh(": "tanh", "np.abs(": "the absolute value", "1 - ": "1 minus the value", "float(": "the number",
}  # fmt: skip


def about(edit):
    """The sentence of a kind of edit, about the code that is edited."""
    code, new = ast.unparse(edit.node), ast.unparse(edit.new)
    if edit.kind == MOVE:
        return f"{_lines(edit.node).capitalize()} {_belongs(edit)}."
    if edit.kind == "name" and edit.is_exchange:
        return f"`{code}` and `{new}` are in each other's place."
    if edit.kind == "name" and isinstance(edit.node, ast.Assign):
        return f"This gives the name `{edit.node.targets[0].id}` to something new; the array itself stays as it was."
    around = next((text for function, text in _AROUND.items() if new.startswith(function)), "a function")
    is_short = len(code) <= WIDTH // 2
    special = _special(edit, code, new) if is_short else ""
    return special or of_kind(edit.kind, f"`{code}`" if is_short else "this", around)


def _belongs(edit):
    """Where the lines belong that an Edit moves."""
    (other,), verb = edit.also, "belongs" if edit.node.lineno == edit.node.end_lineno else "belong"
    loop = f"the loop in line {other.node.lineno}"
    if isinstance(other.new, ast.For | ast.While):
        return f"{verb} in {loop}"
    if isinstance(edit.new, ast.Pass):
        return f"{verb} {'before' if other.new.body[0] is edit.node else 'behind'} {loop}"
    return f"{verb} {'behind' if edit.index < other.index else 'before'} {_lines(other.node)}"


def _lines(node):
    one = node.lineno == node.end_lineno
    return f"line {node.lineno}" if one else f"lines {node.lineno} to {node.end_lineno}"


def of_kind(kind, code="this", function="a function"):
    """The sentence on all edits of a kind; "" for another name of a mistake."""
    sentence = KINDS.get(kind, "").format(code, function)
    return sentence[:1].upper() + sentence[1:]


def _special(edit, code, new):
    """A sentence that says more than that of the kind, or ""."""
    numbers, name = [getattr(n, "value", None) for n in (edit.node, edit.new)], code.rpartition(".")[2]
    steps = {f"{code} + 1": 1, f"{code} - 1": -1} if edit.kind == "missing term" else {}
    step = numbers[1] - numbers[0] if all(type(n) is int for n in numbers) else steps.get(new)
    if step in (1, -1):
        return f"Off by one: `{code}` is one too {'small' if step > 0 else 'large'} here."
    if edit.kind == "number" and isinstance(edit.new, ast.Name):
        return f"One of your variables or arguments belongs in place of `{code}`."
    if edit.kind == "operator" and new.startswith("-(-"):
        return f"`{code}` rounds down: it must round up."
    if edit.kind == "axis" and isinstance(edit.node, ast.Subscript):
        return f"`{code}` adds an axis at the end, which is right for the last `axis` only: see keepdims."
    if edit.kind == "axis" and isinstance(edit.new, ast.Call) and not _has_axis(edit.new):
        return f"`{code}` goes over some axes only: it must go over all of them."
    if edit.kind == "axis" and isinstance(edit.new, ast.Call) and not _has_axis(edit.node):
        return f"`{code}` goes over all axes: it must go over some of them only."
    if edit.kind == "lost axis" and isinstance(edit.new, ast.Subscript):
        return f"`{code}` {'needs one more axis' if new.endswith('None]') else 'has one axis too many'} at its end."
    if edit.kind == "extra part" and isinstance(edit.node, ast.BinOp | ast.BoolOp | ast.Call):
        is_sum = isinstance(getattr(edit.node, "op", None), ast.Add | ast.Sub)
        part = {ast.BoolOp: "condition", ast.Call: "function"}.get(type(edit.node), "term" if is_sum else "factor")
        return f"The results are right without a {part} of `{code}`."
    if edit.kind == "missing bound":
        return f"`{code}` must not be {'below 0' if new.startswith('max') else 'above 1'} here."
    if edit.kind == "comparison":
        strict = {type(edit.node.ops[0]), type(edit.new.ops[0])} in ({ast.Lt, ast.LtE}, {ast.Gt, ast.GtE})
        return f"`{code}` is wrong where both sides are equal." if strict else ""
    if edit.kind == "missing function" and "nan_to_num" in new:
        return f"`{code}` is NaN where it must be a number: is there 0/0 or ∞ − ∞ in it, or in what it uses?"
    if edit.kind == "function" and name in ("empty", "empty_like"):
        return f"`{code}` sets no numbers: they are whatever the memory holds, until a line writes them."
    return f"`{name}` is not the function that belongs here." if edit.kind == "function" else ""


def _has_axis(call):
    """Whether a reduction such as x.sum(…) or np.sum(x, …) is told which axes to reduce."""
    is_of_numpy = getattr(getattr(call.func, "value", None), "id", "") == "np"
    return len(call.args) > is_of_numpy or any(keyword.arg == "axis" for keyword in call.keywords)
