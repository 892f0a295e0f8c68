"""The model in the living page: in Chromium it computes what NumPy's computes, forward and backward, changed or not."""

import numpy as np
import pytest
from browsing import TEXTS, LivePage
from parity import largest_difference, largest_gradient_difference, load, numbers_in_page

from transformer_np import functional as F
from transformer_np.data import LECTURE_SENTENCE, BPETokenizer, CharTokenizer, Seen, WordTokenizer, english_portuguese
from transformer_np.data.tokenizers import SPECIAL_TOKENS
from transformer_np.decoding import sampling_distribution
from transformer_np.inspection import contributions
from transformer_np.inspection.explorer.live import explore_live
from transformer_np.models import Bert, BertConfig, Llama, LlamaConfig
from transformer_np.tasks.translation import TranslationOptions, TranslationTask, Translator

# --- the forward pass -------------------------------------------------------------------------------------------------


LETTERS = CharTokenizer([*SPECIAL_TOKENS, *"abcde"])
TRANSLATORS = {
    "translator": {},
    "translator, pre-norm": {"norm_first": True, "activation": "gelu"},
    "translator, tied": {"norm_first": True, "tie_embeddings": True},
    "translator, one vocabulary": {"tie_embeddings": True, "src_vocab_size": 13, "activation": "silu"},
    "translator, gelu_tanh": {"activation": "gelu_tanh"},
    "translator, no encoder": {"num_encoder_layers": 0},
}
GPTS = {
    "gpt": {},
    "gpt, untied": {"tie_embeddings": False, "bias": False},
    "gpt, window": {"activation": "relu", "window": 2, "positions": "sinusoidal"},
    "gpt, rotary": {"positions": "rotary", "norm": "rms", "activation": "gated_silu", "bias": False, "num_kv_heads": 1},
    "gpt, alibi": {"positions": "alibi", "activation": "gated_gelu", "bias": False},
}
LLAMA = {"num_kv_heads": 1, "num_layers": 2, "d_head": 6, "qkv_bias": True, "window": 3}
TEXT = [4, 5, 6, 6, 8, 7, 4, 5]
SENTENCES = [([4, 5, 6], [1, 4, 5, 6]), ([7, 7], [1, 4]), ([10, 3, 9, 4, 4], [1, 12, 11])]
NAMED_APART = ("gpt, window", "gpt, rotary", "gpt, alibi", "llama")  # intermediates that the page names differently


@pytest.fixture
def make(make_translator, make_gpt, random_module, tokenizers):
    """make(kind) -> a model of this kind, and its page."""

    def made(kind):
        if kind in TRANSLATORS:
            model = make_translator(**TRANSLATORS[kind])
            shared = [tokenizers[1]] * 2 if kind.endswith("one vocabulary") else tokenizers
            return model, explore_live(model, shared, "Ana is tired")
        model = make_gpt(**GPTS[kind]) if kind in GPTS else random_module(Llama(LlamaConfig(9, 8, 12, 3, **LLAMA)))
        return model, explore_live(model, LETTERS, "abcab")

    return made


