"""The attention explorer: its numbers are the model's, and the page does what it says in a real browser."""

import json
import re
import shutil

import numpy as np
import pytest
from browsing import Page, opened, resize, too_wide

from transformer_np import cli
from transformer_np import functional as F
from transformer_np.data.tokenizers import UNK
from transformer_np.inspection.explorer import MOST_NUMBERS, MOST_TOKENS, explore
from transformer_np.models import GPT, Bert, BertConfig, GPTConfig, Transformer, TransformerConfig
from transformer_np.tasks.translation import Translator

HOSTILE = '</script><b id="broken">"&{{data}}'
SOURCE, TARGET = [4, 5, 6, 7, 8], [4, 5, 6]
SOURCE_WORDS, TARGET_WORDS = ["Lucas", "will", HOSTILE, "in", "\n"], ["Lucas", "vai", "viajar"]


@pytest.fixture
def gpt(random_module):
    return random_module(GPT(GPTConfig(11, max_len=9, d_model=8, num_heads=2, num_layers=2, dtype="float64")))


@pytest.fixture
def make_bert(random_module):
    def make(**choices):
        sizes = {"max_len": 9, "d_model": 8, "num_heads": 2, "num_layers": 2, "d_ff": 12, "dtype": "float64"}
        return random_module(Bert(BertConfig(11, **sizes, **choices)))

    return make


def state(model):
    """Everything that explore might change: modes, what is kept, other attributes, gradients, values."""
    attributes = {path: dict(vars(module)) for path, module in model.named_modules()}
    arrays = [(p.data.copy(), p.grad.copy()) for p in model.parameters()]
    return attributes, arrays


# --- the numbers ------------------------------------------------------------------------------------------------------


def test_the_numbers_are_the_intermediates_of_the_model(random_model):
    model = random_model()
    found = explore(model, SOURCE, TARGET).attentions
    model.eval(keep=True)
    model(np.array([SOURCE]), np.array([[1, *TARGET]]))
    kept = model.intermediates()
    layers = {"encoder": "encoder.{}.attention", "decoder": "decoder.{}.self_attention"}
    layers["cross"] = "decoder.{}.cross_attention"
    assert list(found) == list(layers)
    for kind, path in layers.items():
        for i in range(2):
            for name in ("weights", "q", "k", "v"):
                expected = kept[f"{path.format(i)}.{name}"][0]
                np.testing.assert_allclose(getattr(found[kind], name)[i], expected, rtol=1e-12)
    assert not found["encoder"].hidden.any() and not found["cross"].hidden.any()
    np.testing.assert_array_equal(found["decoder"].hidden, np.triu(np.ones((4, 4), bool), 1))


def test_scores_are_before_the_mask_and_weights_their_softmax_behind_it(random_model):
    for found in explore(random_model(), SOURCE, TARGET).attentions.values():
        np.testing.assert_allclose(found.scores, found.q @ found.k.swapaxes(-1, -2) / 2, rtol=1e-12)  # K = 4
        np.testing.assert_allclose(F.softmax(np.where(found.hidden, -np.inf, found.scores)), found.weights, rtol=1e-12)


def nudged(monkeypatch, model_loss, call, where, place, step):
    """The loss with one weight ("weights") or score ("scores") of the given call of attention moved by step."""
    count = 0

    def attention(q, k, v, mask=None):
        nonlocal count
        moved = np.zeros((q.shape[0], q.shape[1], q.shape[2], k.shape[2]))
        if count == call:
            moved[(0, *place)] = step
        count += 1
        scores = F.attention_scores(q, k, mask) + (moved if where == "scores" else 0)
        weights = F.softmax(scores) + (moved if where == "weights" else 0)
        return weights @ v, weights

    with monkeypatch.context() as patch:
        patch.setattr(F, "scaled_dot_product_attention", attention)
        return model_loss()


