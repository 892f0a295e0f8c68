"""Text generation: a GPT trained to continue a text."""

import hashlib
import json
from dataclasses import dataclass, fields
from functools import partial
from itertools import chain

import numpy as np

from .. import data
from ..data.large import encode_text, parts
from ..decoding import Excluding, generate_steps
from ..models import GPT, GPTConfig
from ..models.decoder_only import DecoderOnly
from ..pretrained import PretrainedFolder, PretrainedTokenizer
from ..pretrained.folder import check_ids, end_ids
from ..support.checks import listed
from ..support.counts import counted
from ..training import AdamW, NextToken, is_matrix
from . import fine_tuning
from . import options as flag
from .options import MUON_LR, TaskOptions, falling_cosine, optimizer_of, option, sizes
from .streaming import text_pieces, until
from .task import Setup, Task
from .trained import Trained, mean_loss, with_perplexity

PRETRAINED_LR, LORA_LR = 1e-4, 1e-3
OF_THE_MODEL = ("tokens", "vocab_size", "layers", "heads", "d_model", "d_ff", "head", "bias")  # if it is pretrained
BLOCK = 64  # tokens
LR = 2e-3  # the best rate at the default width; GPT-2's and nanoGPT's rates fall with the width about as its root
VALIDATION_TOKENS = 1024  # per validation batch: few enough for the activations to stay in the cache


@dataclass(frozen=True)
class ContinuationOptions(TaskOptions):
    """The options of a model that learns to continue a text. The defaults learn the built-in text."""

    text: str | None = flag.text()
    tokens: str = option("char", "the unit of text", choices=("char", "bpe"))
    vocab_size: int = flag.vocab_size(1000, "vocabulary size with --tokens bpe; with char, all characters of the text")
    steps: int = option(2000, "training steps; the learning rate falls until the last one")
    layers: int = option(4, "blocks of the model")
    heads: int = option(4, "attention heads")
    d_model: int = option(128, "features of a token")
    d_ff: int | None = option(None, "features inside the feed-forward network (default: 4 * d_model)")
    dropout: float = flag.share(0.0, "share of features dropped during training")
    optimizer: str = flag.optimizer("muon")
    lr: float | None = flag.lr(1e-3)
    min_lr: float | None = option(None, "learning rate at the last step (default: lr / 20)", interval="[0, ∞)")
    warmup: int | None = flag.warmup()


@dataclass(frozen=True)
class GPTOptions(ContinuationOptions):
    """All options of a training run. The defaults are nanoGPT's for a CPU."""

    pretrained: str | None = fine_tuning.pretrained("GPT-2, Llama, Mistral or Qwen2")
    freeze: int | None = fine_tuning.freeze()
    lora: int | None = fine_tuning.lora()
    block_size: int | None = option(
        None,
        f"context in tokens: how much the model sees at once (default: {BLOCK}; with --pretrained at most its own)",
    )
    batch_size: int = option(12, "blocks per step")
    optimizer: str | None = flag.optimizer(None, "muon; with --pretrained adamw")
    head: str = option("tied", "whether the output shares the embedding's parameters", choices=("tied", "untied"))
    bias: str = option("no", "biases in linear maps and norms", choices=("yes", "no"))
    lr: float | None = option(
        None,
        f"highest learning rate (default: {MUON_LR}; with --optimizer adamw {LR} * sqrt(128 / d_model), "
        f"with --pretrained {PRETRAINED_LR}, with --lora {LORA_LR})",
    )
    weight_decay: float = flag.weight_decay(0.1)
    beta1: float = flag.share(0.9, "AdamW: decay rate of the mean gradient")
    beta2: float = flag.share(0.99, "AdamW: decay rate of the mean squared gradient")
    clip: float = option(1.0, "largest norm of the gradient")
    seed: int = flag.seed("parameters, batches and dropout")

    def __post_init__(self):
        if self.optimizer is None:
            object.__setattr__(self, "optimizer", "muon" if self.pretrained is None else "adamw")
        if self.lr is None and self.optimizer == "adamw" and isinstance(self.d_model, int) and self.d_model > 0:
            lr = LR * (128 / self.d_model) ** 0.5 if self.pretrained is None else PRETRAINED_LR
            object.__setattr__(self, "lr", lr if self.lora is None else LORA_LR)
        super().__post_init__()
        fine_tuning.check_options(self)
        usual = {f.name: f.default for f in fields(self)}
        given = [name for name in OF_THE_MODEL if self.pretrained and getattr(self, name) != usual[name]]
        if given:
            raise ValueError(f"{given[0]} is that of the model in {self.pretrained}: leave this option out")


