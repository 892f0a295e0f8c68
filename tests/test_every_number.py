"""Every number and flag that a public function or class takes: NaN, infinity and other kinds are refused by the
argument's name.

The arguments are found in the signatures, so a new one without a check fails here.
"""

import inspect
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType
from typing import get_args

import numpy as np
import pytest

from transformer_np import data, decoding, functional, gradcheck, layers, masks, models, tasks, training
from transformer_np.inspection.samples import EXAMPLES, arguments_of
from transformer_np.layers import blocks
from transformer_np.module import Parameter
from transformer_np.tasks import all_tasks
from transformer_np.training import optim

PUBLIC = (functional, masks, layers, blocks, models, decoding, training, optim, data, tasks, gradcheck)
OPTIONS = [type(task).Options if not isinstance(task, type) else task.Options for task in all_tasks()]

# a call that is right but for the number: the other arguments that have no default
X = np.ones((2, 3))
IDS = np.array([[1, 2], [3, 0]])
MODEL = models.GPT(models.GPTConfig(7, max_len=5, d_model=4, num_heads=2, num_layers=1))
PAIR = models.Transformer(models.TransformerConfig(7, 7, 4, 2, 1, 1, 5))
SENTENCES = [(f"source {i}", "target") for i in range(40)]
GIVEN = {
    **EXAMPLES,
    **{"logits": X, "ids": IDS, "pad_id": 0, "parameters": [Parameter(np.ones(3))], "max_norm": 1.0, "step": 3},
    **{"d_model": 4, "warmup": 2, "max_lr": 1.0, "min_lr": 0.1, "total": 9, "model": PAIR, "src": IDS},
    **{"prompt": IDS, "max_new_tokens": 2, "num_heads": 2, "d_ff": 5, "embedding": layers.Embedding(5, 4)},
    **{"text": "a text of some words " * 9, "vocab_size": 11, "src_vocab_size": 11, "tgt_vocab_size": 11},
    **{"max_len": 9, "pairs": SENTENCES, "sequences": [[1, 2], [3]], "batch_size": 2, "d_in": 3, "d_out": 3},
    **{"num_positions": 5, "kernel_size": 2, "segment_len": 3, "block_size": 3, "size": 600, "attention": None},
    **{"sublayer": None, "value": 1, "sentinels": [20, 21, 22, 23, 24, 25], "T_max": 5, "name": "xl"},
    **{"schedule": None, "objective": None, "optimizer": None, "texts": [([4, 5, 6], 0), ([5, 6, 7], 1)]},
    **{"gradients": [X], "parts": [data.Seq2SeqBatches([([5, 6], [7])], 1)], "path": "no-such-folder/vectors"},
    **{"vocabulary": ["<pad>", "<bos>", "<eos>", "<unk>", "a"], "vectors": X, "words": ["a", "b"]},
    **{"target": functional.relu, "merges": [], "rank": 2, "g": X},
}
OF = {
    "LoRA": {"d_in": 9, "d_out": 9},
    "add_lora": {"model": MODEL},
    "generate": {"model": MODEL},
    "generate_steps": {"model": MODEL},
    "corrupt_spans": {"ids": np.arange(9)},
    "SkipGrams": {"ids": np.arange(4, 13), "vocab_size": 20, "negatives": 2},
    "SpanBatches": {"ids": np.arange(40) % 7, "block_size": 12},
    "TextBatches": {"ids": np.arange(30)},
    "TextStreams": {"ids": np.arange(30)},
    "validation_batches": {"ids": np.arange(30)},
    "MaskedBatches": {"texts": [[4, 5], [6, 7]]},
    "mask_tokens": {"ids": IDS + 3},
    "Trainer": {"model": MODEL, "optimizer": training.SGD(GIVEN["parameters"]), "objective": training.NextToken(MODEL)},
}
EXAMPLE = {"betas": lambda bad: [(bad, 0.9), (0.9, bad), bad]}  # where the number is inside another value

