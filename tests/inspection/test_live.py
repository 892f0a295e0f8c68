"""The living page: what it shows and does in a real browser, and which models it takes."""

import re

import numpy as np
import pytest
from browsing import LivePage, opened, too_wide
from parity import numbers_in_numpy
from shared import resize

from transformer_np import functional as F
from transformer_np.data import BPETokenizer, CharTokenizer, PlainWordTokenizer
from transformer_np.data.tokenizers import SPECIAL_TOKENS, UNK
from transformer_np.decoding import Excluding, greedy_decode
from transformer_np.inspection.explorer.live import MOST_BYTES, MOST_BYTES_ROUNDED, explore_live
from transformer_np.models import GPT, Bert, BertConfig, GPTConfig

TEXT, IDS = "Ana <script> Don't", [4, 7, 8, 9, 10]
LETTERS = CharTokenizer([*SPECIAL_TOKENS, *"abcde"])


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
    given = [1, *target][: model.config.max_len]
    kept = numbers_in_numpy(model, ids, given)
    return kept["output.out"], kept, target


def writable(logits, excluded=range(UNK + 1)):
    """The logits without the tokens that are never written."""
    return np.where(np.isin(np.arange(len(logits)), excluded), -np.inf, logits)


# --- a text and its steps ---------------------------------------------------------------------------------------------


def test_a_typed_sentence_is_cut_and_translated(page, model, tokenizers):
    assert page.words_of("#tokens bdi") == ["Ana", "<", "script", ">", "Don't"]  # as typed
    for text, ids, unknown in (("ana is TIRED", [4, 5, 6], ""), ("Eva is < tired", [3, 5, 7, 6], "“Eva”")):
        page.type("text", text)
        assert page.read("live.state.pieces.map(({ id }) => id)") == ids
        assert unknown in page.one("#remark").text and bool(unknown) == bool(page.one("#remark").text)
        logits, _, target = forward(model, ids)
        assert page.output == tokenizers[1].decode(target)
        page.open("target 2")
        p = F.softmax(writable(logits[2], [UNK]))
        best = np.argsort(-p, kind="stable")[:7]
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
    assert page.steps == ["<bos>"]
    page.click("#next")
    page.click("#next")
    assert page.steps == whole[:3]
    page.open("target 1")
    page.open("bar 3")
    word = page.steps[2]
    assert word != whole[2] and len(page.steps) == 3
    page.click("#finish")
    assert page.steps[:3] == [*whole[:2], word] and len(page.steps) > 3
    given = np.array([[1, *(tokenizers[1].vocabulary.index(step) for step in page.steps[1:3])]])
    expected = writable(model(np.array([IDS]), given)[0, -1], [UNK]).argmax()
    assert page.steps[3] == tokenizers[1].token(expected)


def test_at_random_is_another_text_for_another_draw(page):
    greedy = page.output
    page.type("choice", "sample")
    page.type("temperature", 2)
    drawn = {page.output}
    page.click("#choosing summary")
    for _ in range(3):
        page.click("#again")
        drawn.add(page.output)
    assert len(drawn | {greedy}) > 3
    page.type("top-k", 1)
    assert page.output == greedy
    page.type("top-k", 3)
    assert len(page.words_of("#bars bdi")) == 3
    page.type("choice", "greedy")
    assert page.output == greedy


# --- the diagram ------------------------------------------------------------------------------------------------------

STEPS = {  # of the last layer of the decoder, each with its matrix in NumPy
    "Input (so far) embedding": "tgt_input.embedding.out",
    "Input (so far) position": "tgt_input.position.out",
    "decoder weights": "decoder.1.self_attention.weights",
    "cross q": "decoder.1.cross_attention.q",
    "cross k": "decoder.1.cross_attention.k",
    "cross v": "decoder.1.cross_attention.v",
    "cross weights": "decoder.1.cross_attention.weights",
    "cross norm2": "decoder.1.add_norm2.norm.out",
    "Feed-forward hidden": "decoder.1.feed_forward.hidden",
    "Feed-forward norm3": "decoder.1.add_norm3.norm.out",
}


