"""Grading a folder of submissions, each in isolation, and the report on them."""
