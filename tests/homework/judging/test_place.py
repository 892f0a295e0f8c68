"""The lines of a mistake that a message shows."""

import numpy as np
import pytest
from wrong_answers import shown_in, wrong_answers

from transformer_np.homework import all_exercises, checking
from transformer_np.homework.judging import family, search
from transformer_np.homework.judging.objects import MOST_ITEMS
from transformer_np.homework.judging.traced import kept, same
from transformer_np.homework.judging.trials import Trials

# --- an edit makes it right -------------------------------------------------------------------------------------------

EDITS = wrong_answers("""
--- two parameters in each other's place are both marked
marks: beta + gamma
def layer_norm(x, gamma, beta, eps=1e-5):
    centred = x - x.mean(axis=-1, keepdims=True)
    inv_std = 1 / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + eps)
    return centred * inv_std * beta + gamma, centred * inv_std, inv_std

--- two results, each with an index that occurs several times
says: adds only once: use np.add.at. Two changes make it right
named: repeated
def window_attention_backward(dout, q, k, v, weights, window, causal=False):
    T, window = q.shape[-2], min(window, q.shape[-2] - 1)
    s = np.clip(np.arange(T)[:, None] - window + np.arange(weights.shape[-1]), 0, T - 1)
    da = (dout[..., None, :] * v[..., s, :]).sum(-1)
    ds = weights * (da - (da * weights).sum(-1, keepdims=True)) / np.sqrt(q.shape[-1])
    dk, dv = np.zeros_like(k), np.zeros_like(v)
    dk[..., s, :] += ds[..., None] * q[..., None, :]  # shown
    dv[..., s, :] += weights[..., None] * dout[..., None, :]  # shown
    return (ds[..., None] * k[..., s, :]).sum(-2), dk, dv

--- two parameters of a method in each other's place, in its inner functions
says: `memory_mask`, (B, H, T, S), to the cross-attention. Two changes make it right, one in line
from transformer_np.layers import blocks

class DecoderBlock(blocks.DecoderBlock):
    def forward(self, x, memory, mask=None, memory_mask=None, cache=(None, None)):
        a = self.add_norm1(x, lambda h: self.self_attention(h, mask=memory_mask, cache=cache[0]))
        b = self.add_norm2(a, lambda h: self.cross_attention(h, memory, mask, cache[1]))
        return self.add_norm3(b, self.feed_forward)

--- two mistakes, of which one has no name
says: `dbeta` is 1/(B·T) times the right result.
says: Two changes make it right, one in line
def layer_norm_backward(dy, x_hat, inv_std, gamma):
    g, D = dy * gamma, len(gamma)
    along = (g * x_hat).mean(axis=-1, keepdims=True)
    dx = (g - g.mean(axis=-1, keepdims=True) - x_hat * along) / inv_std  # shown
    dgamma = (dy * x_hat).reshape(-1, D).sum(axis=0)
    dbeta = dy.reshape(-1, D).mean(axis=0)  # shown
    return dx, dgamma, dbeta

--- two mistakes in one line
says: Two changes in line @ make it right:
def noam_schedule(step, d_model, warmup):
    return 1 / d_model * min(step**-0.5, step * warmup**-0.5)  # shown

--- a copy of a list, and no copy in each step of a loop
repair: word = ids.copy()
from transformer_np.data import bpe

def apply_merges(ids, merges):
    word = ids
    for pair in sorted(merges, key=merges.get):
        word[:] = bpe.apply_merges(word, {pair: merges[pair]})
    return word

--- a sign that is lost in an absolute value
repair: return (1 - e) / (1 + e) * np.sign(x)
def tanh(x):
    e = np.exp(-2 * np.abs(x))
    return (1 - e) / (1 + e)  # shown

--- a variable that is wrong twice in a line
says: missing in the first of the two means
says: missing in the second of the two means
says: Two changes in line @ make it right
def layer_norm_backward(dy, x_hat, inv_std, gamma):
    g = dy * gamma
    one, two = (a.mean(-1, keepdims=True) for a in (dy, dy * x_hat))  # shown
    sums = [a.reshape(-1, len(gamma)).sum(0) for a in (dy * x_hat, dy)]
    return inv_std * (g - one - x_hat * two), *sums

--- two mistakes, of a place in a loop and of a transpose
says: Two changes make it right
def rnn_backward(dh, x, h, w_x, w_h):
    dx, dw_x, dw_h = np.zeros_like(x), np.zeros_like(w_x), np.zeros_like(w_h)
    db, carry = np.zeros(h.shape[-1]), 0
    for t in reversed(range(h.shape[1])):
        da = (dh[:, t] + carry) * (1 - h[:, t] ** 2)
        dx[:, t], carry = da @ w_x.T, da @ w_h  # shown
        dw_x += x[:, t].T @ da
        dw_h += h[:, t].T @ da if t else 0  # shown
        db += da.sum(0)
    return dx, dw_x, dw_h, db

--- a factor too many
says: The results are right without a factor of `x * sig`.
def silu_backward(dy, x):
    sig = (1 + np.tanh(x / 2)) / 2
    return dy * sig * (1 + x * sig * (1 - sig))  # shown

--- a factor that another line has, in what is appended
repair: dks.append(np.swapaxes(ds, -1, -2) @ q / np.sqrt(q.shape[-1]))
def tiled_attention_backward(dout, q, k, v, out, log_total, mask=None, tile=256):
    delta, dq, dks, dvs = (dout * out).sum(-1, keepdims=True), 0, [], []
    known = np.where(np.isneginf(log_total), 0, log_total)[..., None]
    for s in range(k.shape[-2]):
        one = np.s_[..., s : s + 1, :]
        scores = q @ np.swapaxes(k[one], -1, -2) / np.sqrt(q.shape[-1])
        for m in mask if isinstance(mask, tuple) else [mask]:
            if m is not None:
                m = np.broadcast_to(m, (*m.shape[:-2], q.shape[-2], k.shape[-2]))[..., s : s + 1]
                scores = np.where(m, -np.inf, scores) if m.dtype == bool else scores + m
        a = np.exp(scores - known)
        ds = a * (dout @ np.swapaxes(v[one], -1, -2) - delta)
        dq += ds @ k[one] / np.sqrt(q.shape[-1])
        dks.append(np.swapaxes(ds, -1, -2) @ q)  # shown
        dvs.append(np.swapaxes(a, -1, -2) @ dout)
    return dq, np.concatenate(dks, -2), np.concatenate(dvs, -2)

--- a term beside a quotient, which belongs into the function below
not: What is special about these
repair: inv_std = 1 / np.sqrt(variance + eps)
def layer_norm(x, gamma, beta, eps=1e-5):
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred * centred).mean(-1, keepdims=True)
    inv_std = 1 / np.sqrt(variance) + eps  # shown
    return gamma * centred * inv_std + beta, centred * inv_std, inv_std

--- a seed that is not handed on
says: The seed is not used
repair: rng = np.random.default_rng(rng)
def dropout(x, p, rng):
    if not isinstance(rng, np.random.Generator):
        rng = np.random.default_rng()  # shown
    keep = rng.random(x.shape) >= p
    return np.where(keep, x / (1 - p), 0).astype(x.dtype), keep

--- a mask of numbers
repair: mask = np.zeros((T, T if S is None else S), bool)
def causal_mask(T, S=None):
    mask = np.zeros((T, T if S is None else S))  # shown
    for t in range(T):
        mask[t, t + mask.shape[1] - T + 1 :] = True
    return mask

--- a bound that is one too large, of a size
says: Off by one: `tokens` is one too large here. One change in line @ makes it right
def window_attention(q, k, v, window, causal=False):
    if window < 0:
        raise ValueError("window must be 0 or more")
    tokens = q.shape[-2]
    reach = min(window, tokens)  # shown
    s = np.arange(tokens)[:, None] - reach + np.arange(reach + 1 if causal else 2 * reach + 1)
    there, s = (s >= 0) & (s < tokens), np.clip(s, 0, tokens - 1)
    scores = np.where(there, (q[..., None, :] * k[..., s, :]).sum(-1) / np.sqrt(q.shape[-1]), -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return (weights[..., None] * v[..., s, :]).sum(-2), weights

--- an order in memory
says: One change in line @ makes it right
named: extra argument
def embedding(ids, table):
    return table.take(ids.reshape(-1), axis=0).reshape((*ids.shape, -1), order="F")  # shown

--- the line that raises in all cases, of an answer that takes long
says: One of the values here is None
named: computes with None
marks: dx - dmemory
from transformer_np.layers import blocks

class EncoderBlock(blocks.EncoderBlock):
    def backward(self, dout):
        def through(d):
            dx, dmemory = self.attention.backward(d)
            return dx - dmemory

        return self.add_norm1.backward(self.add_norm2.backward(dout, self.feed_forward.backward), through)

--- infinity that occurs in a later step of a loop, and not in the first case before
says: Infinity first occurs in line @
def negative_sampling_loss(center, context, negatives):
    p = 1 / (1 + np.exp(-(center * context).sum(-1)))
    q = 1 / (1 + np.exp(-np.einsum("nd,nkd->nk", center, negatives)))
    loss = 0.0
    for n in range(len(p)):
        loss -= np.log(p[n])
        for k in range(q.shape[1]):
            loss -= np.log(1 - q[n, k])  # shown
    return float(loss / len(p)), p, q

--- an axis that is missing
says: `(p_context - 1) * dloss / len(center)` needs one more axis at its end. One change in line @ makes it right:
def negative_sampling_loss_backward(center, context, negatives, p_context, p_negatives, dloss=1.0):
    ds, dn = (p_context - 1) * dloss / len(center), p_negatives * dloss / len(center)  # shown
    return ds * context + (dn[..., None] * negatives).sum(1), ds * center, dn[..., None] * center[:, None]

--- the averages themselves, spread into a new dict
says: Save copies
marks: self.averages
from transformer_np.training import optim

class Optimizer(optim.Optimizer):
    def state_dict(self):
        return {"steps": np.array(self.steps), **self.averages}  # shown

--- the end of a range
says: `buckets.max()` is one too small here.
def relative_position_bias_backward(dbias, buckets, num_buckets):
    dtable = np.zeros((num_buckets, dbias.shape[0]), dbias.dtype)
    for n in range(buckets.min(), buckets.max()):  # shown
        dtable[n] = dbias[:, buckets == n].sum(axis=1)
    return dtable

--- two names in each other's place in one line
says: One change in line @ makes it right:
def sigma(t):
    return np.where(t > 0, t, 0) * 0 + 1 / (1 + np.exp(-t))

def gated_feed_forward(x, w_gate, w1, w2, activation="gelu_tanh"):
    gate, up = x @ w_gate, x @ w1
    c = np.sqrt(2 / np.pi)
    act = {"silu": lambda t: t * sigma(t), "gelu_tanh": lambda t: t * (1 + np.tanh(c * (t + 0.044715 * t**3))) / 2}
    return (act[activation](up) * gate) @ w2, gate, up  # shown

--- the parameters are in another order than the call's arguments
says: The parameters are in the wrong order: the exercise has (dy, x, w). One change in line @ makes it right:
named: order of parameters
repair: def linear_backward(dy, x, w):
def linear_backward(x, w, dy):  # shown
    rows, dy_rows = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])
    return dy @ w.T, rows.T @ dy_rows, dy_rows.sum(0)

--- a count that is taken too early, a whole number
says: The division is by the number of all targets.
def cross_entropy(logits, targets, ignore_index=None, label_smoothing=0.0):
    z = logits - logits.max(axis=-1, keepdims=True)
    z = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    probs, logs, ids = np.exp(z), z.reshape(-1, z.shape[-1]), targets.reshape(-1)
    rows = len(ids)  # shown
    if ignore_index is not None:
        logs, ids = logs[ids != ignore_index], ids[ids != ignore_index]
    one_hot = np.eye(probs.shape[-1])[ids]
    wanted = (1 - label_smoothing) * one_hot + label_smoothing / probs.shape[-1]
    return -(wanted * logs).sum() / rows, probs

--- three lines that assign where they should change in place  # release
says: Several changes in lines @ make it right:
from transformer_np import training

class Adam(training.Adam):
    def _update(self, p, g, m, v):
        (a, b), t = self.betas, self.steps
        m = a * m + (1 - a) * g  # shown
        v = b * v + (1 - b) * g * g  # shown
        p = p - self.lr * (m / (1 - a**t)) / (np.sqrt(v / (1 - b**t)) + self.eps)  # shown

--- what is wrong in a helper may be what it is called with, below
says: One change in line @ makes it right:
def right(a, n):
    return np.pad(a, ((0, 0), (n, 0), (0, 0)))[:, : a.shape[1]]

def causal_conv1d_backward(dy, x, w, dilation=1):
    dx, dw = np.zeros_like(x), np.zeros_like(w)
    for j in range(len(w)):
        dx += right(dy[:, ::-1], j * dilation)[:, ::-1] @ w[j].T
        dw[j] = np.einsum("bti,bto->io", right(x, j), dy)  # shown
    return dx, dw, dy.sum(axis=(0, 1))

--- a sum over some of the axes in front
says: One change in line @ makes it right:
def layer_norm_backward(dy, x_hat, inv_std, gamma):
    g = dy * gamma
    dx = g - g.mean(-1, keepdims=True) - x_hat * (g * x_hat).mean(-1, keepdims=True)
    rows = tuple(range(dy.ndim - 1))
    return dx * inv_std, (dy * x_hat).sum(rows), dy.sum(0)  # shown

--- of equally many the first one  # release
says: One change in line @ makes it right:
from collections import Counter
from transformer_np.data.bpe import apply_merges

def learn_merges(words, counts, num_merges, first_id, min_count=2):
    found = []
    for new in range(first_id, first_id + num_merges):
        pairs = Counter()
        for w, n in zip(words, counts):
            for pair in zip(w, w[1:]):
                pairs[pair] += int(n)
        best = max(pairs, key=pairs.get, default=None)  # shown
        if pairs[best] < min_count:
            break
        found.append(best)
        words = [apply_merges(w, {best: new}) for w in words]
    return found

--- a variable that a branch writes first
says: One change in line @ makes it right:
from transformer_np.layers import blocks

class AddNorm(blocks.AddNorm):
    def backward(self, dout, sublayer):
        if self.norm_first:
            d = self.dropout.backward(dout)
            return d + self.norm.backward(sublayer(d))  # shown
        d = self.norm.backward(dout)
        return d + sublayer(self.dropout.backward(d))

--- a line that runs in the wrong cases only  # release
says: `maximum` is not the function that belongs here. One change in line @ makes it right:
from functools import reduce
from transformer_np.layers import blocks

class EncoderBlock(blocks.EncoderBlock):
    def forward(self, x, mask=None, cache=None):
        if isinstance(mask, tuple):
            mask = reduce(np.maximum, [np.where(m, -np.inf, 0) if m.dtype == bool else m for m in mask])  # shown
        a = self.add_norm1.forward(x, lambda z: self.attention.forward(z, mask=mask, cache=cache))
        return self.add_norm2.forward(a, self.feed_forward.forward)

--- an answer whose loops take many steps  # release
says: One change in line @ makes it right:
def tanh(x):
    for _ in range(60_000):
        pass
    return np.tanh(2 * x)  # shown

--- another name for an array is no copy  # release
says: One change in line @ makes it right:
from transformer_np import training

class Adam(training.Adam):
    def _update(self, p, g, m, v):
        b1, b2 = self.betas
        m += (1 - b1) * (g - m)
        v += (1 - b2) * (g * g - v)
        m_hat = m  # shown
        m_hat /= 1 - b1**self.steps
        p -= self.lr * (m_hat / (np.sqrt(v / (1 - b2**self.steps)) + self.eps))

--- NaN is not all that is not finite
says: One change in line @ makes it right:
def clip_grad_norm(parameters, max_norm):
    grads = [p.grad for p in parameters]
    norm = sum(float(np.sum(np.square(g))) for g in grads) ** 0.5
    if np.isnan(norm):  # shown
        return norm
    if norm > max_norm:
        for g in grads:
            g *= max_norm / norm
    return norm

--- a line from which only a right result is computed is not shown  # release
def scaled_dot_product_attention_backward(dout, q, k, v, weights):
    dq, dk, dv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    root = q.shape[-1] ** 0.5
    for index in np.ndindex(*q.shape[:-2]):
        for t, a in enumerate(weights[index]):
            da = v[index] @ dout[index][t]
            ds = a * (da - np.dot(da, a))
            dq[index][t] = ds @ k[index] / root
            dk[index] += np.outer(ds, q[index][t])  # shown
            dv[index] += np.outer(a, dout[index][t])
    return dq, dk, dv

--- a function that the file defines under a condition
says: One change in line @ makes it right:
if np.__version__:
    def positive(x):
        return np.maximum(x, 1)  # shown

def relu(x):
    return positive(x)

--- an object that can be called, which has no hash and no dict
says: One change in line @ makes it right:
from dataclasses import dataclass

@dataclass(slots=True)
class Backward:
    keep: bool = True

    def __call__(self, dy, y, axis=-1):
        return y * (dy + (dy * y).sum(axis=axis, keepdims=self.keep))  # shown

softmax_backward = Backward()

--- a method of an object
says: One change in line @ makes it right:
class Softmax:
    def backward(self, dy, y, axis=-1):
        return y * (dy + (dy * y).sum(axis=axis, keepdims=True))  # shown

softmax_backward = Softmax().backward

--- a static method
says: One change in line @ makes it right:
class Softmax:
    @staticmethod
    def total(dy, y, axis):
        return (dy + y).sum(axis=axis, keepdims=True)  # shown

    @staticmethod
    def backward(dy, y, axis=-1):
        return y * (dy - Softmax.total(dy, y, axis))

softmax_backward = Softmax.backward

--- a function that another one makes, with a part of the arguments given before
says: One change in line @ makes it right:
from functools import partial

def made(sign):
    def backward(keepdims, dy, y, axis=-1):
        return y * (dy + sign * (dy * y).sum(axis=axis, keepdims=keepdims))  # shown

    return backward

softmax_backward = partial(made(1), True)

--- a file with a magic of IPython
says: One change in line @ makes it right:
%matplotlib inline
def softmax_backward(dy, y, axis=-1):
    return y * (dy + (dy * y).sum(axis=axis, keepdims=True))  # shown

--- np.vectorize of rows
says: One change in line @ makes it right:
@np.vectorize(signature="(n),(n)->(n)")
def of_row(dy, y):
    return y * (dy + dy @ y)  # shown

def softmax_backward(dy, y, axis=-1):
    dy, y = np.moveaxis(dy, axis, -1), np.moveaxis(y, axis, -1)
    return np.moveaxis(of_row(dy, y), -1, axis)

--- a counter that goes on by two
says: Off by one: `2` is one too large here.
def causal_mask(T, S=None):
    S, t = T if S is None else S, 0
    mask = np.zeros((T, S), dtype=bool)
    while t < T:
        mask[t, t + S - T + 1 :] = True
        t += 2  # shown
    return mask

--- a power for a product is found
says: `b ** scale` has the wrong operator.
says: One change in line @ makes it right:
def lora(x, a, b, scale=1.0):
    low = x @ a
    return low @ b**scale, low  # shown

--- a list of the same array several times
repair: states = [np.zeros_like(state) for _ in range(x.shape[1])]
def rnn(x, w_x, w_h, b=None):
    given = x @ w_x + (0 if b is None else b)
    state = np.zeros_like(given[:, 0])
    states = [np.zeros_like(state)] * x.shape[1]  # shown
    for t, now in enumerate(states):
        now[...] = state = np.tanh(given[:, t] + state @ w_h)
    return np.stack(states, axis=1)

--- two functions in each other's place
says: The order of the parts is wrong here.
says: One change in line @ makes it right:
def silu(x):
    return x / (1 + np.negative(np.exp(x)))  # shown

--- a sum that is added in place and not subtracted
says: has the wrong operator.
def softmax_backward(dy, y, axis=-1):
    dx = dy.copy()
    dx += (dy * y).sum(axis, keepdims=True)  # shown
    return y * dx

--- an expression of the right answer proves a line and is not shown
repair:
not: np.sum
def softmax_backward(dy, y, axis=-1):
    return dy * y * (1 - y)  # shown

--- what a repair leaves wrong is told too
says: In the exact form √2 is missing inside erf
from math import erf

def gelu(x, approximate="tanh"):
    c = float(np.sqrt(2) / np.pi)  # shown
    if approximate == "tanh":
        return x * 0.5 * (1 + np.tanh(c * (x + 0.044715 * x**3)))
    return x * 0.5 * (1 + np.array([erf(z) for z in x.ravel()], dtype=x.dtype).reshape(x.shape))

--- a number is asked for and no variable
says: One change in line @ makes it right:
not: other variable
def linear(x, w, b=None):
    return x @ w + (b if b else 0)  # shown

--- results that are those of another number of steps everywhere  # release
not: not used
from transformer_np import decoding

def greedy_decode(model, src, max_len=64, use_cache=True, return_log_probs=False):
    return decoding.greedy_decode(model, src, max_len - 1, use_cache, return_log_probs)  # shown

--- a comparison that never holds any more is no repair
def linear_backward(dy, x, w):
    dw = x.reshape(-1, x.shape[-1]).T @ dy.reshape(-1, dy.shape[-1])
    if dy.ndim == 3:
        db = dy.sum(axis=1)  # shown
    else:
        db = dy.reshape(-1, dy.shape[-1]).sum(axis=0)
    return dy @ w.T, dw, db

--- an answer that gives something else the next time has the line of an edit that makes it right
says: One change in line @ makes it right:
numbers = iter(range(10**6))

def tanh_backward(dy, y):
    return dy * (1 - y**2) + next(numbers)  # shown

--- a condition is shown as a whole
marks: not np.isfinite(norm) or norm == 0
def clip_grad_norm(parameters, max_norm):
    norm = float(np.sqrt(np.sum([np.vdot(p.grad, p.grad) for p in parameters])))
    if not np.isfinite(norm) or norm == 0:
        return norm
    for p in parameters:
        p.grad[...] = p.grad * max_norm / norm
    return norm

--- no edit doubles what is returned
def additive(mask, dtype=np.float32):
    out = np.zeros(np.shape(mask), dtype)
    out[mask] = np.finfo(dtype).min
    return out  # not shown

--- a loop over a set  # release
says: A pair that occurs in a word twice is counted once.
from collections import Counter
from transformer_np.data.bpe import apply_merges

def learn_merges(words, counts, num_merges, first_id, min_count=2):
    found = []
    for new in range(first_id, first_id + num_merges):
        pairs = Counter()
        for word, count in zip(words, counts):
            for pair in set(zip(word, word[1:])):  # shown
                pairs[pair] += count
        best = min(pairs, key=lambda pair: (-pairs[pair], pair), default=None)
        if pairs[best] < min_count:
            break
        found.append(best)
        words = [apply_merges(word, {best: new}) for word in words]
    return found

--- a divisor of one term is that of both
named: brackets
def cosine_schedule(step, max_lr, min_lr, warmup, total):
    if step <= warmup:
        return max_lr * step / warmup
    done = min(1, (step - warmup) / (total - warmup))
    return min_lr + (max_lr - min_lr) * (1 / 2 + np.cos(np.pi * done))  # shown

--- the first maximum
repair: most = np.full(x.shape[1:], -np.inf)
def softmax(x, axis=-1):
    x = np.moveaxis(x, axis, 0)
    most = np.zeros(x.shape[1:])  # shown
    for one in x:
        most = np.maximum(most, one)
    e = np.exp(x - most)
    return np.moveaxis(e / e.sum(0), 0, axis)

--- a result that shares memory, when one head is repeated
says: The result shares its memory with an argument
repair: return np.array(heads.reshape(len(x), -1, *x.shape[2:]))
def repeat_heads(x, repeats):
    heads = np.broadcast_to(x[:, :, None], (*x.shape[:2], repeats, *x.shape[2:]))
    return heads.reshape(len(x), -1, *x.shape[2:])  # shown
""")

