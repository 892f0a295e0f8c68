"""The living page: what it shows and does in a real browser, and which models it takes."""

import re

import numpy as np
import pytest
from browsing import Page, opened, resize, too_wide

from transformer_np import functional as F
from transformer_np.data import CharTokenizer, PlainWordTokenizer
from transformer_np.data.tokenizers import SPECIAL_TOKENS, UNK
from transformer_np.decoding import Excluding, greedy_decode
from transformer_np.inspection.explorer import explore
from transformer_np.inspection.explorer.live import MOST_BYTES, explore_live
from transformer_np.models import Bert, BertConfig, Llama, LlamaConfig

TEXT, IDS = "Ana <script> Don't", [4, 7, 8, 9, 10]
LETTERS = CharTokenizer([*SPECIAL_TOKENS, *"abcde"])


class LivePage(Page):
    """The page; every command waits until the model has run to its end."""

    def __init__(self, browser):
        super().__init__(browser)
        self.wait()

    def wait(self):
        """Text is written in sight, over several turns of the browser's loop."""
        from selenium.webdriver.support.ui import WebDriverWait

        ready = "return document.documentElement.dataset.ready"
        WebDriverWait(self.browser, 120, poll_frequency=0.01).until(lambda browser: browser.execute_script(ready))

    def type(self, field, text):
        """In one event, unlike the keys of a person, and as fast for a long text."""
        script = "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))"
        self.browser.execute_script(script, self.one(f"#{field}"), text)
        self.wait()

    def click(self, css):
        self.one(css).click()
        self.wait()

    def press_key_of(self, name):
        """The button or box with this data-key."""
        self.click(f'[data-key="{name}"]')

    def words_of(self, css):
        """The texts of all these elements, in one question to the browser."""
        script = "return [...document.querySelectorAll(arguments[0])].map((element) => element.innerText.trim())"
        return self.browser.execute_script(script, css)

    @property
    def output(self):
        return self.words_of("#output")[0]

    @property
    def steps(self):
        return self.words_of("#steps button")

    @property
    def changes(self):
        return self.words_of("#change-list li")

    @property
    def cells(self):
        """The numbers of the attention table, by row; None where hidden."""
        numbers = [*map(number, self.words_of("#map tbody button"))]
        rows = len(self.words_of("#map tbody tr"))
        return [numbers[i * len(numbers) // rows : (i + 1) * len(numbers) // rows] for i in range(rows)]

    def numbers(self, table):
        """The second column of a table of strips."""
        return [*map(number, self.words_of(f"#{table} tbody td:nth-child(2)"))]


def number(text):
    return float(text.replace("−", "-")) if text else None


@pytest.fixture
def model(make_translator):
    return make_translator().eval()


@pytest.fixture
def page(browser, model, tokenizers, tmp_path):
    """The page of a translator; afterwards nothing may stand in the console."""
    yield from opened(browser, explore_live(model, tokenizers, TEXT).save(tmp_path / "page.html"), LivePage)


@pytest.fixture
def gpt(make_gpt):
    return make_gpt().eval()


@pytest.fixture
def gpt_page(browser, gpt, tmp_path):
    yield from opened(browser, explore_live(gpt, LETTERS, "abc").save(tmp_path / "page.html"), LivePage)


def forward(model, ids):
    """The logits (T, V) and intermediates of the model's own translation of the ids, and that translation."""
    longest = min(model.config.max_len, 2 * len(ids) + 10)
    target = greedy_decode(Excluding(model, [UNK]), np.array([ids]), longest)[0]
    model.eval(keep=True)
    given = [1, *target][: model.config.max_len]
    logits = model(np.array([ids]), np.array([given]))[0]
    return logits, {name: array[0] for name, array in model.intermediates().items()}, target


def writable(logits, excluded=range(UNK + 1)):
    """The logits without the tokens that are never written."""
    return np.where(np.isin(np.arange(len(logits)), excluded), -np.inf, logits)


# --- a text and its steps ---------------------------------------------------------------------------------------------


def test_a_typed_sentence_is_cut_and_translated(page, model, tokenizers):
    assert page.words_of("#tokens bdi") == ["Ana", "<", "script", ">", "Don't"]  # as typed
    assert page.words_of("#tokens small") == [str(i) for i in IDS]
    for text, ids, unknown in (("ana is TIRED", [4, 5, 6], ""), ("Eva is < tired", [3, 5, 7, 6], "“Eva”")):
        page.type("text", text)
        assert page.words_of("#tokens small") == [str(i) for i in ids]
        assert unknown in page.one("#remark").text and bool(unknown) == bool(page.one("#remark").text)
        logits, _, target = forward(model, ids)
        assert page.output == tokenizers[1].decode(target)
        page.all("#steps button")[2].click()
        p = F.softmax(writable(logits[2], [UNK]))
        best = np.argsort(-p, kind="stable")[:8]
        assert page.words_of("#bars bdi") == [tokenizers[1].token(i) for i in best]
        for shown, i in zip(page.words_of("#bars .amount"), best, strict=True):
            assert float(shown.strip("<> %")) == pytest.approx(100 * p[i], rel=0.06, abs=0.06)
    before = page.output
    page.type("text", "  ")
    assert "empty" in page.one("#remark").text and page.output == before
    page.type("text", "ana " * 17)
    assert "at most 16" in page.one("#remark").text and page.output == before


def test_step_by_step_and_another_word(page, model, tokenizers):
    whole = page.steps
    page.click("#restart")
    assert page.steps == ["…"]
    page.click("#next")
    page.click("#next")
    assert page.steps == [*whole[:2], "…"]
    page.all("#steps button")[1].click()
    other = page.all("#bars button")[3]
    word = other.find_element("css selector", "bdi").text
    assert word != whole[1]
    other.click()
    assert page.steps == [whole[0], word, "…"]
    page.click("#finish")
    assert page.steps[:2] == [whole[0], word] and page.steps[-1] != "…"
    given = np.array([[1, *(tokenizers[1].vocabulary.index(step) for step in page.steps[:2])]])
    expected = writable(model(np.array([IDS]), given)[0, -1], [UNK]).argmax()
    assert page.steps[2] == tokenizers[1].token(expected)


@pytest.mark.long
def test_at_random_is_another_text_for_another_draw(page):
    greedy = page.output
    page.one("input[value=sample]").click()
    page.type("temperature", 2)
    drawn = {page.output}
    for _ in range(3):
        page.click("#again")
        drawn.add(page.output)
    assert len(drawn | {greedy}) > 3
    page.one("input[value=greedy]").click()
    assert page.output == greedy


# --- changes ----------------------------------------------------------------------------------------------------------


def test_a_head_is_switched_off_and_on(page, model):
    first = page.output, page.cells
    page.press_key_of("cross 0 1")
    page.click("#head-on")
    assert "off" in page.one('[data-key="cross 0 1"]').get_attribute("aria-label")
    assert "Off: cross-attention, layer 1, head 2" in page.changes[0]
    w_o = model.decoder[0].cross_attention.w_o
    w_o.data[4:8] = 0
    _, kept, target = forward(model, IDS)
    assert page.steps[: len(target)] == [SPECIAL_TOKENS[i] if i < 4 else page.steps[t] for t, i in enumerate(target)]
    page.press_key_of("cross 1 0")
    np.testing.assert_allclose(page.cells, kept["decoder.1.cross_attention.weights"][0], atol=0.006)
    assert page.one("#before").text
    page.click("#undo-all")
    assert (page.output, page.cells) == first and not page.one("#changes").is_displayed()


def test_a_key_is_hidden_from_a_head_a_layer_or_all(page):
    page.press_key_of("cell 1 2")
    off = []
    for scope in ("head", "layer", "all"):
        page.choose("scope", scope)
        page.press_key_of("key 2")
        assert [row[2] for row in page.cells] == [None] * len(page.steps)
        assert "but the key is hidden: weight A = 0.00" in page.one("#pair").text
        off.append(len(page.all('.thumb[aria-label*="changed"]')))
        page.press_key_of("undo 0")
    assert off == [1, 3, 6] and page.changes == []


def test_a_score_is_typed_and_dragged(page):
    page.press_key_of("cell 1 3")
    before = page.cells
    for field, value in (("score-number", "7.5"), ("score", "-3")):
        page.type(field, value)
        page.show("score")
        assert page.cells[1][3] == float(value)
        scores = np.array(page.cells[1])
        page.show("weight")
        np.testing.assert_allclose(page.cells[1], F.softmax(scores), atol=0.01)
        assert page.cells[0] == before[0]
    assert "Score −3.00 instead of" in page.changes[0] and len(page.changes) == 1
    page.click("#score-reset")
    assert page.cells == before and page.changes == []
    page.press_key_of("decoder 1 0")
    page.press_key_of("cell 0 2")  # the future
    assert not page.one("#score").is_enabled() and "the mask hides the future" in page.one("#pair").text


def test_a_row_of_another_sentence(page, model):
    page.press_key_of("encoder 0 0")
    page.press_key_of("cell 1 0")
    page.press_key_of("residual")
    page.choose("replace-name", "encoder.1.add_norm2.out")
    page.type("donor", "ana is tired")
    page.choose("donor-word", 2)
    page.click("#replace")
    assert "of “<” with the one of “tired” in “ana is tired”" in page.changes[0]
    row = model.encode(np.array([[4, 5, 6]]))[0, 2]
    memory = model.encode(np.array([IDS]))
    memory[0, 1] = row
    shown = page.browser.execute_script("return [...live.result().values.memory.data]")
    np.testing.assert_allclose(np.reshape(shown, (5, 12)), memory[0], atol=1e-4)
    first = writable(model.decode(np.array([[1]]), memory, np.array([IDS]))[0, -1], [UNK]).argmax()
    assert page.steps[0] == page.browser.execute_script("return live.writer.vocabulary[arguments[0]]", int(first))
    page.type("text", "ana is")  # the place that it belonged to is gone
    assert page.changes == []


# --- inside -----------------------------------------------------------------------------------------------------------


def test_the_views_show_the_numbers_of_the_model(page, model, tokenizers):
    logits, kept, _ = forward(model, IDS)
    page.press_key_of("cross 1 2")
    path = "decoder.1.cross_attention"
    weights, v, concat = (kept[f"{path}.{name}"] for name in ("weights", "v", "concat"))
    page.press_key_of("cell 2 1")
    np.testing.assert_allclose(page.cells, weights[2], atol=0.006)
    page.press_key_of("sum")
    np.testing.assert_allclose(page.numbers("sum-table"), [*weights[2, 2], 1], atol=0.006)
    page.type("feature", 3)
    z = (weights[2, 2] @ v[2])[2]
    assert number(page.one("#sum-feature").text.split(" = ")[-1]) == pytest.approx(z, abs=0.006)
    w_o = model.decoder[1].cross_attention.w_o.data.reshape(3, 4, 12)
    shares = np.linalg.norm(concat[2].reshape(3, 1, 4) @ w_o, axis=-1).ravel()
    np.testing.assert_allclose(page.numbers("heads-table")[:3], shares, atol=0.006)
    page.press_key_of("residual")
    lengths = page.numbers("residual-table")
    assert len(lengths) == 2 + 2 * 3 * 2
    assert lengths[-1] == pytest.approx(np.linalg.norm(kept["output.x"][2]), rel=0.01)
    page.press_key_of("ffn")
    hidden = kept["decoder.1.feed_forward.hidden"][2]
    assert f"{(hidden > 0).sum()} of them positive after ReLU" in page.one("#ffn-text").text
    page.press_key_of("lens")
    top = writable(logits[2], [UNK]).argmax()
    assert page.one("#lens-table tbody td bdi").text == tokenizers[1].token(top)


def test_the_gradients_are_those_of_the_explorer(browser, model, tokenizers, tmp_path):
    model.output.b.data[2] = 3.5  # so that its translation ends
    target = greedy_decode(Excluding(model, [UNK]), np.array([IDS]), 15)[0]
    found = explore(model, IDS, target)
    browser.get(explore_live(model, tokenizers, TEXT).save(tmp_path / "page.html").as_uri())
    page = LivePage(browser)
    assert len(target) == 3 and page.steps[-1] == "<eos>"
    page.press_key_of("decoder 0 1")
    for name, gradients in (("dweight", "dweights"), ("dscore", "dscores")):
        page.show(name)
        expected = getattr(found.attentions["decoder"], gradients)[0, 1]
        for t, row in enumerate(page.cells):
            np.testing.assert_allclose([x for x in row if x is not None], expected[t, : t + 1], rtol=0.06, atol=1e-9)
    output = page.output
    page.type("score", page.one("#score").get_property("value"))  # a change, if a small one
    assert page.output == output and not page.one("input[value=dweight]").is_enabled()
    page.click("#undo-all")
    assert page.one("input[value=dweight]").is_enabled()
    page.type("text", "ana is")
    assert not page.one("input[value=dweight]").is_enabled()


# --- GPT --------------------------------------------------------------------------------------------------------------


def test_a_gpt_writes_on(gpt_page, gpt):
    assert gpt_page.output == "abc"
    gpt_page.click("#next")
    ids = [4, 5, 6]
    for _ in range(8):  # beyond its context of 8 tokens
        ids.append(int(writable(gpt(np.array([ids[-8:]]))[0, -1]).argmax()))
    token = LETTERS.token
    assert gpt_page.steps == ["b", "c", token(ids[3]), "…"]
    for _ in range(7):
        gpt_page.click("#next")
    assert gpt_page.steps == [*map(token, ids[-7:]), "…"]
    assert gpt_page.output == "abc" + LETTERS.decode(ids[3:])
    gpt_page.type("text", "abx")
    assert "never seen “x”" in gpt_page.one("#remark").text
    gpt_page.type("text", "deadbeaded")
    assert "the last 8" in gpt_page.one("#remark").text and len(gpt_page.steps) == 8
    gpt_page.one("input[value=sample]").click()
    at_1 = gpt_page.words_of("#bars .amount")
    gpt_page.type("temperature", 0.1)
    assert gpt_page.words_of("#bars .amount") != at_1


def test_the_views_of_a_gpt(gpt_page, gpt):
    gpt.eval(keep=True)
    gpt(np.array([[4, 5, 6]]))
    kept = {name: array[0] for name, array in gpt.intermediates().items()}
    gpt_page.press_key_of("decoder 0 1")
    cells = gpt_page.cells
    for t, row in enumerate(kept["blocks.0.attention.weights"][1]):
        np.testing.assert_allclose(cells[t][: t + 1], row[: t + 1], atol=0.006)
        assert cells[t][t + 1 :] == [None] * (2 - t)
    gpt_page.press_key_of("sum")
    gpt_page.press_key_of("residual")
    assert len(gpt_page.numbers("residual-table")) == 2 + 2 * 2 * 2 + 1
    assert gpt_page.numbers("residual-table")[-1] == pytest.approx(np.linalg.norm(kept["output.x"][2]), rel=0.01)
    gpt_page.type("donor", "eed")
    gpt_page.choose("replace-name", "norm.out")
    gpt_page.click("#replace")
    expected = writable(gpt(np.array([[8, 8, 7]]))[0, 2]).argmax()
    assert gpt_page.words_of("#bars bdi")[0] == LETTERS.token(expected)
    gpt_page.press_key_of("ffn")
    gpt_page.press_key_of("lens")
    assert gpt_page.words_of("#lens-table tbody td bdi")[0] == gpt_page.words_of("#bars bdi")[0]
    gpt_page.type("text", "a")  # a single token has no gradients
    gpt_page.press_key_of("attention")
    assert not gpt_page.one("input[value=dweight]").is_enabled()


@pytest.mark.long
def test_the_views_of_a_pre_norm_translator(browser, make_translator, tokenizers, tmp_path):
    model = make_translator(norm_first=True, tie_embeddings=True).eval()
    for page in opened(browser, explore_live(model, tokenizers, TEXT).save(tmp_path / "page.html"), LivePage):
        logits, kept, _ = forward(model, IDS)
        for name in ("encoder 1 0", "decoder 0 2", "cross 1 1"):
            page.press_key_of(name)
            for tab in ("sum", "residual", "ffn", "lens", "attention"):
                page.press_key_of(tab)
        page.press_key_of("residual")
        final = kept["output.x"][len(page.steps) - 1]
        assert page.numbers("residual-table")[-1] == pytest.approx(np.linalg.norm(final), rel=0.01)
        page.press_key_of("lens")
        top = page.words_of("#lens-table tbody td bdi")[0]
        assert top == tokenizers[1].token(writable(logits[len(page.steps) - 1], [UNK]).argmax())


# --- for everybody ----------------------------------------------------------------------------------------------------


def test_words_are_only_words_and_the_page_asks_for_nothing(page, model, tokenizers):
    page.type("text", "</script><b id='broken'>ana</b>")
    assert not page.all("#broken")
    text = explore_live(model, tokenizers, TEXT).page
    assert text.count("</script>") == 2 and "<script> Don" not in text
    assert not re.search(r"(src|href)\s*=\s*\"(?!data:)|@import|url\(|fetch\(|eval\(|XMLHttp|innerHTML", text)
    assert "default-src 'none'" in text


LONG = pytest.mark.long


@pytest.mark.parametrize("width", [320, pytest.param(768, marks=LONG), pytest.param(1280, marks=LONG)])
def test_nothing_runs_out_of_the_page(page, browser, width):
    resize(browser, width)
    page.press_key_of("key 0")
    for tab in ("sum", "residual", "ffn", "lens", "attention"):
        page.press_key_of(tab)
        assert too_wide(browser) <= 0, tab
    for control in page.all("select, input:not(#map input), textarea, .thumb, [role=tab]"):
        assert not control.is_displayed() or 0 <= control.rect["x"] <= width - control.rect["width"]


def test_everything_is_reached_by_the_keyboard_and_named(page, browser):
    page.one("#text").click()
    reached = []
    for _ in range(60):
        page.press("TAB")
        here = page.focused
        name = here.get_attribute("id") or here.get_attribute("data-key") or here.get_attribute("value")
        if name in reached or here.tag_name == "body":
            break
        reached.append(name)
        assert browser.execute_script("return getComputedStyle(document.activeElement).outlineStyle") == "solid", name
        assert here.accessible_name, name
    last = len(page.steps) - 1
    for name in (
        f"step {last}",
        "restart",
        "greedy",
        "bar 0",
        "cross 1 0",
        "tab-attention",
        "head-on",
        "weight",
        "scope",
    ):
        assert name in reached, (name, reached)
    assert {"key 0", f"cell {last} 0", "score", "score-number"} <= set(reached)
    assert len(reached) < 40
    page.one('[data-key="cross 1 0"]').send_keys("")
    page.press("ARROW_DOWN", "ARROW_RIGHT", "ENTER")
    assert page.one("#inside-title").text == "Cross-attention, layer 1, head 2"
    assert page.focused.get_attribute("data-key") == "cross 0 1"  # the place stays when the page is drawn again


@pytest.mark.long
def test_it_works_in_the_frame_of_a_notebook(browser, model, tokenizers, tmp_path):
    frame = explore_live(model, tokenizers, TEXT)._repr_html_()
    path = tmp_path / "notebook.html"
    path.write_text(f'<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">{frame}', "utf-8")
    for notebook in opened(browser, path):
        browser.switch_to.frame(notebook.one("iframe"))
        page = LivePage(browser)
        before = page.output
        page.type("text", "ana")
        assert page.output != before
        browser.switch_to.default_content()


# --- which models -----------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_float16_where_float32_is_too_large_and_a_clear_word_where_that_is_too(model, tokenizers, monkeypatch):
    assert MOST_BYTES == 3_000_000
    page = explore_live(model, tokenizers, TEXT)
    size = len(page.page.encode())
    assert page.weights == "float32" and "float32" in repr(page)
    for limit, weights in ((size, "float32"), (size - 1, "float16"), (size - 14_000, "float16")):
        monkeypatch.setattr("transformer_np.inspection.explorer.live.MOST_BYTES", limit)
        assert explore_live(model, tokenizers, TEXT).weights == weights
    monkeypatch.setattr("transformer_np.inspection.explorer.live.MOST_BYTES", 20_000)
    with pytest.raises(ValueError, match=r"would have 0\.\d MB, more than 0\.0 MB.*fewer layers"):
        explore_live(model, tokenizers, TEXT)


def test_the_model_is_left_as_it_was(model, tokenizers):
    model.train()
    before = {name: array.tobytes() for name, array in model.state_dict().items()}
    explore_live(model, tokenizers, TEXT)
    assert model.training and model.config.dropout == 0.1
    assert {name: array.tobytes() for name, array in model.state_dict().items()} == before


def test_what_the_page_does_not_have_is_refused(model, gpt, make_translator, make_gpt, tokenizers):
    cases = [
        ((object(), tokenizers, TEXT), TypeError, "must be a Transformer or a GPT, got object"),
        ((Bert(BertConfig(9, d_model=4, num_heads=1, num_layers=1, d_ff=4)), LETTERS, "a"), TypeError, "got Bert"),
        ((Llama(LlamaConfig(9, d_model=4, num_heads=1, num_layers=1)), LETTERS, "a"), TypeError, "got Llama"),
        ((make_gpt(window=2), LETTERS, "ab"), ValueError, "its window is 2"),
        ((make_gpt(activation="gated_silu", bias=False), LETTERS, "ab"), ValueError, "got 'gated_silu'"),
        ((make_translator(num_decoder_layers=0), tokenizers, TEXT), ValueError, "at least one decoder block"),
        ((gpt, PlainWordTokenizer(LETTERS.vocabulary), "a"), TypeError, "words or byte pairs"),
        ((gpt, tokenizers, "ana"), ValueError, r"must have \[9\] tokens"),
        ((model, tokenizers[0], "ana"), ValueError, r"must have \[11, 13\] tokens"),
        ((model, tokenizers, " "), ValueError, "the text is empty"),
        ((model, tokenizers, "ana " * 17), ValueError, "more than max_len"),
        ((gpt, LETTERS, "abx"), ValueError, "does not have: 'x'"),
    ]
    for arguments, error, message in cases:
        with pytest.raises(error, match=message):
            explore_live(*arguments)
    assert explore_live(gpt, LETTERS, "a").weights == "float32"  # one token: no loss, no gradients
