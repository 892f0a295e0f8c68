"""The translator: its options, its runs on disk, and what it makes of a sentence."""

import itertools
import json
import os
from types import SimpleNamespace

import numpy as np
import pytest
from shared import interrupted

from transformer_np.data import UNK, BPETokenizer
from transformer_np.support import files
from transformer_np.tasks import runs, task, translation
from transformer_np.tasks.translation import TranslationOptions, TranslationTask, Translator
from transformer_np.training import Trainer

train_translator = TranslationTask().train

SUBJECTS = [("Ana", "Ana"), ("Lucas", "Lucas"), ("he", "ele"), ("she", "ela"), ("Maria", "Maria")]
VERBS = [("sings", "canta"), ("runs", "corre"), ("sleeps", "dorme"), ("reads", "lê")]
TIMES = [("today", "hoje"), ("now", "agora")]
PAIRS = [(f"{s} {v} {t}.", f"{S} {V} {T}.") for (s, S), (v, V), (t, T) in itertools.product(SUBJECTS, VERBS, TIMES)]
TINY = {"batch_size": 16, "layers": 1, "heads": 2, "d_model": 16, "d_ff": 20, "warmup": 30, "max_len": 12}


def write_pairs(path, pairs=PAIRS):
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return path


@pytest.fixture
def file(tmp_path):
    return write_pairs(tmp_path / "pairs.tsv")


def train(file, folder, **options):
    options = TranslationOptions(**{"pairs": file, "steps": 6, **TINY, **options})
    return train_translator(options, folder, progress=False)