# --- where to look ----------------------------------------------------------------------------------------------------

LOOK = wrong_answers("""
--- the first of two means that are wrong, in a case that shows it
def layer_norm_backward(dy, x_hat, inv_std, gamma):
    D = dy.shape[-1]
    dy_rows, hat_rows = dy.reshape(-1, D), x_hat.reshape(-1, D)
    dgamma, dbeta = np.sum(dy_rows * hat_rows, axis=0), np.sum(dy_rows, axis=0)
    dhat = dy_rows * gamma
    mean1 = np.mean(dhat, axis=0)  # shown
    mean2 = np.mean(dhat * hat_rows, axis=0)
    dx = (dhat - mean1 - hat_rows * mean2) * inv_std.reshape(-1, 1)  # not shown
    return dx.reshape(dy.shape), dgamma, dbeta

--- infinity that is written on purpose is not where it first occurs  # release
says: NaN first occurs in line @:
def scaled_dot_product_attention(q, k, v, mask=None):
    low = q.dtype.type(-np.inf)
    s = q @ k.swapaxes(-1, -2) / q.dtype.type(np.sqrt(q.shape[-1]))
    for m in mask if isinstance(mask, tuple) else () if mask is None else (mask,):
        s = np.where(m, low, s) if m.dtype == bool else s + m.astype(s.dtype)
    s = s - s.max(-1, keepdims=True)  # shown
    e = np.exp(s)
    w = e / e.sum(-1, keepdims=True)
    return w @ v, w

--- a helper that calls itself
says: A mistake is in line @, or shows there
def _masked(scores, m):
    if isinstance(m, tuple):
        return _masked(_masked(scores, m[0]), m[1:]) if m else scores
    return scores if m is None else np.where(m != 0, -np.inf, scores)  # shown

def attention_scores(q, k, mask=None):
    return _masked(np.einsum("...tk,...sk->...ts", q, k) / q.shape[-1] ** 0.5, mask)

--- a helper that is called with what is right is no place of the call's
says: All tokens as likely as the k-th are kept
def _one(row, temperature, top_k, top_p):
    from transformer_np.decoding import sampling_distribution as right
    if top_k is not None:
        row = np.where(row >= np.sort(row)[-min(top_k, len(row))], row, -np.inf)
    return right(row, temperature, None, top_p)

def sampling_distribution(logits, temperature=1.0, top_k=None, top_p=None):
    rows = logits.reshape(-1, logits.shape[-1])
    return np.stack([_one(r, temperature, top_k, top_p) for r in rows]).reshape(logits.shape)  # not shown

--- a call of a helper that is right elsewhere
says: dK lacks the scale
def scaled_dot_product_attention_backward(dout, q, k, v, weights):
    def turned(m):
        return np.moveaxis(m, -1, -2)

    dA = np.matmul(dout, turned(v))
    dS = weights * (dA - np.sum(dA * weights, axis=-1)[..., None])
    dK = np.matmul(turned(dS), q)  # shown
    dQ = np.matmul(dS, k) * k.shape[-1] ** -0.5
    return dQ, dK, np.matmul(turned(weights), dout)

--- what the library computes in the same way is right  # release
says: Keys before the start
def window_attention(q, k, v, window, causal=False):
    if window < 0:
        raise ValueError("a window of less than 0")
    T = q.shape[-2]
    before = min(window, T - 1)
    behind = before * (not causal)
    near = np.arange(T)[:, None] + np.arange(before + 1 + behind)
    around = [(0, 0)] * (q.ndim - 2) + [(before, behind), (0, 0)]
    keys, values = (np.pad(a, around)[..., near, :] for a in (k, v))
    scores = (q[..., None, :] * keys).sum(-1) / np.sqrt(q.shape[-1])  # not shown
    e = np.exp(scores - scores.max(-1, keepdims=True))  # shown
    weights = e / e.sum(-1, keepdims=True)  # not shown
    return (weights[..., None] * values).sum(-2), weights  # not shown

--- a list of rows of different lengths  # release
says: log p of the end token is missing
def greedy_decode(model, src, max_len=64, use_cache=True, return_log_probs=False):
    end, ids = model.config.eos_id, np.full((len(src), 1), model.config.bos_id)
    over, total = np.zeros(len(src), bool), np.zeros(len(src))
    with model.evaluating():
        memory = model.encode(src)
        while ids.shape[1] <= max_len and not over.all():
            z = model.decode(ids, memory, src)[:, -1].astype(float)
            log_p = z - z.max(-1, keepdims=True)
            log_p -= np.log(np.exp(log_p).sum(-1, keepdims=True))
            best = log_p.argmax(-1)
            over |= best == end
            total += np.where(over, 0, log_p.max(-1))  # shown
            ids = np.concatenate([ids, best[:, None]], axis=1)
    rows = [[*row, end] for row in ids[:, 1:].tolist()]
    found = [row[: row.index(end)] for row in rows]
    return (found, total) if return_log_probs else found

--- the line is where a wrong variable is made
def softmax_backward(dy, y, axis=-1):
    shared = y * dy.sum(axis=axis, keepdims=True)
    return y * (dy - shared)  # shown

--- a size that is divided would make up for what is missing elsewhere
says: The results are as if `dloss` were 1.0
def negative_sampling_loss_backward(center, context, negatives, p_context, p_negatives, dloss=1.0):
    N = len(center)  # not shown
    one, noise = ((p_context - 1) / N)[:, None], (p_negatives / N)[:, :, None]
    return one * context + (noise * negatives).sum(1), one * center, noise * center[:, None]

--- a counter is no place where a mean is taken for a sum
says: averaged over its pairs
def relative_position_bias_backward(dbias, buckets, num_buckets):
    dtable = np.zeros((num_buckets, len(dbias)), dtype=dbias.dtype)
    count = np.zeros(num_buckets)
    for t, s in np.ndindex(buckets.shape):
        count[buckets[t, s]] += 1
        dtable[buckets[t, s]] += dbias[:, t, s]
    for b in range(num_buckets):
        if count[b] > 0:
            dtable[b] = dtable[b] / count[b]  # shown
    return dtable

--- an argument is changed through a view, by what a helper returns
says: Line 8 changes it: flat[i] = positive(flat[i]) ^^^
says: One change in line 6 makes it right: flat = x.reshape(-1) ^^^
def positive(number):
    return max(number, 0)

def relu(x):
    flat = x.reshape(-1)
    for i in range(len(flat)):
        flat[i] = positive(flat[i])
    return flat.reshape(x.shape)

--- what belongs behind a loop
says: Line 7 belongs behind the loop in line 4; that makes it right: return mask ^^^
once: belongs behind
def causal_mask(T, S=None):
    mask = np.zeros((T, S or T), dtype=bool)
    for t in range(T):
        for s in range(S or T):
            mask[t, s] = s > t + (S or T) - T
        return mask  # shown

--- what belongs in a loop
says: Line 6 belongs in the loop in line 4; that makes it right: dtable[i] = old + row ^^^
def embedding_backward(dy, ids, num_embeddings):
    dtable = np.zeros((num_embeddings, dy.shape[-1]), dy.dtype)
    for i, row in zip(ids.reshape(-1), dy.reshape(-1, dy.shape[-1])):
        old = dtable[i]
    dtable[i] = old + row  # shown
    return dtable

--- what belongs behind several lines
says: Line 4 belongs behind lines 5 to 6; that makes it right: rows = y ^^^
def linear(x, w, b=None):
    y = x @ w
    rows = y  # shown
    if b is not None:
        y = y + b
    return rows

--- a bound that is too narrow
says: the error of
says: is a bound too narrow for them, or a small term missing?
says: One change in line 3 makes it right for the lecture: x = np.clip(x, -5, 5) ^^^
def tanh(x):
    x = np.clip(x, -5, 5)  # shown
    up, down = np.exp(x), np.exp(-x)
    return (up - down) / (up + down)

--- what belongs before a loop
says: Line 5 belongs before the loop in line 4; that makes it right
def dropout(x, p, rng):
    keep = np.empty(x.shape, dtype=bool)
    for row in keep.reshape(-1, x.shape[-1]):
        gen = np.random.default_rng(rng)  # shown
        row[:] = gen.random(len(row)) >= p
    return np.where(keep, x / (1 - p), 0), keep

--- the old values are kept as a view
says: One change in line @ makes it right
from transformer_np.functional import rotary_frequencies

def rotary(x, positions, theta=10000.0, scaling=None, adjacent=False):
    K = x.shape[-1]
    angle = np.asarray(positions)[..., None] * rotary_frequencies(K, theta, scaling)
    c, s = np.cos(angle).astype(x.dtype), np.sin(angle).astype(x.dtype)
    y = x.copy()
    one, two = (y[..., 0::2], y[..., 1::2]) if adjacent else (y[..., : K // 2], y[..., K // 2 :])
    old = one  # shown
    one[...] = one * c - two * s
    two[...] = old * s + two * c
    return y

--- a number of tiles that is rounded down
says: One change in line @ makes it right
marks: d_model // 2
def sinusoidal_encoding(length, d_model, dtype=np.float32):
    table = np.zeros((length, d_model))
    for i in range(d_model // 2):  # shown
        angle = np.arange(length) / 10000.0 ** (2 * i / d_model)
        table[:, 2 * i] = np.sin(angle)
        if 2 * i + 1 < d_model:
            table[:, 2 * i + 1] = np.cos(angle)
    return table.astype(dtype)

--- a share and what is left of it in each other's place
says: One change in line @ makes it right
from transformer_np import functional as F

def rotary_frequencies(K, theta=10000.0, scaling=None):
    w = F.rotary_frequencies(K, theta)
    if scaling is None:
        return w
    if scaling["rope_type"] != "llama3":
        return F.rotary_frequencies(K, theta, scaling)
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    turns = scaling["original_max_position_embeddings"] * w / (2 * np.pi)
    s = np.clip((turns - low) / (high - low), 0, 1)
    return (1 - s) * w + s * w / scaling["factor"]  # shown

--- one of three results that a named mistake makes wrong
not: Look at
def feed_forward_backward(dy, x, hidden, w1, w2):
    rows = [a.reshape(-1, a.shape[-1]) for a in (dy, x, hidden)]
    through = rows[0] @ w2.T
    dw1 = rows[1].T @ through
    return (through @ w1.T).reshape(x.shape), dw1, through.sum(0), rows[2].T @ rows[0], rows[0].sum(0)

--- a parameter that is overwritten before
not: Look at
def silu(x):
    x = 1 / (1 + np.exp(-x))
    return x * x

--- a right result beside one that raises
not: Look at
def linear_backward(dy, x, w):
    return dy @ w.T, x.T @ dy, dy.reshape(-1, dy.shape[-1]).sum(axis=0)

--- one number after the other
says: A mistake is in lines @, or shows there
from transformer_np import functional as F

def rotary_frequencies(K, theta=10000.0, scaling=None):
    every, found = F.rotary_frequencies(K, theta), np.empty(K // 2)
    if scaling is None or scaling["rope_type"] == "linear":
        return every / (scaling["factor"] if scaling else 1)
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    for n in range(K // 2):
        one = every[n]  # not shown
        turns = scaling["original_max_position_embeddings"] * one / (2 * np.pi)
        if turns > high:
            found[n] = one  # not shown
        elif turns < low:
            found[n] = one / scaling["factor"]
        else:
            share = (turns - low) / (high - low)  # shown
            found[n] = (1 - share) * one + share * one / scaling["factor"]  # shown
    return found

--- what is read at a place that is counted wrongly
not: Look at
def relative_shift(x):
    T, S = x.shape[-2:]
    y = np.zeros_like(x)
    for t in range(T):
        for s in range(S - t):
            place = s + t
            y[..., t, s] = x[..., t, place]
    return y

--- the line that most failing cases show
says: A mistake is in line @, or shows there:
def cross_entropy_backward(probs, targets, ignore_index=None, label_smoothing=0.0, dloss=1.0):
    V, eps = probs.shape[-1], label_smoothing
    mask = np.ones(targets.shape, bool) if ignore_index is None else targets != ignore_index
    count = np.count_nonzero(mask)
    if count == 0:
        return np.zeros_like(probs)
    safe = np.where(mask, targets, 0)
    q = np.eye(V, dtype=probs.dtype)[safe] * (1 - eps) + eps / V
    dlogits = (probs - q) * (dloss / count)  # shown
    return dlogits

--- steps in the wrong order in a list
says: One change in line @ makes it right
def silu(x):
    y = x
    for step in [np.exp, np.negative]:  # shown
        y = step(y)
    return x / (1 + y)

--- a condition too many in a comprehension
says: One change in line @ makes it right
marks: g.ndim > 1
def clip_grad_norm(parameters, max_norm):
    grads = [p.grad for p in parameters]
    norm = np.sqrt(sum(np.vdot(g, g) for g in grads if np.any(g) if g.ndim > 1))  # shown
    for g in grads if max_norm < norm < np.inf else ():
        g *= max_norm / norm
    return norm

--- the new array of a result, not that of another one
says: A mistake is in line @, or shows there
def window_attention(q, k, v, window, causal=False):
    T, width = q.shape[-2], window + 1 if causal else 2 * window + 1
    weights = np.zeros(q.shape[:-1] + (width,), q.dtype)  # shown
    out = np.zeros(q.shape[:-1] + (v.shape[-1],), q.dtype)
    for t in range(T):
        first, last = max(0, t - window), min(T, t + 1 if causal else t + window + 1)
        s = np.einsum("...k,...sk->...s", q[..., t, :], k[..., first:last, :]) / np.sqrt(q.shape[-1])
        e = np.exp(s - s.max(axis=-1, keepdims=True))
        a = e / e.sum(axis=-1, keepdims=True)
        out[..., t, :] = np.einsum("...s,...sv->...v", a, v[..., first:last, :])
        begin = first - (t - window)
        weights[..., t, begin : begin + (last - first)] = a
    return out, weights

--- an argument is changed by NumPy's function
says: It changes
def tanh_backward(dy, y):
    np.multiply(y, y, out=y)  # shown
    slope = np.subtract(1, y)
    return slope * dy

--- a mistake of an answer that computes in pieces has a line  # release
says: dK is made with Q alone
def relative_attention_backward(dout, q, k, v, r, content_bias, position_bias, weights):
    T, S = weights.shape[2:]
    dq, dk, dv, dr, du, dp = map(np.zeros_like, (q, k, v, r, content_bias, position_bias))
    for b, h in np.ndindex(q.shape[:2]):
        A = weights[b, h]
        dA = dout[b, h] @ v[b, h].T
        dscores = A * (dA - (dA * A).sum(axis=1, keepdims=True)) / q.shape[-1] ** 0.5
        line = np.concatenate([np.zeros(T), dscores.reshape(-1)])
        ddistances = line.reshape(T, S + 1)[:, 1:]
        dv[b, h] = A.T @ dout[b, h]
        dk[b, h] = dscores.T @ q[b, h]  # shown
        dr[h] += ddistances.T @ (q[b, h] + position_bias[h])
        of_content, of_position = dscores @ k[b, h], ddistances @ r[h]
        dq[b, h] = of_content + of_position
        du[h] += of_content.sum(axis=0)
        dp[h] += of_position.sum(axis=0)
    return dq, dk, dv, dr, du, dp

--- scores that lack the bias, with a mask and without one
from transformer_np.functional import softmax

def unscaled_attention(q, k, v, bias=None, mask=None):
    scores = q @ k.swapaxes(-1, -2)
    for m in mask if isinstance(mask, tuple) else () if mask is None else (mask,):
        scores = np.where(m, q.dtype.type(-np.inf), scores) if m.dtype == bool else scores + m
    weights = softmax(scores)  # shown
    if bias is not None:
        weights = weights + bias
    return weights @ v, weights

--- a variable that one result would need otherwise than another is shown where it is made
def rms_norm(x, gamma, eps=1e-6):
    length = np.sqrt(np.linalg.norm(x, axis=-1, keepdims=True) ** 2 + eps)  # shown
    x_hat = x / length
    return x_hat * gamma, x_hat, length

--- a derivative of the wrong variable
def silu_backward(dy, x):
    slope = x * (1 - x)  # shown
    return dy * slope

--- a slice too wide
def window_mask(T, window, S=None):
    S = T if S is None else S
    mask = np.ones((T, S), dtype=bool)
    for t in range(T):
        mask[t, max(0, t - window) : t + window + 1] = False  # shown
    return mask

--- a value of which another is NaN too
marks: number * dtype(-np.inf)
def additive(mask, dtype=np.float32):
    number = np.asarray(mask).astype(dtype)
    hidden = number * dtype(-np.inf)  # shown
    return hidden

--- a division by 0 is told with the line where it first occurs
says: A division by 0 first occurs in line @:
def sampling_distribution(logits, temperature=1.0, top_k=None, top_p=None):
    logits = logits / temperature  # shown
    p = np.exp(logits - logits.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True)

--- infinity is told with the line where it first occurs, but for one of which 1 / inf makes the right 0
says: Infinity first occurs in line @:
def negative_sampling_loss(center, context, negatives):
    pos, neg = center * context, center[:, None] * negatives
    pos, neg = 1 / (1 + np.exp(-pos.sum(-1))), 1 / (1 + np.exp(-neg.sum(-1)))
    return -(np.log(pos) + np.log(1 - neg).sum(1)).mean(), pos, neg  # shown

--- a variable that each step of the loop hands on  # release
def tiled_attention(q, k, v, mask=None, tile=64):
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    for part in () if mask is None else mask if isinstance(mask, tuple) else (mask,):
        scores = np.where(part, -np.inf, scores) if part.dtype == bool else scores + part
    m = np.full((*q.shape[:-1], 1), -np.inf, dtype=q.dtype)
    l, o = np.zeros_like(m), np.zeros((*q.shape[:-1], v.shape[-1]), dtype=q.dtype)
    for start in range(0, k.shape[-2], tile):
        s = scores[..., start : start + tile].astype(q.dtype)
        top = np.maximum(m, s.max(axis=-1, keepdims=True))
        shift = np.where(np.isinf(top), 0, top)
        p, alpha = np.exp(s - shift), np.exp(m - shift)  # not shown
        l = l * alpha + p.sum(axis=-1, keepdims=True)
        o = o + p @ v[..., start : start + tile, :]  # shown
        m = top
    seen = np.where(l > 0, l, 1)
    return o / seen, np.where(l > 0, m + np.log(seen), -np.inf)[..., 0]

--- what a decorator returns hides no line, of an answer or of its helper  # release
says: Look at line @:
import functools

def again(function):
    return lambda *args, **kwargs: function(*args, **kwargs)

def wrapped(function):
    return functools.wraps(function)(again(function))

@functools.lru_cache
def scale(p):
    return np.cos(p)  # shown

@wrapped
@again
def dropout_backward(dy, keep, p):
    return np.where(keep, dy / scale(p), 0).astype(dy.dtype)

--- an answer with match has lines, and its patterns are none of them
says: Look at lines @:
def softmax_backward(dy, y, axis=-1):
    match axis:
        case -1:
            total = (dy * y).sum(-1, keepdims=True)
        case _:
            total = (dy * y).sum(axis, keepdims=True)
    dx = y * dy + y * total  # shown
    dx /= 2  # shown
    return dx

--- a variable with a type hint, and another of the same name
says: Look at lines @:
def softmax_backward(dy: np.ndarray, y: np.ndarray, axis: int = -1) -> np.ndarray:
    total: np.ndarray
    total = np.sum(dy * y, axis=axis, keepdims=True)
    dx: np.ndarray = y * dy + y * total  # shown
    dx /= 2  # shown
    return dx

--- the axes in front, in a list of their own, in a method of another class
says: A mistake is in line @, or shows there:
class Heads:
    def split(self, x, number):
        *batch, T, D = x.shape
        return x.reshape(*batch, number, T, D // number)  # shown

def split_heads(x, num_heads):
    return Heads().split(x, num_heads)

--- an array that is changed through a view is not wrong where it is made
says: the new x₁
def rotary(x, positions, theta=10000.0, scaling=None, adjacent=False):
    half = x.shape[-1] // 2
    angles = np.asarray(positions)[..., None] * theta ** (-np.arange(half) / half)
    cos, sin = np.cos(angles), np.sin(angles)
    out = x.copy()  # not shown
    one, two = (out[..., ::2], out[..., 1::2]) if adjacent else (out[..., :half], out[..., half:])
    one[...] = one * cos - two * sin
    two[...] = one * sin + two * cos  # shown
    return out

--- rows of a loop that are right together, of which the last is what a mistake makes
says: The gradient of a matrix comes from the last row alone.
def linear_backward(dy, x, w):
    rows, outs = x.reshape(-1, w.shape[0]), dy.reshape(-1, w.shape[1])
    dx, db = np.empty_like(rows), np.zeros(w.shape[1])
    for n in range(len(rows)):
        row = rows[n]  # not shown
        dw = np.outer(row, outs[n])  # shown
        db += outs[n] / len(rows)
        dx[n] = w @ outs[n]
    return dx.reshape(x.shape), dw, db

--- a count is wrong where it is made and not where it divides
says: The division is by the number of all targets.
def cross_entropy_backward(probs, targets, ignore_index=None, label_smoothing=0.0, dloss=1.0):
    rows, ids = probs.reshape(-1, probs.shape[-1]), targets.ravel()
    seen = np.full(len(ids), True) if ignore_index is None else ids != ignore_index
    wanted = np.full(rows.shape, label_smoothing / rows.shape[1])
    wanted[np.nonzero(seen)[0], ids[seen]] += 1 - label_smoothing
    number = max(len(seen), 1)  # shown
    return (np.where(seen[:, None], rows - wanted, 0) * (dloss / number)).reshape(probs.shape)

--- the wrong one of equally many
says: the one with the larger ids is merged
from transformer_np.data.bpe import apply_merges

def learn_merges(words, counts, num_merges, first_id, min_count=2):
    learned = []
    for new in range(first_id, first_id + num_merges):
        often = {}
        for word, count in zip(words, counts):
            for pair in zip(word, word[1:]):
                often[pair] = often.get(pair, 0) + count
        most = max(often, key=lambda pair: (often[pair], pair), default=None)  # shown
        if most is None or often[most] < min_count:
            break
        learned.append(most)
        words = [apply_merges(word, {most: new}) for word in words]
    return learned

--- NaN that np.nan_to_num would hide is shown where it is made
says: A row of nothing but −inf gives NaN
says: NaN first occurs in line @:
def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))  # shown
    return e / np.maximum(e.sum(axis=axis, keepdims=True), 1e-30)

--- a named mistake without a line
says: column j is read as the key t + j
from transformer_np.functional import scaled_dot_product_attention_backward

def window_attention_backward(dout, q, k, v, weights, window, causal=False):
    T = q.shape[-2]
    full = np.zeros(weights.shape[:-1] + (T,), weights.dtype)
    for t in range(T):
        for j in range(weights.shape[-1]):
            s = (t if causal else t - min(window, T - 1)) + j
            if 0 <= s < T:
                full[..., t, s] = weights[..., t, j]
    return scaled_dot_product_attention_backward(dout, q, k, v, full)

--- what was read rightly between two writes is no place  # release
says: The token with which the sum reaches top_p is cut off.
def sampling_distribution(logits, temperature=1.0, top_k=None, top_p=None):
    order = np.argsort(-logits, axis=-1, kind="stable")
    p = np.take_along_axis(logits, order, axis=-1)
    p = np.exp((p - p[..., :1]) / max(temperature, 1e-30))
    if top_k is not None:
        p[..., top_k:] = 0
    p /= p.sum(axis=-1, keepdims=True)
    if top_p is not None:
        p[np.cumsum(p, axis=-1) > top_p] = 0  # shown
        p /= p.sum(axis=-1, keepdims=True)
    return np.take_along_axis(p, np.argsort(order, axis=-1), axis=-1)

--- what another line uses rightly is not wrong where it is made
says: db₁ comes from dhidden before the ReLU's backward
def feed_forward_backward(dy, x, hidden, w1, w2):
    flat, rows, dy_rows = (a.reshape(-1, a.shape[-1]) for a in (x, hidden, dy))
    dh = dy_rows @ w2.T
    db1 = dh.sum(0)  # shown
    da = np.where(rows > 0, dh, 0)
    return (da @ w1.T).reshape(x.shape), flat.T @ da, db1, rows.T @ dy_rows, dy_rows.sum(0)

--- what an inner function returns is no result  # release
says: dx comes through the value only.
from transformer_np.functional import gelu, gelu_backward, silu, silu_backward

def gated_feed_forward_backward(dy, x, gate, value, w_gate, w1, w2, activation="gelu_tanh"):
    def outer(a, b):
        return a.reshape(-1, a.shape[-1]).T @ b.reshape(-1, b.shape[-1])

    act, back = (silu, silu_backward) if activation == "silu" else (gelu, gelu_backward)
    dh = dy @ w2.T
    dgate, dvalue = back(dh * value, gate), dh * act(gate)
    dx = dvalue @ w1.T  # shown
    return dx, outer(x, dgate), outer(x, dvalue), outer(act(gate) * value, dy)

--- a difference the other way around is right
says: Later keys have the bucket of their distance
def relative_position_buckets(T, S=None, num_buckets=32, max_distance=128, bidirectional=True):
    S = S or T
    ahead = np.arange(S) - (np.arange(T) + S - T)[:, None]
    N = num_buckets // 2 if bidirectional else num_buckets
    n, half = np.abs(ahead), N // 2  # shown
    far = half + np.floor(np.log(np.maximum(n, half) / half) / np.log(max_distance / half) * (N - half)).astype(int)
    bucket = np.where(n < half, n, np.minimum(far, N - 1))
    return bucket + N * (ahead > 0) if bidirectional else bucket

--- an earlier place that makes everything right comes before a later value of the mistake
says: The sum before the tanh, a_{t−1}, is fed back.
def rnn(x, w_x, w_h, b=None):
    inputs = x @ w_x + (0 if b is None else b)
    state, h = np.zeros((len(x), len(w_h))), []
    for t in range(x.shape[1]):
        a = inputs[:, t] + state @ w_h
        h.append(np.tanh(a))
        state = a  # shown
    return np.stack(h, axis=1)
""")

