"""The rules of state: what one call, one model or one thread leaves behind never changes what another computes."""

import copy
import pickle
import threading
from dataclasses import replace

import numpy as np
import pytest

from transformer_np import functional as F
from transformer_np.data import LabelledBatches
from transformer_np.layers import Linear, MultiHeadAttention
from transformer_np.layers.initial import blank
from transformer_np.models import Bert, BertConfig, Transformer, TransformerConfig
from transformer_np.module import Module
from transformer_np.support import intercept
from transformer_np.training import SGD, Adam, AdamW, Classification, Trainer

SRC, TGT, OTHER = np.array([[3, 4, 5], [6, 7, 0]]), np.array([[1, 5, 4], [1, 7, 6]]), np.array([[8, 9, 3], [4, 4, 9]])


def transformer(**options):
    sizes = {"d_model": 8, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1, "d_ff": 6, "dropout": 0.0}
    return Transformer(TransformerConfig(12, 12, **sizes | {"dtype": "float64"} | options))


def bert():
    return Bert(BertConfig(12, max_len=6, d_model=8, num_heads=2, num_layers=1, d_ff=6, num_classes=3, dropout=0.0))


def step(model, optimizer, targets=TGT):
    loss, probs = F.cross_entropy(model(SRC, TGT), targets)
    optimizer.zero_grad()
    model.backward(F.cross_entropy_backward(probs, targets))
    optimizer.step()
    return loss


# --- a forward is a transaction --------------------------------------------------------------------------------------

NO_FORWARD = "backward needs a forward"


def refused_calls(model):
    """Calls that fail early, between encoder and decoder, and late."""
    yield lambda: model(OTHER, TGT + 20)
    yield lambda: model(OTHER, TGT[:1])
    yield lambda: model(OTHER + 20, TGT)
    yield lambda: model.decode(TGT, np.zeros((2, 3, 5)), SRC)
    yield lambda: model.decode(TGT[:, :0], model.encode(OTHER), OTHER)
    yield lambda: model.encode(np.zeros((2, 3), int))


@pytest.mark.parametrize("number", range(6))
def test_after_a_refused_call_there_is_no_forward(number):
    model = transformer()
    logits = model(SRC, TGT)
    with pytest.raises(ValueError):
        list(refused_calls(model))[number]()
    with pytest.raises(RuntimeError, match=NO_FORWARD):
        model.backward(logits)
    assert not any(parameter.grad.any() for parameter in model.parameters())
    model(SRC, TGT)
    model.backward(logits)


def test_an_interrupt_in_a_layer_leaves_no_half_forward():
    model = transformer()
    logits = model(SRC, TGT)

    def interrupted(array):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), model.replacing("decoder.0.feed_forward", interrupted):
        model(OTHER, TGT)
    with pytest.raises(RuntimeError, match=NO_FORWARD):
        model.backward(logits)
    np.testing.assert_array_equal(model(SRC, TGT), logits)  # nothing is replaced any more


def test_a_new_memory_needs_a_new_decode():
    model = transformer()
    logits = model(SRC, TGT)
    memory = model.encode(OTHER)
    with pytest.raises(RuntimeError, match=NO_FORWARD):
        model.backward(logits)
    model.decode(TGT, memory, OTHER)
    model.backward(logits)
    first, _ = model.encode(SRC), model.encode(OTHER)
    model.decode(TGT, first, SRC)
    with pytest.raises(RuntimeError, match="another memory than the last encode returned"):
        model.backward(logits)
    model.encode(SRC)
    model.decode(TGT, first.copy(), SRC)  # the same numbers
    model.backward(logits)


@pytest.mark.parametrize(
    "refused",
    [
        lambda model: model.mlm_logits(SRC, places=np.zeros((2, 3), bool)),
        lambda model: model.mlm_logits(SRC, places=np.ones((2, 2), bool)),
        lambda model: model.classify(SRC, segments=SRC),
    ],
)
def test_a_refused_head_leaves_no_forward(refused):
    model = bert()
    logits = model.classify(SRC)
    with pytest.raises(ValueError):
        refused(model)
    with pytest.raises(RuntimeError, match=NO_FORWARD):
        model.backward(logits)


def test_an_objective_forgets_too():
    model = bert()
    objective, (batch,) = Classification(model), LabelledBatches([([4, 5], 0), ([5, 6], 1)], batch_size=2).in_order()
    objective.forward(batch)
    with pytest.raises(ValueError):
        objective.forward(replace(batch, labels=batch.labels + 7))
    with pytest.raises(RuntimeError, match=r"Classification.backward needs a forward"):
        objective.backward()


# --- a copy trains ---------------------------------------------------------------------------------------------------

COPIES = {"deepcopy": copy.deepcopy, "pickle": lambda pair: pickle.loads(pickle.dumps(pair))}
OPTIMIZERS = {
    "sgd": lambda p: SGD(p, 0.1, momentum=0.9),
    "adam": lambda p: Adam(p, 1e-2),
    "adamw": lambda p: AdamW(p, 1e-2, decays=lambda parameter: parameter.data.ndim > 1),
}


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("copied", COPIES)
def test_a_copy_of_model_and_optimizer_goes_on_as_the_original(copied, optimizer, order):
    model = transformer()
    pair = model, OPTIMIZERS[optimizer](model.parameters())
    step(*pair)
    twin = COPIES[copied](pair[::order])[::order]
    losses = [[step(*both) for _ in range(4)] for both in (pair, twin)]
    assert losses[0] == losses[1] and losses[0][-1] < losses[0][0]
    assert not np.shares_memory(model.output.w.data, twin[0].output.w.data)


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_a_copy_of_one_alone_works_or_says_what_to_do(copied):
    model = transformer()
    optimizer = Adam(model.parameters())
    step(model, optimizer)
    alone = copied(model)
    assert step(alone, Adam(alone.parameters())) == step(model, optimizer)
    lone = copied(optimizer)
    lone.zero_grad()
    model(SRC, TGT)
    model.backward(np.ones((2, 3, 12)))
    with pytest.raises(RuntimeError, match=r"copy.deepcopy\(\(model, optimizer\)\)"):
        lone.step()
    optimizer.step()  # the original still owns the model's parameters


