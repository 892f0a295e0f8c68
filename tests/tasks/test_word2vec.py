"""Word2Vec: the loss and its gradients, what is drawn, what is learned, what can be asked of it, and where it goes."""

import json
import re
import shutil

import numpy as np
import pytest
from matplotlib.text import Text
from shared import done, fails

from transformer_np import functional as F
from transformer_np import plots
from transformer_np.data import UNK, PlainWordTokenizer, SkipGrams, Tokenizer, write_vectors
from transformer_np.data.skipgrams import keep_probability, noise
from transformer_np.layers import Embedding
from transformer_np.models import Word2Vec, Word2VecConfig
from transformer_np.tasks.translation import TranslationOptions, TranslationTask
from transformer_np.tasks.word2vec import Word2VecOptions, Word2VecTask, WordVectors
from transformer_np.training import Adam

TINY = {"steps": 6, "batch_size": 40, "d_model": 8, "window": 2, "negatives": 3, "min_count": 1, "subsample": 0.0}
GROUPS = "ana lucas maria.sings reads runs.loudly quietly.dogs cats cows.bark eat sleep.indoors outdoors".split(".")


def sentences(count=300, seed=0):
    """Sentences in which the words of a group are exchangeable: all that tells groups apart is what stands around."""
    rng = np.random.default_rng(seed)
    groups = [group.split() for group in GROUPS]
    return "\n".join(" ".join(map(rng.choice, groups[3 * i : 3 * i + 3])) for i in rng.integers(2, size=count))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(sentences(), encoding="utf-8")
    return path


def train(file, folder, progress=False, **options):
    how = {name: options.pop(name) for name in ("workers",) if name in options}
    return Word2VecTask().train(Word2VecOptions(text=file, **{**TINY, **options}), folder, progress=progress, **how)


# --- the model and its loss ------------------------------------------------------------------------------------------


def test_what_is_small_is_not_lost():
    center, negatives = np.ones((1, 1), np.float32), np.full((1, 1, 1), -15, np.float32)
    loss, _, p = F.negative_sampling_loss(center, np.full((1, 1), 15, np.float32), negatives)
    assert loss == pytest.approx(2 * np.log1p(np.exp(-15)), rel=1e-5)
    assert p[0, 0] == pytest.approx(1 / (1 + np.exp(15)), rel=1e-5)


def test_the_model():
    model = Word2Vec(Word2VecConfig(7, 5))
    loss = model(np.array([4, 1, 4]), np.array([1, 0, 4]), np.array([[4, 1], [0, 0], [6, 3]]))
    assert loss == pytest.approx(3 * np.log(2), rel=1e-6)
    assert np.abs(model.center.data).max() <= 0.1 and model.center.data.std() > 0.03 and not model.context.data.any()
    assert {"p_context", "p_negatives", "center_vectors"} <= model.intermediates().keys()


@pytest.mark.parametrize(
    "ids, message",
    [
        (([7], [1], [[1]]), "center_ids must lie in 0 … 6, got 7"),
        (([1], [7], [[1]]), "context_ids must lie in 0 … 6, got 7"),
        (([1], [1], [[-1]]), "negative_ids must lie in 0 … 6, got -1"),
        (([1, 2], [1], [[1], [1]]), r"one shape \(N,\), got \(2,\) and \(1,\)"),
        (([1, 2], [1, 2], [[1, 2]]), r"negative_ids must have the shape \(2, K\), got \(1, 2\)"),
        (([1, 2], [1, 2], [1, 2]), r"negative_ids must have the shape \(2, K\), got \(2,\)"),
        (([], [], [[]]), "is empty"),
    ],
)
def test_ids_are_checked(ids, message):
    with pytest.raises(ValueError, match=message):
        Word2Vec(Word2VecConfig(7, 5))(*(np.array(x, int) for x in ids))


# --- skip-grams ------------------------------------------------------------------------------------------------------


def test_every_pair_of_a_window_of_one():
    grams = SkipGrams([4, 5, 3, 6, 0, 7], 9, window=1, negatives=2, batch_size=10, subsample=0)
    near = [(4, 5), (5, 4), (5, 6), (6, 5), (6, 7), (7, 6)]  # over what is unknown, and over padding
    for step in range(3):
        batch = grams.batch(step)
        assert sorted(zip(batch.center.tolist(), batch.context.tolist(), strict=True)) == near
    assert grams.batch(0).negatives.shape == (6, 2)
    with pytest.raises(ValueError, match="ids must lie in 0 … 8"):
        SkipGrams([4, 9], 9)
    with pytest.raises(ValueError, match=r"the text has 2 words .* a window of 2 need 3"):
        SkipGrams([4, 3, 3, 3, 5], 9, window=2)


