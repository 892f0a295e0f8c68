"""The outline of a model, as text and as a table that folds: its modules, their parameters and the number of each."""

from dataclasses import dataclass, replace
from html import escape

from .table import aligned


@dataclass(frozen=True)
class Outline:
    """A module in the outline. Neighbours that differ only by their number are shown as one.

    name: the attribute that holds it; kind: its class; parameters: its own, "w_q w_k (8, 8)" for two of one shape
    size: the number of parameters, with those of the modules inside; a tied parameter counts where it first occurs
    times: the number of modules that this entry stands for
    """

    name: str
    kind: str
    parameters: tuple[str, ...]
    size: int
    inside: tuple["Outline", ...] = ()
    times: int = 1

    def __str__(self):
        rows = [row for entry in folded(self.inside) for row in entry._rows(1)]
        return "\n".join([f"{self.kind}: {self._count()}", *aligned(rows, "<<><")])

    def _rows(self, depth):
        """(name, class, number of parameters, own parameters) of this module and of all inside it."""
        kind = f"{self.times} × {self.kind}" if self.times > 1 else self.kind
        size = f"{self.size * self.times:,}" if self.size else ""
        yield "  " * depth + self.name, kind, size, "; ".join(self.parameters)
        for entry in folded(self.inside):
            yield from entry._rows(depth + 1)

    def _count(self):
        own = f", {'; '.join(self.parameters)}" if self.parameters else ""
        return f"{self.size * self.times:,} parameters{own}"

    def html(self):
        """The outline for a notebook: a click on a module shows what is inside."""
        kind = f"{self.times} × {self.kind}" if self.times > 1 else self.kind
        text = escape(f"{self.name}: {kind}" if self.name else kind)
        text = f"<code>{text}</code> · {escape(self._count())}"
        if not self.inside:
            return f'<div style="margin-left:2em">{text}</div>'
        inside = "".join(entry.html() for entry in folded(self.inside))
        state = "" if self.name else " open"
        return f'<details{state} style="margin-left:1em"><summary>{text}</summary>{inside}</details>'


def folded(entries):
    """The entries, with one entry for all equal neighbours in a list: "blocks.0 … 11"."""
    found = []
    for entry in entries:
        before = found[-1] if found else None
        group, _, number = entry.name.rpartition(".")
        if before and group and replace(before, name="", times=1) == replace(entry, name="", times=1):
            first = before.name.split(" … ")[0]
            if first.rpartition(".")[0] == group:
                found[-1] = replace(before, name=f"{first} … {number}", times=before.times + 1)
                continue
        found.append(entry)
    return found
