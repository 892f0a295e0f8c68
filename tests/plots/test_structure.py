"""The architecture of any model, as boxes and arrows."""

import re

import pytest
from matplotlib.patches import FancyBboxPatch, Rectangle
from reading import check_layout

from transformer_np import plots
from transformer_np.inspection.samples import small_model
from transformer_np.layers import Linear
from transformer_np.models import Transformer, TransformerConfig
from transformer_np.module import Module

# --- architecture -----------------------------------------------------------------------------------------------------


def texts_of(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def boxes_of(figure):
    """{title: (detail, parameters)} of the boxes of each column, in the order in which they were drawn."""
    (axes,) = figure.axes
    found = []
    for patch in axes.patches:
        if isinstance(patch, FancyBboxPatch):
            x, y, w, h = patch.get_bbox().bounds
            inside = [t for t in axes.texts if x < t.get_position()[0] < x + w and y < t.get_position()[1] < y + h]
            found.append([text.get_text() for text in inside])
    return found


def drawn_parameters(figure, model):
    """The sum of the numbers in the boxes, those in a block as often as there are blocks."""
    (axes,) = figure.axes
    frames = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    labels = [re.match(r"(\d+) (\w+) blocks?, ([\d,]+) parameters", text) for text in texts_of(figure)]
    times = [int(label[1]) for label in labels if label]
    total = 0
    for text in axes.texts:
        if re.fullmatch(r"\d{1,3}(,\d{3})*", text.get_text()):
            at = text.get_position()
            inside = [n for frame, n in zip(frames, times, strict=True) if frame.get_bbox().contains(*at)]
            total += int(text.get_text().replace(",", "")) * (inside[0] if inside else 1)
    return total


@pytest.mark.parametrize(("norm_first", "tied"), [(False, False), pytest.param(True, True, marks=pytest.mark.long)])
def test_architecture_of_an_encoder_decoder(rng, norm_first, tied):
    size = 13 if tied else 11
    depth = {"num_encoder_layers": 2, "num_decoder_layers": 4, "norm_first": norm_first}
    model = small_model("Transformer", src_vocab_size=size, tie_embeddings=tied, **depth)
    before = texts_of(plots.architecture(model))
    assert {"(B, S)", "(B, T)", "(B, S, 12)", "(B, T, 12)", "(B, T, 13)"} <= set(before)
    assert {"weights (B, 3, S, S)", "weights (B, 3, T, T)", "weights (B, 3, T, S)"} <= set(before)
    model(rng.integers(3, 11, (2, 5)), rng.integers(3, 13, (2, 6)))
    figure = plots.architecture(model)
    texts = texts_of(figure)
    shapes = {name: array.shape for name, array in model.intermediates().items()}
    for name in ("encoder.1.attention", "decoder.3.self_attention", "decoder.0.cross_attention"):
        assert texts.count(f"weights {shapes[f'{name}.weights']}") == 1
    assert f"{shapes['src_input.embedding.ids']}" in texts and f"{shapes['tgt_input.embedding.ids']}" in texts
    assert texts.count(f"{shapes['encoder.0.attention.x']}") == texts.count("(2, 5, 12)") >= 5
    assert texts.count(f"{shapes['output.x']}") >= 7 and texts.count("(2, 6, 13)") == 2  # before and after the softmax
    assert not any(letter in text for text in texts for letter in ("B,", "T,", "S,"))
    assert texts.count("tied") == (2 if tied else 0)
    blocks = {block.num_parameters() for block in (*model.encoder, *model.decoder)}
    for number in blocks:
        assert sum(f"{number:,} parameters each" in text for text in texts) == 1
    assert sum(text.startswith("Add") for text in texts) == 5 and ("Add" in texts) == norm_first
    assert drawn_parameters(figure, model) == model.num_parameters()
    assert figure.get_suptitle() == f"Transformer: {model.num_parameters():,} parameters"
    check_layout(figure, on_panels=True)


@pytest.mark.long
def test_architecture_of_a_t5():
    model = small_model("T5", vocab_size=11, activation="relu", num_encoder_layers=2, num_decoder_layers=4)
    figure = plots.architecture(model)
    texts = texts_of(figure)
    assert drawn_parameters(figure, model) == model.num_parameters()
    assert texts.count("RMS norm") == 2 + 3 + 2 and "11 × 12; 6 × 3" in texts  # the bias counts once
    own = model.encoder[0].num_parameters() - 6 * 3
    assert f"2 encoder blocks, {own:,} parameters each" in texts and "K, V" in texts
    assert "K, V" not in texts_of(plots.architecture(small_model("T5", num_decoder_layers=0)))  # no cross-attention
    check_layout(figure, on_panels=True)


MODELS = {
    "GPT": {}, "GPT, one layer": {"num_layers": 1, "tie_embeddings": False, "bias": False},
    "Llama": {"qkv_bias": False}, "Bert": {"num_layers": 3, "num_classes": 3},
    "Bert, no classes": {"num_layers": 1, "num_classes": None},
    "Bert, pooler": {"mlm_head": False, "num_classes": None},
    "Bert, bare": {"mlm_head": False, "num_classes": None, "pooler": False}, "TransformerXL": {},
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", MODELS)
def test_architecture_of_its_relatives(rng, name):
    model = small_model(name.partition(",")[0], **MODELS[name])
    letters = texts_of(plots.architecture(model))
    assert any("(B, " in text for text in letters) and not any("(2, " in text for text in letters)
    out = model(rng.integers(3, 11, (2, 5)))
    figure = plots.architecture(model)
    texts = texts_of(figure)
    weights = model.blocks[0].attention.weights
    assert f"weights {weights.shape}" in texts and "(2, 5)" in texts and texts.count("(2, 5, 12)") >= 5
    if not name.startswith("Bert"):
        assert f"{(out[0] if name == 'TransformerXL' else out).shape}" in texts
    assert drawn_parameters(figure, model) == model.num_parameters()
    assert any("(2, 3)" in text for text in texts) == (name == "Bert")
    number, own = len(model.blocks), f"{model.blocks[0].num_parameters():,} parameters"
    (label,) = [text for text in texts if "block" in text]
    assert label.startswith(f"{number} ") and label.endswith(f"{own} each" if number > 1 else own)
    check_layout(figure, on_panels=True)


def test_architecture_of_a_llama_says_what_is_different():
    texts = texts_of(plots.architecture(small_model("Llama")))
    assert texts.count("RMS norm") == 3 and not any("position" in text for text in texts)
    assert {"Embedding", "Rotary self-attention, 3/1 heads", "Gated feed-forward"} <= set(texts)


@pytest.mark.long
def test_architecture_of_the_base_model_fits_its_boxes():
    config = TransformerConfig(37_000, 37_000, num_encoder_layers=1, num_decoder_layers=1, tie_embeddings=True)
    figure = plots.architecture(Transformer(config))
    check_layout(figure, on_panels=True)
    boxes = boxes_of(figure)
    assert all(len(box) <= 3 + ("attention" in " ".join(box)) for box in boxes)  # nothing of another box
    assert ["causal mask (T, T), padding (B, 1, 1, T)", "Masked self-attention, 8 heads"] == boxes[-8][:2]
    assert texts_of(figure).count("padding mask (B, 1, 1, S)") == 2 and "K, V" in texts_of(figure)
    assert ["Softmax", "in the loss and in decoding", ""] in boxes
    assert ["+ position", "sinusoids 512 × 512", ""] in boxes
    assert ["Feed-forward", "512 → 2048 → 512", "2,099,712"] in boxes_of(figure)


class Ours(Module):
    def __init__(self):
        self.inner = Linear(12, 12, rng=0)

    def forward(self, x, memory=None, mask=None, cache=None):
        return self.inner(x)


@pytest.mark.parametrize("layer", ["attention", "feed_forward"])
def test_a_layer_of_ones_own_is_a_box_with_its_name(layer):
    model = small_model("GPT")
    setattr(model.blocks[0], layer, Ours())
    for block in model.blocks[1:]:
        setattr(block, layer, Ours())
    figure = plots.architecture(model)
    assert "Ours" in texts_of(figure) and drawn_parameters(figure, model) == model.num_parameters()
