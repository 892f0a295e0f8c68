"""What is told of a wrong answer: mistakes, cases, crashes, and nothing that is untrue."""

import numpy as np
import pytest
from wrong_answers import wrong_answers

from transformer_np.homework.guard import UNSET

# --- what is said of one mistake --------------------------------------------------------------------------------------

ALONE = wrong_answers("""
--- off by one
says: Off by one: `1` is one too large here.
def repeat_heads_backward(dy, repeats):
    dx = np.zeros_like(dy[:, ::repeats])
    for j in range(1, repeats):
        dx += dy[:, j::repeats]
    return dx

--- lists in a list that a copy shares
says: of lists in a list, list(…) makes only the outer one new.
from transformer_np.data import bpe

def learn_merges(words, counts, num_merges, first_id, min_count=2):
    words, merges = list(words), bpe.learn_merges(words, counts, num_merges, first_id, min_count)
    for word in words:
        word[:] = bpe.apply_merges(word, {pair: first_id + n for n, pair in enumerate(merges)})
    return merges

--- an axis at the end for any axis
says: `total[..., None]` adds an axis at the end, which is right for the last `axis` only
def softmax_backward(dy, y, axis=-1):
    total = (dy * y).sum(axis)
    return y * (dy - total[..., None])

--- a helper that is called without two arguments
says: One change in line @ makes it right:
from transformer_np import functional as F

def _turned(x, positions, theta=10000.0, scaling=None, adjacent=False):
    return F.rotary(x, positions, theta, scaling, adjacent)

def rotary_backward(dy, positions, theta=10000.0, scaling=None, adjacent=False):
    return _turned(dy, -np.asarray(positions), adjacent=adjacent)  # shown

--- one array in every place of a list
says: A mistake is in lines @, or shows there:
def rnn(x, w_x, w_h, b=None):
    given, states = x @ w_x + (0 if b is None else b), []
    state = np.zeros_like(given[:, 0])
    for t in range(x.shape[1]):
        np.tanh(given[:, t] + state @ w_h, out=state)
        states.append(state)  # shown
    return np.array(states).transpose(1, 0, 2)  # shown

--- a mask after those before it are lost
says: Look at line @:
def attention_scores(q, k, mask=None):
    scores = result = q @ np.swapaxes(k, -1, -2) / q.shape[-1] ** 0.5
    for m in () if mask is None else mask if isinstance(mask, tuple) else (mask,):
        if m.dtype == bool:
            result = np.where(m, -np.inf, scores)  # shown
        else:
            result = scores + m
    return result

--- a mask as an index
says: it is not broadcast. np.where(mask, …, …) broadcasts.
def attention_scores(q, k, mask=None):
    scores = q @ np.swapaxes(k, -1, -2) / q.shape[-1] ** 0.5
    for m in () if mask is None else mask if isinstance(mask, tuple) else (mask,):
        if m.dtype == bool:
            scores[m] = -np.inf
        else:
            scores = scores + m
    return scores

--- that the whole array is asked and not each row is told
says: Only an array of nothing but −inf gets weights of 0.
def softmax(x, axis=-1):
    if np.isneginf(x).all():
        return np.zeros_like(x)
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)

--- a strict comparison is told by what it leaves out
says: `place > 0` is wrong where both sides are equal.
def causal_conv1d(x, w, b=None, dilation=1):
    y = np.zeros((*x.shape[:2], w.shape[2]), dtype=x.dtype)
    for t in range(x.shape[1]):
        for j in range(len(w)):
            place = t - j * dilation
            if place > 0:
                y[:, t] += x[:, place] @ w[j]
    return y if b is None else y + b

--- a root of a size is missing
says: The factor 1/√K is missing.
def scaled_dot_product_attention_backward(dout, q, k, v, weights):
    da = dout @ v.swapaxes(-1, -2)
    ds = weights * (da - (da * weights).sum(-1, keepdims=True)) / np.sqrt(q.shape[-1])
    return ds @ k, ds.swapaxes(-1, -2) @ q, weights.swapaxes(-1, -2) @ dout * q.shape[-1] ** 0.5

--- a root of a size is too many
says: There is a factor 1/√K too many.
def scaled_dot_product_attention_backward(dout, q, k, v, weights):
    da = dout @ v.swapaxes(-1, -2)
    ds = weights * (da - (da * weights).sum(-1, keepdims=True)) / np.sqrt(q.shape[-1])
    return ds @ k, ds.swapaxes(-1, -2) @ q, weights.swapaxes(-1, -2) @ dout * q.shape[-1] ** -0.5

--- a factor of sizes and of an argument
says: `db` is 1/(B·T·scale) times the right result.
def lora_backward(dy, x, low, a, b, scale):
    d, rows = dy * scale, x.size // x.shape[-1]
    dlow = d @ b.T
    flat = lambda array: array.reshape(rows, -1)
    return dlow @ a.T, flat(x).T @ flat(dlow) / rows, flat(low).T @ flat(dy) / rows

--- a value for 1 minus it
says: The results are right with 1 minus the value of `p` in its place.
def dropout_backward(dy, keep, p):
    with np.errstate(all="ignore"):
        return np.where(keep, dy / p, 0).astype(dy.dtype)

--- another function
says: `mean` is not the function that belongs here.
def softmax_backward(dy, y, axis=-1):
    weighted = dy * y
    return weighted - y * (dy * y).mean(axis=axis, keepdims=True)

--- brackets around a sum before a quotient are missing
named: brackets
repair: return (x + np.abs(x)) / 2
def relu(x):
    return x + np.abs(x) / 2

--- what stands before `with model.evaluating():`  # release
says: The sources are encoded before `with model.evaluating():`
def greedy_decode(model, src, max_len=64, use_cache=True, return_log_probs=False):
    memory, c = model.encode(src), model.config
    outputs, totals = [], np.zeros(len(src))
    with model.evaluating():
        for b in range(len(src)):
            ids = [c.bos_id]
            while len(ids) <= max_len and c.eos_id not in ids:
                logits = model.decode(np.array([ids]), memory[b : b + 1], src[b : b + 1])[0, -1]
                totals[b] += logits.max() - np.logaddexp.reduce(logits)
                ids.append(int(logits.argmax()))
            outputs.append([i for i in ids[1:] if i != c.eos_id])
    return (outputs, totals) if return_log_probs else outputs

--- a tuple of two results in place of one
says: Is it a tuple of several results, of which one is meant?
not: In this case (2,) is
def feed_forward(x, w1, b1, w2, b2):
    def hidden(x):
        h = x @ w1 + b1
        return h[..., :1], np.maximum(h, 0)

    return np.array(hidden(x)) @ w2 + b2, hidden(x)[1]

--- parameters of another function, whose only line never runs
says: The answer has the parameters (x, y), but the exercise has (x).
not: Look at
def relu(x, y):
    return np.maximum(x, 0)

--- a function of math for an array
says: NumPy's own, such as np.exp for math.exp, take whole arrays.
not: Look at
import math

def tanh(x):
    return 1 - 2 / (math.exp(2 * x) + 1)

--- a call of itself, of which a few lines are shown
named: endless recursion
says: The function calls itself
not: repeated
def relu(x):
    return relu(x)

--- a class in place of an object
says: Is an object of it meant, softmax(…)?
class softmax:
    def __call__(self, x, axis=-1):
        return x

--- an array as a key
says: @lru_cache and @cache keep their results in a dict
from functools import lru_cache

@lru_cache
def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)

--- a view that reaches outside of its array is refused
named: a view outside of its array
says: reads memory that belongs to others
from numpy.lib.stride_tricks import as_strided

def causal_conv1d(x, w, b=None, dilation=1):
    (B, T, D), reach = x.shape, (len(w) - 1) * dilation
    x = np.concatenate([np.zeros((B, reach, D)), x], axis=1)
    windows = as_strided(x, (B, T, len(w), D), (x.strides[0], x.strides[1] * dilation, *x.strides[1:]))
    return np.einsum("btji,jio->bto", windows, w[::-1]) + (0 if b is None else b)

--- no edit reads outside of an array
says: order
def causal_conv1d(x, w, b=None, dilation=1):
    (B, T, D), k = x.shape, len(w)
    x = np.concatenate([np.zeros((B, (k - 1) * dilation, D)), x], axis=1)
    strides = x.strides[0], x.strides[1], x.strides[1] * dilation, x.strides[2]
    windows = np.lib.stride_tricks.as_strided(x, (B, T, k, D), strides)
    return np.einsum("btji,jio->bto", windows, w) + (0 if b is None else b)

--- a tuple of one
outcome: wrong shape
named: returns a tuple of one
def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return (e / e.sum(axis, keepdims=True),)

--- results in another order alone are told
outcome: wrong shape
says: order
not: is left
def scaled_dot_product_attention_backward(dout, q, k, v, weights):
    da = dout @ v.swapaxes(-1, -2)
    ds = weights * (da - (da * weights).sum(-1, keepdims=True)) / np.sqrt(q.shape[-1])
    found = {"dv": weights.swapaxes(-1, -2) @ dout, "dk": ds.swapaxes(-1, -2) @ q}
    return ds @ k, *found.values()

--- an option that is changed
says: It changes mask,
from transformer_np import functional as F

def attention_scores(q, k, mask=None):
    scores = F.attention_scores(q, k, mask)
    for m in () if mask is None else mask if isinstance(mask, tuple) else (mask,):
        m[...] = 0
    return scores

--- the first result for each shape is the result of an earlier call
named: the result of an earlier call
from transformer_np import functional as F

kept = {}

def merge_heads(x):
    return kept.setdefault(x.shape, F.merge_heads(x))

--- rng is not spoken of where there is none  # release
says: It draws from the global random numbers
not: rng
from transformer_np import decoding

def greedy_decode(model, src, max_len=64, use_cache=True, return_log_probs=False):
    np.random.random()
    return decoding.greedy_decode(model, src, max_len, use_cache, return_log_probs)

--- a changed argument is no wrong value
says: relu: The results are right, but
not: wrong value
def relu(x):
    x[x < 0] = 0
    return x

--- np.empty of which the last column is left
says: `encoding` has entries that no line has set
from numpy import empty

def sinusoidal_encoding(length, d_model, dtype=np.float32):
    encoding = empty((length, d_model), dtype)
    for i in range(d_model // 2):
        angle = np.arange(length) / 10000 ** (2 * i / d_model)
        encoding[:, 2 * i], encoding[:, 2 * i + 1] = np.sin(angle), np.cos(angle)
    return encoding

--- np.empty to which a loop adds
says: `dtable` has entries that no line has set
says: One change in line @ makes it right:
def embedding_backward(dy, ids, num_embeddings):
    dtable = np.empty((num_embeddings, dy.shape[-1]), dy.dtype)  # shown
    for i, row in zip(np.ravel(ids), dy.reshape(-1, dy.shape[-1])):
        dtable[i] += row
    return dtable
""")