class TextGenerator(Trained):
    """A trained GPT with its tokenizer: continues a text.

    generator = TextGenerator.load("runs/gpt-1")
    generator.generate("The statement ", max_new_tokens=200, temperature=0.8, top_k=20, rng=0)
    """

    end_ids, sampling, not_applied = (), {}, ()  # see PretrainedTextGenerator
    reads = "end"
    seen = data.Seen(spaces=None)  # of an older run or a pretrained model: a prompt is read as it is

    @classmethod
    def _made(cls, model, tokenizers, options, facts):
        """A model that started from a pretrained one ends its texts with that one's end tokens."""
        generator = super()._made(model, tokenizers, options, facts)
        settings, generation, _ = fine_tuning.kept(facts)
        generator.end_ids = end_ids(settings, generation)
        return generator

    def __init__(self, model, tokenizer):
        self.model, self.tokenizer = model, tokenizer
        self.excluded_ids = tokenizer.special_ids  # never drawn, because they occur in no text
        if isinstance(tokenizer, PretrainedTokenizer):
            self.excluded_ids = tokenizer.without_token(model.config.vocab_size)

    @property
    def context(self):
        """The number of tokens that the model sees at once."""
        return self.model.config.max_len

    def encode(self, prompt):
        """The ids of a prompt, as a list. Raises ValueError if it is empty or has pieces unknown to the tokenizer."""
        prompt = self.seen.fold(prompt)
        if not prompt:
            raise ValueError("the prompt is empty: there is nothing to continue")
        unknown = self.tokenizer.unknown(prompt)
        if unknown:
            raise ValueError(f"the training text of the model does not have: {listed([*map(repr, unknown)])}")
        return self.tokenizer.encode(prompt)

    def inputs(self, prompt):
        """The ids of the end of a prompt that the model sees, in a tuple; see `Trained.inputs`."""
        return (np.array([self.encode(prompt)[-self.context :]]),)

    def left_out(self, prompt):
        return max(0, len(self.encode(prompt)) - self.context)

    def generate(self, prompt, max_new_tokens=500, temperature=1.0, top_k=None, top_p=None, rng=None, stop=None):
        """The prompt and its continuation: max_new_tokens tokens, or fewer if `stop` occurs.

        temperature, top_k, top_p: see `decoding.sampling_distribution`; temperature 0 always takes the likeliest token
        rng: a numpy Generator or a seed; the same seed gives the same text
        stop: the text ends before the first occurrence of this string after the prompt

        The model sees only the end of a prompt longer than the context, just as it sees only the end of a generated
        text that has outgrown the context.

        Raises ValueError for a prompt that is empty or has pieces unknown to the tokenizer, for an empty `stop`, and
        for values of temperature, top_k or top_p out of range.
        """
        return "".join(self.stream(prompt, max_new_tokens, temperature, top_k, top_p, rng, stop))

    def stream(self, prompt, max_new_tokens=500, temperature=1.0, top_k=None, top_p=None, rng=None, stop=None):
        """Yield the text of `generate` in pieces, each as soon as it is certain: the prompt, then a token or a few."""
        if stop == "":
            raise ValueError("stop is empty: the text would end before it begins")
        ids = self.encode(prompt)[-self.context :]
        model = Excluding(self.model, self.excluded_ids)
        steps = generate_steps(model, [ids], max_new_tokens, temperature, top_k, top_p, rng, stop_ids=self.end_ids)
        next(steps)  # the prompt itself
        yield self.seen.fold(prompt)
        pieces = text_pieces(self.decode, ids, (int(step[0, -1]) for step in steps))
        yield from pieces if stop is None else until(stop, pieces)

    def decode(self, ids):
        """The text of the ids, without special tokens, which never occur in a text."""
        return self.tokenizer.decode([i for i in ids if i not in self.excluded_ids])

    def evaluate(self, path):
        """The loss and the perplexity on a text; see `Trained.evaluate`."""
        text = data.read_text(path)
        unknown = self.tokenizer.unknown(text)
        ids = encode_text(fine_tuning.without_special_tokens(self.tokenizer), text)
        if len(ids) < 2:
            found = counted(len(ids), "token")
            raise ValueError(f"{path} has {found}, but at least 2 are needed: the first is not predicted")
        found = with_perplexity(self._loss(ids))
        return found | {"tokens": len(ids)} | ({"unknown characters": sum(map(text.count, unknown))} if unknown else {})

    def _loss(self, ids):
        """The mean loss of a text, cut into blocks as long as the context."""
        batches = data.validation_batches(ids, min(self.context, VALIDATION_TOKENS), 1)
        return mean_loss(NextToken(self.model), batches)


