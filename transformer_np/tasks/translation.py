"""Translation: an encoder–decoder trained on sentence pairs."""

import hashlib
import json
import unicodedata
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import numpy as np

from .. import data
from ..checks import check_at_least, check_probability
from ..data.tokenizers import BOS, PAD
from ..decoding import beam_search, greedy_decode, greedy_steps
from ..models import Transformer, TransformerConfig
from ..training import Adam, TeacherForcing, Trainer, load_model, noam_schedule
from . import runs

KIND = "translate"


@dataclass(frozen=True)
class TranslationOptions:
    """Everything that decides a training. The defaults learn the built-in English→Portuguese corpus.

    pairs: a file of tab-separated pairs, None for the built-in corpus
    tokens: "word" or "char"
    lr: the peak of the paper's schedule; None takes the paper's own, 1/√(d_model · warmup)
    """

    pairs: str | None = None
    tokens: str = "word"
    steps: int = 800
    batch_size: int = 64
    layers: int = 2
    heads: int = 4
    d_model: int = 64
    d_ff: int = 256
    dropout: float = 0.1
    max_len: int = 128
    label_smoothing: float = 0.1
    lr: float | None = None
    warmup: int = 300
    seed: int = 0

    def __post_init__(self):
        if self.tokens not in ("word", "char"):
            raise ValueError(f'tokens must be "word" or "char", got {self.tokens!r}')
        for name in ("steps", "batch_size", "layers", "max_len", "warmup"):
            check_at_least(name, getattr(self, name), 1)
        check_at_least("seed", self.seed, 0)
        for name in ("dropout", "label_smoothing"):
            check_probability(name, getattr(self, name))
        if self.pairs is not None:
            object.__setattr__(self, "pairs", str(self.pairs))  # a Path will do
        if self.lr is not None and not 0 < self.lr < float("inf"):
            raise ValueError(f"lr must be positive, got {self.lr}")


class Translator:
    """A trained model with its two tokenizers: from a sentence to its translation.

    translator = Translator.load("runs/lecture")
    translator.translate("Lucas will travel in December")     # "Lucas vai viajar em dezembro"
    """

    def __init__(self, model, src_tokenizer, tgt_tokenizer):
        self.model, self.src_tokenizer, self.tgt_tokenizer = model, src_tokenizer, tgt_tokenizer

    @classmethod
    def load(cls, folder):
        """From the folder of a run; FileNotFoundError or ValueError if it holds no usable translator."""
        _, _, tokenizers = _read_run(folder)
        model, _ = load_model(Path(folder) / runs.CHECKPOINT)
        return cls(model, *tokenizers)

    def encode(self, sentence):
        """The ids of one source sentence, (1, S). Raises ValueError if it is empty or too long for the model."""
        ids = self.src_tokenizer.encode(sentence)
        if not ids:
            raise ValueError("the sentence is empty: there is nothing to translate")
        if len(ids) > self.model.config.max_len:
            raise ValueError(f"the sentence has {len(ids)} tokens, the model reads at most {self.model.config.max_len}")
        return np.array([ids])

    def longest_output(self, src):
        """How many tokens a translation may have before it is cut off."""
        return min(self.model.config.max_len, 2 * src.shape[1] + 10)

    def translate(self, sentence, beam_size=1, length_penalty=0.6):
        """The translation of one sentence: greedy, or by beam search where beam_size is larger than 1."""
        src = self.encode(sentence)
        if beam_size == 1:
            return self.tgt_tokenizer.decode(greedy_decode(self.model, src, self.longest_output(src))[0])
        return self.tgt_tokenizer.decode(
            beam_search(self.model, src, beam_size, self.longest_output(src), length_penalty)[0]
        )

    def steps(self, sentence, candidates=3):
        """Greedy decoding, time step by time step: for each a list of the likeliest (token, log p in nats), the chosen
        one first."""
        src = self.encode(sentence)
        found = []
        for _, log_probs in greedy_steps(self.model, src, self.longest_output(src)):
            best = np.argsort(-log_probs[0], kind="stable")[:candidates]
            found.append([(self.tgt_tokenizer.token(i), float(log_probs[0, i])) for i in best])
        return found

    def attention(self, sentence):
        """What the model looks at while it translates: the words of both sides, and a model whose layers hold the
        weights of one teacher-forced pass over its own greedy translation.

        ->  source tokens as typed (S), target tokens (T): row t of the decoder's weights chose target token t
        """
        src = self.encode(sentence)
        ids = greedy_decode(self.model, src, self.longest_output(src) - 1)[0]
        with self.model.evaluating():
            chosen = self.model(src, np.array([[BOS, *ids]]))[0].argmax(axis=-1)  # (T,): <eos> last, unless cut off
        source = self.src_tokenizer.cut(unicodedata.normalize("NFC", sentence))  # as it was cut for the ids
        return source, [self.tgt_tokenizer.token(i) for i in chosen]

    def exact_match(self, pairs, batch_size=128):
        """The share of pairs whose greedy translation is the target to the letter, in [0, 1]."""
        if not pairs:
            raise ValueError("there are no pairs to translate")
        encoded = [(self.src_tokenizer.encode(source), target) for source, target in pairs]
        encoded.sort(key=lambda pair: len(pair[0]))  # little padding
        right = 0
        for start in range(0, len(encoded), batch_size):
            part = encoded[start : start + batch_size]
            src = data.pad_batch([ids for ids, _ in part], PAD)
            outputs = greedy_decode(self.model, src, self.longest_output(src))
            right += sum(
                self.tgt_tokenizer.decode(ids) == _as_decoded(self.tgt_tokenizer, target)
                for ids, (_, target) in zip(outputs, part, strict=True)
            )
        return right / len(pairs)


