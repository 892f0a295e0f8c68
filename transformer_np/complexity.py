"""The documented path of `bench.complexity`."""

from .bench.complexity import (
    KINDS,
    TOLERANCE,
    Curve,
    Kind,
    counts,
    factor_per_step,
    fit_exponent,
    gradient_by_distance,
    gradients,
    measure,
    measure_memory,
    measure_time,
    path_length,
    sequential_operations,
    table,
)

__all__ = [
    "KINDS",
    "TOLERANCE",
    "Curve",
    "Kind",
    "counts",
    "factor_per_step",
    "fit_exponent",
    "gradient_by_distance",
    "gradients",
    "measure",
    "measure_memory",
    "measure_time",
    "path_length",
    "sequential_operations",
    "table",
]
