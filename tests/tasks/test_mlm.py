"""Masked language model training: what counts in the loss, exact resume, and what it leaves for fine-tuning."""

import numpy as np
import pytest

from transformer_np.tasks.classify import Classifier, ClassifyOptions, ClassifyTask
from transformer_np.tasks.mlm import MLMOptions, MLMTask
from transformer_np.training import load_model

TINY = {"batch_size": 8, "layers": 1, "heads": 2, "d_model": 16, "d_ff": 20, "max_len": 12}
WORDS = [("Ana", "sings", "loudly"), ("Lucas", "reads", "quietly"), ("Maria", "runs", "quickly")]
TEXT = "\n".join(f"{who} {does} {how} now and {how} today" for who, does, how in WORDS * 30)


@pytest.fixture
def file(tmp_path):
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    return tmp_path / "text.txt"


def train(file, folder, **options):
    return MLMTask().train(MLMOptions(**{"text": file, "steps": 6, **TINY, **options}), folder, progress=False)


@pytest.mark.long
def test_it_learns_what_belongs_into_a_hole(file, tmp_path):
    options = {"steps": 300, "d_model": 32, "d_ff": 32, "dropout": 0.0, "warmup": 20}
    run = train(file, tmp_path / "run", **options)
    losses = run.trainer.history.losses
    assert losses[0] == pytest.approx(np.log(len(run.tokenizers["tokenizer"])), abs=0.4)
    assert run.validation_loss < 1
    (share,) = run.measured.values()
    assert 0.6 < share <= 1


@pytest.mark.long
def test_the_built_in_text_is_not_what_classify_tests_on():
    split = MLMTask().load(MLMOptions(seed=3))
    labelled = ClassifyTask().load(ClassifyOptions(seed=3))
    assert set(split.train.split("\n")) == {text for text, _ in labelled.train}
    assert not {text for text, _ in labelled.test} & {*split.train.split("\n"), *split.validation.split("\n")}


def test_long_lines_are_cut_and_empty_ones_left_out(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(("a b c d e f g\n\n" * 3 + "a b\n") * 12)
    run = train(path, tmp_path / "run", max_len=5)
    pieces = [ids for ids, _ in run.setup.batches.pairs]
    assert {len(ids) for ids in pieces} == {3, 4, 5} and all((ids[0], ids[-1]) == (1, 2) for ids in pieces)


@pytest.fixture
def pretrained(file, tmp_path):
    train(file, tmp_path / "mlm", steps=3)
    lines = [f"{who}\t{line}" for i, line in enumerate(TEXT.split("\n")) for who in [line.split()[0]] if i < 60]
    lines = [f"{line} {'loudly ' * (i % 7)}" for i, line in enumerate(lines)]
    (tmp_path / "labelled.tsv").write_text("\n".join(lines), encoding="utf-8")
    return tmp_path


def fine_tune(folder, out="tuned", **options):
    given = {"data": folder / "labelled.tsv", "init": folder / "mlm", "steps": 2, "batch_size": 4, **options}
    return ClassifyTask().train(ClassifyOptions(**given), folder / out, progress=False)


def test_fine_tuning_begins_with_what_was_learned(pretrained):
    run = fine_tune(pretrained, lr=1e-30, warmup=0, weight_decay=0.0)  # nothing moves
    assert f"which start from {pretrained / 'mlm'}" in run.setup.note
    assert vars(run.options).items() >= {**TINY, "batch_size": 4}.items()
    assert run.tokenizers["tokenizer"].vocabulary[-1] == "<mask>"
    trained, _ = load_model(pretrained / "mlm" / "checkpoint.safetensors")
    state, body = run.setup.model.state_dict(), trained.state_dict()
    same = [name for name in state if name in body and np.array_equal(state[name], body[name])]
    assert set(state) - set(same) == {f"{name}.{p}" for name in ("pooler.linear", "classifier") for p in "wb"}
    assert set(body) - set(same) == {name for name in body if name.startswith("mlm_head.")}


def test_a_fine_tuned_run_stands_by_itself(pretrained):
    whole = fine_tune(pretrained, steps=4)
    probabilities = Classifier.of(whole).probabilities("Ana sings loudly")
    (pretrained / "mlm").rename(pretrained / "gone")
    assert Classifier.load(pretrained / "tuned").probabilities("Ana sings loudly") == probabilities
    longer = ClassifyTask().train({"steps": 6}, pretrained / "tuned", resume=True, progress=False)
    assert longer.trainer.history.losses[:4] == whole.trainer.history.losses and longer.trainer.step == 6


def test_what_cannot_be_fine_tuned(pretrained):
    for options, of in (({"d_model": 32}, "d_model 16, not 32"), ({"tokens": "char"}, "tokens 'word', not 'char'")):
        with pytest.raises(ValueError, match=f"mlm has {of}: leave this option out"):
            fine_tune(pretrained, **options)
    with pytest.raises(FileNotFoundError, match="nowhere is not the folder of a run"):
        fine_tune(pretrained, init=pretrained / "nowhere")
    assert fine_tune(pretrained, d_model=16).options.d_model == 16
    with pytest.raises(ValueError, match="has a run of the kind 'classify', not 'mlm'"):
        fine_tune(pretrained, init=pretrained / "tuned", out="again")