def test_every_step_opens_with_the_number_of_the_model_and_the_sum_behind_it(page, model):
    _, kept, _ = forward(model, IDS)
    names = set()
    for name in page.open_steps():
        names.add(name)
        assert page.read("document.querySelector('.step.open').dataset.key") == name
        assert all(page.words_of("#step-title, #step-formula"))
        value = page.at(1, 0)
        assert np.isfinite(value), name
        if name in STEPS:
            array = kept[STEPS[name]]
            expected = (array[0] if array.ndim == 3 else array)[1, 0]
            assert value == pytest.approx(expected, abs=0.0051 + 0.005 * float(abs(expected))), name
    assert len(names) == 34 and names >= STEPS.keys()


def test_the_sum_behind_a_cell_has_every_factor_and_arrow_keys_lead_to_the_next(page, model):
    _, kept, _ = forward(model, IDS)
    page.open("cross 1 2")
    page.open("cross scores")
    q, k = (kept[f"decoder.1.cross_attention.{name}"][2] for name in "qk")
    expected = pytest.approx(q[2] @ k[1] / 2, abs=0.006 + 0.005 * float(abs(q[2] @ k[1])))
    assert page.at(2, 1) == expected
    text = page.one("#cell").text
    assert float(text.split(" = ")[-1].replace("−", "-")) == expected
    assert text.split("(", 1)[1].count("·") == 4 and text.count("/ 2.00") == 1
    assert "S (" in page.one("#step-formula").text and "√d_k" in page.one("#step-formula").text
    page.one("canvas.live").send_keys("")
    page.press("ARROW_DOWN", "ARROW_RIGHT")
    assert "S₄,₃" in page.one("#cell").text
    assert page.focused.get_attribute("data-key") == "matrix S"


def test_gradients_of_any_text_change_and_target(page, model, tokenizers):
    page.type("text", "ana is tired")
    page.open("Output loss")
    page.open("target 1")
    page.type("target", "b", "change")
    row = page.read("live.gradients().targets")
    assert row[1] == tokenizers[1].vocabulary.index("b")
    page.open("decoder 0 1")
    page.show("gradient")
    given = page.read("live.result().given")
    for changed in (False, True):
        if changed:
            page.open("decoder heads")
            page.click("#head-off")
            given = page.read("live.result().given")
            w_o = model.decoder[0].self_attention.w_o
            w_o.data[4:8] = 0
            page.open("decoder 0 1")
        targets = page.read("live.gradients().targets")
        wanted = np.array([[-1 if i is None else i for i in targets]])
        model.eval(keep=True)
        caught = {}
        name = "decoder.0.self_attention.v"
        with model.replacing(name, lambda v: v, lambda d, old, caught=caught: caught.setdefault("v", d)):
            loss, probs = F.cross_entropy(model(np.array([[4, 5, 6]]), np.array([given])), wanted, -1)
            model.backward(F.cross_entropy_backward(probs, wanted, -1))
        assert page.read("live.gradients().loss") == pytest.approx(float(loss), rel=1e-4)
        page.open("decoder v")
        assert page.at(1, 2) == pytest.approx(caught["v"][0, 1, 1, 2], rel=0.06, abs=1e-6)


def test_a_step_of_sgd_lowers_the_loss_and_is_taken_back(page):
    page.open("Output loss")
    before = page.read("live.gradients().loss")
    for _ in range(2):
        page.click("#sgd")
        after = page.read("live.gradients().loss")
        assert after < before
        before = after
    assert page.one("#sgd-result").text.count("→") == 2
    page.open("Output moved")
    assert page.at(0, 1) > 0  # how far its weights have moved, in percent
    moved, length = re.search(r"have moved .* by (\S+); its length is (\S+)", page.one("#cell").text).groups()
    assert 100 * float(moved) / float(length) == pytest.approx(page.at(0, 1), rel=0.1)
    page.open("Output loss")
    output = page.output
    page.click("#sgd-undo")
    page.click("#sgd-undo") if page.one("#sgd-undo").is_enabled() else None
    assert page.read("live.gradients().loss") > after and page.one("#sgd-result").text == "" and output


# --- changes ----------------------------------------------------------------------------------------------------------


