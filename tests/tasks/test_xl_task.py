"""Transformer-XL at work: streams of text, the memory between the steps, exact resume, and what it is good for."""

from types import SimpleNamespace

import numpy as np
import pytest

from transformer_np import functional as F
from transformer_np import plots
from transformer_np.data import TextStreams
from transformer_np.models import TransformerXL, TransformerXLConfig
from transformer_np.tasks.copying import IGNORED, CopyStreams, copy_experiment
from transformer_np.tasks.xl import XLOptions, XLTask, XLTextGenerator
from transformer_np.training import Adam, SegmentRecurrence, Trainer, load_checkpoint, save_checkpoint

V = 11
TINY = {"segment_len": 5, "mem_len": 8, "batch_size": 3, "layers": 2, "heads": 2, "d_model": 8, "d_ff": 10}
TEXT = "the quick brown fox jumps over the lazy dog, and the dog does not mind. " * 12

# --- streams ---------------------------------------------------------------------------------------------------------


def test_rows_go_on_where_they_ended():
    streams = TextStreams(np.arange(30), segment_len=4, batch_size=3)  # 29 tokens with a successor, 9 a stream
    assert streams.segments == 2
    first, second, again = (streams.batch(step) for step in range(3))
    assert first.ids.tolist() == [[0, 1, 2, 3], [9, 10, 11, 12], [18, 19, 20, 21]]
    assert second.ids.tolist() == [[4, 5, 6, 7], [13, 14, 15, 16], [22, 23, 24, 25]]
    assert np.array_equal(again.ids, first.ids)
    assert [first.first, second.first, again.first] == [True, False, True]
    for batch in (first, second):
        assert np.array_equal(batch.targets, batch.ids + 1)


def test_in_order_asks_for_every_token_of_the_streams_once():
    segments = list(TextStreams(np.arange(30), 4, 3).in_order())
    assert [segment.ids.shape for segment in segments] == [(3, 4), (3, 4), (3, 1)]
    assert [segment.first for segment in segments] == [True, False, False]
    assert sorted(i for s in segments for i in s.targets.ravel().tolist()) == list(range(1, 28))


def test_the_shortest_text():
    batch = TextStreams(np.arange(7), 2, 3).batch(0)
    assert batch.ids.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert batch.targets[-1].tolist() == [5, 6]
    with pytest.raises(ValueError, match=r"the text has 6 tokens, .* need 7"):
        TextStreams(np.arange(6), 2, 3)


# --- objective -------------------------------------------------------------------------------------------------------


def make_model(**config):
    sizes = {"d_model": 8, "num_heads": 2, "num_layers": 2, "d_ff": 12, "mem_len": 6, **config}
    return TransformerXL(TransformerXLConfig(V, **sizes))


@pytest.fixture
def streams(rng):
    return TextStreams(rng.integers(V, size=100), segment_len=4, batch_size=3)  # 8 segments


def test_a_longer_memory_in_validation(streams):
    model = make_model(dtype="float64", mem_len=2)
    objective = SegmentRecurrence(model, eval_mem_len=99)
    ids = np.concatenate([s.ids for s in streams.in_order()], axis=1)
    targets = np.concatenate([s.targets for s in streams.in_order()], axis=1)
    whole = F.cross_entropy(model(ids)[0], targets)[0]
    trainer = Trainer(model, Adam(model.parameters()), objective)
    assert trainer.validate(list(streams.in_order())) == pytest.approx(whole, rel=1e-9)
    assert model.mem_len == 2
    objective.eval_mem_len = None
    assert trainer.validate(list(streams.in_order())) != pytest.approx(whole, rel=1e-6)
    model.train()
    objective.eval_mem_len = 99
    objective.forward(streams.batch(0))
    assert objective.state_dict()["mems"].shape == (2, 3, 2, 8)


def make_trainer(path, **config):
    model = make_model(dropout=0.2, **config)
    return Trainer(model, Adam(model.parameters(), 0.01), SegmentRecurrence(model), checkpoint=path)


