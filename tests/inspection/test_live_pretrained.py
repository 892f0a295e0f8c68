"""The living page of a pretrained folder: its tokenizer and its model in Chromium are those in Python."""

import json
import re
from functools import cache, partial

import numpy as np
import pytest
from browsing import TEXTS, LivePage, Page, opened
from parity import largest_difference, largest_gradient_difference, load
from shared import data_of, wait_until

from transformer_np import functional as F
from transformer_np.cli import main
from transformer_np.data import LECTURE_SENTENCE, BPETokenizer, CharTokenizer, english_portuguese
from transformer_np.inspection.explorer.live import MOST_PARAMETERS, explore_live
from transformer_np.inspection.explorer.pretrained import described, translated
from transformer_np.models import GPT, Bert, BertConfig, GPTConfig, Llama, LlamaConfig
from transformer_np.pretrained import PretrainedTokenizer, SentenceEncoder, minilm_folder, save_pretrained
from transformer_np.tasks.export import as_pretrained

pytest.importorskip("tokenizers", reason="tokenizer.json is read by the tokenizers library, which is not there")
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, processors, trainers
from tokenizers import pre_tokenizers as cuts

OF_TOKENS = ["  two  spaces ", "\n", "the [MASK] is tired [SEP] and <s> b</s> <|endoftext|> x"]


@cache
def corpus():
    return [text for pair in english_portuguese()[::9] for text in pair]


def sentences(number):
    return corpus()[::30][:number]


LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def bytewise(cut, special, **options):
    """Byte pairs over bytes, as GPT-2 and Llama 3 have them."""
    made = Tokenizer(models.BPE(**options))
    made.pre_tokenizer, made.decoder = cut, decoders.ByteLevel()
    how = {"initial_alphabet": cuts.ByteLevel.alphabet(), "special_tokens": [special], "show_progress": False}
    made.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=400, **how))
    return made


def gpt2():
    return bytewise(cuts.ByteLevel(add_prefix_space=False), "<|endoftext|>")


def smollm():
    return bytewise(cuts.Sequence([cuts.Digits(True), cuts.ByteLevel(add_prefix_space=True)]), "<|endoftext|>")


def llama3():
    cut = cuts.Sequence([cuts.Split(Regex(LLAMA3), "isolated"), cuts.ByteLevel(False, use_regex=False)])
    made = bytewise(cut, "<s>", ignore_merges=True)
    made.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return made


def llama2(newer=False):
    """Byte pairs as SentencePiece makes them: over letters, with ▁ for a space, and bytes for an unknown letter."""
    made = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    made.pre_tokenizer = cuts.Metaspace()
    special = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    made.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=500, special_tokens=special, show_progress=False))
    rules = json.loads(made.to_str())
    rules["added_tokens"], rules["pre_tokenizer"] = rules["added_tokens"][:3], None
    made = Tokenizer.from_str(json.dumps(rules))
    if newer:
        made.pre_tokenizer = cuts.Metaspace(prepend_scheme="first", split=False)
    else:
        made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    parts = decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)
    made.decoder = decoders.Sequence([*parts])
    made.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return made


def bert(lowercase=True):
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = normalizers.BertNormalizer(lowercase=lowercase), cuts.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=400, special_tokens=special, show_progress=False)
    made.train_from_iterator(corpus(), trainer)
    ends = [("[CLS]", 2), ("[SEP]", 3)]
    made.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    made.decoder = decoders.WordPiece()
    return made


def words():
    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate(["[UNK]", *corpus()[0].split()])}, "[UNK]"))
    made.pre_tokenizer = cuts.WhitespaceSplit()
    return made


def exported(kind):
    """A tokenizer of a run, as `merge --pretrained` writes it."""
    return Tokenizer.from_str(as_pretrained(kind.train(corpus()), around=True)["tokenizer.json"])


MADE = {made.__name__: made for made in (words, gpt2, smollm, llama3, llama2, bert)}
MADE |= {f"exported {kind.kind}": partial(exported, kind) for kind in (CharTokenizer, BPETokenizer)}
MADE |= {"llama2, newer": lambda: llama2(newer=True), "bert, cased": lambda: bert(lowercase=False)}
SIZES = {"d_model": 24, "num_heads": 4, "num_layers": 2, "max_len": 64}
LLAMA = {**SIZES, "num_kv_heads": 2}
FAMILIES = {  # each with its tokenizer
    "GPT-2": (lambda V: GPT(GPTConfig(V, **SIZES)), "gpt2"),
    "Llama 3": (lambda V: Llama(LlamaConfig(V + 3, **LLAMA, rope_scaling=SCALING)), "llama3"),  # three rows of no token
    "Llama 2": (lambda V: Llama(LlamaConfig(V, **SIZES)), "llama2"),
    "Qwen 3": (lambda V: Llama(LlamaConfig(V, **LLAMA, norm_heads=True, tie_embeddings=True, d_head=10)), "smollm"),
    "BERT": (lambda V: Bert(BertConfig(V, **SIZES, d_ff=40)), "bert"),
}
ENCODER = {"encoder": (lambda V: Bert(BertConfig(V, **SIZES, d_ff=40, mlm_head=False)), "bert")}
SCALING = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
SCALING["original_max_position_embeddings"] = 32