class GPTTask(Task):
    """A decoder-only model on one text: linear warm-up, then half a cosine down (Radford et al. 2018, §4.1)."""

    kind = "gpt"
    example = "--text play.txt --out runs/play"
    Options, Result = GPTOptions, TextGenerator

    def load(self, options):
        """The text, as a data.TextSplit: the first 90 % of its characters for training."""
        text = data.documentation_text() if options.text is None else data.open_text(options.text)
        return data.split_text(text)

    def fingerprint(self, split):
        """As Task.fingerprint, with only a part of the text in memory."""
        digest = hashlib.sha256()
        for before, text in (('{"train": "', split.train), ('", "validation": "', split.validation)):
            digest.update(before.encode())
            for part in parts(text):
                digest.update(json.dumps(part)[1:-1].encode())  # without the quotes
        digest.update(b'"}')
        return digest.hexdigest()

    def train_tokenizers(self, options, split):
        """All characters of the whole text, or byte pairs of the training part, or those of the pretrained model."""
        if getattr(options, "pretrained", None) is not None:  # XLTask shares this method
            return {"tokenizer": PretrainedFolder(options.pretrained).tokenizer}
        if options.tokens == "char":
            return {"tokenizer": data.CharTokenizer.train(chain(parts(split.train), parts(split.validation)))}
        return {"tokenizer": data.BPETokenizer.train(parts(split.train), max_size=options.vocab_size)}

    def setup(self, options, split, tokenizers):
        tokenizer = tokenizers["tokenizer"]
        plain = fine_tuning.without_special_tokens(tokenizer)
        train, validation = (encode_text(plain, part) for part in (split.train, split.validation))
        model = self._model(options, tokenizer)
        block = options.block_size or min(BLOCK, model.config.max_len)
        batches = data.TextBatches(train, block, options.batch_size, seed=options.seed)
        held_out = data.validation_batches(validation, block, VALIDATION_TOKENS // block or 1)
        betas, decay = (options.beta1, options.beta2), options.weight_decay
        adamw = partial(AdamW, betas=betas, weight_decay=decay, decays=is_matrix)
        if options.pretrained is not None:
            facts = fine_tuning.facts(options)
            for ids in (train, validation):
                check_ids([int(ids.max())] if len(ids) else [], tokenizer, model.config.vocab_size)
        else:
            facts = self._seen(split, tokenizer)
        kind = "characters" if options.tokens == "char" and options.pretrained is None else "tokens"
        return Setup(
            model, NextToken(model), optimizer_of(options, model, adamw), batches, held_out,
            schedule=falling_cosine(options), clip_norm=options.clip,
            note=f"{len(train):,} tokens to learn from, {len(validation):,} for validation; "
            f"{len(tokenizer)} different {kind}; {model.num_parameters():,} parameters"
            + fine_tuning.note(model, options),
            header=fine_tuning.header(model, options), facts=facts,
        )  # fmt: skip

    def _seen(self, split, tokenizer):
        return {"seen": data.Seen.of(parts(split.train), parts(split.validation), tokenizer, running=True).to_dict()}

    def _model(self, options, tokenizer):
        if options.pretrained is None:
            tied, bias = options.head == "tied", options.bias == "yes"
            own = {"max_len": options.block_size or BLOCK, "tie_embeddings": tied, "bias": bias}
            return GPT(GPTConfig(len(tokenizer), **own, **sizes(options)))
        model = fine_tuning.start(options, DecoderOnly)
        if (options.block_size or 0) > model.config.max_len:
            sees = f"the model in {options.pretrained} sees {model.config.max_len}"
            raise ValueError(f"block_size is {options.block_size}, but {sees}")
        return model
