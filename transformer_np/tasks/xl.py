"""A Transformer-XL trained to continue a text, on consecutive segments with a memory carried from step to step."""

import sys
from dataclasses import dataclass

from .. import data
from ..data.bpe import FIRST_MERGE
from ..data.large import encode_text
from ..models import TransformerXL, TransformerXLConfig
from ..support.checks import check_at_least, check_choice, check_number
from ..training import Adam, SegmentRecurrence, cosine_schedule
from . import runs
from .task import Setup, option
from .text import GPTTask, TextGenerator

KIND = "xl"


@dataclass(frozen=True)
class XLOptions:
    """All options of a training run. The defaults learn the built-in text.

    The metadata of an option has the help text of its flag.
    """

    text: str | None = option(None, "UTF-8 training text (default: Python's built-in help on the language)", "FILE")
    tokens: str = option("char", "the unit of text", choices=("char", "bpe"))
    vocab_size: int = option(1000, "vocabulary size with --tokens bpe; with char, all characters of the text")
    segment_len: int = option(32, "tokens per segment; gradients do not flow into earlier segments")
    mem_len: int = option(64, "earlier positions that each layer remembers; 0: no memory")
    eval_mem_len: int | None = option(None, "the same for validation, where it may be larger (default: as in training)")
    batch_size: int = option(16, "parallel streams of the text per step")
    steps: int = option(2000, "training steps; the learning rate falls until the last one")
    layers: int = option(4, "blocks of the model")
    heads: int = option(4, "attention heads")
    d_model: int = option(128, "features of a token")
    d_ff: int | None = option(None, "features inside the feed-forward network (default: 4 * d_model)")
    norm: str = option("post", "LayerNorm after a sub-layer, as in the paper, or before it", choices=("post", "pre"))
    dropout: float = option(0.0, "share of features dropped during training")
    lr: float = option(1e-3, "highest learning rate")
    min_lr: float = option(1e-4, "learning rate at the last step")
    warmup: int = option(100, "steps to the highest learning rate; at most half of all steps")
    clip: float = option(0.25, "largest norm of the gradient")
    seed: int = option(0, "seed of parameters and dropout")

    def __post_init__(self):
        for name, choices in (("tokens", ("char", "bpe")), ("norm", ("post", "pre"))):
            check_choice(name, getattr(self, name), choices)
        for name in ("steps", "batch_size", "segment_len", "layers", "heads", "d_model"):
            check_at_least(name, getattr(self, name), 1)
        for name in ("mem_len", "warmup", "seed"):
            check_at_least(name, getattr(self, name), 0)
        if self.d_ff is not None:
            check_at_least("d_ff", self.d_ff, 1)
        if self.eval_mem_len is not None:
            check_at_least("eval_mem_len", self.eval_mem_len, 0)
        check_at_least("vocab_size", self.vocab_size, FIRST_MERGE)
        check_number("dropout", self.dropout, "[0, 1)")
        for name in ("lr", "clip"):
            check_number(name, getattr(self, name), "(0, ∞)")
        check_number("min_lr", self.min_lr, "[0, ∞)")
        if self.min_lr > self.lr:
            raise ValueError(f"min_lr must lie in 0 … lr = {self.lr}, got {self.min_lr}")
        if self.text is not None:
            object.__setattr__(self, "text", str(self.text))  # it may be a Path


class XLTextGenerator(TextGenerator):
    """A trained Transformer-XL with its tokenizer. It reads each token once and keeps it in its memory, so texts may
    have any length; `generator.model.mem_len` may be larger than in training."""

    context = sys.maxsize

    @classmethod
    def of(cls, run):
        """From a finished training run, whose model gets the memory length of validation."""
        return cls._remembering(run.options, run.setup.model, run.tokenizers)

    @classmethod
    def load(cls, folder):
        """From the folder of a run; FileNotFoundError or ValueError if it holds no usable model."""
        _, options, tokenizers = XLTask().read(folder)
        return cls._remembering(options, runs.load_run_model(folder, tokenizers), tokenizers)

    @classmethod
    def _remembering(cls, options, model, tokenizers):
        if options.eval_mem_len is not None:
            model.mem_len = options.eval_mem_len
        return cls(model, *tokenizers.values())


class XLTask(GPTTask):
    """A Transformer-XL on one text: Adam, linear warm-up, then half a cosine down (Dai et al. 2019, §4). Text, split
    and tokenizer are as for the GPT."""

    kind = KIND
    summary = "train a Transformer-XL, which has a memory, to continue a text"
    example = "transformer-np train xl --text play.txt --mem-len 128 --out runs/play-xl"
    Options = XLOptions

    def setup(self, options, split, tokenizers):
        tokenizer = tokenizers["tokenizer"]
        train, validation = (encode_text(tokenizer, part) for part in (split.train, split.validation))
        streams = data.TextStreams(train, options.segment_len, options.batch_size)
        side_by_side = max(1, min(options.batch_size, (len(validation) - 1) // options.segment_len))
        held_out = data.TextStreams(validation, options.segment_len, side_by_side)
        model = TransformerXL(_config(options, len(tokenizer)))
        names = {"char": "different characters", "bpe": "different tokens"}
        return Setup(
            model,
            SegmentRecurrence(model, options.eval_mem_len),
            Adam(model.parameters()),
            streams,
            held_out.in_order(),
            schedule=_schedule(options),
            clip_norm=options.clip,
            note=f"{len(train):,} tokens to learn from, {options.batch_size} streams of {streams.segments:,} segments; "
            f"{len(validation):,} for validation; {len(tokenizer)} {names[options.tokens]}; "
            f"{model.num_parameters():,} parameters",
        )


def _config(options, vocab_size):
    return TransformerXLConfig(
        vocab_size,
        d_model=options.d_model,
        num_heads=options.heads,
        num_layers=options.layers,
        d_ff=options.d_ff,
        mem_len=options.mem_len,
        dropout=options.dropout,
        norm_first=options.norm == "pre",
        seed=options.seed,
    )


def _schedule(options):
    warmup = min(options.warmup, options.steps // 2)  # so that a short run also reaches the highest rate
    return lambda step: cosine_schedule(step, options.lr, options.min_lr, warmup, options.steps)
