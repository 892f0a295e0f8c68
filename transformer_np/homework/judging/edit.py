"""One edit of a syntax tree, and how it is made."""

import ast
from dataclasses import dataclass

MOVES = ("order of lines", "indentation")  # of whole lines


@dataclass(frozen=True)
class Edit:
    """kind: a key of KINDS in `about_edit`; group: 0 for the smallest; node: the expression or statement to mark

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
