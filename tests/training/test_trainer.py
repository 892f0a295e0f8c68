"""Teacher forcing and the training loop: the right loss, exact resume, and every way a training can end."""

import json
import math
import os
import signal

import numpy as np
import pytest

from transformer_np import functional as F
from transformer_np import training
from transformer_np.data import PAD, Seq2SeqBatch, Seq2SeqBatches
from transformer_np.models import Transformer, TransformerConfig
from transformer_np.module import Module
from transformer_np.training import SGD, Adam, AdamW, TeacherForcing, Trainer, TrainingError, load_checkpoint
from transformer_np.training.objectives import Objective

SIZES = {"d_model": 8, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1, "d_ff": 12, "max_len": 12}


def make_model(dropout=0.2, **other):
    return Transformer(TransformerConfig(13, 11, **{**SIZES, "dropout": dropout, **other}))


def make_batches(n=22, batch_size=4):
    """Targets that depend on the sources: something to learn. 22 pairs in fours are epochs of 6 steps."""
    rng = np.random.default_rng(3)
    sources = [rng.integers(4, 13, rng.integers(1, 7)).tolist() for _ in range(n)]
    return Seq2SeqBatches([(src, [4 + i % 7 for i in src]) for src in sources], batch_size)


def make_trainer(path=None, dropout=0.2, lr=0.01, kind=Adam, objective=TeacherForcing, **options):
    model = make_model(dropout)
    options = {"clip_norm": 1.0, "schedule": lambda step: lr / step**0.5, **options}
    return Trainer(model, kind(model.parameters(), lr), objective(model, 0.1), checkpoint=path, **options)


def fit(trainer, steps, **options):
    return trainer.fit(options.pop("batches", None) or make_batches(), steps, progress=False, **options)


def values(trainer):
    """Everything that a training consists of, to be compared bit for bit."""
    optimizer = {f"optimizer {name}": array for name, array in trainer.optimizer.state_dict().items()}
    return {**trainer.model.state_dict(), **optimizer, "losses": np.array(trainer.history.losses)}


def assert_same(a, b):
    assert a.keys() == b.keys()
    assert [name for name in a if not np.array_equal(a[name], b[name])] == []


class Disturbed:
    """Batches that call `disturb()` before they hand out the one of a step, counted from 1, where `there()`."""

    def __init__(self, step, disturb, there=lambda: True, inner=None):
        self.inner, self.step, self.disturb, self.there = inner or make_batches(), step, disturb, there

    def batch(self, number):
        if number + 1 == self.step and self.there():
            self.disturb()
        return self.inner.batch(number)


# --- teacher forcing -------------------------------------------------------------------------------------------------


@pytest.fixture
def example(random_model):
    """A model in float64, and a batch with padding on both sides."""
    src, tgt_in = np.array([[4, 5, 6, 7], [8, 9, PAD, PAD]]), np.array([[1, 7, 8], [1, 9, PAD]])
    return random_model(), Seq2SeqBatch(src, tgt_in, np.array([[7, 8, 2], [9, 2, PAD]]))


def test_the_loss_is_cross_entropy_smoothed_only_in_training_padding_not_counted(example):
    model, batch = example
    logits, objective = model(batch.src, batch.tgt_in), TeacherForcing(model, label_smoothing=0.3)
    smoothed, plain = (F.cross_entropy(logits, batch.tgt_out, PAD, smoothing)[0] for smoothing in (0.3, 0.0))
    assert smoothed != plain and objective.forward(batch) == (smoothed, 5)
    model.eval()
    assert objective.forward(batch) == (plain, 5)


def test_another_id_can_be_the_padding(random_model):
    model = random_model(pad_id=4, bos_id=1, eos_id=2)
    batch = Seq2SeqBatch(np.array([[5, 6]]), np.array([[1, 7, 0]]), np.array([[7, 0, 4]]))  # 0 is a word here
    loss = F.cross_entropy(model(batch.src, batch.tgt_in), batch.tgt_out, ignore_index=4)[0]
    assert TeacherForcing(model).forward(batch) == (loss, 2)


# --- exact resume ----------------------------------------------------------------------------------------------------


def test_a_checkpoint_every_n_steps_and_at_the_end(tmp_path):
    path, steps = tmp_path / "file", []

    class Recorded(Trainer):
        def save(self):
            super().save()
            steps.append(load_checkpoint(path)[1]["step"])

    model = make_model()
    trainer = Recorded(model, Adam(model.parameters()), TeacherForcing(model), checkpoint=path)
    fit(trainer, 6, checkpoint_every=2)
    fit(trainer, 7, checkpoint_every=4)
    assert steps == [2, 4, 6, 7]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["file", "file.history"]


def replaced(path, drop=(), header=(), **tensors):
    """Write the checkpoint again, with some of its tensors and header entries missing or others."""
    old, old_header = load_checkpoint(path)
    tensors = {name: array for name, array in {**old, **tensors}.items() if name not in drop}
    training.save_checkpoint(path, tensors, {k: v for k, v in {**old_header, **dict(header)}.items() if k not in drop})