@pytest.fixture
def folder_of(tmp_path, random_module):
    """folder_of(family) -> a folder with a small model of this family and its tokenizer"""

    def make(family):
        build, name = (FAMILIES | ENCODER)[family]
        tokenizer, folder = MADE[name](), tmp_path / "folder"
        folder.mkdir()
        tokenizer.save(str(tmp_path / "tokenizer.json"))
        model = random_module(build(tokenizer.get_vocab_size()))
        save_pretrained(model, folder, tmp_path / "tokenizer.json")
        return folder

    return make


def read(folder, family):
    return FAMILIES[family][0](500).__class__.from_pretrained(folder), PretrainedTokenizer(folder)


# --- the tokenizer ----------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("name", [*MADE, "MiniLM"])
def test_text_is_cut_and_joined_as_by_the_tokenizers_library(browser, tmp_path, name):
    small = name in MADE
    tokenizer = PretrainedTokenizer(text=MADE[name]().to_str()) if small else PretrainedTokenizer(minilm_folder())
    page = explore_live(GPT(GPTConfig(len(tokenizer), 64, 4, 1, 1)), tokenizer, "a")
    browser.get(page.save(tmp_path / "page.html").as_uri())
    LivePage(browser)
    script = """return arguments[0].map((text) => {
        const ids = live.reader.encode(text).map(({ id }) => id);
        return [ids, live.writer.decode(ids)];
    })"""
    texts = [*TEXTS, *OF_TOKENS, *sentences(50)]
    for text, (ids, joined) in zip(texts, browser.execute_script(script, texts), strict=True):
        expected = tokenizer.encode(text)
        assert ids == expected or (not ids and not text.strip()), text
        assert joined == tokenizer.decode(ids), text


def test_a_tokenizer_that_the_page_does_not_have_is_named():
    pieces = Tokenizer(models.Unigram([("a", -1.0), ("b", -2.0)]))
    with pytest.raises(ValueError, match="no tokenizer with the model Unigram"):
        described(PretrainedTokenizer(text=pieces.to_str()))
    scripts = gpt2()
    scripts.pre_tokenizer = cuts.Sequence([cuts.UnicodeScripts(), cuts.ByteLevel()])
    with pytest.raises(ValueError, match="no tokenizer with the pre_tokenizer UnicodeScripts"):
        described(PretrainedTokenizer(text=scripts.to_str()))
    assert translated(r"(?i:'s|d)x?[ab]") == "(?:'[sSſ]|[dD])x?[ab]"
    with pytest.raises(ValueError, match=r"cannot read the tokenizer's pattern"):
        translated(r"\p{L}++")


# --- the model --------------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("number", [2, pytest.param(50, marks=pytest.mark.release)])
@pytest.mark.parametrize(
    "family", [pytest.param(f, marks=[pytest.mark.release] * (f in ("Llama 2", "Qwen 3"))) for f in FAMILIES]
)
def test_sentences_of_every_family(browser, folder_of, tmp_path, family, number):
    model, tokenizer = read(folder_of(family), family)
    load(browser, explore_live(model, tokenizer, LECTURE_SENTENCE), tmp_path)
    worst = worst_gradient = 0
    for n, sentence in enumerate(sentences(number)):
        text = sentence if n % 3 else f"{sentence} [SEP] {LECTURE_SENTENCE}"  # two segments
        ids = tokenizer.encode(text)[:64]
        shown = browser.execute_script("live.take(arguments[0]); return live.state.pieces.map(({ id }) => id)", text)
        assert shown[:64] == ids or len(shown) > 64
        worst = max(worst, largest_difference(browser, model, None, ids))
        targets = [None if (t + n) % 3 else (i + n) % len(tokenizer) for t, i in enumerate(ids)]
        which = slice(n % 4, n % 4 + 1)
        worst_gradient = max(worst_gradient, largest_gradient_difference(browser, model, None, ids, targets, which))
    assert worst < 2e-4 and worst_gradient < 1e-5