# --- lines that are not shown -----------------------------------------------------------------------------------------

NO_PLACE = wrong_answers("""
--- a mistake in a decorator is in no line of the answer
def doubled(function):
    return lambda *args: 2 * function(*args)

@doubled
def relu(x):
    return x * (x > 0)  # not shown

--- an array that a loop fills is not called new
says: dx
def rnn_backward(dh, x, h, w_x, w_h):
    B, T, H = h.shape
    da, carried = np.zeros_like(h), np.zeros((B, H))  # not shown
    before = np.concatenate([np.zeros((B, 1, H)), h[:, :-1]], axis=1)
    for t in reversed(range(T)):
        da[:, t] = (dh[:, t] + carried) * (1 - h[:, t] ** 2)
        carried = da[:, t] @ w_h.T
    flat = da.reshape(-1, H)
    dw_x, dw_h = x.reshape(-1, x.shape[-1]).T @ flat, before.reshape(-1, H).T @ flat
    return da, dw_x, dw_h, flat.sum(axis=0)

--- beside the dtype of a mask no condition is shown
says: 1 and 0 instead of True and False
def causal_mask(T, S=None):
    S = T if S is None else S
    mask = np.zeros((T, S))
    for t, s in np.ndindex(T, S):
        if s > t + (S - T):  # not shown
            mask[t, s] = 1
    return mask

--- a line that reads a wrong result is not shown  # release
says: One random number is drawn for each feature
def dropout(x, p, rng):
    rng = np.random.default_rng(rng)
    stays = np.array([rng.random() >= p for _ in range(x.shape[-1])])
    keep, y = np.zeros(x.shape, dtype=bool), np.zeros_like(x)
    keep[...] = stays
    y[keep] = x[keep] / (1 - p)  # not shown
    return y, keep

--- a new array is no place
says: Negative numbers become 0
from transformer_np import functional as F

def gelu(x, approximate="tanh"):
    y = np.zeros(x.shape, dtype=x.dtype)  # not shown
    for i, value in np.ndenumerate(x):
        if value > 0:
            y[i] = F.gelu(np.array([value]), approximate)[0]
    return y

--- a condition is no place where the shape is wrong
says: The padding is on the query axis
def padding_mask(ids, pad_id):
    mask = np.zeros((*ids.shape[:1], 1, ids.shape[1], 1), dtype=bool)
    for b, s in np.ndindex(ids.shape):
        if ids[b, s] == pad_id:  # not shown
            mask[b, 0, s, 0] = True
    return mask

--- a method that is given is no place  # release
says: Is the gradient multiplied by the factor?
from transformer_np import training

class AdamW(training.AdamW):
    def _update_block(self, block):
        if self._rates is not None:
            self.grad[block] *= np.repeat(self._rates, np.diff(self._ends, prepend=0))[block]
        self._decay_and_update(block)

    def _decay_and_update(self, block):
        rate = self.weight_decay if self._decayed is None else self.weight_decay * self._decayed[block]
        self.data[block] *= 1 - self.lr * rate  # not shown
        training.Adam._update_block(self, block)

--- an argument with zeros in front is no place  # release
def causal_conv1d(x, w, b=None, dilation=1):
    pad = (len(w) - 1) * dilation
    padded = np.concatenate([np.zeros((len(x), pad, x.shape[2])), x], axis=1)  # not shown
    y = 0
    for j in range(len(w)):
        y = y + padded[:, j * dilation : j * dilation + x.shape[1]] @ w[j]  # shown
    return y if b is None else y + b

--- a slice by which other lines take the right part is no place  # release
def tiled_attention_backward(dout, q, k, v, out, log_total, mask=None, tile=64):
    shape, scale = (q.shape[-2], k.shape[-2]), 1.0 / q.shape[-1] ** 0.5
    masks = () if mask is None else mask if isinstance(mask, tuple) else (mask,)
    delta = (dout * out).sum(-1, keepdims=True)
    dq, dk, dv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    for i in range(0, q.shape[-2], tile):
        rows = slice(i, i + tile)  # not shown
        s = q[..., rows, :] @ np.swapaxes(k, -1, -2) * scale
        for m in masks:
            m = np.broadcast_to(m, np.broadcast_shapes(m.shape, shape))[..., rows, :]
            s = np.where(m, -np.inf, s) if m.dtype == bool else s + m
        a = np.exp(s - log_total[..., rows, None])  # shown
        ds = a * (dout[..., rows, :] @ np.swapaxes(v, -1, -2) - delta[..., rows, :]) * scale
        dq[..., rows, :] += ds @ k
        dk += np.swapaxes(ds, -1, -2) @ q[..., rows, :]
        dv += np.swapaxes(a, -1, -2) @ dout[..., rows, :]
    return dq, dk, dv

--- the activation of the other factor, in two branches
says: The activation is on the wrong factor
def gated_feed_forward(x, w_gate, w1, w2, activation="gelu_tanh"):
    gate, value = x @ w_gate, x @ w1  # not shown
    if activation == "silu":
        active = value / (1 + np.exp(-value))
    else:
        active = value / 2 * (1 + np.tanh((2 / np.pi) ** 0.5 * (value + 0.044715 * value**3)))
    return (gate * active) @ w2, gate, value

--- a variable that other results need as it is, is no place
def layer_norm(x, gamma, beta, eps=1e-5):
    centred = x - x.mean(axis=-1, keepdims=True)
    std = np.sqrt(x.var(axis=-1, keepdims=True) + eps)  # not shown
    x_hat = centred / std
    return gamma * x_hat + beta, x_hat, std  # shown

--- a line that only avoids an earlier mistake is not shown
def softmax_backward(dy, y, axis=-1):
    half = np.sin(dy) * 0.3
    s = half.sum(axis=axis, keepdims=True)
    return y * (dy - s)  # not shown

--- a rotation that is not turned back
says: One change in line @ makes it right:
from transformer_np import functional as F

def rotary_backward(dy, positions, theta=10000.0, scaling=None, adjacent=False):
    angle = np.asarray(positions)
    return F.rotary(dy, angle, theta, scaling, adjacent)  # shown

--- the bare `return heads` is no place
def split_heads(x, num_heads):
    B, T, D = x.shape
    heads = x.reshape(B, num_heads, T, -1)  # shown
    return heads

--- a variable of which another value would help is no place
def silu_backward(dy, x):
    s = 0.5 * (1 + np.tanh(0.5 * x))
    return dy * s  # shown

--- a line that another result shows to be right is no place
def layer_norm_backward(dy, x_hat, inv_std, gamma):
    product, d = dy * x_hat, dy * gamma
    dgamma = product.reshape(-1, len(gamma)).sum(axis=0)
    through = x_hat * product.mean(axis=-1, keepdims=True)  # shown
    dx = (d - d.mean(axis=-1, keepdims=True) - through) * inv_std
    return dx, dgamma, dy.reshape(-1, len(gamma)).sum(axis=0)

--- the place that needs another value is shown not where it is right for others
def rotary_backward(dy, positions, theta=10000.0, scaling=None, adjacent=False):
    K = dy.shape[-1]
    angle = np.asarray(positions)[:, None] * rotary_frequencies(K, theta, scaling)
    cos, sin = np.cos(angle), np.sin(angle)  # not shown
    first, second = (slice(0, K, 2), slice(1, K, 2)) if adjacent else (slice(K // 2), slice(K // 2, K))
    dx = np.zeros_like(dy)
    dx[..., first] = dy[..., first] * cos + dy[..., second] * sin
    dx[..., second] = dy[..., first] * sin + dy[..., second] * cos  # shown
    return dx

from transformer_np.functional import rotary_frequencies

--- a call that hands on a function is no place for what is wrong in it  # release
not: Look at
def one_row(row, temperature, top_k, top_p):
    if temperature < 1e-20:
        return np.eye(len(row))[np.argmax(row)]
    e = np.exp((row - row.max()) / temperature)
    p = e / e.sum()
    ranking = sorted(range(len(row)), key=lambda i: (-row[i], i))[:top_k]
    if top_p is not None:
        ranking = ranking[: 1 + int((np.cumsum(p[ranking]) < top_p)[:-1].sum())]
    out = np.zeros_like(p)
    out[ranking] = p[ranking]
    return out / out.sum()

def sampling_distribution(logits, temperature=1.0, top_k=None, top_p=None):
    return np.apply_along_axis(one_row, -1, logits, temperature, top_k, top_p)

--- a function of another exercise that is written otherwise is no place
named: y taken for x
def tanh(x):
    return np.sinh(x) / np.cosh(x)  # not shown

def tanh_backward(dy, y):
    t = tanh(y)
    return dy * (1 - t * t)

--- a generator may hold the mistake
says: the last is missing
def windows(ids, T, rng):
    while True:
        s = int(rng.integers(0, len(ids) - T))
        yield ids[s : s + T], ids[s + 1 : s + T]

def text_windows(ids, block_size, batch_size, rng):
    x, y = zip(*(pair for _, pair in zip(range(batch_size), windows(ids, block_size, rng))))  # not shown
    return np.stack(x), np.stack(y)

--- no division by an argument that may be 0 makes up for a factor too many
not: makes it right
def rms_norm_backward(dy, x_hat, inv_rms, gamma):
    dx_hat = dy * gamma
    product = dx_hat * x_hat
    dx = inv_rms * (dx_hat - x_hat * product.mean(-1, keepdims=True))
    return dx, product.reshape(-1, len(gamma)).sum(0)

--- what is written into a tuple in a tuple is not proven where it is read
not: Look at
def learn_merges(words, counts, num_merges, first_id, min_count=2):
    from collections import Counter
    words, learned = list(map(tuple, words)), []
    for new in range(first_id, first_id + num_merges):
        table = Counter()
        for word, n in zip(words, counts):
            for one, other in zip(word, word[1:]):
                table[one, other] += n
        (left, right), often = max(table.items(), key=lambda item: item[::-1], default=((), 0))
        if often < min_count:
            break
        learned.append((left, right))
        after = []
        for word in words:
            text = []
            for token in word:
                is_second = text and text[-1] == left and token == right
                text[len(text) - bool(is_second) :] = [new if is_second else token]
            after.append(tuple(text))
        words = after
    return learned

--- a lambda that is another exercise is no place
named: y taken for x
tanh = lambda x: np.tanh(x)  # not shown

def tanh_backward(dy, y):
    return dy - dy * tanh(y) * tanh(y)
""")


