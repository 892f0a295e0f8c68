"""A Transformer-XL trained to continue a text, on consecutive segments with a memory carried from step to step."""

import sys
from dataclasses import dataclass

from .. import data
from ..data.large import encode_text
from ..models import TransformerXL, TransformerXLConfig
from ..support.checks import refusing
from ..training import Adam, SegmentRecurrence
from . import options as flag
from .options import falling_cosine, optimizer_of, option, sizes
from .task import Setup
from .text import ContinuationOptions, GPTTask, TextGenerator
from .trained import mean_loss


@dataclass(frozen=True)
class XLOptions(ContinuationOptions):
    """All options of a training run."""

    segment_len: int = option(32, "tokens per segment; gradients do not flow into earlier segments")
    mem_len: int = option(64, "earlier positions that each layer remembers; 0: no memory", least=0)
    eval_mem_len: int | None = option(
        None, "the same for validation, where it may be larger (default: as in training)", least=0
    )
    batch_size: int = option(16, "parallel streams of the text per step")
    norm: str = option("post", "LayerNorm after a sub-layer, as in the paper, or before it", choices=("post", "pre"))
    clip: float = option(0.25, "largest norm of the gradient")
    seed: int = flag.seed("parameters and dropout")


class XLTextGenerator(TextGenerator):
    """A trained Transformer-XL with its tokenizer. It reads each token once and keeps it in its memory, so texts may
    have any length. Its memory has the length of validation; `generator.model.mem_len` may be larger."""

    context, segment_len = sys.maxsize, 32

    @classmethod
    def _made(cls, model, tokenizers, options, facts):
        if options.eval_mem_len is not None:
            model.mem_len = options.eval_mem_len
        generator = super()._made(model, tokenizers, options, facts)
        generator.segment_len = options.segment_len
        return generator

    def _loss(self, ids):
        """The mean loss of a text, in segments of the training's length with the memory between them."""
        streams = data.TextStreams(ids, min(self.segment_len, len(ids) - 1), 1)
        return mean_loss(SegmentRecurrence(self.model, self.model.mem_len), streams.in_order())


class XLTask(GPTTask):
    """A Transformer-XL on one text: linear warm-up, then half a cosine down (Dai et al. 2019, §4). Text, split
    and tokenizer are as for the GPT."""

    kind = "xl"
    example = "--text play.txt --mem-len 128 --out runs/play-xl"
    Options, Result = XLOptions, XLTextGenerator

    def setup(self, options, split, tokenizers):
        tokenizer = tokenizers["tokenizer"]
        train, validation = (encode_text(tokenizer, part) for part in (split.train, split.validation))
        with refusing("the training part of the text"):
            streams = data.TextStreams(train, options.segment_len, options.batch_size)
        side_by_side = max(1, min(options.batch_size, (len(validation) - 1) // options.segment_len))
        with refusing("the validation part of the text"):
            held_out = data.TextStreams(validation, options.segment_len, side_by_side)
        own = {"mem_len": options.mem_len, "norm_first": options.norm == "pre"}
        model = TransformerXL(TransformerXLConfig(len(tokenizer), **own, **sizes(options)))
        names = {"char": "different characters", "bpe": "different tokens"}
        return Setup(
            model, SegmentRecurrence(model, options.eval_mem_len), optimizer_of(options, model, Adam), streams,
            held_out.in_order(), schedule=falling_cosine(options), clip_norm=options.clip,
            note=f"{len(train):,} tokens to learn from, {options.batch_size} streams of {streams.segments:,} segments; "
            f"{len(validation):,} for validation; {len(tokenizer)} {names[options.tokens]}; "
            f"{model.num_parameters():,} parameters",
            facts=self._seen(split, tokenizer),
        )  # fmt: skip
