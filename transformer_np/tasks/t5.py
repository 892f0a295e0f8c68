"""Text to text: one T5 for several tasks, distinguished by a prefix of the text."""

import re
from dataclasses import dataclass, replace

import numpy as np

from .. import data
from ..data.files import read_columns
from ..data.large import parts
from ..data.spans import SENTINEL
from ..data.tokenizers import EOS, PAD
from ..decoding import Excluding, beam_search, greedy_decode
from ..models import T5, T5Config
from ..pretrained import PretrainedFolder
from ..pretrained.folder import check_ids
from ..support.checks import check_at_least, refusing, short
from ..support.counts import counted
from ..training import Adam, TeacherForcing
from . import options as flag
from .options import TaskOptions, falling_cosine, optimizer_of, option, sizes
from .task import Setup, Task, vocabulary
from .trained import Trained, in_batches, mean_loss, share_equal, share_right, unknown_tokens, with_perplexity

SPANS = "spans"  # the only task without a prefix: its texts have sentinels
FOUND = "hidden tokens found, those before them given"  # the measure of spans
PREFIXES = {"translate": "translate English to Portuguese: ", "sentiment": "sentiment: ", "date": "date: "}
TASKS = (*PREFIXES, SPANS)
# the shares of a batch: more for sentiment, because an answer of one word gives little to learn from
SHARES = {"translate": 4, "sentiment": 5, "date": 3, SPANS: 4}
# Adam moves every number by about the learning rate per step, and a bias matters only from about 1 unit of score on.
# From T5's own 1/√d_model that takes thousands of steps, during which the model memorizes sentences. So the encoder's
# bias starts large: exact match on sentiment after 1,500 steps is 89 % instead of 75 %. The decoder's starts small.
BIAS_STD = 3.0
MOST_WRITTEN = 512  # tokens of an answer, unless more are asked for: a model may never end one
LONGEST = 4096  # tokens of an input text, for which the scores of one head take 64 MB


@dataclass(frozen=True)
class T5Options(TaskOptions):
    """All options of a training run. The defaults learn the three built-in tasks with a prefix."""

    tasks: str = option(",".join(PREFIXES), f"the tasks to learn, separated by commas: {', '.join(TASKS)}", "NAMES")
    text: str | None = option(
        None, "UTF-8 text for the task spans (default: Python's built-in help on the language)", "FILE"
    )
    tokens: str = option("bpe", "the unit of text; each digit is always a token", choices=("bpe", "char"))
    vocab_size: int = flag.vocab_size(1500, "vocabulary size with --tokens bpe; with char, all characters of the texts")
    block_size: int = option(64, "tokens per example of the task spans", least=2)
    steps: int = option(2400, "training steps; the learning rate falls until the last one")
    batch_size: int = option(96, "examples per step, all tasks together")
    layers: int = option(2, "encoder blocks, and as many decoder blocks")
    heads: int = option(4, "attention heads")
    d_model: int = option(96, "features of a token")
    d_head: int = option(24, "features of a head")
    d_ff: int = option(256, "features inside the feed-forward network")
    activation: str = option("relu", "T5 v1.0 has relu, v1.1 gated_gelu", choices=("relu", "gated_gelu"))
    dropout: float = flag.share(0.05, "share of features dropped during training")
    optimizer: str = flag.optimizer("adamw")
    lr: float | None = flag.lr(3e-3)
    warmup: int | None = flag.warmup(200)
    max_len: int = option(128, "longest text in tokens, input or output; longer examples are left out")
    seed: int = flag.seed("parameters, splits, batches, spans and dropout")

    def __post_init__(self):
        object.__setattr__(self, "tasks", ",".join(_task_names(self.tasks)))
        super().__post_init__()
        check_at_least("batch_size", self.batch_size, len(self.names))  # one example of each task
        if self.text is not None and SPANS not in self.names:
            raise ValueError(f"text is only for the task spans, but tasks is {self.tasks}")

    @property
    def names(self):
        """The tasks, as a list."""
        return self.tasks.split(",")