# --- several mistakes in one answer -----------------------------------------------------------------------------------

TOGETHER = wrong_answers("""
--- a second mistake whose results are those of the first, times a factor  # release
named: softmax backward over the queries and 1/√d_v instead of 1/√d_k
def scaled_dot_product_attention_backward(dout, q, k, v, weights):
    part = (dout @ v.swapaxes(-1, -2)) * weights
    scores = part - weights * part.sum(-2, keepdims=True)
    scores = scores / np.sqrt(v.shape[-1]).astype(q.dtype)
    return scores @ k, scores.swapaxes(-1, -2) @ q, weights.swapaxes(-1, -2) @ dout

--- a second mistake that shows with masks only  # release
named: query of the cross-attention is the block's input and memory_mask ignored
from transformer_np.layers import blocks

class DecoderBlock(blocks.DecoderBlock):
    def forward(self, x, memory, mask=None, memory_mask=None, cache=(None, None)):
        a = self.add_norm1(x, lambda y: self.self_attention(y, mask=mask, cache=cache[0]))
        b = self.add_norm2(a, lambda y: self.cross_attention(x, memory, cache=cache[1]))
        return self.add_norm3(b, self.feed_forward)

--- a mistake beside a named one has its text too
says: are not divided by N
says: dcenter lacks the negatives
def negative_sampling_loss_backward(center, context, negatives, p_context, p_negatives, dloss=1.0):
    ds, dn = dloss * (p_context - 1), dloss * p_negatives
    return ds[:, None] * context, ds[:, None] * center, dn[:, :, None] * center[:, None, :]

--- caches are asked for without masks too  # release
outcome: crashed
named: the two masks swapped and caches ignored
from transformer_np.layers import blocks

class DecoderBlock(blocks.DecoderBlock):
    def forward(self, x, memory, mask=None, memory_mask=None, cache=(None, None)):
        a = self.add_norm1(x, lambda y: self.self_attention(y, mask=memory_mask))
        b = self.add_norm2(a, lambda y: self.cross_attention(y, memory, mask=mask))
        return self.add_norm3(b, self.feed_forward)

--- a mistake that two others explain is not told
once: dloss`
named: negatives averaged and dloss not used
def negative_sampling_loss_backward(center, context, negatives, p_context, p_negatives, dloss=1.0):
    ds, dsk = (p_context - 1)[:, None] / len(center), p_negatives[:, :, None] / p_negatives.size
    return ds * context + (dsk * negatives).sum(1), ds * center, dsk * center[:, None, :]

--- a pair is tried if one of it shows in a later draw only  # release
named: the smallest ids first and merged from right to left
def apply_merges(ids, merges):
    ids = list(ids)
    while pairs := {pair for pair in zip(ids, ids[1:]) if pair in merges}:
        pair = min(pairs)
        for i in range(len(ids) - 2, -1, -1):
            if tuple(ids[i : i + 2]) == pair:
                ids[i : i + 2] = [merges[pair]]
    return ids

--- of two mistakes in two branches each is told although another case has a third
says: The warm-up starts from min_lr
says: 180 · progress, in degrees
def cosine_schedule(step, max_lr, min_lr, warmup, total):
    if step < warmup:
        return min_lr + (max_lr - min_lr) * step / warmup
    angle = 180 * step / total
    return min_lr + (max_lr - min_lr) * (1 + np.cos(angle)) / 2

--- two mistakes that no code makes together are told of their cases
says: 2i/(d_model − 2)
says: 2i/(d_model − 1)
def sinusoidal_encoding(length, d_model, dtype=np.float32):
    exponents = np.linspace(0.0, 1.0, (d_model + 1) // 2)
    angles = np.arange(length)[:, None] / 10000.0**exponents
    table = np.zeros((length, d_model), dtype=dtype)
    table[:, 0::2], table[:, 1::2] = np.sin(angles), np.cos(angles[:, : d_model // 2])
    return table

--- a mistake in one branch beside one in all
says: dy is before 1 + g only: a bracket is missing
says: In g′ there is x where it is x²
not: This shows
import math

def gelu_backward(dy, x, approximate="tanh"):
    if approximate == "none":
        g, slope = np.vectorize(math.erf)(x / 2**0.5), np.exp(-x * x / 2) * (2 / np.pi) ** 0.5
    else:
        g = np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3))
        slope = (1 - g**2) * (2 / np.pi) ** 0.5 * (1 + 3 * 0.044715 * x)
    return dy * (1 + g) / 2 + x * slope / 2

--- several mistakes, each with its cases
named: top_k ignored and top_p not used and temperature 0 is not the likeliest token
says: logits / 0 is infinite
says: This shows with temperature=0 and with temperature=0 among equally likely tokens.
from transformer_np import functional as F

def sampling_distribution(logits, temperature=1.0, top_k=None, top_p=None):
    unused = top_k, top_p
    return F.softmax(logits / temperature)

--- a mask inverted and without its axes
named: (B, S), inverted
not: keepdims
def padding_mask(ids, pad_id):
    return ids != pad_id

--- a mistake beside a result of a wrong shape  # release
says: The factor 1 − h_t² multiplies dh_t only
def rnn_backward(dh, x, h, w_x, w_h):
    da = dh * (1 - h * h)
    for t in range(dh.shape[1] - 2, -1, -1):
        da[:, t] += da[:, t + 1] @ w_h.T
    previous = np.concatenate([np.zeros_like(h[:, :1]), h[:, :-1]], axis=1)
    dw_x, dw_h = (np.einsum("bti,btd->id", a, da) for a in (x, previous))
    return da @ w_x.T, dw_x, dw_h, da.sum(axis=0)

--- all calls that must raise, beside a mistake
says: 2 times
says: Also: With theta=0, with theta=-1 and with an unknown scaling: it must raise ValueError
from transformer_np import functional as F

def rotary_frequencies(K, theta=10000.0, scaling=None):
    known = scaling is None or scaling["rope_type"] in ("linear", "llama3")
    return 2 * F.rotary_frequencies(K, abs(theta) or 1.0, scaling if known else None)

--- nothing but calls that must raise
says: With theta=0: it must raise ValueError, as its docstring says, but it raised ZeroDivisionError.
says: With theta=-1: it must raise ValueError, as its docstring says, but it returned a result.
from transformer_np import functional as F

def rotary_frequencies(K, theta=10000.0, scaling=None):
    if theta == 0:
        return 1 / theta
    return F.rotary_frequencies(K, abs(theta), scaling)

--- what a named mistake does not explain is told by its case  # release
says: this one alone gives other numbers for `out` and `weights` with a finite float mask.
from transformer_np.functional import softmax

def unscaled_attention(q, k, v, bias=None, mask=None):
    scores = q @ k.swapaxes(-1, -2)
    if bias is not None:
        scores = scores + bias[None]
    for one in mask if isinstance(mask, tuple) else () if mask is None else (mask,):
        scores = np.where(one, -1e9, scores)
    weights = softmax(scores)
    return weights @ v, weights

--- another mistake where the named one makes no difference is not hidden  # release
says: The logits are multiplied by the temperature.
not: another mistake
from transformer_np import decoding

def sampling_distribution(logits, temperature=1.0, top_k=None, top_p=None):
    right = decoding.sampling_distribution(logits, 1 / temperature if temperature else 0, top_k, top_p)
    return right if top_k is None else right * np.array(0.9, right.dtype)
""")

