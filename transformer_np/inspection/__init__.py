"""Tools to look inside a model: gradient checks, a trace of every step, the attention explorer, and the
contributions of layers and heads."""

from .interpretation import HeadAblation, attention_rollout, head_ablation, logits_by_layer

__all__ = ["HeadAblation", "attention_rollout", "head_ablation", "logits_by_layer"]
