"""The documented path of `inspection.gradcheck`."""

from .inspection.gradcheck import GradientReport, check_gradients, standard_checks

__all__ = ["GradientReport", "check_gradients", "standard_checks"]