@pytest.mark.parametrize("answer", [*EDITS, *LOOK, *NO_PLACE])
def test_what_is_told(verdict_on, answer):
    answer.is_told_by(verdict_on(answer.code))


NOT_UNDONE = wrong_answers("""
--- what a loop over places does, element by element
says: The scale 1/(1 − p) is missing. The forward multiplied what it kept by 1/(1 − p), so the backward does, too. A
not: Look at
def passed(gradient, kept):
    return gradient if kept else 0.0

def dropout_backward(dy, keep, p):
    dx = np.zeros_like(dy)
    for place in np.ndindex(*dy.shape):
        dx[place] = passed(dy[place], keep[place])  # shown
    return dx

--- a returned result of a line that is shown
says: Look at line @
from transformer_np.functional import linear_backward

def feed_forward_backward(dy, x, hidden, w1, w2):
    dhidden, dw2, db2 = linear_backward(dy, hidden, w2)
    dx, dw1, db1 = linear_backward(dhidden, x, w1)  # shown
    return dx, dw1, db1, dw2, db2

--- an infinity that right answers have is not where it first occurs
says: NaN first occurs in line @:
marks: scores - log_total[..., None]
from transformer_np import functional as F

def tiled_attention_backward(dout, q, k, v, out, log_total, mask=None, tile=256):
    t, shape = lambda x: np.swapaxes(x, -1, -2), (q.shape[-2], k.shape[-2])
    masks = () if mask is None else mask if isinstance(mask, tuple) else (mask,)
    masks = [np.broadcast_to(m, np.broadcast_shapes(m.shape, shape)) for m in masks]
    dq, dk, dv = map(np.zeros_like, (q, k, v))
    for s in range(shape[1]):
        one = np.s_[..., s : s + 1, :]
        scores = F.attention_scores(q, k[one], tuple(m[..., s : s + 1] for m in masks))
        a = np.exp(scores - log_total[..., None])  # shown
        ds = a * (dout @ t(v[one]) - (dout * out).sum(-1, keepdims=True)) / q.shape[-1] ** 0.5
        dq += ds @ k[one]
        dk[one], dv[one] = t(ds) @ q, t(a) @ dout
    return dq, dk, dv
""")


