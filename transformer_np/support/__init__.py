"""Helpers for all parts: argument checks, atomic file writes, processes and their threads."""