def resume(folder, **asked):
    return train_translator(asked, folder, resume=True, progress=False)


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A run that has learned the 40 sentences, those that it never saw too."""
    folder = tmp_path_factory.mktemp("runs")
    options = {"steps": 200, "d_model": 32, "d_ff": 64, "lr": 0.01, "dropout": 0.0, "label_smoothing": 0.0}
    return folder / "run", train(write_pairs(folder / "pairs.tsv"), folder / "run", **options)


# --- options ---------------------------------------------------------------------------------------------------------


def test_the_highest_learning_rate(file, tmp_path, monkeypatch):
    rates = train(file, tmp_path / "a", steps=8, warmup=4, lr=0.02).trainer.history.learning_rates
    assert max(rates) == rates[3] == pytest.approx(0.02)
    rates = train(file, tmp_path / "b", steps=8, warmup=4, tokens="char", max_len=60).trainer.history.learning_rates
    assert max(rates) == rates[3] == pytest.approx(0.03) and rates[-1] == pytest.approx(0, abs=1e-9)
    rates = train(file, tmp_path / "words", steps=8, warmup=4).trainer.history.learning_rates
    assert max(rates) == rates[3] == pytest.approx(3.6e-3 * (64 / 16) ** 0.5)
    monkeypatch.setattr("transformer_np.data.english_portuguese", lambda: PAIRS * 2)
    built_in = TranslationTask().train(TranslationOptions(**TINY, steps=1), tmp_path / "c", progress=False)
    assert built_in.setup.schedule(30) == pytest.approx((16 * 30) ** -0.5)  # the paper's


def test_a_sample_of_the_validation_data_costs_about_as_much_as_it_may():
    objective, batches = SimpleNamespace(count=lambda batch: batch), SimpleNamespace(batch=lambda step: 50)
    setup = SimpleNamespace(objective=objective, batches=batches, validation=[40] * 30)
    for every, number in ((100, 15), (10, 2), (1, 1), (1000, 30)):
        sample = task._sample(setup, every)
        assert len(sample) == number and sum(sample) < 40 + 3 * task.VALIDATION_SHARE * every * 50
    setup.validation, setup.objective.state_dict = list(range(1, 31)), dict
    assert task._sample(setup, 10) == list(range(1, len(task._sample(setup, 10)) + 1))  # batches in a row


def test_what_is_measured_in_the_end(tmp_path, monkeypatch):
    pairs = [*PAIRS, *((f"{'Ana ' * 12}{i}", "Ana") for i in range(40))]  # too long for the model
    measured = []
    monkeypatch.setattr(Translator, "exact_match", lambda self, pairs: measured.append(pairs) or 0.25)
    run = train(write_pairs(tmp_path / "pairs.tsv", pairs), tmp_path / "run")
    short = [pair for pair in run.data.test if pair in PAIRS]
    assert 0 < len(short) < len(run.data.test)
    assert measured == [short] and run.measured == {"exact match on unseen sentences": 0.25}


# --- a trained translator --------------------------------------------------------------------------------------------


def test_exact_match_is_a_share_to_the_letter(learned):
    exact_match, right = Translator.of(learned[1]).exact_match, PAIRS[:3]
    assert exact_match([*right, (PAIRS[3][0], PAIRS[3][1].lower())]) == 0.75
    assert exact_match([(s, t.replace(" ", "  ")) for s, t in right]) == 1.0  # but for white space
    for other in (" ?", " .", "‿."):  # a text that its vocabulary cannot spell is not right
        assert exact_match([(s, t.replace(".", other)) for s, t in right]) == 0.0
    assert exact_match(PAIRS, batch_size=7) == exact_match(PAIRS)
    with pytest.raises(ValueError, match="no examples"):
        exact_match([])


def test_unknown_words_are_never_written(learned):
    folder, _ = learned
    translator = Translator.load(folder)
    usual = translator.translate("Ana sings today.")
    translator.model.output.b.data[UNK] = 1e3  # the model would write nothing else
    for beam_size in (1, 3):
        assert "<unk>" not in translator.translate("xyzzy plugh", beam_size)
    assert translator.translate("Ana sings today.") == usual and translator.exact_match(PAIRS[:3]) == 1.0
    assert all(token != "<unk>" for step in translator.steps("xyzzy") for token, _ in step)
    assert "<unk>" not in translator.attention("xyzzy")[1]


def test_byte_pairs(file, tmp_path):
    sizes = {"tokens": "bpe", "vocab_size": 280, "max_len": 60}
    run = train(file, tmp_path / "run", steps=2, **sizes)
    assert [(type(t), len(t)) for t in run.tokenizers.values()] == [(BPETokenizer, 280)] * 2
    translator = Translator.load(tmp_path / "run")
    assert translator.translate("Zoë, 14:30!") == Translator.of(run).translate("Zoë, 14:30!")
    assert translator.src_tokenizer.unknown("Zoë, 14:30!") == []
    ids = translator.encode("Zoë, 14:30!")[0].tolist()
    assert translator.src_tokenizer.decode(ids) == "Zoë, 14:30!"
    source, target = translator.attention("Zoë, 14:30!")
    assert len(source) == len(ids)
    assert translator.model.decoder[0].cross_attention.weights.shape[2:] == (len(target), len(source))
    assert resume(tmp_path / "run", steps=3).trainer.step == 3
    with pytest.raises(ValueError, match='tokens must be "word", got "bpe"'):
        TranslationOptions(embeddings="vectors.txt", **sizes)


def test_which_sentences_are_read(learned):
    """Upper and lower case are one; none may be empty or too long."""
    translator = Translator.of(learned[1])
    assert np.array_equal(translator.encode("ANA Sings TODAY."), translator.encode("ana sings today."))
    assert translator.translate("ANA Sings TODAY.") == "Ana canta hoje."
    for sentence in ("", "  \t "):
        with pytest.raises(ValueError, match="sentence is empty"):
            translator.translate(sentence)
    assert translator.encode("now " * 12).shape == (1, 12)
    for method in (translator.translate, translator.steps, translator.attention):
        with pytest.raises(ValueError, match="sentence has 13 tokens, the model reads at most 12"):
            method("now " * 13)


def test_what_beam_search_is_asked_for(learned, monkeypatch):
    asked = []
    monkeypatch.setattr(translation, "beam_search", lambda model, src, *rest: asked.append((src.shape, *rest)) or [[4]])
    Translator.of(learned[1]).translate("he reads", beam_size=3, length_penalty=0.9)
    assert asked == [((1, 2), 3, 12, 0.9)]  # 2 · 2 + 10 tokens, but the model has only 12 places


def test_attention_has_a_row_for_each_target_token_and_a_column_for_each_source_token(learned):
    translator = Translator.of(learned[1])
    source, target = translator.attention("She zigzags today.")
    assert source == ["She", "zigzags", "today", "."]
    assert target[-1] == "<eos>" and target[-2] == "."
    decoder = translator.model.decoder[0]
    assert decoder.cross_attention.weights.shape == (1, 2, len(target), len(source))
    assert decoder.self_attention.weights.shape == (1, 2, len(target), len(target))
    np.testing.assert_allclose(decoder.cross_attention.weights.sum(axis=-1), 1, rtol=1e-5)
    assert target == [candidates[0][0] for candidates in translator.steps("She zigzags today.")]
    assert translator.attention("Ana ne\u0301")[0] == ["Ana", "né"]  # é as two characters is one all the same


def test_pairs_that_are_too_long_are_left_out(tmp_path):
    lengths = [(8, 1), (9, 1), (2, 7), (2, 8)] * 20  # source and target tokens; the target has a start token besides
    lines, pairs = [], [*PAIRS, *((f"{'Ana ' * (s - 1)}{i}", "Ana " * t) for i, (s, t) in enumerate(lengths))]
    file = write_pairs(tmp_path / "pairs.tsv", pairs)
    options = TranslationOptions(pairs=file, steps=1, **{**TINY, "max_len": 8})
    run = train_translator(options, tmp_path / "run", progress=False, report=lines.append)
    used = run.data.train + run.data.validation
    left_out = sum(len(s.split()) > 8 or len(t.split()) >= 8 for s, t in used)
    assert left_out > 20
    assert len(lines) == 1 and f"{left_out} pairs longer than 8 tokens left out" in lines[0]
    learned_from, validated = (int(lines[0].split()[n]) for n in (0, 3))
    assert learned_from + validated == len(used) - left_out
    found = Translator.of(run).evaluate(file)
    assert found["sentence pairs"] + found["longer ones left out"] == len(pairs) and found["longer ones left out"] >= 40


@pytest.mark.long
def test_the_built_in_corpus_holds_the_lectures_sentence_back():
    options = TranslationOptions()
    data = TranslationTask().load(options)
    assert ("Lucas will travel in December", "Lucas vai viajar em dezembro") in data.test
    source = TranslationTask().train_tokenizers(options, data)["source"]
    assert source.unknown("Lucas will travel in December") == []


# --- resume ----------------------------------------------------------------------------------------------------------


def test_more_steps_on_resume(file, tmp_path):
    straight = train(file, tmp_path / "straight", steps=9)
    train(file, tmp_path / "longer")
    with interrupted(8):
        assert resume(tmp_path / "longer", steps=9).trainer.interrupted
    run = resume(tmp_path / "longer")  # the new number of steps is remembered
    assert run.trainer.history.losses == straight.trainer.history.losses and len(run.trainer.history.losses) == 9
    assert run.validation_loss == straight.validation_loss


def test_resume_to_where_it_was_interrupted(file, tmp_path):
    """There was a validation before that step, none in it."""
    options = TranslationOptions(**{"pairs": file, "steps": 7, **TINY})
    with interrupted(5):
        train_translator(options, tmp_path / "run", validate_every=2, progress=False)
    assert [step for step, _ in resume(tmp_path / "run", steps=5).trainer.history.validation] == [2, 4, 5]


# --- folders ---------------------------------------------------------------------------------------------------------


def test_a_folder_that_cannot_be_written_any_more_fails_before_the_resumed_training(file, tmp_path, monkeypatch):
    train(file, tmp_path / "run")
    monkeypatch.setattr(Trainer, "fit", lambda *_, **__: pytest.fail("the training began"))
    (tmp_path / "run" / files.LOCK).mkdir()  # root may write everywhere, but not there
    with pytest.raises(OSError):
        resume(tmp_path / "run", steps=9)


def make_run(folder, kind, seconds):
    folder.mkdir(parents=True)
    (folder / runs.DESCRIPTION).write_text(json.dumps({"kind": kind}))
    (folder / runs.CHECKPOINT).write_bytes(b"")
    os.utime(folder / runs.CHECKPOINT, (seconds, seconds))


def test_the_newest_run_of_the_kind(tmp_path):
    with pytest.raises(FileNotFoundError, match="train one with `transformer-np train translate`"):
        runs.newest_run("translate", below=tmp_path)
    make_run(tmp_path / "runs" / "old", "translate", 1000)
    make_run(tmp_path / "new", "translate", 2000)
    make_run(tmp_path / "other", "gpt", 3000)
    make_run(tmp_path / "too" / "far" / "down", "translate", 4000)
    make_run(tmp_path / "broken", "translate", 5000)
    (tmp_path / "broken" / runs.DESCRIPTION).write_text("[")
    assert runs.newest_run("translate", below=tmp_path) == tmp_path / "new"
    assert runs.newest_run("translate", below=tmp_path / "runs" / "old") == tmp_path / "runs" / "old"