def test_an_epoch_has_each_word_as_center_once():
    ids = np.arange(4, 104)
    grams = SkipGrams(ids, 104, window=3, negatives=1, batch_size=30, subsample=0)
    assert grams.steps_per_epoch == 4
    for epoch in range(2):
        batches = [grams.batch(4 * epoch + i) for i in range(4)]
        centers = [set(batch.center.tolist()) for batch in batches]
        assert sum(map(len, centers)) == 100 and set().union(*centers) == set(ids.tolist())
        assert [abs(len(c) - 25) for c in centers] == [0] * 4
    assert centers[0] != set(grams.batch(0).center.tolist())  # shuffled anew


def test_near_words_count_more():
    """Distance d of a window w is within reach with probability (w − d + 1) / w."""
    ids = np.arange(4, 6004)
    batch = SkipGrams(ids, 6004, window=4, negatives=1, batch_size=6000, subsample=0).batch(0)
    distance = np.abs(batch.center - batch.context)
    assert np.bincount(distance)[1:] / 12000 == pytest.approx([1, 0.75, 0.5, 0.25], abs=0.02)


def test_frequent_words_are_thinned_out():
    rng = np.random.default_rng(0)
    ids = rng.choice([4, 5, 6], size=20_000, p=[0.9, 0.09, 0.01])
    share = np.bincount(ids) / len(ids)
    grams = SkipGrams(ids, 7, window=1, negatives=1, batch_size=20_000, subsample=0.05)
    left = np.bincount(grams.batch(0).center) / 2  # each word is the center of two pairs
    expected = np.minimum(1, np.sqrt(0.05 / share[4:]))
    assert expected[2] == 1 and left[4:] / (share[4:] * len(ids)) == pytest.approx(expected, abs=0.02)
    assert keep_probability(np.array([90, 9, 1]), 0.05) == pytest.approx([(0.05 / 0.9) ** 0.5, (0.05 / 0.09) ** 0.5, 1])
    assert keep_probability(np.array([90, 0]), 0).tolist() == [1, 1]


def test_what_is_drawn():
    counts = np.array([0, 0, 0, 0, 1, 16, 81, 0])
    assert noise(counts) == pytest.approx(np.array([0, 0, 0, 0, 1, 8, 27, 0]) / 36)
    ids = np.random.default_rng(0).permutation(np.repeat(np.arange(8), counts))
    grams = SkipGrams(ids, 8, window=5, negatives=50, batch_size=98, subsample=0)
    first, second = (grams.batch(step).negatives.reshape(-1) for step in range(2))
    drawn = np.bincount(first, minlength=8)
    assert drawn / drawn.sum() == pytest.approx(noise(counts), abs=0.02) and not drawn[[0, 7]].any()
    assert not np.array_equal(first[:100], second[:100])


def test_no_batch_is_empty():
    """However hard a short text is thinned out."""
    for subsample in (1e-9, 0.005):  # none is left, and fewer than there are steps
        grams = SkipGrams([4, 5] * 20, 6, window=2, negatives=1, batch_size=3, subsample=subsample)
        assert all(len(grams.batch(step).center) for step in range(50))


def test_words_without_marks():
    text = "Don't call `__init__`, twenty-one times; x_1 = 3.5 __ Ça va?"
    tokenizer = PlainWordTokenizer.train([text], min_count=1)
    assert tokenizer.cut(text) == ["Don't", "call", "__init__", "twenty-one", "times", "x_1", "3", "5", "Ça", "va"]
    assert tokenizer.decode(tokenizer.encode("ÇA  va: don't")) == "ça va don't"
    assert Tokenizer.from_dict(json.loads(json.dumps(tokenizer.to_dict()))).vocabulary == tokenizer.vocabulary


# --- training --------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_words_that_can_stand_for_each_other_become_neighbours(file, tmp_path):
    run = train(file, tmp_path / "run", steps=400, batch_size=200, lr=0.02, negatives=5, window=1)
    vectors = WordVectors.of(run)
    assert vectors.words == run.tokenizers["tokenizer"].vocabulary[UNK + 1 :]
    assert np.array_equal(vectors.vectors, run.setup.model.center.data[UNK + 1 :])
    for group in map(set, map(str.split, GROUPS)):
        for word in group:
            assert {other for other, _ in vectors.neighbours(word, len(group) - 1)} == group - {word}, word
    assert run.validation_loss < run.trainer.history.losses[0] == pytest.approx(6 * np.log(2), rel=1e-6)
    (share,) = run.measured.values()
    assert 1 / 6 < share <= 1
    assert run.trainer.history.learning_rates[0] == 0.02 and 0 < run.trainer.history.learning_rates[-1] < 1e-3


