"""One T5 for several tasks: its batches, its training, its runs on disk, and what it answers."""

import numpy as np
import pytest
from shared import call, done, fails, stdin

from transformer_np import data, plots
from transformer_np.data.tokenizers import EOS, UNK
from transformer_np.decoding import beam_search
from transformer_np.models import T5, T5Config
from transformer_np.tasks import t5
from transformer_np.tasks.t5 import LONGEST, T5Options, T5Task, TextToText

TINY = {"batch_size": 8, "layers": 1, "heads": 2, "d_model": 16, "d_head": 6, "d_ff": 20, "vocab_size": 300}
# the same texts for two tasks, so that only the prefix tells what is asked
WORDS = {"ana": "Ona", "rui": "Rai", "eva": "Evo", "leo": "Lio", "ida": "Ido", "max": "Mex"}
VERBS = {"sings": "canta", "reads": "lia", "runs": "corre", "sleeps": "dorme", "eats": "come", "waits": "espera"}
WHEN = {"now": "já", "today": "hoje", "later": "logo", "never": "nunca"}
THREE = [(a, b, c) for a in WORDS for b in VERBS for c in WHEN]
PAIRS = [(" ".join(words), f"{WORDS[words[0]]} {VERBS[words[1]]} {WHEN[words[2]]}") for words in THREE]
LABELLED = [(" ".join(words), "positive" if words[1] in ("sings", "reads", "eats") else "negative") for words in THREE]