@pytest.mark.long
def test_a_masked_word_is_guessed(browser, folder_of, tmp_path):
    model, tokenizer = read(folder_of("BERT"), "BERT")
    for page in opened(browser, explore_live(model, tokenizer, "Ana is tired").save(tmp_path / "page.html"), LivePage):
        ids = tokenizer.encode("Ana is tired")
        assert page.steps[len(ids) // 2] == "[MASK]"  # the page begins with one
        page.click("#restart")
        assert page.steps == tokenizer.tokens("Ana is tired") and "Mask a token" in page.output
        page.open("target 3")
        page.click("#next")
        assert page.steps[3] == "[MASK]"
        masked = [*ids[:3], 4, *ids[4:]]
        p = F.softmax(model.mlm_logits(np.array([masked]))[0, 3])
        best = np.argsort(-p, kind="stable")[:7]
        assert page.words_of("#bars bdi") == [tokenizer.token(i) for i in best]
        assert page.output == tokenizer.decode([*ids[:3], int(best[0]), *ids[4:]])
        loss = page.read("live.gradients().loss")
        assert loss == pytest.approx(-np.log(p[ids[3]]), rel=1e-4)
        page.wait("ranked")
        numbers = page.numbers(1, 0, "gradient", "value")
        assert np.isfinite([*numbers.values()]).all(), numbers
        page.open("Output loss")
        page.click("#sgd")
        assert page.read("live.gradients().loss") < loss
        page.open("encoder 0 1")
        page.open("encoder heads")
        page.click("#head-off")
        assert "off" in page.one('[data-key="encoder 0 1"]').get_attribute("aria-label")
        page.type("text", "Ana [SEP] Lucas")
        segments = page.read("live.result().values['segment.out']")
        first = tokenizer.encode("Ana [SEP]", special=False)
        expected = [0] * (1 + len(first)) + [1] * (segments["rows"] - 1 - len(first))
        assert page.read("live.model.segments(live.result().given)") == expected


@pytest.mark.long
def test_a_llama_goes_on_with_its_first_token_in_place(browser, folder_of, tmp_path, monkeypatch):
    """As a large model, which says what it needs before it is loaded."""
    monkeypatch.setattr("transformer_np.inspection.explorer.live.LARGE", 1)
    model, tokenizer = read(folder_of("Llama 2"), "Llama 2")
    path = explore_live(model, tokenizer, "Ana is").save(tmp_path / "page.html")
    for page in opened(browser, path, Page):
        assert "Your browser needs about 0.2 GB of memory for it." in page.one("#memory").text
        assert page.read("document.documentElement.dataset.ready") is None and not page.one("#steps").is_displayed()
    for page in opened(browser, path, LivePage):
        assert page.one("#steps").is_displayed() and not page.one("#load").is_displayed()
        assert page.steps[0] == "<s>"
        ids = tokenizer.encode("Ana is")
        for _ in range(4):
            page.click("#next")
            ids.append(int(model(np.array([ids]))[0, -1].argmax()))
        assert page.read("live.result().given") == ids
        assert page.output == "Ana is" + tokenizer.decode(ids).removeprefix("Ana is")


@pytest.mark.long
@pytest.mark.parametrize("name", ["a small one", pytest.param("MiniLM", marks=pytest.mark.release)])
def test_an_encoder_without_a_layer_for_words(browser, folder_of, tmp_path, capsys, name):
    """The page shows how similar other texts are, which turns with the heads."""
    folder, given = (minilm_folder(), []) if name == "MiniLM" else (made := folder_of("encoder"), [str(made)])
    command = ["explore", "-o", str(tmp_path / "page.html"), "--pretrained", *given]
    assert main([*command, "The train is black"]) == 0
    encoder = SentenceEncoder.load(folder)
    for page in opened(browser, tmp_path / "page.html", LivePage):
        assert page.read("document.getElementById('text').value") == "The train is black"
        page.type("text", "The train is late")
        wait_until(lambda page=page: len(page.words_of("#bars bdi")) == 8)
        texts, shown = page.words_of("#bars bdi"), page.words_of("#bars .amount")
        vectors = encoder.encode(["The train is late", *texts])
        for expected, number in zip(vectors[1:] @ vectors[0], shown, strict=True):
            assert float(number.replace("−", "-")) == pytest.approx(expected, abs=0.012)
        page.open("encoder 0 2")
        page.click("#head-off")
        assert 0 < float(page.words_of("#effect dd")[0]) < 1
    capsys.readouterr()
    assert main([*command, "the dog is black " * 70]) == 2  # longer than a file name
    assert re.search(r"the text has \d{3} tokens", capsys.readouterr().err)


# --- which models -----------------------------------------------------------------------------------------------------


def test_the_command_writes_the_page_of_a_folder_and_refuses_a_large_one(folder_of, tmp_path, monkeypatch, capsys):
    folder, out = folder_of("GPT-2"), tmp_path / "page.html"
    assert main(["explore", "--pretrained", str(folder), "-o", str(out)]) == 0
    data = data_of(out)
    assert data["kind"] == "GPT" and data["tokenizers"][0]["kind"] == "pretrained" and data["format"] == "float32"
    count = data["parameters"]
    for formats, expected in (({"float32": 1, "float16": count}, "float16"), ({"float32": 1, "float16": 1}, "int8")):
        monkeypatch.setattr("transformer_np.inspection.explorer.live.MOST_PARAMETERS", {**formats, "int8": count})
        made = explore_live(*read(folder, "GPT-2"), "Ana")
        assert made.weights == expected
    monkeypatch.setattr("transformer_np.inspection.explorer.live.MOST_PARAMETERS", {"int8": count - 1})
    capsys.readouterr()
    monkeypatch.setattr("transformer_np.pretrained.folder.load_any", lambda folder: pytest.fail("it was read"))
    assert main(["explore", "--pretrained", str(folder), "-o", str(out)]) == 2
    error = capsys.readouterr().err
    assert f"has {count:,} parameters" in error and f"holds at most {count - 1:,}" in error
    assert MOST_PARAMETERS["int8"] == 150_000_000
