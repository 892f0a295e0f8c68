"""Grading of a folder of submissions, each in isolation, with reports."""
