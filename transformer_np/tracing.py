"""The documented path of `inspection.tracing`."""

from .inspection.tracing import Step, Trace, trace

__all__ = ["Step", "Trace", "trace"]