# --- in which calls ---------------------------------------------------------------------------------------------------

CASES = wrong_answers("""
--- what is described holds in one case only
says: In the plain case: `change` has the wrong sign
def head_attribution(dz, z, num_heads, z_new=None):
    change = dz * (z if z_new is None else z_new - z)
    return change.reshape(len(z), num_heads, -1).sum((0, 2))

--- an argument that nothing reads is asked for by its values
says: is it used, and compared with `==`?
def gelu(x, approximate="tanh"):
    return x / 2 * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3)))

--- max of Python is no condition
says: Only the case with x of shape (D,) is right.
says: np.maximum(a, b)
not: `if`
def relu(x):
    return np.array([max(0.0, row) for row in x], dtype=x.dtype)

--- the smallest call has its case only where the plain one is right
says: In the call tanh_backward(dy=
not: of one axis
def tanh_backward(dy, y):
    return dy - np.square(np.sinh(y))

--- of wrong results, those of all cases and also of an unread parameter  # release
says: Wrong: dk, and in other cases dq and dv.
from transformer_np import functional as F

def window_attention_backward(dout, q, k, v, weights, window, causal=False):
    dq, dk, dv = F.window_attention_backward(dout, q, k, v, weights, weights.shape[-1] // 2)
    return dq, dk * q.shape[-1] ** 0.5, dv

--- a call with many arrays is told by their shapes  # release
def negative_sampling_loss_backward(center, context, negatives, p_context, p_negatives, dloss=1.0):
    x = np.cos(center) * 3.1
    return x, np.sin(context) + 2.7, np.cos(negatives) - 1.3

--- one array for several results is told once
once: It must return 2 values
def feed_forward(x, w1, b1, w2, b2):
    return (x @ w1 + b1) @ w2 + b2
""")