@pytest.fixture(scope="module")
def small():
    """Small data in the place of the built-in ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data, "english_portuguese", lambda: PAIRS)
        patch.setattr(data, "sentiment_sentences", lambda: LABELLED)
        full = data.written_dates
        patch.setattr(data, "written_dates", lambda: full(60))
        yield


def train(folder, **options):
    return T5Task().train(T5Options(**{"steps": 6, **TINY, **options}), folder, progress=False)


@pytest.fixture(scope="module")
def begun(small, tmp_path_factory):
    """The folder of a run of one step: it knows the same tasks and words."""
    folder = tmp_path_factory.mktemp("runs") / "begun"
    train(folder, tasks="translate,sentiment", steps=1, vocab_size=340, max_len=24)
    return folder


@pytest.fixture
def text_file(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("the cat sat on the mat, and the dog sat on the log. " * 60, encoding="utf-8")
    return path


# --- training --------------------------------------------------------------------------------------------------------


@pytest.mark.release
def test_the_prefix_decides(small, tmp_path):
    options = {"d_model": 32, "d_head": 16, "d_ff": 64, "batch_size": 32, "vocab_size": 340, "dropout": 0.0}
    run = train(tmp_path / "run", tasks="translate,sentiment", steps=300, lr=5e-3, warmup=20, **options)
    assert list(run.measured) == ["translate: exact match on unseen texts", "sentiment: exact match on unseen texts"]
    assert min(run.measured.values()) > 0.8
    for answers in (TextToText.of(run), TextToText.load(tmp_path / "run")):
        right = [
            (answers.answer(f"translate English to Portuguese: {text}") == target)
            + (answers.answer(f"sentiment: {text}") == label)
            for (text, target), (_, label) in zip(PAIRS[::5], LABELLED[::5], strict=True)
        ]
        assert sum(right) >= 2 * len(right) - 2


def test_exact_match_is_the_share_that_is_right(begun):
    answers = TextToText.load(begun)
    texts = [f"sentiment: {text}" for text, _ in LABELLED[:9]]
    said = [(text, answers.answer(text)) for text in texts]
    assert answers.exact_match(said, batch_size=4) == 1
    wrong = [(text, said + " ") for text, said in said[:2]] + [(text, "pos") for text, _ in said[2:4]]
    assert answers.exact_match(wrong + said[4:]) == 5 / 9
    with pytest.raises(ValueError, match="there are no examples"):
        answers.exact_match([])


def test_beam_search(begun):
    answers = TextToText.load(begun)
    text = "translate English to Portuguese: eva runs today"
    found = beam_search(answers.model, answers.encode(text), 3, 20, 1.5)[0]
    assert answers.answer(text, beam_size=3, length_penalty=1.5, max_len=20) == answers.tokenizer.decode(found)
    whole = answers.tokenizer.encode(answers.answer(text))
    assert answers.answer(text, max_len=2) == answers.tokenizer.decode(whole[:2])


def test_an_unknown_token_is_never_chosen(small, tmp_path, monkeypatch):
    answers, excluded = TextToText.of(train(tmp_path / "run", steps=1, tasks="sentiment", max_len=24)), []
    for name in ("greedy_decode", "beam_search"):
        real = getattr(t5, name)
        monkeypatch.setattr(t5, name, lambda model, *a, real=real: excluded.append(model.excluded) or real(model, *a))
    for beam_size in (1, 2):
        answers.answer("sentiment: ana sings", beam_size)
    answers.exact_match([("sentiment: ana sings", "positive")])
    assert excluded == [[UNK]] * 3


def test_how_a_text_is_read(begun):
    answers = TextToText.load(begun)
    ids = answers.encode("sentiment: ana sings now")
    assert ids.shape[0] == 1 and ids[0, -1] == EOS and (ids[0, :-1] > EOS).all()
    for same in ("Sentiment: Ana SINGS now", "  sentiment:ana sings now  "):
        assert np.array_equal(answers.encode(same), ids)
    assert answers.task_of("SENTIMENT: x") == "sentiment: " and answers.task_of("a sentiment: x") is None
    assert answers.knows("sentiment: x") and not answers.knows("date: x") and not answers.knows("<extra_id_0>")
    assert not np.array_equal(answers.encode("Ana"), answers.encode("ana"))  # no prefix: read as it is
    for empty, message in (("", "the text is empty"), (" \n", "the text is empty"), ("sentiment: ", "no text after")):
        with pytest.raises(ValueError, match=message):
            answers.encode(empty)
    with pytest.raises(ValueError, match="at most 4,096 are allowed"):
        answers.encode("x" * LONGEST)


def test_a_year_that_never_came_up_is_made_of_digits(small):
    task, options = T5Task(), T5Options(tasks="date", **TINY)
    (tokenizer,) = task.train_tokenizers(options, task.load(options)).values()
    assert not [token for token in tokenizer.vocabulary[260:] if any(c.isdigit() for c in token)]
    assert len(tokenizer.encode("1234")) == 4 and len(tokenizer.encode("march")) < 5


def test_every_batch_has_all_tasks(small, text_file):
    task, options = T5Task(), T5Options(tasks="spans, date ,translate,date", text=text_file, **TINY)
    assert options.tasks == "translate,date,spans"
    loaded = task.load(options)
    tokenizers = task.train_tokenizers(options, loaded)
    setup = task.setup(options, loaded, tokenizers)
    tokenizer = data.SentinelTokenizer(tokenizers["tokenizer"], 4)
    assert setup.model.config.vocab_size == len(tokenizer)
    counts = []
    for step in range(20):
        batch = setup.batches.batch(step)
        texts = [tokenizer.decode(ids) for ids in batch.src]
        marks = ("translate English to Portuguese: ", "date: ", "<extra_id_2>")
        kinds = [next(i for i, mark in enumerate(marks) if mark in text) for text in texts]
        assert kinds == sorted(kinds) and all(EOS in row for row in batch.src)
        counts.append(np.bincount(kinds, minlength=3))
    assert np.min(counts) > 0  # each task in every batch
    assert np.mean(counts, axis=0) == pytest.approx([3, 2, 3], abs=0.3)
    assert loaded["translate"].test[-1][0] and not set(loaded["date"].test) & set(loaded["date"].train)


@pytest.mark.long
def test_spans_of_a_text(small, text_file, tmp_path):
    run = train(tmp_path / "run", tasks="spans", text=text_file, steps=150, lr=2e-2, warmup=5)
    losses = run.trainer.history.losses
    assert np.mean(losses[-5:]) < 0.7 * np.mean(losses[:5])
    (found,) = run.measured.items()
    assert found[0].startswith("spans: hidden tokens found") and 0.2 < found[1] < 1
    answers = TextToText.load(tmp_path / "run")
    assert answers.prefixes == [] and answers.learned == ["… <extra_id_0> …"]
    assert answers.knows("the <extra_id_0> sat") and not answers.knows("the cat sat")
    assert answers.answer("the cat <extra_id_0> on the mat", max_len=12).startswith("<extra_id_0>")
    with pytest.raises(ValueError, match="there is no <extra_id_9>: the model has 4 sentinels"):
        answers.encode("the <extra_id_9>")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tasks": "translate,summarize,x"}, "there is no task 'summarize', 'x'; tasks are translate, sentiment, d"),
        ({"tasks": " , "}, "tasks is empty"),
        ({"tasks": ""}, "tasks is empty"),
        ({"text": "text.txt"}, "text is only for the task spans, but tasks is"),
        ({"batch_size": 2}, "batch_size must be at least 3"),
    ],
)
def test_options(options, message):
    with pytest.raises(ValueError, match=message):
        T5Options(**options)


# --- a pretrained one ------------------------------------------------------------------------------------------------


@pytest.fixture
def pretrained(tmp_path):
    """A T5 in Hugging Face's layout with a tokenizer of words, its sentinels at the end, the first with the last id."""
    tokenizers = pytest.importorskip("tokenizers")
    words = {"<pad>": 0, "</s>": 1, "<unk>": 2, "thank": 3, "you": 4, "me": 5, "<extra_id_1>": 6, "<extra_id_0>": 7}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(["<pad>", "</s>", "<unk>", "<extra_id_0>", "<extra_id_1>"])
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", 1)])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    model = T5(T5Config(8, 6, 2, 3, 1, 1, 10, dropout=0.0, max_len=9))
    model.save_pretrained(tmp_path / "t5", tmp_path / "tokenizer.json")
    return tmp_path / "t5"