@pytest.mark.parametrize("answer", NOT_UNDONE)
def test_what_is_told_where_no_edit_undoes_the_mistake(verdict_on, monkeypatch, answer):
    monkeypatch.setattr(search, "undoing", lambda *_: ())
    answer.is_told_by(verdict_on(answer.code))


UNDONE = wrong_answers("""
--- a factor that is missing, in the line where it belongs and not where the wrong values are masked
says: The scale is missing
says: One change in line @ makes it right
repair: scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
def scaled_dot_product_attention(q, k, v, mask=None):
    scores = q @ np.swapaxes(k, -1, -2)  # shown
    for one in mask if isinstance(mask, tuple) else [mask]:
        if one is not None:
            scores = np.where(one, -np.inf, scores) if one.dtype == bool else scores + one
    highest = scores.max(-1, keepdims=True)
    e = np.exp(scores - np.where(np.isneginf(highest), 0, highest))
    total = e.sum(-1, keepdims=True)
    weights = e / np.where(total == 0, 1, total)
    return weights @ v, weights

--- a divisor of which the right answer with the mistake has 1
repair: return np.where(keep, dy, 0) / (1 - p)
def dropout_backward(dy, keep, p):
    return np.where(keep, dy, 0)  # shown

--- two mistakes, each undone where it is made
says: Two changes make it right, one in line @
says: and one in line @
marks: np.where(m, scores, -np.inf)
def attention_scores(q, k, mask=None):
    scores = q @ np.swapaxes(k, -1, -2)  # shown
    for m in mask if isinstance(mask, tuple) else [mask]:
        if m is not None:
            scores = np.where(m, scores, -np.inf) if m.dtype == bool else scores + m  # shown
    return scores

--- code of the right answer, with the student's names, which is not shown
says: One change in line @ makes it right
repair:
def apply_merges(ids, merges):
    ids = list(ids)
    known = [pair for pair in zip(ids, ids[1:]) if pair in merges]
    if not known:
        return ids
    best, left = known[0], []  # shown
    while ids:
        pair = tuple(ids[:2])
        left.append(merges[best] if pair == best else ids[0])
        ids = ids[2 if pair == best else 1 :]
    return apply_merges(left, merges)

--- a variable that the right answer changes is not written out
repair: return np.abs(queries - np.arange(S) + (S - T)) > window
def window_mask(T, window, S=None):
    S = S or T
    queries = np.arange(T)[:, None]
    return np.abs(queries - np.arange(S)) > window  # shown

--- the smaller of two edits that undo the same
says: Two changes make it right
marks: before
def feed_forward(x, w1, b1, w2, b2):
    before = x @ w1 + b1
    after = np.maximum(0, before)
    y = after @ w2  # shown
    return y, before  # shown
""")