def check_gradients(monkeypatch, explorer, calls, model_loss, rng, step=1e-5):
    """Finite differences at a few places of every layer; calls: {(kind, layer): the how-manieth attention it is}."""
    assert model_loss() == pytest.approx(explorer.loss, rel=1e-12)
    for (kind, layer), call in calls.items():
        found = explorer.attentions[kind]
        seen = np.argwhere(np.broadcast_to(~found.hidden, found.weights[layer].shape))
        for place in map(tuple, rng.permutation(seen)[:6]):
            for where in ("weights", "scores"):
                up, down = (nudged(monkeypatch, model_loss, call, where, place, sign * step) for sign in (1, -1))
                gradient = getattr(found, f"d{where}")[(layer, *place)]
                assert gradient == pytest.approx((up - down) / (2 * step), rel=1e-6, abs=1e-9), (kind, where, place)


@pytest.mark.parametrize("norm_first", [False, True])
def test_gradients_of_a_transformer_by_finite_differences(random_model, monkeypatch, rng, norm_first):
    model = random_model(norm_first=norm_first)
    explorer = explore(model, SOURCE, TARGET)

    def loss():
        with model.evaluating():
            logits = model(np.array([SOURCE]), np.array([[1, *TARGET]]))
        return F.cross_entropy(logits, np.array([[*TARGET, 2]]))[0]

    model.eval()
    calls = {("encoder", 0): 0, ("encoder", 1): 1, ("decoder", 0): 2, ("cross", 0): 3}
    check_gradients(monkeypatch, explorer, {**calls, ("decoder", 1): 4, ("cross", 1): 5}, loss, rng)


def test_gradients_of_a_gpt_by_finite_differences(gpt, monkeypatch, rng):
    explorer = explore(gpt, SOURCE)
    gpt.eval()

    def loss():
        return F.cross_entropy(gpt(np.array([SOURCE]))[:, :-1], np.array([SOURCE[1:]]))[0]

    check_gradients(monkeypatch, explorer, {("decoder", 0): 0, ("decoder", 1): 1}, loss, rng)


def bert_losses(model, kind):
    ids = np.array([SOURCE])
    if kind == "classifier":
        return F.cross_entropy(model.classify(ids), np.array([1]))[0]
    if kind == "mlm":
        return F.cross_entropy(model.mlm_logits(ids), ids)[0]
    return float((model(ids)[0].mean(axis=0) ** 2).sum()) / 2


@pytest.mark.parametrize(
    "kind, choices",
    [("classifier", {"num_classes": 3}), ("mlm", {}), ("mean", {"mlm_head": False, "pooler": False})],
)
def test_gradients_of_a_bert_by_finite_differences(make_bert, monkeypatch, rng, kind, choices):
    model = make_bert(**choices)
    explorer = explore(model, SOURCE, 1 if kind == "classifier" else None)
    model.eval()
    check_gradients(
        monkeypatch, explorer, {("encoder", 0): 0, ("encoder", 1): 1}, lambda: bert_losses(model, kind), rng
    )


def test_the_model_is_left_as_it_was(random_model, gpt, make_bert):
    bert = make_bert(num_classes=3)
    runs = [
        (random_model(dropout=0.1), lambda m: m(np.array([SOURCE]), np.array([[1, 4]])), {"targets": TARGET}),
        (random_model(dropout=0.1), lambda m: m(np.array([SOURCE]), np.array([[1, 4]])), {}),
        (gpt, lambda m: m(np.array([SOURCE])), {}),
        (bert, lambda m: m.mlm_logits(np.array([SOURCE])), {}),
    ]
    for model, forward, choices in runs:
        model.train()
        out = forward(model)
        model.children().__next__()[1].eval()  # one part in another mode
        model.backward(np.ones_like(out))
        attributes, arrays = state(model)
        explore(model, SOURCE, **choices)
        after_attributes, after_arrays = state(model)
        for path, before in attributes.items():
            after = after_attributes[path]
            assert list(before) == list(after), path
            assert all(before[name] is after[name] for name in before), path
        for (data, grad), (data_after, grad_after) in zip(arrays, after_arrays, strict=True):
            np.testing.assert_array_equal(data, data_after)
            np.testing.assert_array_equal(grad, grad_after)