WRONG_NUMBERS = [float("nan"), float("inf"), -float("inf"), np.float32("nan"), 10**400]
WRONG_KINDS = ["0.1", True, np.True_, [0.1], np.array([0.1, 0.2]), np.array(0.1), 1j, object()]
POSITIVE = set(
    "T length d_model num_heads num_embeddings d_ff vocab_size src_vocab_size tgt_vocab_size num_blocks max_len d_in "
    "d_out kernel_size dilation segment_len block_size batch_size beam_size top_k layers heads steps repeats tile "
    "num_layers type_vocab_size num_classes token_classes num_kv_heads d_head num_buckets max_distance "
    "min_count".split()
)
SIGNED = {"dloss", "scale", "axis", "pad_id"}
BELOW_1 = {"p", "dropout"}
SIZES = POSITIVE | set("S K num_buckets step warmup window pad_id max_new_tokens repeats size".split())
NAMES = set("p eps lr momentum weight_decay max_norm max_lr min_lr dloss dropout betas clip_norm".split())
# not a mathematical argument of the model: recorded results
RECORDS = {"Hypothesis", "History", "CopyCurves", "Run", "Setup", "short", "GradientReport", "Segment"}
OTHER_RNG = {"LayerNorm", "RMSNorm", "PositionalEncoding", "dropout"}  # draw nothing; the last shows NumPy's own line
LISTS = {"train": {"texts": ["a text", "another text"]}}  # elsewhere a list of examples


def public():
    for module in PUBLIC:
        for name in getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]:
            thing = getattr(module, name)
            if callable(thing) and getattr(thing, "__module__", "").startswith("transformer_np"):
                yield name, thing
                for member in ("train", "from_vectors") if isinstance(thing, type) else ():
                    if inspect.ismethod(getattr(thing, member, None)):  # of the class
                        yield f"{name}.{member}", getattr(thing, member)
    for options in OPTIONS:
        yield options.__qualname__, options


def arguments():
    """{(name of the function, argument): (function, kind, whether None is allowed)}"""
    found = {}
    for name, thing in public():
        if name in RECORDS:
            continue
        try:
            parameters = inspect.signature(thing).parameters
        except ValueError:
            continue
        for argument, parameter in parameters.items():
            types = get_args(parameter.annotation) or (parameter.annotation,)
            kind = type(parameter.default) if parameter.default not in (None, inspect.Parameter.empty) else None
            kind = next((t for t in types if t in (int, float, bool, str)), kind)
            if kind is bool:
                found[name, argument] = thing, bool, NoneType in types
                continue
            if argument in NAMES or kind is float:
                optional = NoneType in types or parameter.default is None
                found[name, argument] = thing, float, optional
            elif argument == "rng":
                found[name, argument] = thing, "rng", True
            elif kind is int or argument in SIZES:
                found[name, argument] = thing, int, NoneType in types or parameter.default is None
    return found


ARGUMENTS = arguments()


def arrays_for(name):
    return arguments_of(name, np.random.default_rng(0)) if name in functional.FUNCTIONS else {}


def call(name, thing, argument, bad):
    """The call with one wrong argument, run to its end."""
    if is_dataclass(thing):
        needed = [f.name for f in fields(thing) if f.default is MISSING and f.default_factory is MISSING]
    else:
        needed = [n for n, p in inspect.signature(thing).parameters.items() if p.default is inspect.Parameter.empty]
    examples = {**GIVEN, **OF.get(name, {}), **LISTS.get(name.rpartition(".")[2], {}), **arrays_for(name)}
    given = {n: examples[n] for n in needed if n not in (argument, "inputs", "options")}
    if name == "check_gradients":
        return thing(given["target"], X, **{argument: bad})
    result = thing(**{**given, argument: bad})
    return list(result) if inspect.isgenerator(result) else result


@pytest.mark.parametrize(("name", "argument"), [key for key, (_, kind, _) in ARGUMENTS.items() if kind is float])
def test_every_float(name, argument):
    thing, _, optional = ARGUMENTS[name, argument]
    inside = EXAMPLE.get(argument, lambda bad: [bad])
    numbers = WRONG_NUMBERS + [-0.1] * (argument not in SIGNED) + [1.0] * (argument in BELOW_1)
    for error, values in ((ValueError, numbers), (TypeError, WRONG_KINDS + [None] * (not optional))):
        for value in values:
            for bad in inside(value):
                with pytest.raises((error, TypeError) if argument in EXAMPLE else error) as caught:
                    call(name, thing, argument, bad)
                message = str(caught.value)
                assert argument in message or (argument == "std" and "init_std" in message), (bad, message)
                assert len(message) < 200 and "\n" not in message


