"""One edit of a syntax tree: its kind, what is said of it, and how it is made."""

import ast
from dataclasses import dataclass

# kind: a sentence for the student, true if the edit makes the answer right
KINDS = {
    "operator": "The operator here is wrong.",
    "comparison": "The comparison here is wrong.",
    "order": "The order of the parts is wrong here.",
    "reversed": "This goes through in the wrong order.",
    "brackets": "Brackets are missing or in the wrong place here.",
    "number": "The results are right with a different number here.",
    "flag": "This True or False is the wrong way around.",
    "axis": "The axis here is wrong.",
    "lost axis": "This loses an axis that is needed afterwards: see keepdims.",
    "name": "The results are right with something else here.",
    "dtype": "The dtype here is wrong: the numbers do not fit into it.",
    "function": "A different function belongs here.",
    "transpose": "A transpose is missing here, or there is one too many.",
    "sign": "The sign here is wrong.",
    "inverted": "The condition here is the wrong way around.",
    "truth value": "Ask whether this is None, not for its truth value.",
    "overwritten": "What was here before is overwritten: it must be added to (`=` and `+=`).",
    "repeated": "Where an index occurs several times, `x[i] += …` adds only once: use np.add.at.",
    "not assigned": "This line compares and changes nothing: `=` assigns.",
    "not a copy": "This is the same array and not a copy: whoever changes the one changes the other.",
    "added": "This adds to what was here before: it must be overwritten (`=` and `+=`).",
    "writes into its input": "This writes into an array that the caller still needs.",
    "extra part": "The results are right without a part of this: a term, a factor or a function.",
    "extra line": "The results are right without this line.",
    "missing function": "The results are right with a function of this, such as a square, a root or `1 − …`.",
    "missing factor": "The results are right if this is multiplied or divided by the right value.",
    "missing term": "The results are right if the right value is added to this or subtracted from it.",
    "missing argument": "An argument is missing in this call.",
    "missing part": "A part of the block is left out here.",
    "order of results": "The results are returned in the wrong order.",
    "order of lines": "The lines are in the wrong order here.",
    "indentation": "The indentation here is wrong: the line belongs behind the loop, or into it.",
    "missing condition": "This line must not run every time.",
    "missing index": "The results are right with all of the array, not only this part.",
}

MOVES = ("order of lines", "indentation")  # of whole lines


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

    def _put(self, node):
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node
