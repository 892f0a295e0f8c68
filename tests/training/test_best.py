"""The weights with the lowest validation loss: which they are, where they are saved, and that the last ones stay."""

import numpy as np
import pytest
from test_trainer import assert_same, fit, make_batches, make_trainer, replaced

from transformer_np.tasks.classify import Classifier, ClassifyOptions, ClassifyTask
from transformer_np.training import load_checkpoint, load_model
from transformer_np.training.best import Best

HELD_OUT = [make_batches(9, 4).batch(step) for step in range(3)]


def spoiled(path=None, **options):
    """A training that learns for 6 steps and then only destroys: its best weights are those of step 6 or before."""
    return make_trainer(path, dropout=0.1, schedule=lambda step: 0.02 if step <= 6 else 0.3, **options)


def run(trainer, steps=12, every=2, **options):
    fit(trainer, steps, validation=HELD_OUT, validate_every=every, **options)
    return trainer


@pytest.mark.long
def test_the_checkpoint_has_the_best_weights_and_the_last(tmp_path):
    trainer = run(spoiled(tmp_path / "file", keep_best=True))
    losses = dict(trainer.history.validation)
    step = min(losses, key=losses.get)
    assert 2 <= step <= 6 and (trainer.best.step, trainer.best.loss) == (step, losses[step])
    assert trainer.best.latest == losses[12] > 1.02 * losses[step]

    until = spoiled()
    fit(until, step)
    model, header = load_model(tmp_path / "file")
    assert_same(model.state_dict(), until.model.state_dict())
    assert header["best"] == {"step": step, "loss": losses[step], "latest": losses[12]} and header["step"] == 12
    last = {name.removeprefix("last."): a for name, a in load_checkpoint(tmp_path / "file", "last.")[0].items()}
    assert_same(last, run(spoiled()).model.state_dict())  # keeping changes nothing else
    assert_same(last, trainer.model.state_dict())
    before = trainer.best.put()
    assert_same(before, last)
    assert_same(trainer.model.state_dict(), model.state_dict())


def test_the_weights_are_stored_once_if_the_last_are_the_best(tmp_path):
    trainer = run(make_trainer(tmp_path / "file", keep_best=True), steps=8, every=4)
    assert trainer.best.step == 8
    assert not load_checkpoint(tmp_path / "file", "last.")[0]
    again = make_trainer(tmp_path / "file", keep_best=True)
    again.resume()
    assert (again.best.step, again.best.loss) == (8, trainer.best.loss)
    again.best.put()
    assert_same(again.model.state_dict(), trainer.model.state_dict())


def test_a_resumed_trainer_keeps_the_best_weights_of_its_checkpoint_unless_told_otherwise(tmp_path):
    run(spoiled(tmp_path / "file", keep_best=True))
    best, header = load_model(tmp_path / "file")
    for keep_best, expected in ((None, header["best"]), (False, None)):
        trainer = spoiled(tmp_path / "file", keep_best=keep_best)
        trainer.resume()
        trainer.save()
        model, header = load_model(tmp_path / "file")
        assert header.get("best") == expected
        assert_same(model.state_dict(), (best if expected else trainer.model).state_dict())


def test_of_equal_losses_the_first_counts_and_before_them_there_is_nothing_to_put(random_model):
    model = random_model()
    best, first = Best(model), model.state_dict()
    assert_same(best.put(), first)
    assert_same(model.state_dict(), first)
    best.measure(lambda: pytest.fail("there are no best weights to measure"))
    assert best.header() == {} and best.loss == float("inf") and best.step is None
    assert best.tensors(0).keys() == {f"model.{name}" for name in first}
    for step, loss in ((1, 0.5), (2, 0.5), (3, 0.75)):
        best.offer(step, loss)
        model.output.b = np.full(13, float(step))
    assert (best.step, best.loss, best.latest) == (1, 0.5, 0.75)
    assert_same(best.put(), {**first, "output.b": np.full(13, 3.0)})
    assert_same(model.state_dict(), first)


