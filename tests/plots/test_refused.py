"""What a picture cannot show is refused by the argument's name, with what was expected and what came."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from reading import ENGLISH, PORTUGUESE, history_of

from transformer_np import plots
from transformer_np.inspection.samples import small_model
from transformer_np.layers import LayerNorm, MultiHeadAttention

ONE, STEP, LOGITS = np.ones, [[("a", -1.0)]], np.zeros((3, 6))
WORDS, AB = list("abcdef"), (["a"], ["b", "c"])
HISTORY = vars(history_of(np.random.default_rng(0), 20))
CURVES = SimpleNamespace(steps=[0, 9], accuracies={"GPT": [0.1]}, chance=0.1, lag=2, segment_len=4)
LAYER = MultiHeadAttention(6, 3, rng=0)
LAYER(np.ones((2, 4, 6), np.float32))
CROSS = MultiHeadAttention(6, 3, rng=0)
CROSS(np.ones((1, 2, 6), np.float32), np.ones((1, 3, 6), np.float32))


def a_class(states):
    return [SimpleNamespace(exercise="relu", states=states, mistakes={})]


REFUSED = [  # (the call, what it says)
    *((lambda shape=shape: plots.positional_encoding(table=ONE(shape)), f"(length, d_model), got shape {shape}")
      for shape in [(3,), (2, 3, 4), (0, 4)]),
    (lambda: plots.positional_encoding(table=[[0.0, 1.0], [np.nan, np.inf]]), "finite, got nan at index (1, 0)"),
    (lambda: plots.positional_encoding(table=[["a"]]), "table must be an array of numbers"),
    (lambda: plots.positional_encoding(0, 4), "length must be at least 1"),
    *((lambda shape=shape: plots.attention(ONE(shape), PORTUGUESE, ENGLISH), f"got shape {shape}")
      for shape in [(5,), (1, 2, 3, 5, 5), (0, 5), (2, 0, 5, 5)]),
    *((lambda shape=shape, words=words: plots.attention(ONE(shape) / 4, *words), said)
      for shape in [(5, 4), (3, 5, 4), (2, 3, 5, 4)] for words, said in [
          ((PORTUGUESE[:4], ENGLISH[:4]), "queries must be 5 words, one for each row; got 4: Lucas, vai"),
          ((PORTUGUESE, ENGLISH), "keys must be 4 words, one for each column; got 5: Lucas, will"),
          (("abcde", ENGLISH[:4]), "queries must be a list of words, got the string 'abcde'")]),
    (lambda: plots.attention([[-2.0, 3.0]], *AB), "got -2 … 3"),
    (lambda: plots.attention([[0.0, np.nan]], *AB), "weights must be finite"),
    (lambda: plots.mask(ONE((3, 5), bool), queries=ENGLISH), "queries must be 3 words, one for each row; got 5"),
    (lambda: plots.mask(ONE((2, 3, 3), bool)), "mask must have the axes (T, S), got shape (2, 3, 3)"),
    (lambda: plots.mask(ONE(3, bool)), "mask must have the axes (T, S), got shape (3,)"),
    (lambda: plots.mask(np.eye(3, dtype=int)), "mask must be Boolean"),
    *((lambda value=value: plots.mask(np.array([[0.0, value]])), "mask must be 0 ")
      for value in (0.5, -3.0, np.nan, np.inf)),
    (lambda: plots.head_view(ONE((1, 1, 1, 1)), ["a"], ["b"]), "axes (T, S) or (H, T, S), got shape (1, 1, 1, 1)"),
    (lambda: plots.head_view(ONE((3, 300, 300)) / 300, *[range(300)] * 2), "270,000 lines, more than the 200,000"),
    (lambda: plots.head_view([[2.0]], ["a"], ["b"]), "weights must lie in 0 … 1"),
    (lambda: plots.head_view(ONE((5, 4)) / 4, PORTUGUESE[:4], ENGLISH[:4]), "queries must be 5 words"),
    (lambda: plots.head_view(ONE((5, 4)) / 4, PORTUGUESE, ENGLISH), "keys must be 4 words, one for each column; got 5"),
    *((lambda query=query: plots.head_view(ONE((5, 4)) / 4, PORTUGUESE, ENGLISH[1:], query=query), "in 0 … 4, got")
      for query in (5, -1, "em", 1.0)),
    (lambda: plots.wavelengths(1), "length must be at least 2, got 1"),
    (lambda: plots.wavelengths(8, 1), "d_model must be at least 2, got 1"),
    (lambda: plots.softmax_saturation([1.0]), "two numbers"),
    (lambda: plots.softmax_saturation([[1.0, 2.0]]), "shape"),
    (lambda: plots.softmax_saturation([2.0, 2.0]), "scores must not all be equal"),
    (lambda: plots.softmax_saturation(d_k=0), "d_k must be at least 1, got 0"),
    (lambda: plots.likeliest(LOGITS[0]), "logits must have the axes (T, V), got shape (6,)"),
    (lambda: plots.likeliest(LOGITS, WORDS[:5]), "words must be 6 words, one for each token of the vocabulary; got 5"),
    (lambda: plots.likeliest(LOGITS, WORDS, 0), "count must be at least 1"),
    *((lambda steps=steps: plots.decoding_steps(steps), "steps must have a non-empty list of pairs")
      for steps in ([], [*STEP, []])),
    *((lambda value=value: plots.decoding_steps([*STEP, [("b", value)]]), "steps[1] must hold log-probabilities, 0 or")
      for value in (0.5, np.nan)),
    *((lambda chosen=chosen: plots.decoding_steps(STEP, chosen), "chosen must be 1 tokens, one for each step; got")
      for chosen in ("a", ["a", "b"])),
    (lambda: plots.sampling(ONE((2, 3))), "logits must have the axes (V,), got shape (2, 3)"),
    (lambda: plots.sampling(ONE(3), ["a", "b"]), "words must be 3 words, one for each token of the vocabulary; got 2"),
    (lambda: plots.sampling(ONE(3), settings=[{"k": 3}]), "dicts with temperature, top_k, top_p; got {'k': 3}"),
    (lambda: plots.sampling(ONE(3), settings=[]), "settings must have at least one"),
    (lambda: plots.sampling(ONE(3), settings=[{"top_p": 2}]), "top_p must lie in"),
    (lambda: plots.sampling([1.0, np.inf]), "logits must be finite"),
    (lambda: plots.logit_lens(ONE((2, 3)), ["a"]), "logits must have the axes (L + 1, T, V), got shape (2, 3)"),
    (lambda: plots.logit_lens(ONE((2, 4, 5)), WORDS[:3]), "read must be 4 words, one for each position; got 3"),
    (lambda: plots.model_view(ONE((2, 3, 3))), "weights must have the axes (L, H, T, S), got shape (2, 3, 3)"),
    (lambda: plots.model_view(np.full((1, 1, 2, 2), 2.0)), "weights must lie in 0 … 1"),
    (lambda: plots.architecture(3), "be a Transformer, T5, GPT, Llama, Bert or TransformerXL, got int"),
    (lambda: plots.gradient_flow(3), "model must be a module with parameters, got int"),
    (lambda: plots.gradient_flow({}), "model must be a model or a dict with at least one"),
    *((lambda name=name, value=value: plots.training_curve(SimpleNamespace(**{**HISTORY, name: value})),
       f"history.{name} must be")
      for name, value in {"losses": [], "learning_rates": [1e-3] * 19, "validation": [1.0, 2.0]}.items()),
    *((lambda losses=losses: plots.loss_curves(losses), "losses") for losses in ({}, {"a": []}, {"a": [[1.0]]})),
    *((lambda norms=norms: plots.gradient_distance(norms), said) for norms, said in [
        ({}, "norms must"), ({"a": [1.0]}, "two positive norms"), ({"a": [1.0, 0.0]}, "two positive norms"),
        ({"a": [1.0, np.nan]}, "must be finite")]),
    (lambda: plots.complexity_curves([]), "curves must have"),
    (lambda: plots.copy_curves(CURVES), "GPT must have 2 shares"),
    (lambda: plots.relative_bias(small_model("GPT")), "model must be a T5, got GPT"),
    (lambda: plots.relative_bias(small_model("T5"), 0), "longest must be at least 1"),
    (lambda: plots.word_map(["a", "b"], np.eye(2)), "words must be at least 3"),
    (lambda: plots.word_map(["a", "b"], np.eye(3)), "words must be 3 words"),
    (lambda: plots.word_map(["a", "b", "c"], ONE((3, 4))), "must not all be equal"),
    (lambda: plots.word_map(["a", "b", "c"], ONE((3, 1))), "vectors must have the axes (V, D) with D at least 2"),
    (lambda: plots.word_map(["a", "b", "c"], np.full((3, 2), np.nan)), "vectors must be finite"),
    (lambda: plots.class_results([]), "at least one exercise"),
    (lambda: plots.class_results(a_class({"late": 1})), "states of relu must be right, "),
    (lambda: plots.progress({"a": (2, 2, 3)}), "chapters['a'] must be (right, begun, all)"),
    *((lambda where=where: plots.attention_products(LAYER, **where), "head must lie in 1 … 3 and row in 0 … 1")
      for where in ({"head": 0}, {"head": 4}, {"row": 2})),
    (lambda: plots.attention_products(LAYER, WORDS[:2]), "words must be 4 words, one for each row of X; got 2"),
    (lambda: plots.attention_products(CROSS), "layer must have computed self-attention"),
    (lambda: plots.attention_products(LayerNorm(3)), "layer must be a MultiHeadAttention, got LayerNorm"),
    (lambda: plots.layer_norm_products(3, ONE((2, 2))), "layer must be a LayerNorm, got 3"),
    (lambda: plots.matrices([]), "products must have at least one Product"),
    (lambda: plots.Product("a vector", [("X", ONE(3))]), "X must be a matrix, got shape (3,)"),
    (lambda: plots.attention_maps(small_model("Transformer"), "self"),
     "kind must be one of encoder, decoder, cross; got 'self'"),
    *((lambda model=model: plots.attention_maps(model), "model must have encoder layers")
      for model in (SimpleNamespace(), small_model("Transformer", num_encoder_layers=0))),
]  # fmt: skip
OF_ANOTHER_KIND = {  # a TypeError
    "table must be an array of numbers", "queries must be a list of words, got the string 'abcde'",
    "mask must be Boolean", "be a Transformer, T5, GPT, Llama, Bert or TransformerXL, got int",
    "model must be a module with parameters, got int", "layer must be a MultiHeadAttention, got LayerNorm",
    "layer must be a LayerNorm, got 3", "model must be a T5, got GPT",
}  # fmt: skip


@pytest.mark.parametrize(("call", "said"), REFUSED, ids=[said for _, said in REFUSED])
def test_what_cannot_be_shown(call, said):
    with pytest.raises(TypeError if said in OF_ANOTHER_KIND else ValueError, match=re.escape(said)):
        call()