def test_a_pretrained_one(pretrained, monkeypatch):
    answers = TextToText.from_pretrained(pretrained)
    assert answers.encode("thank <extra_id_0> me").tolist() == [[3, 7, 5, 1]]
    assert answers.prefixes is None and answers.knows("anything") and answers.task_of("date: x") is None
    said = iter([[7, 4, 4, 6, 5], [4, 5], [7], []])
    monkeypatch.setattr("transformer_np.tasks.t5.greedy_decode", lambda *_: [next(said)])
    expected = ["<extra_id_0> you you <extra_id_1> me", "you me", "<extra_id_0>", ""]
    assert [answers.answer("thank you") for _ in expected] == expected


def test_the_commands_with_a_pretrained_one(pretrained, tmp_path, capsys, drawn):
    done(capsys, "plot", "architecture", "--pretrained", pretrained, "-o", tmp_path / "x.png")
    assert isinstance(drawn[0][1][0], T5) and (tmp_path / "x.png").stat().st_size > 1000
    code, out, err = call(capsys, "t5", "--pretrained", pretrained, "thank you", "me " * 20)
    assert code == 0 and len(out.splitlines()) == 2
    assert err == "the text has 21 tokens, but those that config.json names are at most 9\n"
    message = fails(capsys, "t5", "--pretrained", pretrained, "--model", "x", "me")
    assert "--model: not allowed with argument --pretrained" in message
    (pretrained / "tokenizer.json").unlink()
    assert "tokenizer.json" in fails(capsys, "t5", "--pretrained", pretrained, "me")


def test_the_command_with_a_folder_that_lacks_a_bias(pretrained, capsys):
    from safetensors.numpy import load_file, save_file

    tensors = load_file(pretrained / "model.safetensors")
    name = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    del tensors[name]
    save_file(tensors, pretrained / "model.safetensors")
    for command in (["t5", "me"], ["plot", "bias", "-o", pretrained / "bias.png"]):
        assert fails(capsys, *command, "--pretrained", pretrained).endswith(f"missing {name}")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("plot attention -o x.png --pretrained", ""),
        ("plot heads -o x.png --pretrained", ""),
        ("explore -o x.html --pretrained", ""),
        ("embed me --model", ", which gives no sentence vectors here; a BERT does"),
        ("generate me --pretrained", ", which cannot continue a text"),
    ],
)
def test_commands_that_show_no_t5_say_so(pretrained, capsys, command, message):
    assert f"holds a T5{message}" in fails(capsys, *command.split(), pretrained)


# --- the commands and the picture ------------------------------------------------------------------------------------


def test_the_command(begun, capsys, monkeypatch):
    monkeypatch.chdir(begun.parent)
    answers = TextToText.load(begun)
    texts = ["translate English to Portuguese: leo runs now", "sentiment: leo runs now", "summarize: leo runs now"]
    code, out, err = call(capsys, "t5", *texts)
    assert code == 0 and out.splitlines() == [answers.answer(text) for text in texts]
    known = "translate English to Portuguese: …, sentiment: …"
    new, seen, prefix = err.splitlines()
    assert new == "not in the training texts: summarize"
    assert seen.startswith("expect mistakes: it has seen 21 words: ")
    assert prefix == f"the text belongs to no task that the model has learned; it has learned: {known}"
    stdin(monkeypatch, b"sentiment: ana sings now\n\nsentiment: rui sleeps today")
    assert done(capsys, "t5", "--model", begun, "--beam", 2).splitlines()[1] == ""
    for arguments, message in (
        (["sentiment: "], "there is no text after 'sentiment:'"),
        ([""], "the text is empty"),
        (["--beam", "0", "sentiment: x"], "--beam must be at least 1"),
        (["--max-len", "0", "sentiment: x"], "--max-len must be at least 1"),
        (["--max-len", "999", "sentiment: x"], "more than the model's max_len = 24"),
        (["--length-penalty", "-1", "sentiment: x"], "--length-penalty must lie in 0 … 10"),
    ):
        assert message in fails(capsys, "t5", *arguments)
    done(capsys, "plot", "bias", "-o", "bias.png")
    assert (begun.parent / "bias.png").stat().st_size > 1000


def test_the_bias_over_distance():
    model = T5(T5Config(11, 8, 2, 3, 1, 1, 10, num_buckets=8, max_distance=6))
    figure = plots.relative_bias(model, longest=7)
    panels = {axes.get_title(): axes for axes in figure.axes}
    for name, bias, after in (("encoder", model.encoder_bias, 7), ("decoder", model.decoder_bias, 0)):
        [image] = panels[name].images
        assert image.get_extent()[:2] == [-7.5, after + 0.5]
        for head, row in enumerate(image.get_array()):
            for distance, value in zip(range(-7, after + 1), row, strict=True):
                query = max(0, -distance)
                assert value == bias(9 + abs(distance))[head, query, query + distance]