@dataclass(frozen=True)
class TranslationRun:
    """What a training leaves: the translator, its trainer (history, interrupted), the split, what was measured."""

    translator: Translator
    trainer: Trainer
    split: data.Split
    validation_loss: float
    exact_match: float | None
    left_out: int


def train_translator(options, folder, resume=False, overwrite=False, progress=True, report=None):
    """Train a translator in the folder of a run, or go on with the one that is there.

    options: TranslationOptions; with resume a dict of those that were asked for, which must agree with the run's own
        (`steps` may be larger)
    report: called with a line of text before the training starts

    Raises OSError and ValueError before the training for data or a folder that will not do, TrainingError in it.
    ->  TranslationRun
    """
    if resume:
        description, stored, tokenizers = _read_run(folder)
        options = _resumed_options(stored, options)
    own_pairs = options.pairs is not None
    pairs = data.read_pairs(options.pairs) if own_pairs else data.english_portuguese()
    split = data.split_pairs(pairs, seed=options.seed, held_out=() if own_pairs else [data.LECTURE_SENTENCE])
    fingerprint = hashlib.sha256(json.dumps(pairs).encode()).hexdigest()
    if resume:
        if description.get("data") != fingerprint:
            raise ValueError(f"the sentence pairs are not those the run in {folder} began with: it cannot go on")
    else:
        tokenizers = _train_tokenizers(split.train, options)
    src_tokenizer, tgt_tokenizer = tokenizers

    train, train_left_out = _encode(split.train, src_tokenizer, tgt_tokenizer, options.max_len)
    held_out, held_out_left_out = _encode(split.validation, src_tokenizer, tgt_tokenizer, options.max_len)
    if not train or not held_out:
        raise ValueError(f"no sentence pair is short enough for max_len = {options.max_len} tokens")
    batches = data.Seq2SeqBatches(train, options.batch_size, seed=options.seed)
    validation = list(data.Seq2SeqBatches(held_out, 128).in_order())

    model = Transformer(_config(options, len(src_tokenizer), len(tgt_tokenizer)))
    trainer = Trainer(
        model,
        Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9),
        TeacherForcing(model, options.label_smoothing),
        schedule=_schedule(options),
        clip_norm=1.0,
        checkpoint=Path(folder) / runs.CHECKPOINT,
        header={"kind": KIND},
    )
    if resume:
        trainer.resume()
        if trainer.step > options.steps:
            raise ValueError(f"steps is {options.steps}, but the run in {folder} has done {trainer.step} already")
        runs.write_description(folder, {**description, "options": asdict(options)})
    else:
        description = {
            "kind": KIND,
            "options": asdict(options),
            "data": fingerprint,
            "source": src_tokenizer.to_dict(),
            "target": tgt_tokenizer.to_dict(),
        }
        (runs.replace_run if overwrite else runs.create_run)(folder, description)

    left_out = train_left_out + held_out_left_out
    if report:
        report(
            f"{len(split.train):,} training pairs, {len(split.validation):,} for validation, {len(split.test):,} unseen"
            f" for the test; {len(src_tokenizer)} source and {len(tgt_tokenizer)} target {options.tokens}s;"
            f" {model.num_parameters():,} parameters"
            + (f"; {left_out} pairs longer than {options.max_len} tokens left out" if left_out else "")
        )
    every = max(100, options.steps // 10)
    trainer.fit(batches, options.steps, validation, validate_every=every, checkpoint_every=every, progress=progress)

    translator = Translator(model.eval(), src_tokenizer, tgt_tokenizer)
    if trainer.interrupted:
        return TranslationRun(translator, trainer, split, float("nan"), None, left_out)
    if trainer.history.validation and trainer.history.validation[-1][0] == trainer.step:
        validation_loss = trainer.history.validation[-1][1]
    else:  # resumed at its very end
        validation_loss = trainer.validate(validation)
    test = [pair for pair in split.test if 0 < len(src_tokenizer.encode(pair[0])) <= options.max_len][:500]
    exact_match = translator.exact_match(test) if test else None
    return TranslationRun(translator, trainer, split, validation_loss, exact_match, left_out)


def _resumed_options(stored, asked):
    """The options of the run, with a new number of steps where that was asked for."""
    wanted = replace(stored, **asked)
    differing = [
        f"{f.name} {getattr(stored, f.name)!r}, not {getattr(wanted, f.name)!r}"
        for f in fields(stored)
        if f.name != "steps" and getattr(stored, f.name) != getattr(wanted, f.name)
    ]
    if differing:
        raise ValueError(
            f"the run was started with {', '.join(differing)}; only the number of steps may change on --resume"
        )
    return wanted


def _config(options, src_vocab_size, tgt_vocab_size):
    return TransformerConfig(
        src_vocab_size,
        tgt_vocab_size,
        d_model=options.d_model,
        num_heads=options.heads,
        num_encoder_layers=options.layers,
        num_decoder_layers=options.layers,
        d_ff=options.d_ff,
        dropout=options.dropout,
        max_len=options.max_len,
        seed=options.seed,
    )


def _schedule(options):
    """The paper's schedule, scaled so that its peak is options.lr where that is given."""
    peak = noam_schedule(options.warmup, options.d_model, options.warmup)
    scale = 1.0 if options.lr is None else options.lr / peak
    return lambda step: scale * noam_schedule(step, options.d_model, options.warmup)


def _train_tokenizers(pairs, options):
    """The source in lower case, so that "lucas" is as good as "Lucas"; the target as it is written."""
    kind = data.WordTokenizer if options.tokens == "word" else data.CharTokenizer
    try:
        return tuple(kind.train((pair[side] for pair in pairs), min_count=2, lowercase=side == 0) for side in (0, 1))
    except ValueError as error:
        raise ValueError(f"the training pairs give no vocabulary: {error}") from None


def _read_run(folder):
    """What the folder of a run says: the description, its options, the source and the target tokenizer."""
    description = runs.read_run(folder, KIND)
    try:
        options = TranslationOptions(**description.get("options"))
        tokenizers = [data.Tokenizer.from_dict(description.get(side)) for side in ("source", "target")]
    except (TypeError, ValueError) as error:
        raise ValueError(f"{Path(folder) / runs.DESCRIPTION} is damaged: {error}") from None
    return description, options, tokenizers


def _encode(pairs, src_tokenizer, tgt_tokenizer, max_len):
    """Pairs of ids, and how many pairs were left out because a side, with its start token, is longer than max_len."""
    encoded = [(src_tokenizer.encode(source), tgt_tokenizer.encode(target)) for source, target in pairs]
    fitting = [(src, tgt) for src, tgt in encoded if len(src) <= max_len and len(tgt) < max_len]
    return fitting, len(encoded) - len(fitting)


def _as_decoded(tokenizer, text):
    """A text the way the tokenizer would write it: its spacing, unknown words kept as they are."""
    return tokenizer.join(tokenizer.cut(text))