def with_config(path, **changes):
    """The header of a checkpoint with another configuration; None leaves a field out."""
    config = {**load_checkpoint(path)[1]["config"], **changes}
    return {"config": {name: value for name, value in config.items() if value is not None}}


def test_a_checkpoint_that_is_older_than_a_field_of_the_configuration(tmp_path):
    """It does not name its optimizer either."""
    path = tmp_path / "file"
    fit(make_trainer(path), 2)
    replaced(path, drop=["optimizer"], header=with_config(path, norm_first=None))
    trainer = make_trainer(path)
    trainer.resume()
    assert trainer.step == 2


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-100]), "truncated"),
        (lambda path: path.write_bytes(np.random.default_rng(0).bytes(1000)), "not a safetensors file"),
        (lambda path: replaced(path, drop=["model.output.w"]), "missing output.w"),
        (lambda path: replaced(path, **{"model.extra": np.ones(3)}), "not expected extra"),
        (lambda path: replaced(path, **{"model.output.b": np.ones(3)}), r"b must have shape \(11,\), got \(3,\)"),
        (lambda path: replaced(path, **{"model.output.b": np.ones(11, int)}), r"output\.b must be floats, got int64"),
        (lambda path: replaced(path, drop=["optimizer.v"]), "does not fit the optimizer"),
        (lambda path: replaced(path, **{"optimizer.m": np.ones(3)}), "does not fit the optimizer"),
        (lambda path: replaced(path, drop=["history.validation"]), "'history.validation' is missing"),
        (lambda path: replaced(path, drop=["random_states"]), "'random_states' is missing, as in a merged run"),
        (lambda path: replaced(path, header={"random_states": []}), "0 random states, the model has 1"),
        (lambda path: replaced(path, header={"random_states": 3}), "no random states, the model has 1"),
        (lambda path: replaced(path, header={"random_states": [{"bit_generator": "PCG64"}]}), "damaged random state"),
        (lambda path: replaced(path, header={"step": [3]}), "is damaged"),
        (lambda path: replaced(path, header=with_config(path, d_ff=16)), "another model: .*d_ff 16, not 12"),
        (lambda path: replaced(path, header=with_config(path, d_ff=16, dropout=0.3)), "dropout 0.3, not 0.2"),
        (lambda path: replaced(path, header={"config": [3]}), r"another model: its configuration is \[3\]"),
        (lambda path: replaced(path, header={"model": "GPT"}), "another model: a GPT, not a Transformer"),
        (lambda path: fit(make_trainer(path, kind=SGD), 1), "another run: its optimizer is SGD, not Adam"),
        (lambda path: fit(make_trainer(path, kind=AdamW), 1), "another run: its optimizer is AdamW, not Adam"),
    ],
)
def test_resume_refuses_what_does_not_fit_and_changes_nothing(tmp_path, damage, message):
    path = tmp_path / "file"
    fit(make_trainer(path), 2)
    damage(path)
    trainer = make_trainer(path)
    fit_before = values(trainer)
    state = json.dumps(trainer.model.generators()[0].bit_generator.state)
    with pytest.raises(ValueError, match=message) as caught:
        trainer.resume()
    assert str(path) in str(caught.value)
    assert_same(values(trainer), fit_before)
    assert json.dumps(trainer.model.generators()[0].bit_generator.state) == state


# --- validation, a training that diverges, and Ctrl-C ----------------------------------------------------------------


def test_validation_leaves_the_training_as_it_would_be_without():
    with_it, without = make_trainer(), make_trainer()
    with_it.model.train(check=True)
    fit(with_it, 8, validation=list(make_batches().in_order()), validate_every=1)
    fit(without, 8)
    assert_same(values(with_it), values(without))
    assert with_it.model.training and with_it.model.encoder[0].training
    assert with_it.model._seals and with_it.model.encoder[0]._seals  # it looks for changed arrays as before


class ExplodingGradient(TeacherForcing):
    def backward(self, dloss=1.0):
        super().backward(dloss)
        self.model.output.b.grad[3] = math.inf


def test_a_gradient_that_is_not_finite_changes_no_parameter():
    trainer = make_trainer(objective=ExplodingGradient)
    before = values(trainer)
    with pytest.raises(TrainingError, match="norm of the gradient is inf at step 1"):
        fit(trainer, 3)
    assert_same(values(trainer), before)


@pytest.mark.parametrize(
    "validation, message",
    [(None, "a parameter is not finite"), ([make_batches().batch(0)], "the validation loss is nan")],
)
def test_parameters_that_are_not_finite_are_never_saved(tmp_path, validation, message):
    path = tmp_path / "file"
    trainer = make_trainer(path, clip_norm=None)
    fit(trainer, 2)
    before = path.read_bytes()
    trainer.objective = ExplodingGradient(trainer.model)
    with pytest.raises(TrainingError, match=f"{message} at step 3"):
        fit(trainer, 3, validation=validation)
    assert path.read_bytes() == before


