"""Sampling: continue a text by drawing one token after another."""

from inspect import signature

import numpy as np

from .. import functional as F
from ..module import Module
from ..support import checks
from ..support.checks import as_float_array, as_ids, check_at_least, check_flag, check_has, check_kind, check_number
from ..support.memory import check_memory
from .cache import DecoderCache
from .scores import Excluding, exclude, finite

COLDEST = 1e-20  # a lower temperature is 0: the most likely token
ROUNDING = 1e-6  # of probabilities in float32: 0.9 of (0.9, 0.1) is reached by the first


def sampling_distribution(logits, temperature=1.0, top_k=None, top_p=None):
    """The distribution that a token is drawn from: softmax(logits / temperature), restricted to likely tokens.

    temperature: below 1 sharpens, above 1 flattens, 0 (below 1e-20) keeps only the most likely token
    top_k: keep only the k most likely tokens (Fan et al. 2018)
    top_p: keep only the most likely tokens that together just reach probability p (Holtzman et al. 2020)

    Top-k is applied before top-p: p is reached by the probabilities that top-k leaves, divided by their sum. Of equally
    likely tokens, the one with the smaller id ranks first.

    logits (..., V)  ->  probabilities (..., V), each row adds to 1
    """
    check_number("temperature", temperature, "[0, ∞)")
    if top_k is not None:
        check_at_least("top_k", top_k, 1)
    if top_p is not None:
        check_number("top_p", top_p, "(0, 1]")
    logits = finite(as_float_array(logits, "logits"))
    if temperature < COLDEST:  # the quotient would overflow
        temperature = 0
    if temperature > 0 and top_k is None and top_p is None:  # no ranking needed
        return F.softmax(logits / temperature)
    if temperature == 0:
        return (logits.argmax(axis=-1)[..., None] == np.arange(logits.shape[-1])).astype(logits.dtype)
    order = np.argsort(-logits, axis=-1, kind="stable")  # (..., V), the most likely first
    ranked = F.softmax(np.take_along_axis(logits, order, axis=-1) / temperature)
    if top_k is not None:
        ranked[..., top_k:] = 0
    if top_p is not None:
        ranked /= ranked.sum(axis=-1, keepdims=True)
        reached = np.cumsum(ranked, axis=-1, dtype=np.float64)
        ranked[..., 1:][reached[..., :-1] >= top_p - ROUNDING] = 0  # those above already reach p
    ranked /= ranked.sum(axis=-1, keepdims=True)
    probabilities = np.empty_like(ranked)
    np.put_along_axis(probabilities, order, ranked, axis=-1)
    return probabilities


def generate(
    model, prompt, max_new_tokens, temperature=1.0, top_k=None, top_p=None, rng=None, use_cache=True, stop_ids=(),
    pad_id=0, return_weights=False,
):  # fmt: skip
    """Continue a text: draw one token after another from the predictions of a decoder-only model.

    prompt: ids (B, T), or B lists of different lengths; none may be empty or longer than the model's context max_len,
        if it has one
    temperature, top_k, top_p: see `sampling_distribution`; temperature 0 always takes the most likely token
    stop_ids: a row that has drawn one of these is finished and is filled with pad_id; when all rows are finished,
        generation stops

    A text that outgrows the context continues from its last max_len tokens. This changes the position of every token,
    so the cache becomes useless and each new token costs a full forward. A Transformer-XL has no such limit: it
    continues with its memory.

    ->  ids (B, longest prompt + max_new_tokens), or fewer columns if all rows finished early. Shorter prompts get more
    new tokens, so that all rows have the same length. With return_weights also the attention weights of every step, a
    list of {name of the attention: (B, H, T, S)}: with the cache, T is the prompt at the first step and 1 later.
    """
    check_flag("return_weights", return_weights)
    steps = generate_steps(model, prompt, max_new_tokens, temperature, top_k, top_p, rng, use_cache, stop_ids, pad_id)
    if not return_weights:
        *_, ids = steps
        return ids
    ids, weights = next(steps), []
    for longer in steps:
        attentions = [(path, module) for path, module in model.named_modules() if "weights" in module.replaceable()]
        ids = longer
        weights.append({path: attention.weights for path, attention in attentions})
    return ids, weights


