"""Pointing at the line of a mistake: single edits of the student's own code, one of which makes the answer right."""

from .search import Place, find_place

__all__ = ["Place", "find_place"]