def test_a_head_is_switched_off_and_its_effect_is_shown(page, model, tokenizers):
    first = page.output
    page.open("cross 0 1")
    assert page.words_of("#effect dd") == []
    page.click("#head-off")
    assert "off" in page.one('[data-key="cross 0 1"]').get_attribute("aria-label")
    assert "Off: cross-attention, layer 1, head 2" in page.changes[0]
    logits, _, before = forward(model, IDS)
    wanted = np.array([*before, 2][: len(logits)])
    clean = F.cross_entropy(logits, wanted)[0]
    model.decoder[0].cross_attention.w_o.data[4:8] = 0
    given = np.array([[1, *before][: model.config.max_len]])
    changed = F.cross_entropy(model(np.array([IDS]), given)[0], wanted)[0]
    _, _, after = forward(model, IDS)
    assert page.output == tokenizers[1].decode(after)
    shown = page.words_of("#effect dd")
    assert f"{clean:.3f} → {changed:.3f}" in shown[1] and "%" in shown[0]
    assert page.all(".next.compared") and "before" in page.one(".next").get_attribute("title")
    page.click("#undo-all")
    assert page.output == first and not page.one("#changes").is_displayed() and page.words_of("#effect dd") == []


MEASURE = "document.getElementById('measure').click()"


def test_the_ranking_says_how_much_the_loss_rises(page, model):
    """Estimated at once, by the slope of the loss, and measured when asked."""
    page.wait("ranked")
    estimated = page.words_of("#ranking .amount")
    assert all(text.startswith("≈ ") for text in estimated)
    logits, _, target = forward(model, IDS)
    wanted = np.array([*target, 2][: len(logits)])
    given = np.array([[1, *target][: model.config.max_len]])
    clean = F.cross_entropy(logits, wanted)[0]
    rises, slopes = {}, {}
    for kind, part in (("decoder", "self_attention"), ("cross", "cross_attention")):
        for layer in range(2):
            for head in range(3):
                name = f"decoder.{layer}.{part}.concat"

                def loss(factor, name=name, head=head):
                    def scaled(array):
                        array[..., 4 * head : 4 * head + 4] *= factor
                        return array

                    with model.replacing(name, scaled):
                        return F.cross_entropy(model(np.array([IDS]), given)[0], wanted)[0]

                rises[kind, layer, head] = loss(0) - clean
                slopes[kind, layer, head] = (loss(0.98) - loss(1.02)) / 0.04
    page.wait("ranked", MEASURE)
    ask = "live.ranking().found.map(({ change: { kind, layer, head }, rise }) => [kind, layer, head, rise])"
    both = zip(page.read(ask), page.read("live.ranking().estimated"), strict=True)
    found = {tuple(place): (rise, estimate) for (*place, rise), estimate in both}
    assert found.keys() >= rises.keys()
    for place, rise in rises.items():
        assert found[place][0] == pytest.approx(rise, abs=1e-4)
        assert found[place][1] == pytest.approx(slopes[place], abs=2e-3)
    shown = [float(text.split()[-1].replace("−", "-")) for text in page.words_of("#ranking .amount")]
    assert shown[:5] == sorted(shown[:5], reverse=True) and shown[0] > shown[4]
    page.open("try 0")
    assert len(page.changes) == 1 and page.words_of("#effect dd")
    page.open("try 0")
    assert page.changes == []


def test_a_key_is_hidden_from_a_head_a_layer_or_all_and_a_score_is_typed_and_dragged(page):
    page.open("cross 1 0")
    off = []
    for scope in ("head", "layer", "all"):
        page.at(1, 2)
        page.choose("scope", scope)
        page.click("#key-hidden")
        assert page.at(1, 2) == 0
        off.append(len(page.all('.thumb[aria-label*="changed"]')))
        page.open("undo 0")
    assert off == [1, 3, 6] and page.changes == []
    page.open("cross scores")
    before = page.at(1, 3)
    for field, value in (("score-number", "7.5"), ("score", "-3")):
        page.type(field, value)
        assert page.at(1, 3) == float(value) and "your change makes it" in page.one("#cell").text
        scores = page.read("[...live.result().values['decoder.1.cross_attention.scores'][0].row(1)]")
        assert scores[3] == float(value)
    assert "Score −3.00 instead of" in page.changes[0] and len(page.changes) == 1
    page.click("#score-reset")
    assert page.at(1, 3) == before and page.changes == []
    page.open("decoder 1 0")
    page.open("decoder scores")
    assert np.isfinite(page.at(0, 2))  # the future, before the mask
    page.open("decoder mask")
    assert page.at(0, 2) == -np.inf
    page.open("decoder weights")
    page.at(0, 2)
    assert not page.one("#score").is_enabled() and "the mask hides this key" in page.one("#cell").text