@pytest.mark.parametrize("answer", UNDONE)
def test_the_edit_that_undoes_a_named_mistake(verdict_on, answer):
    answer.is_told_by(verdict_on(answer.code))


SUMMED = """
def softmax_backward(dy, y, axis=-1):
    s = np.sum(dy * y, axis=axis, keepdims=True)
    return y * (dy - s)
"""


@pytest.mark.parametrize(
    ("old", "new", "marked", "repaired"),
    [
        ("dy - s", "dy + s", "dy + s", "dy - s"),
        ("axis=axis, keep", "axis=-1, keep", "np.sum(dy * y, axis=-1, keepdims=True)", "axis=axis"),
        (", keepdims=True", "", "np.sum(dy * y, axis=axis)", "keepdims=True"),
        ("np.sum(dy * y,", "np.sum(dy,", "dy", "dy * y"),
        ("y * (dy - s)", "dy - s", "dy - s", ""),
        ("np.sum(", "np.mean(", "mean", "np.sum("),
    ],
)
def test_the_expression_is_marked_and_the_repair_is_not_shown(verdict_on, old, new, marked, repaired):
    verdict = verdict_on(SUMMED.replace(old, new))
    assert f"One change in line {verdict.line} makes it right:" in verdict.message
    assert [of for _, of in shown_in(verdict.message)] == [marked]
    assert repaired in verdict.repair
    assert not repaired or verdict.repair.strip() not in verdict.message