def _task_names(text):
    """The names in a comma-separated list of tasks, in the order of TASKS, without duplicates."""
    if not isinstance(text, str):
        raise TypeError(f"tasks must be a string of names with commas between them, got {short(text)}")
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in TASKS]
    if unknown:
        raise ValueError(f"there is no task {', '.join(map(repr, unknown))}; tasks are {', '.join(TASKS)}")
    if not names:
        raise ValueError(f"tasks is empty; tasks are {', '.join(TASKS)}")
    return [name for name in TASKS if name in names]


class TextToText(Trained):
    """A T5 with its tokenizer: answers a text with a text.

    model = TextToText.load("runs/t5-1")
    model.answer("date: 24 March 2019")                         # "2019-03-24"
    model.answer("sentiment: not bad at all")                   # "positive"

    tokenizer: an object with encode(text) and decode(ids)
    prefixes: the prefixes of the learned tasks, or None if unknown. The text after a prefix is read in lower case.
    """

    pretrained, not_applied = False, ()

    def __init__(self, model, tokenizer, prefixes=None):
        self.model, self.tokenizer, self.prefixes = model, tokenizer, prefixes
        self.longest = model.config.max_len  # of the texts in training, in tokens, or None if unknown

    @classmethod
    def _made(cls, model, tokenizers, options, facts):
        tokenizer, prefixes = tokenizers["tokenizer"], facts.get("prefixes")
        if not isinstance(prefixes, list) or not all(isinstance(prefix, str) for prefix in prefixes):
            raise ValueError("it does not name the prefixes of its tasks")
        sentinels = model.config.vocab_size - len(tokenizer)
        if sentinels < 0:
            has = f"its tokenizer has {len(tokenizer)} tokens, but the model only {model.config.vocab_size}"
            raise ValueError(f"{has}: they are from two different runs")
        made = cls(model, data.SentinelTokenizer(tokenizer, sentinels), prefixes)
        made.block_size, made.seed = options.block_size, options.seed  # of the texts with hidden spans
        return made

    @classmethod
    def from_pretrained(cls, folder):
        """From the folder of a T5 in Hugging Face's layout, including tokenizer.json; raises as T5.from_pretrained, and
        ValueError for a generation_config.json with several end tokens."""
        found = PretrainedFolder(folder)
        model = found.model_for(T5, "which does not answer a text with a text; a T5 does")
        ends, start = found.end_ids, found.generation.get("decoder_start_token_id")
        if len(ends) > 1:
            raise ValueError(f"{found.path}: eos_token_id is {list(ends)}, which is not supported; supported is one id")
        ids = {"eos_id": ends[0] if ends else None, "bos_id": start}
        model.config = replace(model.config, **{name: i for name, i in ids.items() if i is not None})
        answers = cls(model, _PretrainedSentinels(found.tokenizer, model.config.vocab_size))
        answers.longest = found.settings.get("n_positions")
        answers.pretrained, answers.not_applied, answers.seen = True, found.not_applied, data.Seen(spaces=None)
        return answers

    reader = property(lambda self: self.tokenizer.tokenizer)

    def plain(self, text):
        return SENTINEL.sub(" ", text)

    @property
    def _writer(self):
        """The model, which never answers with an unknown token."""
        return Excluding(self.model, self.tokenizer.unknown_ids, padded=not self.pretrained)

    def task_of(self, text):
        """The learned prefix that the text begins with, ignoring case; None if there is none."""
        beginning = text.lstrip().casefold()
        return next((p for p in self.prefixes or () if beginning.startswith(p.strip().casefold())), None)

    def knows(self, text):
        """Whether the text is of a learned task: it begins with a prefix or has sentinels. True if the learned tasks
        are unknown."""
        holes = len(self.tokenizer.sentinels) > 0 and data.sentinel(0) in text
        return self.prefixes is None or holes or self.task_of(text) is not None

    @property
    def learned(self):
        """The form of a text of each learned task, for messages."""
        holes = [f"… {data.sentinel(0)} …"] if self.tokenizer.sentinels else []
        return [*(f"{prefix}…" for prefix in self.prefixes or ()), *holes]

    def encode(self, text):
        """The ids of one text and <eos>, (1, S). Raises ValueError if it is empty or longer than LONGEST tokens."""
        text = self.seen.fold(text)
        prefix = self.task_of(text)
        if prefix is not None:
            content = text.lstrip()[len(prefix.strip()) :].strip()
            if not content:
                raise ValueError(f"there is no text after {prefix.strip()!r}")
            text = prefix + content.lower()
        if not text.strip():
            raise ValueError("the text is empty: there is nothing to answer")
        ids = self.tokenizer.encode(text)
        if self.pretrained:  # its tokenizer says how a text ends
            check_ids(ids, self.tokenizer.tokenizer, self.model.config.vocab_size)
        elif ids[-1:] != [self.model.config.eos_id]:
            ids = [*ids, self.model.config.eos_id]
        if len(ids) > LONGEST:
            raise ValueError(f"the text has {len(ids):,} tokens, but at most {LONGEST:,} are allowed")
        return np.array([ids])

    def answer(self, text, beam_size=1, length_penalty=0.6, max_len=None):
        """The model's answer to a text: greedy, or by beam search if beam_size is larger than 1.

        max_len: the most tokens of the answer (default: the model's, at most MOST_WRITTEN)
        """
        src = self.encode(text)
        max_len = min(self.model.config.max_len, MOST_WRITTEN) if max_len is None else max_len
        if beam_size == 1:
            return self.tokenizer.decode(greedy_decode(self._writer, src, max_len)[0])
        return self.tokenizer.decode(beam_search(self._writer, src, beam_size, max_len, length_penalty)[0])

    def exact_match(self, pairs, batch_size=128):
        """The share of (input, output) whose greedy answer is exactly the output, in [0, 1]."""
        config, targets = self.model.config, [target for _, target in pairs]

        def written(src, chosen):
            longest = max(len(self.tokenizer.encode(targets[i])) for i in chosen)
            # one extra token is enough to be wrong
            outputs = greedy_decode(self._writer, src, min(longest + 2, config.max_len))
            return map(self.tokenizer.decode, outputs)

        sources = [self.encode(text)[0] for text, _ in pairs]
        return share_equal(in_batches(sources, written, batch_size, config.pad_id), targets)

    def evaluate(self, path):
        """The loss, the perplexity and the exact match on lines of a text, a tab and its answer; see `Trained`.

        If the model has learned nothing but spans, and the file has no sentinels, it is a text. Then the measures are
        the loss, the perplexity and the share of hidden tokens found, as in training.
        """
        if self.prefixes == [] and not SENTINEL.search(text := data.read_text(path)):
            ids = self.tokenizer.encode(text)
            if len(ids) < 2:
                raise ValueError(f"{path} has {counted(len(ids), 'token')}, but at least 2 are needed to hide one")
            block_size, seed = min(self.block_size, len(ids)), self.seed
            batches = list(data.SpanBatches(ids, self.tokenizer.sentinels, block_size, 32, seed).in_order())
            found = with_perplexity(mean_loss(TeacherForcing(self.model), batches))
            return found | {FOUND: _found(self, batches), "tokens": len(ids)}
        pairs = read_columns(path, ("text", "answer"), "a text with its prefix, a tab and the answer", "answers")
        rows = [(self.encode(text)[0].tolist(), self.tokenizer.encode(answer)) for text, answer in pairs]
        c = self.model.config
        batches = data.Seq2SeqBatches(rows, 64, 0, c.pad_id, c.bos_id, c.eos_id).in_order()
        found = with_perplexity(mean_loss(TeacherForcing(self.model), batches))
        found |= {"exact match": self.exact_match(pairs), "examples": len(pairs)}
        return found | unknown_tokens(rows, self.tokenizer.unknown_ids)