@pytest.mark.parametrize("kind", [*TRANSLATORS, *GPTS, "llama"])
def test_every_number_of_every_kind_of_model(browser, make, tmp_path, kind):
    """Forward at once and in two parts, and backward; with changes if the model has the layers that they change."""
    model, page = make(kind)
    load(browser, page, tmp_path)
    sentences = SENTENCES if kind == "translator" else SENTENCES[2:] if kind in TRANSLATORS else [(None, TEXT)]
    for source, given in sentences:
        if kind not in NAMED_APART:
            assert largest_difference(browser, model, source, given) < 1e-4
        targets = [None, *range(5, 4 + len(given))] if source else [4, None, 6, 7, 8, 8, 7, 4]
        which = slice(1 if kind == "translator, no encoder" else None)
        assert largest_gradient_difference(browser, model, source, given, targets, which) < 1e-5
    whole, in_two = (numbers_in_page(browser, source, given, known=known) for known in (0, len(given) // 2))
    assert whole.keys() == in_two.keys()
    for name, array in whole.items():
        np.testing.assert_allclose(in_two[name], array, rtol=1e-12, atol=1e-12, err_msg=name)


CONTRIBUTIONS = "live.contributions(live.model, live.result().values, arguments[0], arguments[1])"


@pytest.mark.parametrize("kind", ["gpt", "translator", "translator, tied", "gpt, rotary"])
def test_who_wrote_a_token(browser, make, tmp_path, kind):
    """The terms of a logit are those in NumPy, and the step on the stage shows them for the token that was chosen."""
    translates = kind in TRANSLATORS
    _, page = make(kind)
    load(browser, page, tmp_path)
    here = LivePage(browser)
    here.click("#next") if not translates else None
    given = here.read("live.result().given")
    source = [here.read("live.state.pieces.map(({ id }) => id)")] if translates else []
    inputs = tuple(np.array([row]) for row in (*source, given))
    for row in (0, len(given) - 1):
        found = here.read(CONTRIBUTIONS, 6, row)
        expected = contributions(page.model, inputs, 6, row)
        heads = np.stack([*expected.heads.values()])
        np.testing.assert_allclose([part["heads"] for part in found["parts"]], heads, atol=1e-4)
        inner = [part["feedForward"] for part in found["parts"] if part["feedForward"] is not None]
        np.testing.assert_allclose(inner, [*expected.feed_forwards.values()], atol=1e-4)
        numbers = [found[name] for name in ("embedding", "biases", "heads", "feedForwards")]
        assert numbers[:2] == pytest.approx([expected.embedding, expected.biases], abs=1e-4)
        assert sum(numbers) == pytest.approx(found["logit"], abs=1e-9)
    written = here.steps[-1]
    here.click("#who")
    assert f"the logit of “{written}”" in here.one("#cell").text and "Who wrote" in here.one("#lesson-title").text


@pytest.mark.release
def test_firefox_computes_the_same_and_draws(firefox, make, tmp_path):
    for kind, ids in (("translator", SENTENCES[0]), ("gpt, rotary", (None, [4, 5, 6]))):
        model, page = make(kind)
        load(firefox, page, tmp_path)
        targets = [None, *range(5, 4 + len(ids[1]))]
        assert largest_gradient_difference(firefox, model, *ids, targets) < 1e-5
        if ids[0]:
            assert largest_difference(firefox, model, *ids) < 1e-4
        drawn = firefox.execute_script(PLAYED)
        assert len(drawn) > 20 and all(drawn)


PLAYED = """
const ink = (canvas) =>
  canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some((part) => part);
return [...document.querySelectorAll(".step")].map(({ dataset }) => {
  document.querySelector(`[data-key="${dataset.key}"]`).click();
  return document.getElementById("step-title").innerText && [...document.querySelectorAll("#step canvas")].every(ink);
});"""


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_a_classifier(browser, random_module, tmp_path, pooling):
    sizes = {"d_model": 12, "num_heads": 3, "num_layers": 2, "max_len": 8, "d_ff": 10}
    model = random_module(Bert(BertConfig(9, **sizes, num_classes=3, mlm_head=False, pooling=pooling)))
    page = explore_live(model, LETTERS, "abca", labels=["good", "bad", "neither"])
    load(browser, page, tmp_path)
    given = browser.execute_script("return live.result().given")
    assert given == [1, 4, 5, 6, 4, 2]
    found = numbers_in_page(browser, None, given)
    np.testing.assert_allclose(found["output.out"], page.model.eval().classify(np.array([given])), atol=1e-4)
    assert largest_difference(browser, page.model, None, given) < 1e-4
    assert largest_gradient_difference(browser, model, None, given, [2]) < 1e-5
    with pytest.raises(ValueError, match="labels must name the 3 classes of the model, got 2"):
        explore_live(model, LETTERS, "abca", labels=["good", "bad"])


# --- the backward pass ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a translator's run."""
    folder = tmp_path_factory.mktemp("translator") / "run"
    options = TranslationOptions(steps=30, batch_size=32, d_model=32, d_ff=64)
    TranslationTask().train(options, folder, report=lambda line: None)
    return folder


@pytest.mark.long
@pytest.mark.parametrize("sentences", [2, pytest.param(50, marks=pytest.mark.release)])
def test_sentences_of_a_trained_translator(browser, trained, tmp_path, monkeypatch, sentences):
    """One test for the three formats, because the model is trained for it."""
    for weights in ("float32", "float16", "int8"):
        monkeypatch.setattr("transformer_np.inspection.explorer.live.FORMATS", (weights,))
        check_sentences(browser, Translator.load(trained), tmp_path, weights, sentences)


def check_sentences(browser, translator, tmp_path, weights, sentences):
    tokenizers = translator.src_tokenizer, translator.tgt_tokenizer
    page = explore_live(translator.model, tokenizers, LECTURE_SENTENCE)
    assert page.weights == weights
    load(browser, page, tmp_path)
    translator.model = page.model  # its weights are rounded
    worst = worst_gradient = 0
    for i, (sentence, _) in enumerate(english_portuguese()[::137][:sentences]):
        source = translator.encode(sentence)[0].tolist()
        assert browser.execute_script("return live.reader.encode(arguments[0]).map((p) => p.id)", sentence) == source
        browser.execute_script("live.state.fixed = []; live.take(arguments[0]); live.run()", sentence)
        given = browser.execute_script("return live.result().given")
        worst = max(worst, largest_difference(browser, translator.model, source, given))
        targets = [*given[1:], 4 + i]  # any word as the target of the last row
        which = slice(i % 4, i % 4 + 1)
        difference = largest_gradient_difference(browser, page.model, source, given, targets, which)
        worst_gradient = max(worst_gradient, difference)
        shown = browser.find_element("id", "output").text
        assert shown == (translator.translate(sentence) or "…")
    assert worst < 1e-4 and worst_gradient < 1e-5


# --- changes ----------------------------------------------------------------------------------------------------------


def with_extra(model, path, extra):
    """Add these numbers (H, T, S) to the scores of an attention layer from now on."""
    layer = dict(model.named_modules())[path]
    forward = layer.forward

    def changed(x, memory=None, mask=None, cache=None):
        masks = () if mask is None else mask if isinstance(mask, tuple) else (mask,)
        return forward(x, memory, (*masks, extra[None]), cache)

    object.__setattr__(layer, "forward", changed)


@pytest.fixture
def changed(browser, make_translator, tokenizers, tmp_path):
    """changed(change) -> the logits of the page with a change; and the model of the page."""
    model = make_translator()
    load(browser, explore_live(model, tokenizers, "Ana is tired"), tmp_path)
    model.eval(keep=True)
    return lambda *changes: numbers_in_page(browser, SRC, GIVEN, changes)["output.out"], model


SRC, GIVEN = [4, 5, 6, 7], [1, 4, 5, 6, 10]
CROSS, SELF = "decoder.1.cross_attention", "decoder.0.self_attention"


def test_a_key_and_a_score_are_changed_as_in_numpy(changed):
    """Heads, parts and rows: parity.py."""
    logits, model = changed
    ids = np.array([SRC]), np.array([GIVEN])
    clean = model(*ids)[0]
    kept = model.intermediates()
    scores = F.attention_scores(kept[f"{CROSS}.q"], kept[f"{CROSS}.k"])[0]  # (H, T, S)

    extra = np.zeros_like(scores)
    extra[2, :, 1] = -np.inf
    with_extra(model, CROSS, extra)
    hidden = {"type": "key", "path": CROSS, "head": 2, "key": 1}
    np.testing.assert_allclose(logits(hidden), model(*ids)[0], atol=1e-4)
    assert np.abs(model(*ids)[0] - clean).max() > 1e-2

    extra[...] = 0
    extra[1, 3, 2] = 4.5 - scores[1, 3, 2]
    edited = {"type": "score", "path": CROSS, "head": 1, "query": 3, "key": 2, "value": 4.5}
    np.testing.assert_allclose(logits(edited), model(*ids)[0], atol=1e-4)
    assert np.abs(model(*ids)[0] - clean).max() > 1e-2


def test_what_a_mask_hides_stays_hidden_and_without_any_key_a_row_has_weight_0(changed, browser):
    logits, _ = changed
    future = {"type": "score", "path": SELF, "head": 0, "query": 1, "key": 3, "value": 50}
    elsewhere = {"type": "key", "path": SELF, "head": 0, "key": 20}  # a word that is not there yet
    np.testing.assert_array_equal(logits(future, elsewhere), logits())
    keys = [{"type": "key", "path": CROSS, "head": 0, "key": key} for key in range(4)]
    weights = numbers_in_page(browser, SRC, GIVEN, keys)[f"{CROSS}.weights"]
    assert not weights[0].any() and np.allclose(weights[1:].sum(axis=-1), 1)


# --- tokens and choices -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tokenizer",
    [
        WordTokenizer.train([*TEXTS[:4], *TEXTS[5:]] * 2, lowercase=True),
        CharTokenizer.train(TEXTS[:3]),
        BPETokenizer.train(TEXTS * 2, max_size=300),
    ],
    ids=["word", "char", "bpe"],
)
def test_text_is_cut_and_joined_as_in_python(browser, make_gpt, tmp_path, tokenizer):
    model = make_gpt(vocab_size=len(tokenizer))
    seen = Seen.of(TEXTS[:5], TEXTS, tokenizer, running=True)
    load(browser, explore_live(model, tokenizer, "d", seen=seen), tmp_path)
    script = "return arguments[0].map((text) => [live.seen.fold(text), live.seen.outside(text)])"
    folded = browser.execute_script(script, TEXTS)
    assert folded == [[seen.fold(text), seen.outside(text)] for text in TEXTS] and any(words for _, words in folded)
    ends = ["xyz kno", "kno xyz", "kno to", "kno ", "kno"]
    script = "return arguments[0].map((text) => [live.seen.outside(text), live.seen.outside(text, true)])"
    begun = browser.execute_script(script, ends)
    assert begun == [[seen.outside(text), seen.outside(text, True)] for text in ends]
    assert begun[0] == [["xyz", "kno"], ["xyz"]] and begun[2] == [["kno"], ["kno"]]
    script = """return arguments[0].map((text) => {
        const ids = live.reader.encode(text).map(({ id }) => id);
        return [ids, live.reader.encode(text).map(({ piece }) => piece), live.writer.decode(ids)];
    })"""
    for text, (ids, pieces, joined) in zip(TEXTS, browser.execute_script(script, TEXTS), strict=True):
        assert ids == tokenizer.encode(text), text
        assert pieces == tokenizer.pieces(text), text
        assert joined == tokenizer.decode(ids), text
    vocabulary = [tokenizer.token(i) for i in range(len(tokenizer))]
    assert browser.execute_script("return live.writer.vocabulary") == vocabulary


def test_what_is_drawn_has_the_distribution_of_python(changed, browser):
    script = """
    const [logits, how] = arguments;
    const counts = logits.map(() => 0);
    for (let seed = 1; seed <= 2000; seed++) counts[live.choose(logits, { ...how, seed }, seed % 7)]++;
    return [counts, [...live.distribution(Float64Array.from(logits), how)]];"""
    logits = changed[0]()[0]
    for top_k, top_p in ((0, 1), (4, 1), (0, 0.7), (5, 0.8)):
        how = {"temperature": 1.5, "topK": top_k, "topP": top_p}
        counts, p = browser.execute_script(script, logits.tolist(), how)
        expected = sampling_distribution(logits, 1.5, top_k or None, top_p)
        np.testing.assert_allclose(p, expected, atol=1e-12)
        assert (np.abs(np.array(counts) - 2000 * expected) <= 5 * np.sqrt(2000 * expected) + 1e-9).all(), how
        assert np.abs(np.array(counts) - 2000 * F.softmax(logits)).max() > 100  # not that of temperature 1
    assert browser.execute_script("return live.choose([1, 3, 3, 2], { temperature: 0 }, 1)") == 1
