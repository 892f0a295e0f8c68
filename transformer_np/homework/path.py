"""All exercises, in the order of the notebooks."""

from difflib import get_close_matches
from functools import cache
from importlib import import_module

SHEETS = (
    "activations",
    "adam",
    "attention",
    "attention_backward",
    "beam",
    "blocks",
    "clipping",
    "convolution",
    "dropout",
    "embedding",
    "feed_forward",
    "gated",
    "gelu",
    "greedy",
    "heads",
    "linear",
    "loss",
    "masks",
    "norm",
    "positions",
    "relative_attention",
    "relative_bias",
    "rms_norm",
    "rnn",
    "sampling",
    "schedules",
    "softmax",
    "tiled_attention",
    "unscaled_attention",
    "window_attention",
    "word2vec",
)

# (title of a chapter, its notebook, its exercises in order)
CHAPTERS = (
    ("Embeddings and positions", "01", ("embedding", "sinusoidal_encoding")),
    ("Self-attention", "02", ("softmax", "attention_scores", "scaled_dot_product_attention")),
    ("Multi-head attention", "03", ("split_heads", "merge_heads")),
    (
        "Feed-forward network and layer norm",
        "04",
        ("linear", "relu", "tanh", "gelu", "feed_forward", "layer_norm", "dropout"),
    ),
    ("Masks", "05", ("causal_mask", "padding_mask", "window_mask", "additive")),
    (
        "Backpropagation",
        "06",
        (
            "linear_backward",
            "embedding_backward",
            "relu_backward",
            "tanh_backward",
            "gelu_backward",
            "dropout_backward",
            "feed_forward_backward",
            "softmax_backward",
            "layer_norm_backward",
            "scaled_dot_product_attention_backward",
        ),
    ),
    ("The blocks", "05", ("AddNorm", "EncoderBlock", "DecoderBlock")),
    (
        "Training and decoding",
        "07",
        (
            "cross_entropy",
            "cross_entropy_backward",
            "Adam",
            "noam_schedule",
            "cosine_schedule",
            "clip_grad_norm",
            "greedy_decode",
            "beam_search",
        ),
    ),
    ("Generation", "08", ("sampling_distribution",)),
    (
        "Long sequences",
        "10",
        (
            "rnn",
            "rnn_backward",
            "causal_conv1d",
            "causal_conv1d_backward",
            "window_attention",
            "window_attention_backward",
            "tiled_attention",
            "tiled_attention_backward",
            "relative_shift",
            "relative_shift_backward",
            "relative_attention",
            "relative_attention_backward",
        ),
    ),
    ("Word2Vec", "12", ("negative_sampling_loss", "negative_sampling_loss_backward")),
    (
        "T5",
        "13",
        (
            "rms_norm",
            "rms_norm_backward",
            "relative_position_buckets",
            "relative_position_bias",
            "relative_position_bias_backward",
            "unscaled_attention",
            "unscaled_attention_backward",
            "gated_feed_forward",
            "gated_feed_forward_backward",
        ),
    ),
)


@cache
def all_exercises():
    """{name: Exercise}, in the order of the path."""
    found = {}
    for sheet in SHEETS:
        for exercise in import_module(f".sheets.{sheet}", __package__).EXERCISES:
            found[exercise.name] = exercise
    return {name: found[name] for _, _, names in CHAPTERS for name in names if name in found}


def find(name):
    """The exercise with this name; case and underscores are ignored. ValueError with the nearest name for any other."""
    exercises = all_exercises()
    plain = {_plain(known): exercise for known, exercise in exercises.items()}
    if _plain(name) in plain:
        return plain[_plain(name)]
    near = get_close_matches(_plain(name), plain, n=1)
    advice = f"; did you mean {plain[near[0]].name}?" if near else f"; the exercises are {', '.join(exercises)}"
    raise ValueError(f"there is no exercise {name!r}{advice}")


def _plain(name):
    return name.lower().replace("_", "").replace("-", "")