# --- crashes, and what is not written ---------------------------------------------------------------------------------

CRASHES = wrong_answers("""
--- a method of nothing but dots
outcome: not started
says: not started: its backward is not written yet.
from transformer_np.layers import blocks

class AddNorm(blocks.AddNorm):
    def forward(self, x, sublayer):
        return x

    def backward(self, dout, sublayer_backward): ...

--- a block is written, and not the one that it calls
outcome: not started
says: EncoderBlock: not started: it calls AddNorm, which is not written yet. It is right as soon as your AddNorm is.
from transformer_np.layers import blocks

class AddNorm(blocks.AddNorm):
    def forward(self, x, sublayer):
        raise NotImplementedError

    def backward(self, dout, sublayer_backward):
        raise NotImplementedError

class EncoderBlock(blocks.EncoderBlock):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, norm_first=False, activation="relu", eps=1e-5, **more):
        super().__init__(d_model, num_heads, d_ff, dropout, norm_first, activation, eps, **more)
        self.add_norm1, self.add_norm2 = (AddNorm(d_model, dropout, norm_first, eps, **more) for _ in range(2))

    def forward(self, x, mask=None, cache=None):
        a = self.add_norm1(x, lambda x: self.attention(x, mask=mask, cache=cache))
        return self.add_norm2(a, self.feed_forward)

--- an exception in another line is told too
says: crashed. ValueError
once: ValueError
says: KeyError: there is no 'a word'
def softmax(x, axis=-1):
    if np.isneginf(x).any():
        raise KeyError("a word")
    B, S = x.shape
    return np.exp(x) / np.exp(x).sum(axis, keepdims=True)

--- a mistake that does not explain all comes before the crash of another case  # release
says: ValueError
def text_windows(ids, block_size, batch_size, rng):
    starts = rng.integers(2, len(ids) - block_size, size=batch_size)
    inputs = ids[starts[:, None] + np.arange(block_size)]
    return inputs, np.roll(inputs, -1, axis=1)

--- zeros beside a crash are not called all zeros
not: all zeros
def causal_conv1d_backward(dy, x, w, dilation=1):
    dx, dw = np.zeros_like(x), np.zeros_like(w)
    for j in range(len(w)):
        s = j * dilation
        dx[:, :-s] += dy[:, s:] @ w[j].T
        dw[j] = np.einsum("bti,bto->io", x[:, :-s], dy[:, s:])
    return dx, dw, dy.sum((0, 1))

--- only the first exception comes with advice
says: Count axes from the end
says: is ambiguous
not: np.where
def embedding(ids, table):
    y = np.zeros((ids.shape[0], ids.shape[1], table.shape[1]), dtype=table.dtype)
    for i, j in np.ndindex(y.shape[:2]):
        if ids[i, j] > 0:
            y[i, j] = table[ids[i, j]]
    return y

--- the frames of numpy are not the students
says: crashed
not: .pyx
def text_windows(ids, block_size, batch_size, rng):
    start = rng.integers(0, len(ids) - 10**9, size=batch_size)
    return ids[start], ids[start]

--- a package that is not there
says: No module named 'not_installed'. File
says: NumPy alone
not: line makes
not: arrays of this case
def gelu(x, approximate="tanh"):
    from not_installed.special import erf
    return 0.5 * x * (1 + erf(x / np.sqrt(2)))

--- parameters in another order beside another mistake
says: crashed. IndexError
says: The parameters are in the wrong order: the exercise has (table, buckets).
not: astype
named: order of parameters
def relative_position_bias(buckets, table):
    return table[buckets]

--- an axis that is missing in the middle  # release
says: without axis 1
says: np.expand_dims(x, 1)
def negative_sampling_loss(center, context, negatives):
    p_context, p_negatives = (1 / (1 + np.exp(-(center * x).sum(-1))) for x in (context, negatives))
    return -np.mean(np.log(p_context) + np.log(1 - p_negatives).sum(-1)), p_context, p_negatives

--- an argument that is left out is None, whatever its size is in this case
says: In this case S is None.
not: sizes in this case
def causal_mask(T, S=None):
    return ~np.tri(T, S, S - T, bool)

--- None of a helper, beside an argument that is None too
says: without `return`?
not: mask is None
def softmax_of(scores):
    e = np.exp(scores - scores.max(-1, keepdims=True))
    e / e.sum(-1, keepdims=True)

def scaled_dot_product_attention(q, k, v, mask=None):
    weights = softmax_of(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
    return weights @ v, weights

--- a parameter with the name of a function
says: has a parameter or a variable the same name?
def mask(n):
    return np.where(np.tri(n, dtype=bool), 0, -np.inf)

def attention_scores(q, k, mask=None):
    return q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]) + mask(q.shape[-2])

--- an axis of length 0 is told  # release
says: one number of a mask for all keys
says: An array here has an axis of length 0
from transformer_np import functional as F

def tiled_attention(q, k, v, mask=None, tile=64):
    for m in () if mask is None else mask if isinstance(mask, tuple) else (mask,):
        for start in range(0, k.shape[-2], tile):
            scores = q @ np.swapaxes(k[..., start : start + tile, :], -1, -2)
            scores = np.where(m[..., start : start + tile], -np.inf, scores)
    return F.tiled_attention(q, k, v, mask, tile)
""")

