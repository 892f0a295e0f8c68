"""Pictures: positional encodings, attention weights, masks, training curves, growth of time and memory, and more.

Every function returns a matplotlib Figure. Jupyter shows it if it is the last value of a cell; a script saves it with
`figure.savefig("name.png")`. The functions do not use pyplot, so they have no global effects: they choose no backend,
leave no figure open, and neither use nor change the user's matplotlib style.

`plots.explore_live` is the documented path of a function of `inspection.explorer`, which makes an HTML page and draws
nothing with matplotlib.
"""

from ..inspection.explorer.live import explore_live
from .distributions import decoding_steps, likeliest, sampling, softmax_saturation
from .gradients import gradient_flow, gradient_norms
from .growth import complexity_curves, gradient_distance
from .heads import head_view
from .heatmaps import attention, attention_maps, mask, model_view, translator_attention
from .homework import class_results, progress
from .inside import attribution, contributions, head_ablation, logit_lens
from .learning import copy_curves, loss_curves, training_curve
from .matrices import Product, attention_products, layer_norm_products, matrices
from .positions import positional_encoding, relative_bias, wavelengths
from .structure import architecture
from .words import principal_components, word_map

__all__ = [
    "Product", "architecture", "attention", "attention_maps", "attention_products", "attribution", "class_results",
    "complexity_curves", "contributions", "copy_curves", "decoding_steps", "explore_live", "gradient_distance",
    "gradient_flow", "gradient_norms", "head_ablation", "head_view", "layer_norm_products", "likeliest", "logit_lens",
    "loss_curves", "mask", "matrices", "model_view", "positional_encoding", "principal_components",
    "progress", "relative_bias", "sampling", "softmax_saturation", "training_curve", "translator_attention",
    "wavelengths", "word_map",
]  # fmt: skip