def test_the_model_is_left_as_it_was_after_an_error(gpt, monkeypatch):
    before, _ = state(gpt)
    monkeypatch.setattr(F, "cross_entropy_backward", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        explore(gpt, SOURCE)
    assert state(gpt)[0] == before


def test_words_and_the_default_target(random_model):
    model = random_model()
    found = explore(model, np.array([SOURCE]), labels=(SOURCE_WORDS, "t{}".format)).attentions
    assert found["encoder"].queries == ["Lucas", "will", HOSTILE, "in", "↵"]
    decoder = found["decoder"]
    assert decoder.queries[0] == "t1" and decoder.following[-1] == "t2"
    assert decoder.queries[1:] == decoder.following[:-1]
    assert explore(model, SOURCE, []).attentions["decoder"].queries == ["<bos>"]


@pytest.mark.parametrize(
    "choices, error, message",
    [
        ({"tokens": [[4, 5], [6, 7]]}, ValueError, "tokens must be one sequence"),
        ({"tokens": [4.5]}, TypeError, "whole numbers"),
        ({"tokens": [4, 99]}, ValueError, r"0 … 10, got 99"),
        ({"tokens": []}, ValueError, "tokens is empty"),
        ({"labels": (["a"], TARGET_WORDS)}, ValueError, "got 1 words for 5 ids"),
        ({"labels": SOURCE_WORDS}, ValueError, "must be a pair"),
        ({"tokens": [4] * 10}, ValueError, "more than max_len"),
    ],
)
def test_bad_input_of_a_transformer(random_model, choices, error, message):
    with pytest.raises(error, match=message):
        explore(random_model(), **{"tokens": SOURCE, "targets": TARGET, **choices})


def test_bad_input_of_the_others(gpt, make_bert):
    with pytest.raises(ValueError, match="at least 2"):
        explore(gpt, [4])
    with pytest.raises(ValueError, match="targets of a GPT are its next tokens"):
        explore(gpt, [4, 5], [5])
    with pytest.raises(ValueError, match="without a classifier"):
        explore(make_bert(), SOURCE, 1)
    with pytest.raises(TypeError, match="must be a Transformer"):
        explore(object(), SOURCE)
    sizes = {"vocab_size": 5, "max_len": 99, "num_layers": 1, "num_heads": 1, "d_model": 4}
    with pytest.raises(ValueError, match=f"at most {MOST_TOKENS}"):
        explore(GPT(GPTConfig(**sizes)), [1] * (MOST_TOKENS + 1))


def test_a_page_that_would_be_too_large_is_refused(gpt, monkeypatch):
    monkeypatch.setattr("transformer_np.inspection.explorer.MOST_NUMBERS", 10)
    with pytest.raises(ValueError, match="use a shorter text"):
        explore(gpt, SOURCE)
    assert MOST_NUMBERS > 10


def test_a_decoder_alone_and_an_encoder_that_nothing_reads(random_model):
    assert list(explore(random_model(num_encoder_layers=0), SOURCE, TARGET).attentions) == ["decoder", "cross"]
    found = explore(random_model(num_decoder_layers=0), SOURCE, TARGET).attentions
    assert list(found) == ["encoder"] and not found["encoder"].dweights.any()
    with pytest.raises(ValueError, match="must have at least one block"):
        explore(random_model(num_encoder_layers=0, num_decoder_layers=0), SOURCE, TARGET)


def test_the_page_asks_for_nothing_and_no_token_gets_out_of_its_data(random_model, tmp_path):
    explorer = explore(random_model(), SOURCE, TARGET, labels=(SOURCE_WORDS, TARGET_WORDS))
    page = explorer.page
    assert page.count("</script>") == 2 and "<b id" not in page
    assert not re.search(
        r"(src|href)\s*=\s*\"(?!data:)|@import|url\(|fetch\(|eval\(|XMLHttp", page.replace("data-", "")
    )
    assert "default-src 'none'" in page
    assert explorer.save(tmp_path / "page.html").read_text(encoding="utf-8") == page
    frame = explorer._repr_html_()
    assert frame.startswith("<iframe ") and frame.count("<") == 2 and "</script>" not in frame
    assert "cross" in repr(explorer)


# --- in a browser -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def explorer():
    model = Transformer(
        TransformerConfig(11, 13, d_model=12, num_heads=3, num_encoder_layers=2, num_decoder_layers=2, d_ff=10)
    )
    return explore(model, SOURCE, TARGET, labels=(SOURCE_WORDS, TARGET_WORDS))


@pytest.fixture
def page(browser, explorer, tmp_path):
    """The page, freshly loaded at 1280 pixels; afterwards nothing may stand in the console."""
    yield from opened(browser, explorer.save(tmp_path / "page.html"), ExplorerPage)


class ExplorerPage(Page):
    @property
    def drawing(self):
        """What is drawn, as text: the lines and the colours of the heatmap."""
        return self.browser.execute_script(
            "return document.getElementById('lines').innerHTML + "
            "[...document.querySelectorAll('#map td')].map(td => td.style.cssText).join()"
        )

    @property
    def lines(self):
        return self.browser.execute_script("return document.getElementById('lines').innerHTML")

    @property
    def values(self):
        """What stands beside the keys: weights and scores with two decimals, gradients with two digits."""
        return [number(element.text) for element in self.all("#keys .value")]

    @property
    def facts(self):
        return {
            element.get_attribute("data-fact"): element.find_element("tag name", "span").text
            for element in self.all("#facts dd")
        }


ROUNDED = 0.00501  # half of the last digit


def number(text):
    return None if text == "hidden" else float(text.replace("−", "-"))


@pytest.mark.long
def test_layer_head_kind_and_what_is_shown_change_the_drawing(page, explorer):
    drawings = {page.drawing}
    for control, value in (("layer", 1), ("head", 2), ("head", -1), ("kind", 0), ("kind", 1)):
        page.choose(control, value)
        drawings.add(page.drawing)
    for name in ("score", "dweight", "dscore"):
        page.show(name)
        drawings.add(page.drawing)
    assert len(drawings) == 9
    assert [option.text for option in page.all("#layer option")] == ["1", "2"]
    assert len(page.all("#head option")) == 4  # 3 heads and their mean


def test_a_picture_of_a_head_opens_it(page, explorer):
    assert len(page.all(".thumb")) == 3 * 2 * 3  # kinds, layers, heads
    weights = explorer.attentions["encoder"].weights[1, 2]
    picture = page.one('[data-key="encoder 1 2"]')
    t, s = divmod(np.argmax(np.where(np.eye(5), 0, weights)), 5)
    pair = f"{SOURCE_WORDS[t]} looks at {SOURCE_WORDS[s]}".replace("\n", "↵")
    assert picture.accessible_name == f"layer 2, head 3: {pair}, weight {weights[t, s]:.2f}"
    picture.click()
    assert page.one("#inside-title").text == "Encoder self-attention, layer 2, head 3"
    np.testing.assert_allclose(page.values, weights[0], atol=ROUNDED)
    assert page.one('.thumb[aria-pressed="true"]').get_attribute("data-key") == "encoder 1 2"


@pytest.mark.long
def test_the_row_of_the_hovered_word_is_shown_and_only_as_long(page, explorer):
    weights = explorer.attentions["cross"].weights[0, 0]
    first = page.lines
    np.testing.assert_allclose(page.values, weights[0], atol=ROUNDED)
    page.hover(page.all("#queries button")[2])
    np.testing.assert_allclose(page.values, weights[2], atol=ROUNDED)
    assert page.lines != first and page.one("#summary").text.startswith("→ viajar looks most at")
    page.hover(page.one("h1"))
    assert page.lines == first
    page.all("#queries button")[3].click()
    page.hover(page.one("h1"))
    np.testing.assert_allclose(page.values, weights[3], atol=ROUNDED)  # a click stays


@pytest.mark.long
@pytest.mark.parametrize("kind, name", [(0, "encoder"), (1, "decoder"), (2, "cross")])
def test_the_numbers_of_a_pair_are_the_models(page, explorer, kind, name):
    found = explorer.attentions[name]
    page.choose("kind", kind)
    page.choose("layer", 1)
    page.choose("head", 2)
    place, (t, s) = (1, 2), (2, 1)
    page.hover(page.all(f"#map tbody tr:nth-child({t + 1}) td")[s])
    shown = {key: number(text) for key, text in page.facts.items()}
    at = (*place, t, s)
    expected = {
        "dot": found.q[(*place, t)] @ found.k[(*place, s)],
        "score": found.scores[at],
        "weight": found.weights[at],
        "dweight": found.dweights[at],
        "dscore": found.dscores[at],
    }
    assert shown == pytest.approx(expected, rel=1e-3)
    rows = [
        [number(cell.text) for cell in row.find_elements("tag name", "td")] for row in page.all("#features tbody tr")
    ]
    q, k, products, v, g, gradients = np.array(rows).T
    for column, expected in ((q, found.q[(*place, t)]), (k, found.k[(*place, s)]), (v, found.v[(*place, s)])):
        np.testing.assert_allclose(column, expected, rtol=1e-3)
    np.testing.assert_allclose(g, found.doutput[(*place, t)], rtol=1e-3)
    assert products.sum() == pytest.approx(shown["dot"], abs=2e-3 * abs(products).max())
    assert gradients.sum() == pytest.approx(shown["dweight"], abs=2e-3 * abs(gradients).max())


@pytest.mark.long
@pytest.mark.parametrize("name, field", [("score", "scores"), ("dweight", "dweights"), ("dscore", "dscores")])
def test_what_is_shown_for_one_head_and_the_mean_of_heads(page, explorer, name, field):
    values = getattr(explorer.attentions["cross"], field)[0]
    page.show(name)
    rounding = {"atol": ROUNDED} if name == "score" else {"rtol": 0.06}
    np.testing.assert_allclose(page.values, values[0, 0], **rounding)
    page.choose("head", -1)
    np.testing.assert_allclose(page.values, values[:, 0].mean(axis=0), **rounding)
    assert not page.one("#features-scroll").is_displayed() and "Choose one head" in page.one("#note").text


def test_hidden_keys_are_marked(page):
    page.choose("kind", 1)  # the decoder's self-attention
    page.hover(page.all("#queries button")[1])
    assert [value is None for value in page.values] == [False, False, True, True]
    assert len(page.all("#map td.hidden")) == 6
    page.hover(page.all("#map tbody tr:nth-child(1) td")[3])
    assert page.facts["score"] == "−∞" and page.facts["weight"] == "0" and page.facts["dscore"] == "0"


@pytest.mark.long
def test_everything_is_reached_by_the_keyboard(page, explorer):
    weights = explorer.attentions["cross"].weights
    page.press("TAB", "ARROW_UP", "ARROW_LEFT", "ENTER")  # from the first head of cross-attention's first layer
    assert page.focused.get_attribute("data-key") == "decoder 0 2"  # the layers stand one above the other
    assert page.one("#inside-title").text == "Decoder self-attention, layer 1, head 3"
    page.press("END", "ARROW_LEFT", "ARROW_LEFT", "ENTER", "TAB")
    assert page.focused.get_attribute("id") == "kind"
    page.press("TAB", "ARROW_DOWN")
    assert page.one("#layer").get_property("value") == "1"
    page.press("TAB", "TAB", "ARROW_RIGHT")  # head, then what is shown
    assert page.one("input[value=score]").is_selected()
    page.press("ARROW_LEFT", "TAB")
    assert page.focused == page.all("#queries button")[0]
    page.press("ARROW_DOWN", "ARROW_DOWN")
    assert page.focused == page.all("#queries button")[2]
    np.testing.assert_allclose(page.values, weights[1, 0, 2], atol=ROUNDED)
    page.press("ARROW_RIGHT", "END")
    assert page.focused == page.all("#keys button")[4]
    assert number(page.facts["weight"]) == pytest.approx(weights[1, 0, 2, 4], rel=1e-3)
    outline = page.browser.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.press("TAB")
    assert page.focused.get_attribute("role") == "gridcell"
    page.press("ARROW_UP", "ARROW_LEFT")
    assert number(page.facts["weight"]) == pytest.approx(weights[1, 0, 1, 3], rel=1e-3)
    assert page.focused.get_attribute("aria-label").startswith("→ vai looks at in: weight A ")
    page.press("TAB")
    assert page.focused.get_attribute("id") == "features-scroll"


@pytest.mark.long
def test_only_one_word_a_column_and_one_cell_are_in_the_tab_order(page):
    for part in ("#queries button", "#keys button", "#map td"):
        page.all("#queries button")[1].click()
        assert [element.get_property("tabIndex") for element in page.all(part)].count(0) == 1


@pytest.mark.long
@pytest.mark.parametrize("width", [320, 640, 1280])
def test_nothing_runs_out_of_the_page(page, browser, width):
    resize(browser, width)  # 320 is 1280 at 400 %
    assert browser.execute_script("return window.innerWidth") == width
    assert too_wide(browser) <= 0
    for control in page.all("select, input, #words button"):
        assert control.rect["x"] >= 0 and control.rect["x"] + control.rect["width"] <= width


def test_a_hostile_word_is_only_a_word(page):
    assert not page.all("#broken")
    assert page.all("#keys bdi")[2].text == HOSTILE


@pytest.mark.long
def test_it_works_inside_the_frame_of_a_notebook(browser, explorer, tmp_path):
    path = tmp_path / "notebook.html"
    path.write_text(
        f'<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">{explorer._repr_html_()}', "utf-8"
    )
    for page in opened(browser, path, ExplorerPage):
        browser.switch_to.frame(page.one("iframe"))
        before = page.lines
        assert before
        page.hover(page.all("#queries button")[2])
        hovered = page.lines
        page.choose("layer", 1)
        assert len({before, hovered, page.lines}) == 3
        browser.switch_to.default_content()


@pytest.mark.long
def test_a_long_sequence_in_a_gpt_and_control_characters(browser, tmp_path):
    model = GPT(GPTConfig(vocab_size=7, max_len=64, d_model=8, num_heads=2, num_layers=1))
    ids = np.arange(64) % 7
    for page in opened(
        browser, explore(model, ids, labels=lambda i: " \n\x00\ud800א&a"[i]).save(tmp_path / "gpt.html"), ExplorerPage
    ):
        assert [element.text for element in page.all("#keys bdi")[:7]] == ["␣", "↵", "\ufffd", "\ufffd", "א", "&", "a"]
        page.all("#queries button")[63].click()
        assert sum(page.values) == pytest.approx(1, abs=64 * ROUNDED)
        resize(browser, 320)
        assert too_wide(browser) <= 0


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with small runs: translate, gpt and classify."""
    folder = tmp_path_factory.mktemp("runs")
    verbs = {"sings": "canta", "reads": "lê", "sleeps": "dorme"}
    pairs = [f"{s} {verb}\t{s} {verbo}" for s in ("Ana", "Maria", "he") for verb, verbo in verbs.items()] * 4
    (folder / "pairs.tsv").write_text("\n".join(pairs) + "\n", encoding="utf-8")
    (folder / "text.txt").write_text("the cat sat on the mat\n" * 40, encoding="utf-8")
    judged = {"+": ("good", "fine", "great", "lovely"), "-": ("bad", "poor", "awful", "dull")}
    labelled = [f"{label}\ta {word} film" for label, words in judged.items() for word in words]
    (folder / "labelled.tsv").write_text("\n".join(labelled * 8) + "\n", encoding="utf-8")
    tiny = ["--steps", "2", "--batch-size", "4", "--layers", "1", "--heads", "2", "--d-model", "8", "--d-ff", "10"]
    for kind, *own in (
        ("translate", "--pairs", "pairs.tsv"),
        ("gpt", "--text", "text.txt", "--block-size", "16"),
        ("classify", "--data", "labelled.tsv"),
    ):
        files = [str(folder / arg) if "." in arg else arg for arg in own]
        assert cli.main(["train", kind, *tiny, *files, "--out", str(folder / kind)]) == 0
    return folder


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(capsys, *args):
    capsys.readouterr()
    return cli.main(["explore", *map(str, args)]), *capsys.readouterr()


@pytest.mark.long
def test_command_with_the_newest_translator(trained, here, capsys, monkeypatch):
    monkeypatch.chdir(trained)
    code, out, err = call(capsys, "Ana sings", "-o", here / "page.html")
    assert (code, out, err) == (0, f"{here / 'page.html'}\n", "")
    page = (here / "page.html").read_text(encoding="utf-8")
    assert '"queries":["Ana","sings"]' in page and "cross" in page
    code, _, err = call(capsys, "Ana flies", "--target", "Ana voa", "-o", here / "other.html")
    assert (code, err) == (0, "the model does not know: flies\nthe model does not know: voa\n")
    assert '"next":["Ana","\\u003cunk>","\\u003ceos>"]' in (here / "other.html").read_text(encoding="utf-8")


@pytest.mark.long
def test_command_whose_translator_never_writes_unk(trained, here, capsys, monkeypatch):
    translator = Translator.load(trained / "translate")
    translator.model.output.b.data[UNK] = 50  # the likeliest token of every step
    monkeypatch.setattr(Translator, "load", lambda folder: translator)
    assert call(capsys, "Ana sings", "--model", trained / "translate", "-o", "page.html")[0] == 0
    written = re.findall(r'"next":(\[.*?\])', (here / "page.html").read_text(encoding="utf-8"))[-1]
    words = [word for word in json.loads(written) if word not in ("<bos>", "<eos>")]
    assert words and words == translator.translate("Ana sings").split()[: len(words)]


@pytest.mark.long
@pytest.mark.parametrize(
    "kind, text, words", [("gpt", "the cat", '"t","h","e","␣"'), ("classify", "a good film", '"good"')]
)
def test_command_with_other_runs(trained, here, capsys, kind, text, words):
    code, out, err = call(capsys, text, "--model", trained / kind, "-o", "page.html")
    assert (code, out, err) == (0, "page.html\n", "")
    assert words.encode("ascii", "backslashreplace").decode() in (here / "page.html").read_text(encoding="utf-8")


@pytest.mark.long
@pytest.mark.parametrize("kind, text", [("translate", "Ana flies"), ("gpt", "the cat")])
def test_command_with_the_model_in_the_page(trained, here, capsys, kind, text):
    code, out, err = call(capsys, text, "--live", "--model", trained / kind, "-o", "page.html")
    assert (code, out) == (0, "page.html\n")
    assert err == ("the model does not know: flies\n" if kind == "translate" else "")
    page = (here / "page.html").read_text(encoding="utf-8")
    assert f'"text":"{text}"' in page and '"format":"float32"' in page


@pytest.mark.parametrize(
    "kind, args, message",
    [
        ("classify", "a --live", "has a run of the kind 'classify', not 'translate' or 'gpt'"),
        ("translate", "Ana --live --target Ana", "leave --target out"),
        ("gpt", "€ --live", "does not have: '€'"),
    ],
)
def test_command_that_cannot_put_the_model_into_the_page(trained, here, capsys, kind, args, message):
    code, out, err = call(capsys, *args.split(), "--model", trained / kind, "-o", "page.html")
    assert (code, out, len(err.splitlines())) == (2, "", 1) and message in err


def test_command_takes_a_gpt_where_there_is_no_translator(trained, here, capsys):
    shutil.copytree(trained / "gpt", here / "gpt")
    assert call(capsys, "the cat", "-o", "page.html") == (0, "page.html\n", "")


def test_command_with_the_pretrained_model(here, capsys):
    pytest.importorskip("tokenizers", reason="the pretrained model needs the tokenizers library")
    from transformer_np.pretrained import minilm_folder

    try:
        minilm_folder()
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
    assert call(capsys, "--pretrained", "the dog is black", "-o", "page.html") == (0, "page.html\n", "")
    assert '"[CLS]","the","dog","is","black","[SEP]"' in (here / "page.html").read_text(encoding="utf-8")
    code, _, err = call(capsys, "--pretrained", "the dog is black " * 70, "-o", "page.html")  # longer than a file name
    assert code == 2 and "282 tokens are too many" in err


@pytest.mark.parametrize(
    "args, message",
    [
        ("Ana -o page.html", "train one with `transformer-np train translate`"),
        ("Ana -o page.png", "the name must end in .html"),
        ("Ana -o nowhere/page.html", "there is no folder nowhere"),
        ("Ana -o page.html --model nowhere", "nowhere is not the folder of a run"),
    ],
)
def test_command_that_cannot_work(here, capsys, args, message):
    code, out, err = call(capsys, *args.split())
    assert (code, out, len(err.splitlines())) == (2, "", 1) and message in err


def test_command_refuses_a_target_for_anything_but_a_translator(trained, here, capsys):
    code, _, err = call(capsys, "the cat", "--target", "sat", "--model", trained / "gpt", "-o", "page.html")
    assert code == 2 and "--target is for a translator" in err
    code, _, err = call(capsys, "Ana", "--target", "", "--model", trained / "translate", "-o", "page.html")
    assert code == 2 and "--target is empty" in err
    code, _, err = call(capsys, "", "--model", trained / "translate", "-o", "page.html")
    assert code == 2 and "the sentence is empty" in err