def test_two_workers_learn_what_one_does(file, tmp_path):
    one, two = (train(file, tmp_path / str(n), steps=10, lr=0.02, workers=n) for n in (1, 2))
    np.testing.assert_allclose(two.trainer.history.losses, one.trainer.history.losses, rtol=1e-5)
    np.testing.assert_allclose(WordVectors.of(two).vectors, WordVectors.of(one).vectors, rtol=1e-3, atol=1e-5)


def test_the_validation_comes_from_all_over_the_text():
    split = Word2VecTask().load(Word2VecOptions())
    parts = [len(part.split()) for part in (split.train, split.validation)]
    assert 0.03 < parts[1] / sum(parts) < 0.06
    assert split.validation.count("\n") > 10


# --- questions -------------------------------------------------------------------------------------------------------

CAPITALS = WordVectors(
    ["france", "paris", "italy", "rome", "spain", "madrid"],
    np.array([[1, 0, 0, 0], [1, 0, 0, 1], [0, 1, 0, 0], [0, 1, 0, 1], [0, 0, 1, 0], [0, 0, 1, 1]], np.float32),
)


def test_neighbours_and_analogies():
    (word, cosine), *_ = CAPITALS.neighbours("rome", 5)
    assert word == "italy" and cosine == pytest.approx(0.5**0.5)
    assert CAPITALS.neighbours("France", 1)[0][0] == "paris" and len(CAPITALS.neighbours("rome")) == 5
    assert CAPITALS.analogy("france", "paris", "italy", 1)[0][0] == "rome"
    assert CAPITALS.analogy("madrid", "spain", "paris", 1)[0][0] == "france"
    vectors = WordVectors(["a", "b", "c"], np.array([[0.0, 0], [1, 0], [1, 1]]))
    assert [cosine for _, cosine in vectors.neighbours("a")] == [0, 0]  # a vector of zeros has no direction


@pytest.mark.parametrize(
    "word, message",
    [
        ("pariss", "the word 'pariss' is not among the 6 that have a vector; did you mean 'paris'[?]"),
        ("Frence", "did you mean 'france'[?]"),
        ("zzz", "that have a vector$"),
        ("", "the word '' is not among"),
    ],
)
def test_unknown_words(word, message):
    for ask in (CAPITALS.neighbours, lambda w: CAPITALS.analogy("france", w, "italy"), CAPITALS.row):
        with pytest.raises(ValueError, match=message):
            ask(word)


# --- the map ---------------------------------------------------------------------------------------------------------


def test_principal_components(rng):
    base = rng.normal(size=(30, 2)) * [5, 2]
    base -= base.mean(axis=0)
    rotation = np.linalg.qr(rng.normal(size=(7, 7)))[0][:2]
    vectors = base @ rotation + rng.normal(size=7)
    points, explained = plots.principal_components(vectors)
    covariance = np.cov((base - base.mean(axis=0)).T)
    assert explained.sum() == pytest.approx(1)
    assert explained == pytest.approx(np.linalg.eigvalsh(covariance)[::-1] / np.trace(covariance))
    _, (first,) = plots.principal_components(vectors, count=1)
    assert first == pytest.approx(explained[0])  # of all variance, not of what is drawn
    distances = [np.linalg.norm(x[:, None] - x, axis=-1) for x in (base, points)]
    np.testing.assert_allclose(*distances, atol=1e-9)
    again, _ = plots.principal_components(vectors[::-1])
    np.testing.assert_allclose(again[::-1], points, atol=1e-9)


@pytest.mark.parametrize("direction", [(3, 1, -2), (-3, -1, 2), (1, -4, 0), (0, 1, 2), (0, -1, -2)])
def test_the_same_side_is_up_everywhere(direction):
    steps = np.array([-2.0, 0, 0.5, 1.5])
    points, _ = plots.principal_components(np.outer(steps, direction))
    positive = max(direction, key=abs) > 0
    assert points[:, 0] == pytest.approx((1 if positive else -1) * steps * np.linalg.norm(direction))


def labels(figure, words):
    figure.draw_without_rendering()
    return [text for text in figure.findobj(Text) if text.get_visible() and text.get_text() in words]


