"""Generate tokens with a trained model, one time step after another: greedy and beam search, with a key/value cache."""

from dataclasses import dataclass

import numpy as np

from . import functional as F
from .module import Module
from .support.checks import (
    MOST,
    as_float_array,
    as_ids,
    as_rng,
    as_text_ids,
    check_at_least,
    check_flag,
    check_kind,
    check_number,
)
from .support.memory import check_memory


class KeyValueCache:
    """The keys and values that one attention has computed so far, (B, H, length, K) each.

    With the cache, a decoding step computes query, key and value of the newest token only: O(length) work per step
    instead of O(length²).
    """

    def __init__(self):
        self.length = 0
        self._buffers = None  # keys and values, with spare room at the end

    def append(self, k, v):
        """Add the newest keys and values, (B, H, T, K). Returns all keys and values so far."""
        end = self.length + k.shape[2]
        if self._buffers is None or end > self._buffers[0].shape[2]:
            self._buffers = tuple(self._grown(i, new, 2 * end) for i, new in enumerate((k, v)))
        for buffer, new in zip(self._buffers, (k, v), strict=True):
            buffer[:, :, self.length : end] = new
        self.length = end
        return self.keys, self.values

    def _grown(self, i, new, capacity):
        buffer = np.empty((*new.shape[:2], capacity, new.shape[3]), new.dtype)
        if self._buffers is not None:
            buffer[:, :, : self.length] = self._buffers[i][:, :, : self.length]
        return buffer

    @property
    def keys(self):
        return self._buffers[0][:, :, : self.length]

    @property
    def values(self):
        return self._buffers[1][:, :, : self.length]

    def select(self, rows):
        """Keep only these rows of the batch, in this order; a row may occur twice."""
        if self._buffers is not None:
            self._buffers = tuple(buffer[rows] for buffer in self._buffers)


class DecoderCache:
    """The state of a decoder between time steps: its input ids, and a pair of key/value caches for every block."""

    def __init__(self, num_blocks):
        check_at_least("num_blocks", num_blocks, 1)
        self.ids = None  # (B, length)
        self.blocks = [(KeyValueCache(), KeyValueCache()) for _ in range(num_blocks)]

    @property
    def length(self):
        return 0 if self.ids is None else self.ids.shape[1]

    def extend(self, ids):
        """Append ids, (B, T), that have been decoded."""
        self.ids = ids if self.ids is None else np.concatenate([self.ids, ids], axis=1)

    def select(self, rows):
        """Keep only these rows of the batch, in this order; a row may occur twice."""
        self.ids = self.ids[rows]
        for pair in self.blocks:
            for cache in pair:
                cache.select(rows)


class Excluding:
    """A model for decoding that never chooses some tokens, such as <unk>. The log p of all other tokens is unchanged.

        greedy_decode(Excluding(model, [UNK]), src)

    It works with all functions of this file. All other attributes and calls are those of the model.

    padded: whether ids of an encoder–decoder's source that equal pad_id are padding; if not, it has none
    """

    def __init__(self, model, ids, padded=True):
        check_flag("padded", padded)
        self.model, self.excluded, self.padded = model, [int(i) for i in ids], padded

    def encode(self, src):
        return self.model.encode(src, **self._padding(src))

    def decode(self, tgt_in, memory, src, cache=None):
        return self.model.decode(tgt_in, memory, src, cache, **self._padding(src))

    def _padding(self, src):
        return {} if self.padded else {"padding": np.zeros(np.shape(src), bool)}

    def __getattr__(self, name):
        return getattr(self.model, name)

    def __call__(self, *args, **kwargs):
        return self.model(*args, **kwargs)


def _exclude(model, scores):
    """The scores (B, V) of the next token, with −∞ for the tokens that the model excludes."""
    excluded = getattr(model, "excluded", [])
    if excluded:
        scores = scores.copy()
        scores[:, excluded] = -np.inf
    return scores


class _Decoder:
    """The decoder on a growing target: `step(tokens)` takes the newest tokens (B,) and returns log p of the next token,
    (B, V). Without a cache every step runs over the whole target again, with the same result.
    """

    def __init__(self, model, src, use_cache):
        self.model, self.src = model, src
        self.memory = model.encode(src)  # (B, S, D)
        self.cache = DecoderCache(len(model.decoder)) if use_cache else None
        self.tgt_in = np.empty((len(src), 0), int)

    def step(self, tokens):
        self.tgt_in = np.concatenate([self.tgt_in, tokens[:, None]], axis=1)
        new = self.tgt_in if self.cache is None else tokens[:, None]
        logits = self.model.decode(new, self.memory, self.src, self.cache)[:, -1]  # (B, V)
        return _exclude(self.model, log_softmax(_finite(logits, self.tgt_in.shape[1])))

    def select(self, rows):
        self.memory, self.src, self.tgt_in = self.memory[rows], self.src[rows], self.tgt_in[rows]
        if self.cache is not None:
            self.cache.select(rows)