@pytest.mark.parametrize(("name", "argument"), [key for key, (_, kind, _) in ARGUMENTS.items() if kind is int])
def test_every_whole_number(name, argument):
    thing, _, optional = ARGUMENTS[name, argument]
    kinds = [1.5, float("nan"), "3", True, [3], np.array([3, 4]), np.array(3), 1j, object()] + [None] * (not optional)
    numbers = [10**21, 10**5000, -(10**21)] + [-1] * (argument not in SIGNED) + [0] * (argument in POSITIVE)
    for error, values in ((ValueError, numbers), (TypeError, kinds)):
        for bad in values:
            with pytest.raises(error) as caught:
                call(name, thing, argument, bad)
            message = str(caught.value)
            assert argument in message and len(message) < 200 and "\n" not in message, (bad, message)


@pytest.mark.parametrize(("name", "argument"), [key for key, (_, kind, _) in ARGUMENTS.items() if kind is bool])
def test_every_flag(name, argument):
    """A flag such as bias="no" would count as True."""
    thing, _, optional = ARGUMENTS[name, argument]
    for bad in ["no", "", 0, 1, 2.5, float("nan"), np.array(True), [], object()] + [None] * (not optional):
        with pytest.raises((TypeError, ValueError)) as caught:
            call(name, thing, argument, bad)
        assert argument in str(caught.value), (bad, caught.value)


@pytest.mark.parametrize("rng", ["no", 1.5, float("nan"), -1, object(), np.ones((1, 2), int).view(np.matrix)])
def test_every_generator(rng):
    drawing = {name: t for (name, _), (t, kind, _) in ARGUMENTS.items() if kind == "rng" and name not in OTHER_RNG}
    assert len(drawing) > 15
    for name, thing in drawing.items():
        with pytest.raises(TypeError, match="rng must be"):
            call(name, thing, "rng", rng)


def layouts(array):
    """The same numbers in other layouts and, if they are whole, in other types."""
    apart = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    apart[..., ::2] = array
    yield apart[..., ::2]
    yield np.ascontiguousarray(array[..., ::-1])[..., ::-1]
    yield np.asfortranarray(array)
    frozen = array.copy()
    frozen.flags.writeable = False
    yield frozen
    if array.dtype.kind in "iu":
        yield from (array.astype(dtype) for dtype in ("u1", "u8", "i1", ">i4"))


def arrays_of(result):
    if inspect.isgenerator(result) or isinstance(result, tuple | list):
        return [array for part in result for array in arrays_of(part)]
    if type(result).__name__.endswith(("Batches", "Streams", "Grams")):
        return arrays_of(list(vars(result.batch(1)).values()))
    return [np.array(result)] if isinstance(result, np.ndarray | np.generic | int | float) else []


def examples_of(name, thing):
    """Random values for the arguments of a function, {} if there are none that fit."""
    try:
        parameters = inspect.signature(thing).parameters
    except ValueError:
        return {}
    rng, examples = np.random.default_rng(0), {**GIVEN, **OF.get(name, {}), "max_len": 2, **arrays_for(name)}
    needed = [n for n, p in parameters.items() if p.default is inspect.Parameter.empty or n in ("rng", "max_len")]
    given = {n: examples.get(n) for n in needed}
    if not any(isinstance(value, np.ndarray) for value in given.values()):
        return {}
    given = {
        n: rng.normal(size=v.shape) if isinstance(v, np.ndarray) and v.dtype.kind == "f" else v
        for n, v in given.items()
    }
    try:
        thing(**given)
    except (TypeError, ValueError, AttributeError, OSError):
        return {}
    return given


def test_every_array_in_every_layout():
    tried = 0
    for name, thing in {name: thing for name, thing in public() if not is_dataclass(thing)}.items():
        given = examples_of(name, thing)
        for argument in [n for n, value in given.items() if isinstance(value, np.ndarray)]:
            expected = arrays_of(thing(**given))
            for array in layouts(given[argument]):
                got = arrays_of(thing(**{**given, argument: array}))
                assert len(got) == len(expected), (name, argument)
                for one, other in zip(got, expected, strict=True):
                    what = f"{name}({argument} of {array.dtype}, strides {array.strides})"
                    np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14, err_msg=what)
                tried += 1
    assert tried > 300


def test_the_signatures_have_been_read():
    """Numbers that are known to be there: the search finds what it should."""
    known = {"layer_norm": "eps", "AdamW": "weight_decay", "beam_search": "length_penalty", "rotary": "adjacent"}
    known |= {"WordTokenizer.train": "min_count", "check_gradients": "tolerance", "GPTConfig": "tie_embeddings"}
    assert known.items() <= ARGUMENTS.keys()
    assert len(ARGUMENTS) > 100