class _PretrainedSentinels(data.SentinelTokenizer):
    """A PretrainedTokenizer that keeps its sentinels in decoded text. size: of the model's vocabulary"""

    between = " "

    def __init__(self, tokenizer, size):
        self.tokenizer, self.sentinels = tokenizer, []
        self.unknown_ids = tokenizer.without_token(size)
        while tokenizer.tokens(mark := data.sentinel(len(self.sentinels)))[:1] == [mark]:
            self.sentinels.append(tokenizer.encode(mark)[0])

    def encode(self, text):
        return self.tokenizer.encode(text)


class T5Task(Task):
    """One T5 on a mixture of tasks (Raffel et al. 2020, §3.5.2): every batch has examples of each, with teacher forcing
    and Adam; linear warm-up, then half a cosine down."""

    kind = "t5"
    example = "--tasks sentiment,date,spans --text play.txt --out runs/mixture"
    Options, Result = T5Options, TextToText

    def load(self, options):
        """{task: data}: a data.Split of (input, output), for spans a data.TextSplit."""
        return {name: self._load(name, options) for name in options.names}

    def _load(self, name, options):
        if name == SPANS:
            text = data.documentation_text() if options.text is None else data.read_text(options.text)
            return data.split_text(text)
        source = {"translate": data.english_portuguese, "sentiment": data.sentiment_sentences,
                  "date": data.written_dates}[name]  # fmt: skip
        held_out = [data.LECTURE_SENTENCE] if name == "translate" else ()
        split = data.split_pairs(source(), seed=options.seed, held_out=held_out)
        parts = (split.train, split.validation, split.test)
        return data.Split(*([(PREFIXES[name] + text.lower(), target) for text, target in part] for part in parts))

    def train_tokenizers(self, options, tasks):
        """One vocabulary for all tasks and both sides. Digits are never merged: ten tokens spell every number, and an
        unseen year is as easy as any other."""
        texts = []
        for name, split in tasks.items():
            texts += [split.train] if name == SPANS else [text for pair in split.train for text in pair]
        if options.tokens == "char":
            return {"tokenizer": vocabulary("the texts give", data.CharTokenizer.train, texts)}
        without_digits, size = [part for text in texts for part in re.split(r"\d", text)], options.vocab_size
        return {"tokenizer": vocabulary("the texts give", data.BPETokenizer.train, without_digits, max_size=size)}

    def setup(self, options, tasks, tokenizers):
        count = data.count_spans(options.block_size)[1] + 1 if SPANS in tasks else 0
        tokenizer = data.SentinelTokenizer(tokenizers["tokenizer"], count)
        rows = _rows(options.batch_size, tasks)
        batches, validation, notes = [], [], []
        for name, split in tasks.items():
            make = _span_batches if name == SPANS else _pair_batches
            train, held_out, note = make(split, tokenizer, options, rows[name])
            batches.append(train)
            validation += held_out.in_order()
            notes.append(f"{name}: {note}")
        texts = (_texts(tasks, part) for part in ("train", "validation"))
        seen = data.Seen.of(*texts, tokenizers["tokenizer"], lowercase=True)
        own = {"d_head": options.d_head, "activation": options.activation, "max_len": options.max_len}
        own |= {"pad_id": PAD, "eos_id": EOS, "bos_id": PAD}
        model = T5(T5Config(len(tokenizer), **own, **sizes(options, "num_encoder_layers", "num_decoder_layers")))
        model.encoder_bias.table.data *= BIAS_STD * options.d_model**0.5
        return Setup(
            model, TeacherForcing(model), optimizer_of(options, model, Adam), data.MixedBatches(batches), validation,
            schedule=falling_cosine(options),
            note=f"{'; '.join(notes)}; {len(tokenizer)} different tokens; {model.num_parameters():,} parameters",
            facts={"prefixes": [PREFIXES[name] for name in tasks if name != SPANS], "seen": seen.to_dict()},
        )  # fmt: skip

    def measure(self, run):
        """The share of unseen texts with exactly the right answer; for spans the share of hidden tokens."""
        answers, measured = TextToText.of(run), {}
        for name, split in run.data.items():
            if name == SPANS:
                of_spans = [b for b in run.setup.validation if (b.src >= len(answers.reader)).any()]
                measured[f"spans: {FOUND}"] = _found(answers, of_spans)
                continue
            fits = [pair for pair in split.test if _fits(answers.tokenizer, pair, run.options.max_len)]
            fits = fits[:: len(fits) // 500 or 1]  # evenly spread, because neighbours are similar
            if fits:
                measured[f"{name}: exact match on unseen texts"] = answers.exact_match(fits)
        return measured


def _texts(tasks, part):
    """Yield the texts that a part of the data has for the encoder to read."""
    for name, split in tasks.items():
        found = getattr(split, part)
        yield from parts(found) if name == SPANS else (text for text, _ in found)


def _rows(batch_size, tasks):
    """{task: its examples per batch}, in proportion to SHARES, at least one per task."""
    bounds = np.cumsum([SHARES[name] for name in tasks])
    free = batch_size - len(tasks)
    ends = [0, *np.rint(free * bounds / bounds[-1]).astype(int)]
    return {name: int(1 + end - start) for name, start, end in zip(tasks, ends[:-1], ends[1:], strict=True)}


def _pair_batches(split, tokenizer, options, batch_size):
    """The training batches, the validation batches, and a note about them."""
    fitting = [
        [pair for pair in part if _fits(tokenizer, pair, options.max_len)] for part in (split.train, split.validation)
    ]
    if not all(fitting):
        raise ValueError(f"no example is short enough for max_len = {options.max_len} tokens")
    left_out = len(split.train) + len(split.validation) - sum(map(len, fitting))
    rows = ([([*tokenizer.encode(text), EOS], tokenizer.encode(target)) for text, target in part] for part in fitting)
    train, held_out = (
        data.Seq2SeqBatches(pairs, size, options.seed, bos_id=PAD)
        for pairs, size in zip(rows, (batch_size, 128), strict=True)
    )
    note = f"{len(fitting[0]):,} examples to learn from, {len(fitting[1]):,} for validation, "
    note += f"{len(split.test):,} unseen for the test"
    return train, held_out, note + (f", {left_out} too long and left out" if left_out else "")


def _span_batches(split, tokenizer, options, batch_size):
    """As _pair_batches, for a text with removed spans."""
    parts = []
    for what, part, size in (("training", split.train, batch_size), ("validation", split.validation, 32)):
        with refusing(f"the {what} part of the text"):
            ids = tokenizer.encode(part)
            parts.append(data.SpanBatches(ids, tokenizer.sentinels, options.block_size, size, options.seed))
    train, held_out = parts
    return train, held_out, f"{len(train.ids):,} tokens to learn from, {len(held_out.ids):,} for validation"


def _fits(tokenizer, pair, max_len):
    """Whether both sides, with <eos>, have at most max_len tokens."""
    return all(len(tokenizer.encode(text)) < max_len for text in pair)


def _found(answers, batches):
    """The share of the hidden tokens of all batches that the model predicts as the likeliest."""
    model, first_sentinel = answers.model, len(answers.reader)

    def hits(batch):
        likeliest = model(batch.src, batch.tgt_in).argmax(axis=-1)  # (B, T)
        return (likeliest == batch.tgt_out)[(batch.tgt_out > EOS) & (batch.tgt_out < first_sentinel)]

    return share_right(model, batches, hits)
