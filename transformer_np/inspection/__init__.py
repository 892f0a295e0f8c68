"""Tools to look inside a model: gradient checks and the other rules for layers and models, a trace of every step, the
attention explorer, and the contributions of layers and heads."""

from .contracts import ContractReport, check_layer, check_model
from .interpretation import (
    Contributions,
    Effects,
    HeadAblation,
    attention_rollout,
    attribution,
    contributions,
    head_ablation,
    logits_by_layer,
    measured,
)  # fmt: skip

__all__ = [
    "ContractReport", "Contributions", "Effects", "HeadAblation", "attention_rollout", "attribution", "check_layer",
    "check_model", "contributions", "head_ablation", "logits_by_layer", "measured",
]  # fmt: skip