def _finite(logits, step=None):
    """The logits (..., V); ValueError if a row has no token to choose. A single −inf marks an excluded token."""
    if not np.isfinite(logits.max(axis=-1)).all():  # NaN is larger than any number here
        where = "" if step is None else f" of step {step}"
        raise ValueError(f"the logits{where} are not finite: a weight of the model is not, or its values overflow")
    return logits


def log_softmax(logits):
    """log p over the last axis, without the underflow of log(softmax)."""
    logits = as_float_array(logits, "logits")
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def greedy_steps(model, src, max_len=64, use_cache=True):
    """Decode greedily and yield every time step as (tokens (B,), log_probs (B, V)): the chosen tokens and the
    distribution they were chosen from. Stops when every row has produced the end token, or after max_len steps.

    A finished row repeats the end token. Raises ValueError at the first step for ids out of range, a src that is not
    (B, S), and a max_len below 1 or above the model's.
    """
    check_flag("use_cache", use_cache)
    src = _check(model, src, max_len)
    config = model.config
    with model.evaluating():
        decoder = _Decoder(model, src, use_cache)
        tokens = np.full(len(src), config.bos_id)
        ended = np.zeros(len(src), bool)
        for _ in range(max_len):
            log_probs = decoder.step(tokens)  # (B, V)
            tokens = np.where(ended, config.eos_id, log_probs.argmax(axis=-1))
            yield tokens, log_probs
            ended |= tokens == config.eos_id
            if ended.all():
                return


def greedy_decode(model, src, max_len=64, use_cache=True, return_log_probs=False):
    """Translate by choosing the most likely token at every step, until the end token or max_len tokens, counted with
    the end token, without the start token.

    src (B, S)  ->  one list of ids per row, without start and end tokens; with return_log_probs also log p of each
    whole output in nats, including the end token, (B,)
    use_cache=False gives the decoder the whole target again at every step; the results are the same

    The model is called inside `with model.evaluating():`, without dropout: memory = model.encode(src), and then
    model.decode(ids, memory, src) gives the logits of each next token, ids (B, T) -> (B, T, V). A target starts with
    model.config.bos_id and ends with model.config.eos_id.
    """
    check_flag("return_log_probs", return_log_probs)
    outputs = []
    for tokens, log_probs in greedy_steps(model, src, max_len, use_cache):
        if not outputs:
            outputs = [[] for _ in tokens]
            totals = np.zeros(len(tokens))
            alive = np.ones(len(tokens), bool)
        totals += np.where(alive, log_probs[np.arange(len(tokens)), tokens], 0)
        alive &= tokens != model.config.eos_id
        for row in np.flatnonzero(alive):
            outputs[row].append(int(tokens[row]))
    return (outputs, totals) if return_log_probs else outputs


@dataclass(frozen=True)
class Hypothesis:
    """A candidate translation of beam search: its ids without start and end tokens, log p in nats, and the score it is
    ranked by, log p / length penalty."""

    ids: list
    log_prob: float
    score: float


def beam_search(model, src, beam_size=4, max_len=64, length_penalty=0.6, use_cache=True, return_hypotheses=False):
    """Translate by keeping the beam_size most likely beginnings at every step.

    A hypothesis is ranked by log p / ((5 + length)/6)^length_penalty (Wu et al. 2016, eq. 14). The length includes the
    end token; length_penalty 0 ranks by probability alone. A finished hypothesis keeps its place in the beam until the
    end, even if later ones are likelier: beside n finished ones, beam_size − n others go on. The search ends when all
    are finished. At max_len, unfinished hypotheses are ranked with the others. beam_size 1 is greedy decoding.

    src (B, S)  ->  one list of ids per row; with return_hypotheses a list of Hypothesis(ids, log_prob, score) per row:
    all in the beam at the end, best first. `from transformer_np.decoding import Hypothesis`
    use_cache=False gives the decoder the whole target again at every step; the results are the same

    The model is called as by greedy_decode.
    """
    src = _check(model, src, max_len)
    check_flag("use_cache", use_cache)
    check_flag("return_hypotheses", return_hypotheses)
    check_at_least("beam_size", beam_size, 1)
    check_number("length_penalty", length_penalty, "[0, 10]")
    V = model.config.tgt_vocab_size
    widest = beam_size if beam_size < V or max_len > 64 else min(beam_size, V ** (max_len - 1))
    check_memory(f"beam_size = {beam_size}", 8 * widest * V)
    with model.evaluating():
        found = [_search_row(model, row, beam_size, max_len, length_penalty, use_cache) for row in src[:, None]]
    return found if return_hypotheses else [hypotheses[0].ids for hypotheses in found]