# --- what would not be true -------------------------------------------------------------------------------------------

UNTRUE = wrong_answers("""
--- where all is dropped a block is not called right  # release
says: The residual x is added twice
not: right with dropout
from transformer_np.layers import blocks

class EncoderBlock(blocks.EncoderBlock):
    def forward(self, x, mask=None, cache=None):
        a = self.add_norm1(x, lambda z: z + self.attention(z, mask=mask, cache=cache))
        return self.add_norm2(a, lambda z: z + self.feed_forward(z))

--- beside a named mistake no line is shown that only reads what is wrong  # release
says: The future is not hidden
not: Look at
from transformer_np.functional import softmax

def relative_attention(q, k, v, r, content_bias, position_bias, mask=None):
    T, S = q.shape[2], k.shape[2]
    if S < T:
        raise ValueError("fewer keys than queries")
    scores = np.zeros((*q.shape[:2], T, S), q.dtype)
    for b, h in np.ndindex(q.shape[:2]):
        content = (q[b, h] + content_bias[h]) @ k[b, h].T
        position = (q[b, h] + position_bias[h]) @ r[h].T
        for t in range(T):
            position[t] = np.roll(position[t], t + 1 - T)
        scores[b, h] = (content + position) / np.sqrt(q.shape[-1])
    for m in mask if isinstance(mask, tuple) else () if mask is None else (mask,):
        scores = np.where(m, -np.inf, scores) if m.dtype == bool else scores + m
    weights = softmax(scores)
    return weights @ v, weights

--- a right extended case contradicts no mistake of the core, and its values are no place
named: each parameter by itself
says: Only the cases with a norm below max_norm, with a norm below 1
def clip_grad_norm(parameters, max_norm):
    norms = [np.linalg.norm(p.grad) for p in parameters]  # not shown
    total = np.linalg.norm(norms)
    for p, norm in zip(parameters, norms):
        if norm > max_norm and np.isfinite(total):
            p.grad *= max_norm / norm
    return total

--- a mistake with another shape is not named where the shape is right  # release
outcome: wrong value
named:
def text_windows(ids, block_size, batch_size, rng):
    places = rng.integers(len(ids) - 1, size=(batch_size, block_size))
    return ids[places], ids[places + 1]

--- a result that nothing explains is not left without a word
says: dgamma is Σ dx̂ · x̂
says: There may be another mistake: this one alone gives other numbers for `dx`.
from transformer_np import functional as F

def layer_norm_backward(dy, x_hat, inv_std, gamma):
    dx, dgamma, dbeta = F.layer_norm_backward(dy, x_hat, inv_std, gamma)
    return np.sin(np.cbrt(dx)), dgamma * gamma, dbeta

--- the second of two mistakes has no name
says: The variance is divided by D − 1
says: There is a second mistake: the results are returned in the wrong order. Two changes make it right
def layer_norm(x, gamma, beta, eps=1e-5):
    inv_std = 1 / np.sqrt(x.var(axis=-1, keepdims=True, ddof=1) + eps)  # shown
    x_hat = (x - x.mean(axis=-1, keepdims=True)) * inv_std
    return x_hat * gamma + beta, inv_std, x_hat  # shown

--- few numbers beside a wrong shape name no mistake
not: probability
def dropout(x, p, rng):
    rng = rng if isinstance(rng, np.random.Generator) else np.random.default_rng(rng)
    keep = rng.random(x.shape[-1]) >= p
    return np.where(keep, x / (1 - p), 0).astype(x.dtype), keep

--- a mistake that a change hides is not named
not: −inf
from transformer_np import functional as F

def attention_scores(q, k, mask=None):
    scores = F.attention_scores(q, k, mask)
    return scores if mask is None else np.tanh(scores)

--- numbers that may be anything are not told
named:
not: must be
from transformer_np import functional as F

def relative_shift(x):
    return np.sin(np.cbrt(F.relative_shift(x)))

--- a number for a variable
says: One of your variables or arguments belongs in place of `0`.
def relative_position_bias_backward(dbias, buckets, num_buckets):
    dtable = np.zeros((num_buckets, len(dbias)), dbias.dtype)
    for h in range(len(dbias)):
        np.add.at(dtable[:, h], buckets, dbias[0])  # shown
    return dtable

--- a dtype is no factor
says: The dtype here is wrong
not: factor
def embedding_backward(dy, ids, num_embeddings):
    grad = np.zeros((num_embeddings, dy.shape[-1]), dtype=ids.dtype)
    for token, row in zip(ids.reshape(-1), dy.reshape(-1, dy.shape[-1])):
        grad[token] = grad[token] + row
    return grad

--- a result that has the name of an argument
says: The returned `x` must have the shape
not: . `x` must
def merge_heads(x):
    return np.concatenate([x[:, h] for h in range(x.shape[1])], axis=1)

--- a factor is no place where 0 would hide what is wrong, and a bound is missing
says: After step `total` the cosine goes on
marks: done
import math

def cosine_schedule(step, max_lr, min_lr, warmup, total):
    if step <= warmup:
        return max_lr * step / warmup
    done = (step - warmup) / (total - warmup)
    return min_lr + (max_lr - min_lr) * 0.5 * (1.0 + math.cos(math.pi * done))

--- a branch that should not run is no place, but its condition is
says: Look at line @:
import math

def gelu(x, approximate="tanh"):
    if approximate:  # shown
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
        part = 0.5 * (1 + np.tanh(inner))
    else:
        part = 0.5 * (1 + np.vectorize(math.erf, otypes=[x.dtype])(x / math.sqrt(2)))
    return x * part

--- what is all wrong has no line  # release
not: line
def layer_norm_backward(dy, x_hat, inv_std, gamma):
    a = np.cos(dy) * gamma
    b = a.max(axis=0) + x_hat
    c = np.tanh(b * inv_std)
    return c * a, c.sum((0, 1)), a.min((0, 1))

--- a function that the student hands on may hold the mistake
says: In decoding
from functools import partial
from transformer_np.layers import blocks

class EncoderBlock(blocks.EncoderBlock):
    def forward(self, x, mask=None, cache=None):
        looks = partial(self.attention.forward, mask=mask)
        for around, inner in ((self.add_norm1, looks), (self.add_norm2, self.feed_forward.forward)):
            x = around.forward(x, inner)  # not shown
        return x

--- an edit that never ends is given up
def apply_merges(ids, merges):
    ids = list(ids)
    for pair in merges:
        i = 0
        while i < len(ids) - 1:
            if (ids[i], ids[i + 1]) == pair:
                ids[i : i + 2] = [merges[pair] + 1]
            i += 1
    return ids
""")


@pytest.mark.parametrize("answer", [*ALONE, *TOGETHER, *CASES, *CRASHES, *UNTRUE])
def test_what_is_told(verdict_on, answer):
    answer.is_told_by(verdict_on(answer.code))


@pytest.mark.parametrize("answer", [answer for answer in ALONE if "np.empty" in answer.id])
def test_numbers_that_np_empty_leaves_are_the_same_everywhere(verdict_on, answer):
    first, second = (verdict_on(answer.code).message for _ in range(2))
    assert first == second
    assert np.empty is vars(np)["empty"]
    assert not np.all(np.empty(1000) == UNSET)


@pytest.mark.parametrize("kind", ["StopIteration", "GeneratorExit", "SystemExit", "RecursionError"])
def test_an_exception_of_the_answer_ends_no_search(verdict_on, kind):
    verdict = verdict_on(f"""
    def tanh_backward(dy, y):
        if dy.ndim == 1:
            raise {kind}
        return dy * (1 - y)
    """)
    assert verdict.line == 6
