"""Generate tokens with a trained model, one time step after another: greedy and beam search, sampling, with a key/value
cache."""

from .cache import DecoderCache, KeyValueCache
from .sampling import generate, generate_steps, sampling_distribution
from .scores import Excluding, log_softmax
from .search import Hypothesis, beam_search, greedy_decode, greedy_steps

__all__ = [
    "DecoderCache", "Excluding", "Hypothesis", "KeyValueCache", "beam_search", "generate", "generate_steps",
    "greedy_decode", "greedy_steps", "log_softmax", "sampling_distribution",
]  # fmt: skip