@pytest.mark.long
@pytest.mark.parametrize("count", [3, 20, 150])
def test_no_word_covers_another(rng, count):
    words, vectors = [f"word{i}" for i in range(count)], rng.normal(size=(count, 9))
    figure = plots.word_map(words, vectors, title="a map")
    drawn = labels(figure, words)
    assert len(drawn) >= min(count, 60)
    boxes = [text.get_window_extent() for text in drawn]
    page = figure.axes[0].get_window_extent().padded(2)
    for i, box in enumerate(boxes):
        assert page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0 and box.y1 <= page.y1
        assert not any(box.overlaps(other.padded(-2)) for other in boxes[:i]), drawn[i]
    points, explained = plots.principal_components(vectors)
    (dots,) = figure.axes[0].collections
    named = {text.get_text() for text in drawn}
    np.testing.assert_allclose(dots.get_offsets(), points[[word in named for word in words]])  # no dot without a name
    assert f"({explained[0]:.1%} of the variance)" in figure.axes[0].get_xlabel()
    left_out = count - len(drawn)
    notes = [f"no room for {left_out} of {count} words"] if left_out else []  # right for 1 as well
    assert [text.get_text() for text in figure.texts] == notes


def test_groups_have_colours(rng):
    figure = plots.word_map(list("abcd"), rng.normal(size=(4, 5)), groups=["x", "y", "x", "y"])
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["x", "y"]
    colours = {text.get_text(): text.get_color() for text in labels(figure, list("abcd"))}
    assert colours["a"] == colours["c"] != colours["b"] == colours["d"]


# --- in an embedding -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("frozen", [False, True])
def test_vectors_in_an_embedding(rng, frozen):
    vectors = rng.normal(size=(5, 3))
    embedding = Embedding.from_vectors(vectors, frozen)
    ids = np.array([[1, 4], [1, 0]])
    assert np.array_equal(embedding(ids), vectors[ids])
    embedding.backward(np.ones((2, 2, 3)))
    assert embedding.table.grad[:, 0].tolist() == ([0] * 5 if frozen else [1, 2, 0, 0, 1])
    Adam(embedding.parameters(), lr=0.1).step()
    assert np.array_equal(embedding.table.data, vectors) == frozen
    with pytest.raises(ValueError, match=r"vectors must have the axes \(V, D\)"):
        Embedding.from_vectors(vectors[0])


@pytest.fixture
def pairs(tmp_path):
    rows = [f"{w} {d} {n}\t{w} {d} {n}" for w in ("Ana", "Rui", "Eva") for d in ("runs", "sits") for n in ("now", "so")]
    (tmp_path / "pairs.tsv").write_text("\n".join(rows * 3), encoding="utf-8")
    return tmp_path / "pairs.tsv"


SMALL = {"steps": 4, "batch_size": 4, "layers": 1, "heads": 2, "d_model": 6, "d_ff": 8, "dropout": 0.0, "warmup": 2}


def translate(pairs, folder, resume=False, **options):
    given = {} if resume else TranslationOptions(pairs=pairs, **{**SMALL, **options})
    return TranslationTask().train(given, folder, resume=resume, progress=False)


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("frozen", [False, True])
def test_a_translator_begins_with_vectors(pairs, tmp_path, rng, binary, frozen):
    words = ["Runs", "runs", "ana", "Eva", "EVA", "other"]
    vectors = 30 * rng.normal(size=(6, 6)).astype(np.float32)
    write_vectors(tmp_path / "vectors", words, vectors, binary)
    options = {"embeddings": tmp_path / "vectors", "freeze_embeddings": frozen}
    task, given = TranslationTask(), TranslationOptions(pairs=pairs, **{**SMALL, **options})
    data = task.load(given)
    tokenizers = task.train_tokenizers(given, data)
    begin, tokenizer = task.setup(given, data, tokenizers), tokenizers["source"]
    table = begin.model.src_input.embedding.table.data
    rows = [tokenizer.encode(word)[0] for word in ("runs", "ana", "eva")]
    expected = vectors[[1, 2, 3]] / np.sqrt((vectors[[1, 2, 3]] ** 2).sum(axis=1).mean())
    np.testing.assert_allclose(table[rows], expected, rtol=1e-5)
    assert f"3 of {len(tokenizer) - UNK - 1} source words begin with the vectors of" in begin.note
    assert ("frozen" in begin.note) == frozen

    plain = translate(pairs, tmp_path / "plain").setup.model.config
    run = translate(pairs, tmp_path / "run", **options)
    assert run.setup.model.config == plain
    assert np.array_equal(run.setup.model.src_input.embedding.table.data, table) == frozen
    (tmp_path / "vectors").unlink()  # a run stands by itself
    more = TranslationTask().train({"steps": 6}, tmp_path / "run", resume=True, progress=False)
    assert more.trainer.step == 6 and more.trainer.history.losses[:4] == run.trainer.history.losses
    assert np.array_equal(more.setup.model.src_input.embedding.table.data, table) == frozen