def generate_steps(
    model, prompt, max_new_tokens, temperature=1.0, top_k=None, top_p=None, rng=None, use_cache=True, stop_ids=(),
    pad_id=0,
):  # fmt: skip
    """Continue a text like `generate` and yield it after every token: ids (B, length), which must not be changed.

    The first is the prompt, cut to the shortest row; the last is the result of `generate`. Raises ValueError at the
    first step for an empty or too long prompt, ids out of range, and options out of range.
    """
    check_at_least("max_new_tokens", max_new_tokens, 0)
    check_at_least("pad_id", pad_id, -checks.MOST)
    check_flag("use_cache", use_cache)
    sampling_distribution(np.zeros(1), temperature, top_k, top_p)  # raises for wrong options before the work begins
    check_kind("model", model, (Module, Excluding))
    check_has("model", model, "config.vocab_size")
    if not hasattr(model, "reader"):
        try:
            signature(model.forward).bind(prompt, None, last=True)
        except TypeError as error:
            kind = type(model).__name__
            raise TypeError(f"model must be called as a GPT is, model(ids, cache, last=…); {kind}: {error}") from None
    config, rng, stop_ids = model.config, checks.as_rng(rng), checks.as_text_ids(stop_ids, "stop_ids")
    rows = [as_ids(row, config.vocab_size, "prompt") for row in checks.as_list("prompt", prompt, "lists of ids")]
    if not rows:
        raise ValueError("prompt is empty: it must have at least one row")
    if any(row.ndim != 1 for row in rows):
        raise ValueError(f"prompt must have the axes (batch, length), a row has shape {rows[0].shape}")
    lengths = np.array([len(row) for row in rows])
    most = getattr(config, "max_len", None)
    if most is not None and lengths.max() > most:
        raise ValueError(f"prompt is {lengths.max()} tokens long, more than the model's context max_len = {most}")
    check_memory(f"max_new_tokens = {max_new_tokens}", 8 * len(rows) * (int(lengths.max()) + max_new_tokens))
    ids = np.empty((len(rows), lengths.max() + max_new_tokens), int)  # takes memory as it is written
    for row, given in zip(ids, rows, strict=True):
        row[: len(given)] = given
    stopped = np.zeros(len(rows), bool)
    with model.evaluating():
        read = model.reader(use_cache) if hasattr(model, "reader") else _reader(model, use_cache)
        yield ids[:, : lengths.min()]
        for end in range(lengths.min(), lengths.max() + max_new_tokens):
            logits = exclude(model, finite(read(ids[:, :end]), end - lengths.min() + 1))  # (B, V)
            drawn = _draw(sampling_distribution(logits, temperature, top_k, top_p), rng)
            writing = end >= lengths  # inside a longer prompt, its own token comes next
            ids[writing, end] = np.where(stopped, pad_id, drawn)[writing]
            stopped |= writing & np.isin(drawn, stop_ids)
            yield ids[:, : end + 1]
            if stopped.all():
                return


def _reader(model, use_cache):
    """A function from a growing text, ids (B, length), to the logits of its next token (B, V)."""
    max_len = model.config.max_len
    cache = DecoderCache(model.config.num_layers) if use_cache else None

    def read(ids):
        if cache is None or ids.shape[1] > max_len:
            return model(ids[:, -max_len:])[:, -1]
        if cache.length == 0:
            return model(ids, cache, last=True)[:, -1]
        return model(ids[:, cache.length :], cache)[:, -1]

    return read


def _draw(probabilities, rng):
    """Draw one index (B,) per row of probabilities (B, V): where a uniform number falls in their cumulative sum."""
    reached = np.cumsum(probabilities, axis=-1, dtype=np.float64)
    return (rng.random((len(probabilities), 1)) * reached[:, -1:] < reached).argmax(axis=-1)