VALUES = """\
(({ values }) => ({ scores: [...values['encoder.0.attention.scores'][0].data], x: [...values['src_input.out'].data],
  A: [...values['decoder.0.self_attention.weights'][0].row(0)], sum: [...values['encoder.0.add_norm1.sum'].data],
  out: [...values['encoder.0.attention.out'].data] }))(live.result())"""


def test_the_whole_model_without_a_part(page, model):
    _, kept, _ = forward(model, IDS)
    q, k = (kept[f"encoder.0.attention.{part}"][0] for part in "qk")
    embedded = model.src_input.embedding(np.array([IDS]))[0] * 12**0.5
    page.click("#switches summary")
    found = {}
    for name in ("scale", "mask", "positions", "residual"):
        page.click(f"#switch-{name}")
        assert page.words_of("#effect dd") and len(page.changes) == 1
        found[name] = page.read(VALUES)
        page.click(f"#switch-{name}")
        assert page.changes == []
    np.testing.assert_allclose(found["scale"]["scores"], (q @ k.T).ravel(), atol=1e-3)
    assert np.count_nonzero(found["mask"]["A"]) == len(found["mask"]["A"])
    np.testing.assert_allclose(found["positions"]["x"], embedded.ravel(), atol=1e-4)
    assert found["residual"]["sum"] == found["residual"]["out"]


def test_a_row_of_another_sentence(page, model):
    page.open("encoder 0 0")
    page.open("Input residual")
    page.open("source 1")
    page.choose("replace-name", "encoder.1.add_norm2.out")
    page.type("donor", "ana is tired")
    page.choose("donor-word", 2)
    page.click("#replace")
    assert "of “<” with that of “tired” in “ana is tired”" in page.changes[0]
    row = model.encode(np.array([[4, 5, 6]]))[0, 2]
    memory = model.encode(np.array([IDS]))
    memory[0, 1] = row
    shown = page.read("[...live.result().values.memory.data]")
    np.testing.assert_allclose(np.reshape(shown, (5, 12)), memory[0], atol=1e-4)
    page.type("text", "ana is")  # the position that it belonged to is gone
    assert page.changes == []


# --- GPT --------------------------------------------------------------------------------------------------------------


def test_a_gpt_writes_on(gpt_page, gpt):
    assert gpt_page.output == "abc"
    gpt_page.click("#next")
    ids = [4, 5, 6]
    for _ in range(8):  # beyond its context of 8 tokens
        ids.append(int(writable(gpt(np.array([ids[-8:]]))[0, -1]).argmax()))
    token = LETTERS.token
    assert gpt_page.steps == ["a", "b", "c", token(ids[3])]
    for _ in range(7):
        gpt_page.click("#next")
    assert gpt_page.steps == [*map(token, ids[-8:])]
    assert gpt_page.output == "abc" + LETTERS.decode(ids[3:])
    gpt_page.type("text", "abx")
    assert "never seen “x”" in gpt_page.one("#remark").text
    gpt_page.type("text", "deadbeaded")
    assert "the last 8" in gpt_page.one("#remark").text and len(gpt_page.steps) == 8


def test_a_keystroke_computes_one_row(gpt_page):
    gpt_page.type("text", "abcde")
    gpt_page.wait("ranked")  # the ranking runs the model too
    gpt_page.browser.execute_script(
        "window.rows = []; const forward = live.model.forward;"
        "live.model.forward = function (e, ids, c, before) {"
        " window.rows.push(ids.length - this.known(before, e, ids, c ?? []));"
        " return forward.call(this, e, ids, c, before); }"
    )
    gpt_page.type("text", "abcdea")
    assert gpt_page.read("window.rows[0]") == 1
    gpt_page.type("text", "abdcea")
    assert 4 in gpt_page.read("window.rows")


