"""Pictures: positional encodings, attention weights, masks, training curves, growth of time and memory, and more.

Every function returns a matplotlib Figure. Jupyter shows it if it is the last value of a cell; a script saves it with
`figure.savefig("name.png")`. The functions do not use pyplot, so they have no global effects: they choose no backend,
leave no figure open, and neither use nor change the user's matplotlib style.

`plots.explore` and `plots.explore_live` are the documented paths of two functions of `inspection.explorer`, which make
HTML pages and draw nothing with matplotlib.
"""

from ..inspection.explorer import explore
from ..inspection.explorer.live import explore_live
from .distributions import decoding_steps, likeliest, sampling, softmax_saturation
from .exercises import progress
from .gradients import gradient_flow, gradient_norms
from .growth import complexity_curves, gradient_distance
from .heads import head_view
from .heatmaps import attention, attention_maps, mask, translator_attention
from .learning import copy_curves, loss_curves, training_curve
from .positions import positional_encoding, relative_bias, wavelengths
from .structure import architecture
from .words import principal_components, word_map

__all__ = [
    "architecture",
    "attention",
    "attention_maps",
    "complexity_curves",
    "copy_curves",
    "decoding_steps",
    "explore",
    "explore_live",
    "gradient_distance",
    "gradient_flow",
    "gradient_norms",
    "head_view",
    "likeliest",
    "loss_curves",
    "mask",
    "positional_encoding",
    "principal_components",
    "progress",
    "relative_bias",
    "sampling",
    "softmax_saturation",
    "training_curve",
    "translator_attention",
    "wavelengths",
    "word_map",
]