def test_the_best_is_the_best_on_the_sample():
    """At the end the history has the loss on all batches, but the sample decides."""
    trainer = run(spoiled(keep_best=True), steps=8, every=2, sample=HELD_OUT[:1])
    steps = [step for step, _ in trainer.history.validation]
    assert steps == [2, 4, 6, 8]
    assert trainer.history.validation[-1][1] == trainer.validate(HELD_OUT)
    assert trainer.best.latest == trainer.validate(HELD_OUT[:1]) != trainer.validate(HELD_OUT)
    trainer = run(spoiled(keep_best=True), steps=8, every=2, sample=[])  # none: all of them
    assert trainer.best.latest == trainer.validate(HELD_OUT) and trainer.best.loss > 0


def test_the_best_is_measured_again_on_another_sample(tmp_path):
    first = run(spoiled(tmp_path / "file", keep_best=True), steps=6, sample=HELD_OUT[1:])
    resumed = spoiled(tmp_path / "file", keep_best=True)
    resumed.resume()
    assert resumed.best.loss == first.best.loss
    run(resumed, steps=12, sample=HELD_OUT[:1])
    resumed.best.put()
    assert resumed.validate(HELD_OUT[:1]) == resumed.best.loss


def test_best_weights_that_do_not_fit_are_refused(tmp_path):
    run(spoiled(tmp_path / "file", keep_best=True), steps=8, every=4)
    trainer = spoiled(tmp_path / "wrong", keep_best=True)
    for damage in (
        {"model.output.b": np.ones(3)},
        {"model.extra": np.ones(3)},
        {"header": {"best": 3}},
        {"header": {"best": {"step": 2}}},
        {"header": {"best": {"step": 2, "loss": "low", "latest": 1.0}}},
    ):
        for name in ("", ".history"):
            (tmp_path / f"wrong{name}").write_bytes((tmp_path / f"file{name}").read_bytes())
        replaced(tmp_path / "wrong", **damage)
        with pytest.raises(ValueError, match="its best weights do not belong to this model"):
            trainer.resume()


# --- the tasks -------------------------------------------------------------------------------------------------------

WORDS = "the a film book plot song was is good bad dull fine often never".split()
TINY = {"batch_size": 8, "layers": 1, "heads": 2, "d_model": 8, "d_ff": 8, "max_len": 9, "lr": 0.05, "warmup": 0}


@pytest.fixture(scope="module")
def noise(tmp_path_factory):
    """Labels at random: all that can be learned is overfitting."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("noise") / "noise.tsv"
    path.write_text("".join(f"{'+-'[rng.integers(2)]}\t{' '.join(rng.choice(WORDS, 6))}\n" for _ in range(60)))
    return path


def classify(noise, folder, steps=30, **how):
    options = ClassifyOptions(data=noise, steps=steps, dropout=0.0, **TINY)
    return ClassifyTask().train(options, folder, progress=False, validate_every=10, **how)


@pytest.mark.long
def test_the_model_of_a_run_is_the_best(noise, tmp_path):
    best, last = classify(noise, tmp_path / "best"), classify(noise, tmp_path / "last", keep="last")
    losses = dict(last.trainer.history.validation)
    step = min(losses, key=losses.get)
    assert step < 30 and last.validation_loss == losses[30] and last.kept == ""
    assert best.validation_loss == pytest.approx(losses[step])
    assert best.kept.startswith(f"kept the weights of step {step}, with the lowest validation loss; since then ")
    assert best.kept.endswith(f"it has risen ({losses[step]:.4f} there, {losses[30]:.4f} at step 30)")
    for kept, name in ((best, "best"), (last, "last")):
        loaded = Classifier.load(tmp_path / name).probabilities("the film was good")
        assert loaded == Classifier.of(kept).probabilities("the film was good")
    resumed = ClassifyTask().train({"steps": 31}, tmp_path / "last", resume=True, progress=False)
    assert resumed.trainer.best is None  # as before
    with pytest.raises(ValueError, match='keep must be "best" or "last", got \'first\''):
        classify(noise, tmp_path / "other", keep="first")