def test_an_interrupt_in_the_last_step_or_save_loses_nothing(tmp_path):
    class Interrupted(Trainer):
        def save(self):
            os.kill(os.getpid(), signal.SIGINT)
            super().save()

    model = make_model()
    trainer = Interrupted(model, Adam(model.parameters()), TeacherForcing(model), checkpoint=tmp_path / "file")
    fit(trainer, 2)
    assert not trainer.interrupted and load_checkpoint(tmp_path / "file")[1]["step"] == 2


# --- what cannot be trained, saved or resumed says so before the first step -------------------------------------------


def test_validation_data_may_be_read_once():
    """A generator gives its batches to every validation, not to the first alone."""
    trainer, batches = make_trainer(), make_batches()
    fit(trainer, 3, validation=(batches.batch(n) for n in range(2)), sample=iter([batches.batch(0)]), validate_every=1)
    again = make_trainer()
    fit(again, 3, validation=[batches.batch(n) for n in range(2)], sample=[batches.batch(0)], validate_every=1)
    assert trainer.history.validation == again.history.validation and trainer.history.validation[1][1] > 0
    with pytest.raises(ValueError, match="batches is empty"):
        trainer.validate([])


class Unshaped(Module):
    """A model of one's own, without a configuration."""

    def __init__(self):
        self.inner = make_model()

    def forward(self, src, tgt_in):
        return self.inner(src, tgt_in)

    def backward(self, dlogits):
        self.inner.backward(dlogits)


class OfUnshaped(TeacherForcing):
    def __init__(self, model):
        Objective.__init__(self, model, PAD)


@pytest.mark.parametrize("bits", ["PCG64", "MT19937", "Philox", "SFC64"])
def test_a_model_of_ones_own_is_saved_in_a_new_folder_and_resumed(tmp_path, bits):
    path = tmp_path / "new" / "run" / "own.safetensors"

    def of_own():
        model = Unshaped()
        model.inner.decoder[0].add_norm1.dropout.rng = np.random.Generator(getattr(np.random, bits)(1))
        return Trainer(model, Adam(model.parameters()), OfUnshaped(model), checkpoint=path)

    whole, first, second = of_own(), of_own(), of_own()
    fit(whole, 4)
    fit(first, 2)
    second.resume()
    fit(second, 4)
    assert_same(values(whole), values(second))
    with pytest.raises(ValueError, match="belongs to another model: a Unshaped, not a Transformer"):
        make_trainer(path).resume()
    fit(make_trainer(tmp_path / "other.safetensors"), 1)
    other = of_own()
    other.checkpoint = tmp_path / "other.safetensors"
    with pytest.raises(ValueError, match="belongs to another model: a Transformer, not a Unshaped"):
        other.resume()


class Uncounted:
    def forward(self, batch):
        raise AssertionError("it must be refused before")

    backward = forward


class Seeded(Module):
    rng = 3


MODEL = make_model()
ADAM, OWN = Adam(MODEL.parameters()), type("OwnSGD", (), {"step": lambda self: None})()


def uncounted(model=MODEL, optimizer=ADAM, **options):
    return Trainer(model, optimizer, Uncounted(), **options)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: uncounted(optimizer=OWN), TypeError, "a subclass of training.Optimizer"),
        (lambda: Trainer(MODEL, ADAM, None), TypeError, "objective must be an object with .forward"),
        (lambda: uncounted(Seeded()), TypeError, "self.rng of a layer must be a Generator, got 3"),
        (lambda: uncounted(tokens_at_once=9), TypeError, r"with \.count"),
        (lambda: uncounted(header={"a": {1}}), TypeError, "header must be JSON"),
        (lambda: uncounted(header=["a"]), TypeError, "header must be a dict, got"),
        (lambda: uncounted().resume(), ValueError, "pass checkpoint=…"),
        (lambda: fit(uncounted(), 2, batches=[1]), TypeError, r"with \.batch;"),
        (lambda: fit(uncounted(), 2.5), TypeError, "steps must be a whole"),
        (lambda: fit(uncounted(), 2, validate_every=-1), ValueError, "least 0"),
        (lambda: fit(uncounted(), 2, save_seconds=-1), ValueError, "save_sec"),
        (lambda: fit(uncounted(), 2, validation=OWN), TypeError, "validation"),
        (lambda: fit(uncounted(make_model()), 2), ValueError, "optimizer has no para"),
        (lambda: fit(Trainer(MODEL, ADAM, TeacherForcing(make_model())), 2), ValueError, "objective has no parameter"),
    ],
)
def test_what_cannot_be_trained_is_refused_first(call, error, message):
    with pytest.raises(error, match=message):
        call()