# --- no switch for all threads ---------------------------------------------------------------------------------------


def in_another_thread(function):
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def test_blank_parameters_are_blank_in_one_thread_alone():
    with blank():
        assert in_another_thread(lambda: Linear(3, 3, rng=0).w.data.any())
        assert not Linear(3, 3, rng=0).w.data.any()
    inside, done = threading.Event(), threading.Event()

    def loads():
        with blank():
            inside.set()
            done.wait(10)

    thread = threading.Thread(target=loads)
    thread.start()
    inside.wait(10)
    with blank():  # overlapping, not nested: neither leaves the other's state behind
        done.set()
        thread.join()
    assert Linear(3, 3, rng=0).w.data.any()


@pytest.mark.parametrize("name", ["weights", "q", "concat"])
def test_a_value_replaced_in_one_model_is_replaced_in_no_other(name):
    x = np.random.default_rng(0).normal(size=(2, 4, 6))
    mine, other = (MultiHeadAttention(6, 2, rng=1, dtype="float64") for _ in range(2))
    plain = other(x)
    found = []

    def changed(array):
        found.append(in_another_thread(lambda: np.array_equal(other(x), plain)))
        other.backward(np.ones_like(plain))
        return np.zeros_like(array)

    def slope(dnew, old):
        found.append(in_another_thread(lambda: np.array_equal(other(x), plain)))
        return dnew

    functions = dict(vars(F))
    with mine.replacing(name, changed, slope):
        mine(x)
        mine.backward(plain)
        assert dict(vars(F)) == functions
    assert found == [True, True]


# --- wrong rates, and arrays that were changed in place --------------------------------------------------------------


@pytest.mark.parametrize("rate", [float("nan"), float("inf"), -1e-3, None, "0.1"])
def test_a_rate_that_is_none(rate):
    optimizer = Adam([Linear(2, 2).w])
    with pytest.raises((ValueError, TypeError), match="lr must"):
        optimizer.lr = rate
    model, batches = bert(), LabelledBatches([([4, 5], 0), ([5, 6], 1)], batch_size=2)
    trainer = Trainer(model, Adam(model.parameters()), Classification(model), lambda step: rate if step == 3 else 1e-3)
    with pytest.raises((ValueError, TypeError), match="rate of the schedule for step 3 must"):
        trainer.fit(batches, steps=3, progress=False)
    assert trainer.step == 2 and all(np.isfinite(p.data).all() for p in model.parameters())


class Residual(Module):
    """What a student writes: x += layer(x) changes the x that the layer has kept."""

    def __init__(self, in_place):
        self.linear, self.in_place = Linear(4, 4, rng=0, dtype="float64"), in_place

    def forward(self, x):
        y = self.linear(x)
        if self.in_place:
            x += y
            return x
        return x + y

    def backward(self, dy):
        return dy + self.linear.backward(dy)


def test_a_kept_array_that_changed_is_named():
    x, dy = np.random.default_rng(0).normal(size=(2, 2, 4))
    model = Residual(in_place=True).train(check=True)
    model(x.copy())
    with pytest.raises(RuntimeError, match=r"linear \(Linear\): x was changed in place.*x = x \+ y"):
        model.backward(dy)
    model.train()
    model(x.copy())
    model.backward(dy)  # only looked for when asked
    model = Residual(in_place=False).train(check=True)
    model(x)
    model.backward(dy)


def test_a_parameter_that_changed_before_the_backward_is_named():
    model = transformer().train(check=True)
    optimizer = Adam(model.parameters())
    logits = model(SRC, TGT)
    model.backward(logits)
    optimizer.step()
    with pytest.raises(RuntimeError, match=r"the parameter .* was changed between the forward and the backward"):
        model.backward(logits)


# --- standing in -----------------------------------------------------------------------------------------------------


def test_calls_are_stood_in_for_in_this_thread_alone():
    x = np.array([1.0, 2.0])
    plain, softmax = F.softmax(x), F.softmax
    inside, done, found = threading.Event(), threading.Event(), []

    def noted(x, axis=-1):
        found.append("here")
        return softmax(x, axis)

    def elsewhere():
        with intercept.calls({F.softmax: lambda x, axis=-1: x * 0}):
            inside.set()
            done.wait(10)
            found.append(F.softmax(x).tolist())

    thread = threading.Thread(target=elsewhere)
    with intercept.calls({F.softmax: noted}):
        thread.start()
        inside.wait(10)
        F.scaled_dot_product_attention(x[None], x[None], x[None])  # also for callers inside the package
        assert in_another_thread(lambda: F.softmax(x).tolist()) == plain.tolist()
    done.set()  # the blocks overlap: the later one ends last
    thread.join()
    assert found == ["here", [0, 0]] and F.softmax is softmax
    assert F.core.softmax is softmax and not intercept._switches