def test_vectors_that_do_not_fit_a_translator(pairs, tmp_path, rng):
    path = tmp_path / "vectors"
    write_vectors(path, ["ana", "runs"], rng.normal(size=(2, 5)))
    with pytest.raises(ValueError, match="have 5 dimensions: d_model must be 5, not 6"):
        translate(pairs, tmp_path / "run", embeddings=path)
    write_vectors(path, ["x", "y"], rng.normal(size=(2, 6)))
    with pytest.raises(ValueError, match=r"has none of the \d+ source words"):
        translate(pairs, tmp_path / "run", embeddings=path)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        translate(pairs, tmp_path / "run", embeddings=tmp_path / "nothing")
    with pytest.raises(ValueError, match="freeze_embeddings needs embeddings"):
        TranslationOptions(freeze_embeddings=True)
    assert not (tmp_path / "run").exists()


# --- the commands ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with a text and a run, once for all."""
    folder = tmp_path_factory.mktemp("word2vec")
    (folder / "text.txt").write_text(sentences(), encoding="utf-8")
    train(folder / "text.txt", folder / "run", steps=60, lr=0.02)
    return folder


@pytest.fixture
def here(trained, here):
    """A copy of it, which is the current folder."""
    return shutil.copytree(trained, here, dirs_exist_ok=True)


def test_the_neighbours_command(here, capsys):
    ask = "neighbours ana dogs --count 2 --analogy ana lucas dogs".split()
    blocks = [block.splitlines() for block in done(capsys, *ask).split("\n\n")]
    assert [block[0] for block in blocks] == ["ana", "dogs", "ana : lucas = dogs : ?"]
    for block, answer in zip(blocks, map(json.loads, done(capsys, *ask, "--json").splitlines()), strict=True):
        assert len(block) == 3 and all(re.fullmatch(r"  [ -]\d\.\d{3}  \w+", line) for line in block[1:])
        assert block[1:] == [f"  {n['cosine']:6.3f}  {n['word']}" for n in answer["neighbours"]]
        assert block[0] == answer["question"]


@pytest.mark.parametrize("flag", [[], ["--binary"]])
def test_vectors_saved_are_vectors_read(here, capsys, flag):
    assert done(capsys, "neighbours", "--model", "run", "--save", "vectors.x", *flag) == "vectors.x\n"
    assert (here / "vectors.x").read_bytes().startswith(b"16 8\n")
    direct, from_file = (done(capsys, "neighbours", "cats", *x) for x in ([], ["--vectors", "vectors.x"]))
    assert direct == from_file and "<pad>" not in direct


@pytest.mark.long
@pytest.mark.parametrize("words", ["", "ana dogs bark", "ana dogs --near 3"])
def test_the_map_command(here, capsys, words):
    assert done(capsys, "plot", "words", *words.split(), "-o", "map.png") == "map.png\n"
    assert (here / "map.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "command, message",
    [
        ("neighbours", "there is nothing to do: give a WORD"),
        ("neighbours dgos", "the word 'dgos' is not among the 16 that have a vector; did you mean 'dogs'?"),
        ("neighbours --analogy ana lucas cos", "did you mean 'cows'"),
        ("neighbours dog --vectors nothing.txt", "there is no file nothing.txt"),
        ("neighbours dog --vectors text.txt", "text.txt, line 1: expected the header"),
        ("neighbours dog --model nowhere", "nowhere is not the folder of a run"),
        ("neighbours dog --binary", "--binary needs --save FILE"),
        ("neighbours dog --save no/vectors.txt", "there is no folder no"),
        ("plot words dgos -o map.png", "did you mean 'dogs'?"),
        ("plot words --near 3 -o map.png", "--near shows the neighbours of a WORD"),
        ("plot words dogs cats -o map.png", "words must be at least 3, got 2"),
        ("plot words --count 2 -o map.png", "--count must be at least 3"),
        ("train translate --freeze-embeddings", "--freeze-embeddings needs --embeddings"),
    ],
)
def test_bad_use_of_the_commands(here, capsys, command, message):
    assert message in fails(capsys, *command.split())
    assert not (here / "map.png").exists()