def test_a_memory_that_does_not_fit_changes_nothing(streams, tmp_path):
    path = tmp_path / "run.safetensors"
    make_trainer(path).fit(streams, 3, progress=False)
    tensors, header = load_checkpoint(path)
    trainer = make_trainer(path)
    before = trainer.model.state_dict()
    for bad in (tensors["objective.mems"][:1], tensors["objective.mems"][..., :5], tensors["objective.mems"][0]):
        save_checkpoint(path, {**tensors, "objective.mems": bad}, header)
        with pytest.raises(ValueError, match=r"the objective: the state must be mems of shape \(2, B, M, 8\)"):
            trainer.resume()
        assert trainer.step == 0
        assert all(np.array_equal(values, before[name]) for name, values in trainer.model.state_dict().items())


# --- task ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def train(file, folder, **options):
    return XLTask().train(XLOptions(**{"text": file, "steps": 6, **TINY, **options}), folder, progress=False)


@pytest.mark.long
def test_training_learns_and_the_run_can_be_used(file, tmp_path):
    rate = {"optimizer": "adamw", "lr": 0.01, "min_lr": 0.01}
    run = train(file, tmp_path / "run", steps=150, d_model=16, eval_mem_len=20, **rate)
    assert run.trainer.history.losses[0] == pytest.approx(np.log(len(run.tokenizers["tokenizer"])), abs=0.5)
    assert run.validation_loss < 1.0
    generator = XLTextGenerator.load(tmp_path / "run")
    assert generator.model.mem_len == 20
    written = generator.generate("the quick ", 60, temperature=0)
    assert written.startswith("the quick brown fox")
    assert written == XLTextGenerator.of(run).generate("the quick ", 60, temperature=0)
    with pytest.raises(ValueError, match=r"the training text of the model does not have: '0', .*, '7' and 2 more$"):
        generator.generate("0123456789")


def test_the_lowest_rate_is_not_above_the_highest():
    with pytest.raises(ValueError, match=r"min_lr must lie in 0 … lr = 0\.03, got 1\.0"):
        XLOptions(min_lr=1.0)


# --- copying from beyond the segment ---------------------------------------------------------------------------------


def test_the_answer_is_the_symbol_lag_segments_ago():
    streams = CopyStreams(symbols=5, lag=3, segment_len=4, batch_size=6, segments=8, seed=1)
    for start in (0, 8):
        round_ = [streams.batch(start + place) for place in range(8)]
        assert [batch.first for batch in round_] == [True] + 7 * [False]
        for place, batch in enumerate(round_):
            assert batch.ids.shape == (6, 4)
            assert (batch.ids[:, -1] == 5).all() and (batch.ids[:, :-1] < 5).all()
            assert (batch.targets[:, :-1] == IGNORED).all()
            answer = np.full(6, IGNORED) if place < 3 else round_[place - 3].ids[:, 0]
            assert np.array_equal(batch.targets[:, -1], answer)


@pytest.mark.long
def test_a_transformer_xl_copies_from_beyond_its_segment_and_a_gpt_cannot():
    curves = copy_experiment(steps=120, every=40)
    assert curves.steps == [0, 40, 80, 120] and curves.chance == 1 / 8
    assert curves.accuracies["Transformer-XL"][-1] > 0.95
    assert all(share < 0.25 for share in curves.accuracies["GPT"])
    assert copy_experiment(steps=2, every=1) == copy_experiment(steps=2, every=1)


@pytest.mark.release
def test_within_the_segment_the_gpt_can_copy_too():
    """It is the distance that a GPT fails at, not the task."""
    curves = copy_experiment(steps=200, every=200, lag=0)
    assert min(shares[-1] for shares in curves.accuracies.values()) > 0.95


def test_the_figure_of_the_curves():
    accuracies = {"Transformer-XL": [0.1, 1.0], "GPT": [0.1, 0.12]}
    curves = SimpleNamespace(steps=[0, 10], accuracies=accuracies, chance=0.125, lag=2, segment_len=4)
    axes = plots.copy_curves(curves).axes[0]
    assert [line.get_label() for line in axes.lines] == ["guessing", "Transformer-XL", "GPT"]
    assert axes.lines[1].get_ydata().tolist() == [10, 100]
    assert set(axes.lines[0].get_ydata()) == {12.5}