def _search_row(model, src, beam_size, max_len, length_penalty, use_cache):
    """All hypotheses for one source sentence, src (1, S), best first."""
    bos_id, eos_id = model.config.bos_id, model.config.eos_id

    def hypothesis(ids, log_prob, length):
        return Hypothesis(ids, log_prob, log_prob / ((5 + length) / 6) ** length_penalty)

    decoder = _Decoder(model, src, use_cache)
    tokens, totals, beams, ended = np.array([bos_id]), np.zeros(1), [[]], []
    for length in range(1, max_len + 1):
        candidates = totals[:, None] + decoder.step(tokens)  # (beams alive, V)
        vocab_size = candidates.shape[1]
        best = np.argsort(-candidates, axis=None, kind="stable")[: beam_size - len(ended)]
        rows, tokens = best // vocab_size, best % vocab_size
        totals = candidates[rows, tokens]
        alive = tokens != eos_id
        ended += [
            hypothesis(beams[row], float(total), length)
            for row, total in zip(rows[~alive], totals[~alive], strict=True)
        ]
        beams = [[*beams[row], int(token)] for row, token in zip(rows[alive], tokens[alive], strict=True)]
        rows, tokens, totals = rows[alive], tokens[alive], totals[alive]
        if not beams:
            break
        decoder.select(rows)
    ended += [hypothesis(ids, float(total), max_len) for ids, total in zip(beams, totals, strict=True)]
    return sorted(ended, key=lambda h: -h.score)


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
    logits = _finite(as_float_array(logits, "logits"))
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
    model,
    prompt,
    max_new_tokens,
    temperature=1.0,
    top_k=None,
    top_p=None,
    rng=None,
    use_cache=True,
    stop_ids=(),
    pad_id=0,
    return_weights=False,
):
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
    model,
    prompt,
    max_new_tokens,
    temperature=1.0,
    top_k=None,
    top_p=None,
    rng=None,
    use_cache=True,
    stop_ids=(),
    pad_id=0,
):
    """Continue a text like `generate` and yield it after every token: ids (B, length), which must not be changed.

    The first is the prompt, cut to the shortest row; the last is the result of `generate`. Raises ValueError at the
    first step for an empty or too long prompt, ids out of range, and options out of range.
    """
    check_at_least("max_new_tokens", max_new_tokens, 0)
    check_at_least("pad_id", pad_id, -MOST)
    check_flag("use_cache", use_cache)
    sampling_distribution(np.zeros(1), temperature, top_k, top_p)  # raises for wrong options before the work begins
    check_kind("model", model, (Module, Excluding))
    config, rng, stop_ids = model.config, as_rng(rng), as_text_ids(list(stop_ids), "stop_ids")
    rows = [as_ids(row, config.vocab_size, "prompt") for row in prompt]
    if not rows:
        raise ValueError("prompt is empty: it must have at least one row")
    if any(row.ndim != 1 for row in rows):
        raise ValueError(f"prompt must have the axes (batch, length), a row has shape {rows[0].shape}")
    lengths = np.array([len(row) for row in rows])
    most = getattr(config, "max_len", None)
    if most is not None and lengths.max() > most:
        raise ValueError(f"prompt is {lengths.max()} tokens long, more than the model's context max_len = {most}")
    check_memory(f"max_new_tokens = {max_new_tokens}", 8 * len(rows) * (int(lengths.max()) + max_new_tokens))
    ids = np.full((len(rows), lengths.max() + max_new_tokens), pad_id)
    for row, given in zip(ids, rows, strict=True):
        row[: len(given)] = given
    stopped = np.zeros(len(rows), bool)
    with model.evaluating():
        read = model.reader(use_cache) if hasattr(model, "reader") else _reader(model, use_cache)
        yield ids[:, : lengths.min()]
        for end in range(lengths.min(), ids.shape[1]):
            logits = _exclude(model, _finite(read(ids[:, :end]), end - lengths.min() + 1))  # (B, V)
            drawn = _draw(sampling_distribution(logits, temperature, top_k, top_p), rng)
            writing = (end >= lengths) & ~stopped  # inside a longer prompt, its own token comes next
            ids[writing, end] = drawn[writing]
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


def _check(model, src, max_len):
    check_kind("model", model, (Module, Excluding))
    check_at_least("max_len", max_len, 1)
    if max_len > model.config.max_len:
        raise ValueError(f"max_len is {max_len}, more than the model's max_len = {model.config.max_len}")
    src = as_ids(src, model.config.src_vocab_size, "src")
    if src.ndim != 2:
        raise ValueError(f"src must have the axes (batch, length), got shape {src.shape}")
    return src
