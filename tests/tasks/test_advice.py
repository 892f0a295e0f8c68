"""The advice at the end of a training run, on curves of each kind."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from transformer_np.tasks.advice import Measured, advice, measure
from transformer_np.tasks.classify import ClassifyOptions, ClassifyTask
from transformer_np.tasks.translation import TranslationOptions, TranslationTask

STEPS = np.arange(100, 1001, 100)


def run(losses, kept=1000, **more):
    """A run of 1,000 steps with these ten validation losses; the training losses are a little lower."""
    curve = np.interp(np.arange(1, 1001), STEPS, losses)
    noise = np.random.default_rng(0).normal(size=1000) * 0.05
    validation = [(int(step), float(loss)) for step, loss in zip(STEPS, losses, strict=True)]
    options = {"steps": 1000, "dropout": 0.1, "lr": 0.001}
    defaults = {"right": 0.6, "baseline": 4.0, "options": options}
    return Measured((curve * 0.95 + noise).tolist(), validation, kept, **{**defaults, **more})


FLAT = run([2, 1.2, 0.8, 0.6, 0.5, 0.47, 0.46, 0.455, 0.452, 0.45])
FALLING = run([3, 2.8, 2.6, 2.4, 2.2, 2.0, 1.85, 1.7, 1.6, 1.5])
SLOWLY = run([3, 2.5, 2.3, 2.2, 2.15, 2.1, 2.07, 2.04, 2.0, 1.92])
DIVERGED = run([2, 1.5, 1.2, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5, 1.6], kept=400, rate=10.0)
OVERFITTING = replace(DIVERGED, losses=FALLING.losses)


def only(measured, pattern):
    (line,) = advice(measured)
    assert re.search(pattern, line), line


@pytest.mark.parametrize("seed", range(3))
def test_silent_when_all_is_well(seed):
    assert advice(FLAT) == []
    noise = np.random.default_rng(seed).normal(size=10) * 0.003
    assert advice(run(np.array([loss for _, loss in FLAT.validation]) + noise)) == []
    few = replace(FLAT, validation=FLAT.validation[-1:])  # then the training losses count
    assert advice(few) == []


@pytest.mark.parametrize("curve", [FALLING, SLOWLY])
def test_a_loss_that_still_falls(curve):
    more = 4000 if curve is FALLING else 2000
    only(curve, rf"^the loss still falls, by \d+% over the last fifth of the steps: .*--steps {more}$")
    only(replace(curve, validation=curve.validation[-1:]), "the loss still falls")
    assert advice(replace(curve, right=0.99)) == []
    tiny = [(step, loss / 150) for step, loss in curve.validation]  # of 0.01 nats nothing is left to gain
    for text in ({}, {"baseline": 0.0, "right": None}):  # the second of one character: no share that is right
        assert advice(replace(curve, validation=tiny, **text)) == []


def test_noise_is_no_fall():
    noisy = np.random.default_rng(1).normal(1.0, 0.2, 1000).tolist()
    assert advice(replace(FLAT, losses=noisy, validation=[(1000, 1.0)])) == []


def test_overfitting_says_which_weights_are_kept():
    only(OVERFITTING, r"^overfitting: since step 400 .* from 1\.10 to 1\.60 \(the model has the weights of that step")
    only(replace(OVERFITTING, kept=1000), r"\(--keep best or --steps 400\).*a higher --dropout \(now 0\.1\)$")
    assert advice(replace(OVERFITTING, right=1.0)) == []


def test_a_training_loss_that_has_risen_too_is_no_overfitting():
    only(DIVERGED, r"^training diverged: its loss was 1\.\d+ before, and is 1\.\d+ at .*smaller --lr \(now 10\)$")
    higher = replace(FALLING, losses=[1.4, *FALLING.losses], baseline=None)  # falls to the end, but from far above
    only(replace(higher, losses=[0.7, *higher.losses]), r"^training diverged: its loss was 0\.7 before")
    only(higher, "^the loss still falls")


def test_little_learned():
    flat = run([4.1, 4.0, 3.95, 3.94, 3.93, 3.93, 3.92, 3.92, 3.92, 3.92])
    only(flat, r"^little was learned: the validation loss is 3\.92, and 4\.00 from .*different --lr \(now 0\.001\)$")
    assert advice(replace(flat, baseline=None)) == advice(replace(flat, baseline=5.0)) == []


def test_stuck():
    """Three-digit addition: a flat loss, no other reason, and hardly any answer right."""
    options = {"steps": 1000, "d_model": 64, "d_ff": 256, "dropout": 0.1, "label_smoothing": 0.0, "lr": None}
    addition = replace(FLAT, right=0.01, examples=4000, rate=0.0036, options=options)
    more = "--d-model 128 --d-ff 512 --dropout 0 --lr 0.002 and with more data than 4,000 examples"
    only(addition, rf"^only 1% of unseen data are right, .*: train with {more}$")
    only(replace(addition, options={}, examples=None), "falls: train with more data$")
    only(replace(FALLING, right=0.01), "^the loss still falls")
    assert advice(replace(FLAT, right=None)) == []
    muon = {**options, "optimizer": "muon"}
    only(replace(addition, rate=0.03, options=muon), r": train with --lr 0.01 and with more data")
    only(replace(addition, rate=0.01, options=muon), r": train with --d-model 128 .* --lr 0.005 and with more data")


def test_unknown_words_and_long_sources():
    only(replace(FLAT, unknown=0.2), "^20% of the tokens in unseen data are unknown, .* at most once .*--tokens char")
    only(replace(FLAT, longer=(7, 12)), r"^7 unseen sources are longer than any in training \(at most 12 tokens\)")
    only(replace(FLAT, longer=(1, 1)), r"^1 unseen source is longer than any in training \(at most 1 token\)")
    assert advice(replace(FLAT, unknown=0.01)) == []


def test_at_most_two_lines_the_most_important_ones():
    found = advice(replace(OVERFITTING, baseline=1.0, unknown=0.2, longer=(7, 12)))
    assert [line.split()[0] for line in found] == ["overfitting:", "20%"]


def test_never_two_lines_about_the_steps():
    """Few validations of a small text: the training loss falls to the end, the validation loss has long risen."""
    small = replace(FALLING, validation=[(100, 3.04), (200, 4.1), (300, 5.27)], kept=100, right=None)
    only(small, r"^overfitting: since step 100 .* from 3\.04 to 5\.27")
    only(replace(small, baseline=3.1), "^overfitting")
    flat = replace(small, validation=[(100, 3.04), (200, 3.05), (300, 3.05)])  # neither rises enough nor falls
    assert advice(flat) == []


def test_the_weights_that_are_kept_are_judged():
    """They have learned something, although the last ones are no better than the frequencies of the targets."""
    only(replace(OVERFITTING, baseline=1.7), "^overfitting")
    good = replace(OVERFITTING, validation=[(100, 0.5), (400, 0.01), (1000, 0.2)])
    assert advice(replace(good, right=None)) == []
    assert advice(replace(good, kept=1000))


def test_what_is_measured_in_a_run(tmp_path):
    """A file whose words mostly occur once."""
    rng = np.random.default_rng(0)
    lines = [f"say w{i} {'so ' * rng.integers(1, 4)}\tdiga p{i} assim" for i in range(200)]
    (tmp_path / "pairs.tsv").write_text("\n".join(lines))
    sizes = {"layers": 1, "heads": 2, "d_model": 8, "d_ff": 8, "steps": 60, "batch_size": 16, "lr": 0.02}
    options = TranslationOptions(pairs=tmp_path / "pairs.tsv", **sizes)
    found = TranslationTask().train(options, tmp_path / "run", progress=False)
    assert any(re.search(r"^2\d% of the tokens in unseen data are unknown", line) for line in found.advice)
    measured = measure(found)
    frequencies = np.array([1, 1, 1, 1.0]) / 4  # diga, <unk>, assim, <eos>
    assert measured.baseline == pytest.approx(-np.log(frequencies).mean(), rel=0.02)
    assert measured.longer == (0, 5)


@pytest.mark.parametrize("best", [SimpleNamespace(latest=0.3, step=3), None])
def test_a_loss_of_all_data_is_not_compared_with_losses_of_a_sample(best):
    history = SimpleNamespace(losses=[1.0] * 3, learning_rates=[0.1] * 3, validation=[(1, 0.5), (2, 0.4), (3, 0.7)])
    trainer = SimpleNamespace(history=history, best=best, step=3)
    batches = SimpleNamespace(batch=lambda step: SimpleNamespace(targets=np.array([1, 2])))
    objective = SimpleNamespace(targets=lambda batch: batch.targets, ignore_index=None)
    setup = SimpleNamespace(objective=objective, batches=batches, validation=[batches.batch(0)])
    parts = {"trainer": trainer, "setup": setup, "measured": {}, "kept": "", "tokenizers": {}}
    of = SimpleNamespace(**parts, options=SimpleNamespace(), validation_loss=0.7)
    assert measure(of).validation == history.validation
    assert measure(of, sampled=True).validation == [(1, 0.5), (2, 0.4), *([(3, 0.3)] if best else [])]
    assert measure(of, sampled=True).loss == 0.7  # the one that is printed, and its baseline is of all data


def test_a_test_file_with_longer_texts(tmp_path):
    texts = [f"{'good' if i % 2 else 'bad'}\t{'very ' * (i % 3)}{'fine' if i % 2 else 'dull'}" for i in range(60)]
    (tmp_path / "train.tsv").write_text("\n".join(texts))
    (tmp_path / "test.tsv").write_text("good\tvery very very very fine\nbad\tvery dull\n")
    files = {"data": tmp_path / "train.tsv", "test": tmp_path / "test.tsv"}
    options = ClassifyOptions(**files, steps=2, layers=1, heads=2, d_model=8, d_ff=8)
    found = ClassifyTask().train(options, tmp_path / "run", progress=False)
    assert measure(found).longer == (1, 5)  # [CLS] very very fine [SEP]
