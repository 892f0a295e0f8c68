"""Greedy and beam search: from a source sentence to the most likely target."""

from dataclasses import dataclass

import numpy as np

from ..module import Module
from ..support.checks import as_rows, check_at_least, check_flag, check_has, check_kind, check_number
from ..support.memory import check_memory
from .cache import DecoderCache
from .scores import Excluding, exclude, finite, log_softmax


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
        return exclude(self.model, log_softmax(finite(logits, self.tgt_in.shape[1])))

    def select(self, rows):
        self.memory, self.src, self.tgt_in = self.memory[rows], self.src[rows], self.tgt_in[rows]
        if self.cache is not None:
            self.cache.select(rows)


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
        best = best[candidates.reshape(-1)[best] > -np.inf]  # not an excluded token, where few others are left
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


def _check(model, src, max_len):
    check_kind("model", model, (Module, Excluding))
    check_has("model", model, "config.src_vocab_size", "encode", "decode")
    check_at_least("max_len", max_len, 1)
    if max_len > model.config.max_len:
        raise ValueError(f"max_len is {max_len}, more than the model's max_len = {model.config.max_len}")
    return as_rows(src, model.config.src_vocab_size, "src")