def test_runs_that_share_their_first_rows_do_not_change_one_another(gpt_page):
    runs = {}
    summed = (
        "const values = Object.entries(live.result().values).map(([name, value]) => [name, [value].flat()]);"
        "const copied = () => Object.fromEntries(values.map(([name, all]) => [name, all.map((one) => [...one.data])]));"
        "window.runs = { ...window.runs, [arguments[0]]: copied }; return copied()"
    )
    for text in ("ab", "abc", "abcd", "abc", "abce", "abcea", "ab", "abd", "abdc", "abcea", "abceaa"):
        gpt_page.type("text", text)
        runs[text] = gpt_page.browser.execute_script(summed, text)
    for text, found in runs.items():
        assert gpt_page.read("window.runs[arguments[0]]()", text) == found, text
        gpt_page.type("text", "e" + text)  # nothing is known
        gpt_page.type("text", text)
        again = gpt_page.browser.execute_script(summed, text)
        for name, heads in found.items():
            now, then = (np.array(each, float) for each in (again[name], heads))  # None: −∞
            np.testing.assert_allclose(now, then, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("which", ["page", "gpt_page"])
def test_the_ranking_leaves_out_what_a_change_does_not_touch(which, request, browser):
    page = request.getfixturevalue(which)
    page.wait("ranked")
    page.wait("ranked", MEASURE)
    # every change of the ranking, and one of an embedding: from the known intermediates, and computed in full
    wrong = page.browser.execute_script(
        """
        const { model, result, state, ranking } = live;
        const { given, src, values, encoded } = result();
        const path = { encoder: "encoder.#.attention", decoder: src && given[0] === 1 ? "decoder.#.self_attention" :
                       "blocks.#.attention", cross: "decoder.#.cross_attention" };
        const changes = ranking().all.map((change) => change.kind
          ? { ...change, path: path[change.kind].replace("#", change.layer) } : change);
        changes.push({ type: "off", name: model.encode ? "tgt_input.out" : "input" });
        return changes.map((change) => {
          const inside = (change.path ?? change.name).startsWith("decoder.");
          const again = model.encode?.(src, [change]);
          const known = model.forward(inside ? encoded : again, given, [change], null, values);
          const full = model.forward(again, given, [change]);
          const parts = (value) => [value].flat().flatMap(({ data }) => [...data]);
          const near = (a, b) => a.length === b.length && a.every((x, i) => x === b[i] || Math.abs(x - b[i]) < 1e-9);
          const equal = (name) => near(parts(full[name]), parts(known[name]));
          const wrong = Object.keys({ ...full, ...known }).filter((name) => !full[name] || !equal(name));
          return wrong.length ? [JSON.stringify(change), ...wrong] : [];
        });"""
    )
    assert len(wrong) > 8 and [each for each in wrong if each] == []


def test_every_step_of_a_gpt(gpt_page, gpt):
    gpt.eval(keep=True)
    gpt(np.array([[4, 5, 6]]))
    kept = {name: array[0] for name, array in gpt.intermediates().items()}
    numbers = gpt_page.numbers(1, 0)
    assert len(numbers) == 26 and np.isfinite([*numbers.values()]).all(), numbers
    gpt_page.open("decoder 0 1")
    gpt_page.open("decoder weights")
    assert gpt_page.at(2, 1) == pytest.approx(kept["blocks.0.attention.weights"][1, 2, 1], abs=0.006)
    gpt_page.open("Input residual")
    states = 2 + 2 * 2 * 2 + 1
    assert gpt_page.at(states - 1, 3) == pytest.approx(kept["output.x"][2, 3], abs=1e-4)
    assert float(gpt_page.one("#cell").text.split()[-1]) == pytest.approx(np.linalg.norm(kept["output.x"][2]), rel=0.01)
    gpt_page.open("Output lens")
    gpt_page.at(4, 0)  # after the last block
    assert gpt_page.one("#cell").text.split("“")[1].split("”")[0] == gpt_page.words_of("#bars bdi")[0]
    gpt_page.click("#choosing summary")
    gpt_page.choose("choice", "sample")
    gpt_page.type("temperature", 0.1)
    gpt_page.open("Output choice")
    cells = [gpt_page.at(1, column) and gpt_page.one("#cell").text for column in (0, 2)]
    assert re.findall(r"” (\D+)", " ".join(cells)) == ["= ", "< "], cells  # not "p of “c” = < 0.1 %"


@pytest.mark.long
def test_a_ranking_of_few_names_each_once_and_a_small_length_is_not_0(browser, make_gpt, tmp_path):
    gpt = make_gpt(num_layers=1, num_heads=1).eval()
    gpt.blocks[0].feed_forward.b2.data *= 1e-4  # so a step moves it most
    for page in opened(browser, explore_live(gpt, LETTERS, "abc").save(tmp_path / "page.html"), LivePage):
        page.wait("ranked")
        assert len(page.words_of("#ranking .amount")) == 3  # the head, the attention, the feed-forward network
        page.open("Output moved")
        page.at(0, 0)
        assert re.search(r"b2 by .*; its length is \d\.\de−", page.one("#cell").text)


def test_a_loss_of_one_row_has_no_rows(gpt_page):
    gpt_page.type("text", "a")
    gpt_page.open("Output loss")
    assert "the mean over 1 row." in gpt_page.one("#loss-text").text


@pytest.mark.release
@pytest.mark.parametrize("choices", [{"norm_first": True, "tie_embeddings": True}, {"num_encoder_layers": 0}])
def test_every_step_of_another_translator(browser, make_translator, tokenizers, tmp_path, choices):
    model = make_translator(**choices)
    for page in opened(browser, explore_live(model, tokenizers, TEXT).save(tmp_path / "page.html"), LivePage):
        for head in ("encoder 1 0", "cross 1 1"):
            if page.all(f'[data-key="{head}"]'):
                page.open(head)
                numbers = page.numbers(1, 0)
                assert np.isfinite([*numbers.values()]).all(), numbers


# --- a classifier -----------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("pooling", ["cls", pytest.param("mean", marks=pytest.mark.release)])
def test_a_classifier_has_bars_of_its_classes(browser, random_module, tmp_path, pooling):
    sizes = {"d_model": 12, "num_heads": 3, "num_layers": 2, "max_len": 8, "d_ff": 10, "pooling": pooling}
    model = random_module(Bert(BertConfig(9, **sizes, num_classes=3, mlm_head=False))).eval()
    made = explore_live(model, LETTERS, "abca", ["dad", "bead"], labels=["good", "bad", "<b>"])
    for page in opened(browser, made.save(tmp_path / "page.html"), LivePage):
        page.type("text", "bed")
        assert page.steps == ["[CLS]", "b", "e", "d", "[SEP]"]
        p = F.softmax(model.classify(np.array([[1, 5, 8, 7, 2]])))[0]
        order = np.argsort(-p)
        names = np.array(["good", "bad", "<b>"])[order].tolist()
        assert page.words_of("#bars bdi") == names and page.output == names[0]
        for shown, i in zip(page.words_of("#bars .amount"), order, strict=True):
            assert float(shown.strip("<> %")) == pytest.approx(100 * p[i], rel=0.06, abs=0.06)
        page.open("bar 2")  # the target of the loss
        assert page.read("live.gradients().loss") == pytest.approx(-np.log(p[order[2]]), rel=1e-4)
        page.wait("ranked")
        numbers = page.numbers(0, 1, "gradient", "value")
        assert np.isfinite([*numbers.values()]).all(), numbers
        assert ("Output pool-act" in numbers) == (pooling == "cls") and "Output lens" in numbers
        page.open("Output lens")
        page.at(4, 0)  # the last state
        assert re.findall("“(.*?)”", page.one("#cell").text) == names
        page.open("Output loss")
        loss = page.read("live.gradients().loss")
        page.click("#sgd")
        assert page.read("live.gradients().loss") < loss
        page.open("encoder 1 2")
        page.open("encoder heads")
        page.click("#head-off")
        assert "→" in page.words_of("#effect dd")[0] and page.all(".next.compared")
        page.type("text", "bxd")
        assert "reads <unk>" in page.one("#remark").text


# --- for everybody ----------------------------------------------------------------------------------------------------


def test_words_are_only_words_and_the_page_asks_for_nothing(page, model, tokenizers):
    page.type("text", "</script><b id='broken'>ana</b>")
    assert not page.all("#broken")
    text = explore_live(model, tokenizers, TEXT).page
    assert text.count("</script>") == 3 and "<script> Don" not in text
    assert not re.search(r"(src|href)\s*=\s*\"(?!data:)|@import|url\(|fetch\(|eval\(|XMLHttp|innerHTML", text)
    assert "default-src 'none'" in text


def test_nothing_runs_out_of_the_page_and_one_screen_holds_text_result_and_the_open_step(page, browser):
    steps = "cross q, cross scores, Feed-forward ffn, Input (so far) residual, Output loss, Output lens"
    for width in (320, 768, 1280):
        resize(browser, width)
        for step in steps.split(", "):
            page.open(step)
            assert too_wide(browser) <= 0, (width, step)
        assert page.read(OUTSIDE, width) == []
    resize(browser, 1366, 768)
    page.open("cross weights")
    assert page.read("document.documentElement.scrollHeight") <= 768
    for css in ("#text", "#output", "#bars", "#step-title", "#equation", "#cell", ".step.open"):
        box = page.one(css).rect
        assert 0 <= box["y"] and box["y"] + box["height"] <= 768, css


OUTSIDE = """[...document.querySelectorAll("select, input, textarea, .thumb, .step")].filter((it) => {
    const { left, right } = it.getBoundingClientRect();
    return it.checkVisibility() && (left < 0 || right > arguments[0]);
}).map((it) => it.outerHTML)"""


def test_everything_is_reached_by_the_keyboard_and_named(page, browser):
    page.wait("ranked")
    page.one("#text").click()
    reached = []
    for _ in range(80):
        page.press("TAB")
        here = page.focused
        name = next(filter(None, map(here.get_attribute, ("id", "data-key", "value"))), here.tag_name)
        if (name in reached and name != "summary") or here.tag_name == "body":
            break
        reached.append(name)
        assert browser.execute_script("return getComputedStyle(document.activeElement).outlineStyle") == "solid", name
        assert here.accessible_name, name
    names = "lessons, source 0, restart, bar 0, try 0, cross 1 0, cross weights, matrix A, head-off".split(", ")
    assert {*names, f"target {len(page.steps) - 1}"} <= {*reached}
    assert len(reached) < 60
    page.one('[data-key="cross 1 0"]').send_keys("")
    page.press("ARROW_DOWN", "ARROW_RIGHT", "ENTER")
    assert page.one("#step-title").text.endswith("cross-attention, layer 1, head 2")
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


def test_rounded_weights_where_float32_is_too_large_and_a_clear_word_where_that_is_too(model, tokenizers, monkeypatch):
    assert MOST_BYTES == 3_000_000 and MOST_BYTES_ROUNDED == 6_000_000
    page = explore_live(model, tokenizers, TEXT)
    size = len(page.page.encode())
    assert page.weights == "float32" and "float32" in repr(page)
    monkeypatch.setattr("transformer_np.inspection.explorer.live.MOST_BYTES", size - 1)
    sizes = []
    for weights in ("float16", "int8"):
        rounded = explore_live(model, tokenizers, TEXT)
        assert rounded.weights == weights
        sizes.append(len(rounded.page.encode()))
        monkeypatch.setattr("transformer_np.inspection.explorer.live.MOST_BYTES_ROUNDED", sizes[-1] - 1)
    assert size > sizes[0] > sizes[1]
    with pytest.raises(ValueError, match=r"would have 0\.\d MB, more than 0\.\d MB, even with int8.*fewer layers"):
        explore_live(model, tokenizers, TEXT)


@pytest.mark.long
def test_five_million_parameters_are_under_6_megabytes():
    tokenizer = BPETokenizer.train([" ".join(map(str, range(2000)))], max_size=1000)
    model = GPT(GPTConfig(len(tokenizer), 64, 264, 8, 6, seed=0))
    assert model.num_parameters() > 5_000_000
    page = explore_live(model, tokenizer, "12")
    assert page.weights == "int8" and len(page.page.encode()) < 6_000_000


def test_what_the_page_does_not_have_is_refused(model, gpt, make_translator, make_gpt, tokenizers):
    cases = [
        ((object(), tokenizers, TEXT), TypeError, "must be a Transformer, a GPT, a Llama or a Bert, got object"),
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
    gpt.train()
    before = {name: array.tobytes() for name, array in gpt.state_dict().items()}
    assert explore_live(gpt, LETTERS, "a").weights == "float32"
    assert gpt.training and gpt.config.dropout == 0.1  # it is left as it was
    assert {name: array.tobytes() for name, array in gpt.state_dict().items()} == before
