"""Tools to look inside a model: gradient checks and the other rules for layers and models, a trace of every step, the
attention explorer, and the contributions of layers and heads."""

from .contracts import ContractReport, check_layer, check_model
from .interpretation import HeadAblation, attention_rollout, head_ablation, logits_by_layer

__all__ = [
    "ContractReport", "HeadAblation", "attention_rollout", "check_layer", "check_model", "head_ablation",
    "logits_by_layer",
]  # fmt: skip