def test_an_error_in_the_search_for_a_line_costs_the_line_alone(verdict_on, monkeypatch):
    def fails(*_):
        raise ValueError("the results of an edit cannot be read")

    found = []
    for find_place in (lambda *_: None, fails):
        monkeypatch.setattr(checking, "find_place", find_place)
        found.append(verdict_on(SUMMED.replace("dy - s", "dy + s")).message)
    assert found[0] == found[1] and "wrong gradient" in found[0]


def test_nothing_of_the_file_runs_again(verdict_on, capsys):
    verdict = verdict_on("""
    def noted(function):
        print("decorated")
        return function

    print("loaded")

    def counted(calls=print("default")):
        return calls

    @noted
    def tanh_backward(dy, y, calls=counted()):
        return dy * (1 - y)
    """)
    assert verdict.line and capsys.readouterr().out.split() == ["loaded", "default", "decorated"]


# --- an edit that never ends ----------------------------------------------------------------------------------------


def test_lists_that_hold_the_same_list_twice_are_kept_to_a_depth():
    value = [1, [2.0, (3, [4])]]
    assert same([kept(value)], [value])
    for _ in range(60):  # 2^60 items
        value = [value, value]
    assert not same([kept(value)], [kept(value)])


def test_a_dict_with_keys_that_hold_all_earlier_keys_is_stopped():
    def grown():
        keys = {}
        for _ in range(40):
            steps()
            keys[tuple(keys)] = 1  # its hash takes 2^n steps

    steps = family._Steps(1000)
    with pytest.raises(family.Endless):
        grown()


def test_a_list_that_grows_in_a_loop_is_stopped_in_the_next_rounds():
    def grown():
        ids = [0] * (MOST_ITEMS + 1)
        for _ in range(4):  # it is looked at now and then
            counted()
        return ids

    counted = family._Steps(1000)
    with pytest.raises(family.Endless):
        grown()


def test_no_edit_makes_a_huge_array():
    cases = Trials(all_exercises()["window_mask"], 0).cases
    with family.without_huge_arrays(cases), pytest.raises(family.Endless):
        np.arange(np.exp(10))  # of which a mask has the square
    assert np.arange(4_000_000).size == 4_000_000
