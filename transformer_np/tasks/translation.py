"""Translation: an encoder–decoder trained on sentence pairs."""

import unicodedata
from dataclasses import dataclass
from functools import partial
from math import exp
from pathlib import Path

import numpy as np

from .. import data
from ..data.tokenizers import BOS, EOS, UNK
from ..decoding import Excluding, beam_search, greedy_decode, greedy_steps
from ..models import Transformer, TransformerConfig
from ..support.counts import counted
from ..support.table import aligned
from ..training import Adam, TeacherForcing, noam_schedule
from . import options as flag
from .bleu import bleu
from .options import MUON_LR, TaskOptions, falling_cosine, optimizer_of, option, sizes
from .task import Setup, Task, vocabulary
from .trained import Trained, in_batches, mean_loss, share_equal, unknown_tokens, with_perplexity

BUILT_IN, OWN_PAIRS = 800, {"muon": 1000, "adamw": 2000}  # steps: the built-in sentences follow few rules
LR = 3.6e-3  # at a width of 64, for own pairs: with the paper's rate, twice as high, they are learned more slowly
UNITS = {"word": "words", "char": "chars", "bpe": "byte pairs"}


@dataclass(frozen=True)
class TranslationOptions(TaskOptions):
    """All options of a training run. The defaults learn the built-in English→Portuguese corpus."""

    pairs: str | None = option(None, "tab-separated sentence pairs (default: built-in, English-Portuguese)", "FILE")
    tokens: str = option("word", "the unit of text", choices=("word", "char", "bpe"))
    vocab_size: int = flag.vocab_size(2000, "with --tokens bpe: vocabulary size of each language")
    steps: int | None = option(
        None,
        f"training steps (default: {OWN_PAIRS['adamw']:,}; Muon: {OWN_PAIRS['muon']:,}; built-in pairs: {BUILT_IN})",
    )
    batch_size: int = option(64, "sentence pairs per step")
    layers: int = option(2, "encoder blocks, and as many decoder blocks")
    heads: int = option(4, "attention heads")
    d_model: int = option(64, "features of a token")
    d_ff: int = option(256, "features inside the feed-forward network")
    dropout: float = flag.share(0.1, "share of features dropped during training")
    max_len: int = option(128, "longest sentence in tokens; longer pairs are left out")
    label_smoothing: float = flag.share(0.1, "share of the target spread over all tokens")
    optimizer: str | None = flag.optimizer(None, "muon for --pairs with --tokens char, else adamw")
    lr: float | None = option(
        None,
        f"highest learning rate (default: {LR} * sqrt(64 / d_model); built-in pairs: 1/sqrt(d_model * warmup); Muon: "
        f"{MUON_LR})",
    )
    warmup: int | None = flag.warmup(300, least=1, most="with muon at most half of all")
    embeddings: str | None = option(None, "word2vec file, text or binary, to initialize the source embedding", "FILE")
    freeze_embeddings: bool = option(False, "with --embeddings: do not train the source embedding")
    seed: int = flag.seed("parameters, split, batches and dropout")

    def __post_init__(self):
        if self.optimizer is None:
            muon = self.pairs is not None and self.tokens == "char"
            object.__setattr__(self, "optimizer", "muon" if muon else "adamw")
        super().__post_init__()
        if self.steps is None:
            object.__setattr__(self, "steps", BUILT_IN if self.pairs is None else OWN_PAIRS[self.optimizer])
        if self.lr is None and self.pairs is not None and self.optimizer == "adamw":
            object.__setattr__(self, "lr", LR * (64 / self.d_model) ** 0.5)
        if self.embeddings is not None:
            if self.tokens == "bpe":
                raise ValueError('embeddings are vectors of words: tokens must be "word", got "bpe"')
        elif self.freeze_embeddings:
            raise ValueError("freeze_embeddings needs embeddings: random ones must be trained")


class Translator(Trained):
    """A trained model with its two tokenizers: translates sentences.

    translator = Translator.load("runs/lecture")
    translator.translate("Lucas will travel in December")     # "Lucas vai viajar em dezembro"

    longest: the tokens of the longest sentence in training, or None if unknown
    """

    longest = None

    def __init__(self, model, src_tokenizer, tgt_tokenizer):
        self.model, self.src_tokenizer, self.tgt_tokenizer = model, src_tokenizer, tgt_tokenizer

    reader = property(lambda self: self.src_tokenizer)
    writer = property(lambda self: self.tgt_tokenizer)

    @classmethod
    def _made(cls, model, tokenizers, options, facts):
        translator = super()._made(model, tokenizers, options, facts)
        longest = facts.get("longest")
        translator.longest = longest if isinstance(longest, int) else None
        return translator

    def encode(self, sentence):
        """The ids of one source sentence, (1, S). Raises ValueError if it is empty or too long for the model."""
        ids = self.src_tokenizer.encode(self.seen.fold(sentence))
        if not ids:
            raise ValueError("the sentence is empty: there is nothing to translate")
        if len(ids) > self.model.config.max_len:
            raise ValueError(f"the sentence has {len(ids)} tokens, the model reads at most {self.model.config.max_len}")
        return np.array([ids])

    @property
    def _writer(self):
        """The model, which never writes "<unk>"."""
        return Excluding(self.model, [UNK])

    def longest_output(self, src):
        """The most tokens of a translation; longer ones are cut off."""
        return min(self.model.config.max_len, 2 * src.shape[1] + 10)

    def translate(self, sentence, beam_size=1, length_penalty=0.6):
        """The translation of one sentence: greedy, or by beam search if beam_size is larger than 1."""
        src = self.encode(sentence)
        longest = self.longest_output(src)
        if beam_size == 1:
            return self.tgt_tokenizer.decode(greedy_decode(self._writer, src, longest)[0])
        return self.tgt_tokenizer.decode(beam_search(self._writer, src, beam_size, longest, length_penalty)[0])

    def steps(self, sentence, candidates=3):
        """Greedy decoding: for each time step a list of the likeliest (token, log p in nats), the chosen one first."""
        src = self.encode(sentence)
        found = []
        for _, log_probs in greedy_steps(self._writer, src, self.longest_output(src)):
            best = np.argsort(-np.round(log_probs[0], 5), kind="stable")[:candidates]
            found.append([(self.tgt_tokenizer.token(i), float(log_probs[0, i])) for i in best])
        return found

    def attention(self, sentence):
        """Run one teacher-forced pass over the greedy translation, so that the layers of the model hold its attention
        weights, and return the words.

        ->  source tokens as typed (S), target tokens (T): row t of the decoder's weights chose target token t
        """
        src = self.encode(sentence)
        longest = self.longest_output(src)
        ids = greedy_decode(self._writer, src, longest)[0]
        with self.model.evaluating():
            self.model(src, np.array([[BOS, *ids]])[:, :longest])
        chosen = [*ids, EOS][:longest]  # (T,): <eos> last, unless cut off
        return self.src_tokenizer.pieces(self.seen.fold(sentence)), [self.tgt_tokenizer.token(i) for i in chosen]

    def exact_match(self, pairs, batch_size=128):
        """The share of pairs whose greedy translation is the target as written, except for runs of white space, in
        [0, 1]."""
        outputs = self._translations([source for source, _ in pairs], batch_size)
        return share_equal(outputs, [_spaced(target) for _, target in pairs])

    def _translations(self, sentences, batch_size=128):
        """The greedy translations of sentences, with one space for each run of white space."""

        def written(src, _):
            outputs = greedy_decode(self._writer, src, self.longest_output(src))
            return [_spaced(self.tgt_tokenizer.decode(ids)) for ids in outputs]

        return in_batches([self.src_tokenizer.encode(sentence) for sentence in sentences], written, batch_size)

    def evaluate(self, path):
        """The loss, the perplexity, the exact match and BLEU on sentence pairs; see `Trained.evaluate`."""
        tokenizers = {"source": self.src_tokenizer, "target": self.tgt_tokenizer}
        most = self.model.config.max_len
        read = [(self.seen.fold(source), target) for source, target in data.read_pairs(path)]
        pairs = [pair for pair in read if len(_encode([pair], tokenizers, most))]
        if not pairs:
            raise ValueError(f"no sentence pair in {path} is short enough for the model: {most} tokens")
        encoded = _encode(pairs, tokenizers, most)
        batches = data.Seq2SeqBatches(encoded, 128).in_order()
        loss = mean_loss(TeacherForcing(self.model), batches)
        outputs = self._translations([source for source, _ in pairs])
        targets = [_spaced(target) for _, target in pairs]
        found, score = with_perplexity(loss) | {"exact match": share_equal(outputs, targets)}, bleu(outputs, targets)
        found |= ({} if score is None else {"BLEU": score}) | {"sentence pairs": len(pairs)} | unknown_tokens(encoded)
        return found | ({"longer ones left out": len(read) - len(pairs)} if len(pairs) < len(read) else {})


def format_steps(sentence, translator):
    """The lines of a table of greedy decoding, one per time step."""
    rows = [("step", "token", "log p", "p", "runners-up")]
    for number, ((token, log_prob), *others) in enumerate(translator.steps(sentence), 1):
        rest = ", ".join(f"{other} {value:.2f}" for other, value in others)
        rows.append((number, token, f"{log_prob:.4f}", f"{exp(log_prob):.1%}", rest))
    yield f'"{sentence}", one token at a time (log p in nats)'
    yield from aligned(rows, "><>><")


class TranslationTask(Task):
    """An encoder–decoder on sentence pairs, with teacher forcing. The built-in pairs are learned as in the paper, with
    Adam and its schedule (§5.3, §5.4), own pairs of words at a lower peak, and own pairs of characters with Muon, whose
    rate falls as half a cosine."""

    kind = "translate"
    example = "--pairs por.txt --steps 4000 --out runs/tatoeba"
    Options, Result = TranslationOptions, Translator
    tokenizer_names = ("source", "target")

    def settled(self, options):
        """The options. Only a new run needs the file of the embeddings; a resumed run has them in its checkpoint."""
        if options.embeddings is not None and not Path(options.embeddings).exists():
            raise FileNotFoundError(f"there is no file {options.embeddings}")
        return options

    def load(self, options):
        """The pairs, as a data.Split; the test part of the built-in ones has the lecture's sentence."""
        own_pairs = options.pairs is not None
        pairs = data.read_pairs(options.pairs) if own_pairs else data.english_portuguese()
        held_out = () if own_pairs else [data.LECTURE_SENTENCE]
        return data.split_pairs(pairs, seed=options.seed, held_out=held_out)

    def train_tokenizers(self, options, split):
        """The source in lower case, so that "lucas" equals "Lucas"; the target as written. Byte pairs can spell both
        and keep both as written."""
        kind = {"word": data.WordTokenizer, "char": data.CharTokenizer, "bpe": data.BPETokenizer}[options.tokens]
        made = {}
        for name, texts in zip(self.tokenizer_names, zip(*split.train, strict=True), strict=True):
            how = {"min_count": 2, "lowercase": name == "source"}
            how = {"max_size": options.vocab_size} if options.tokens == "bpe" else how
            made[name] = vocabulary("the training pairs give", kind.train, texts, **how)
        return made

    def setup(self, options, split, tokenizers):
        train, validation = (_encode(part, tokenizers, options.max_len) for part in (split.train, split.validation))
        if not train or not validation:
            raise ValueError(f"no sentence pair is short enough for max_len = {options.max_len}")
        texts = ([source for source, _ in part] for part in (split.train, split.validation))
        left_out = len(split.train) + len(split.validation) - len(train) - len(validation)
        own = sizes(options, "num_encoder_layers", "num_decoder_layers")
        model = Transformer(TransformerConfig(*map(len, tokenizers.values()), max_len=options.max_len, **own))
        embedding, given = model.src_input.embedding, ""
        if options.embeddings is not None and Path(options.embeddings).exists():
            given = _put_vectors(embedding, options.embeddings, tokenizers["source"])
        if options.freeze_embeddings:
            embedding.frozen = True
            given += ", frozen"
        return Setup(
            model, TeacherForcing(model, options.label_smoothing),
            optimizer_of(options, model, partial(Adam, betas=(0.9, 0.98), eps=1e-9)),
            data.Seq2SeqBatches(train, options.batch_size, seed=options.seed),
            list(data.Seq2SeqBatches(validation, 128).in_order()), schedule=_schedule(options),
            note=f"{len(train):,} training pairs, {len(validation):,} for validation, "
            f"{len(split.test):,} unseen for the test; {len(tokenizers['source'])} source and "
            f"{len(tokenizers['target'])} target {UNITS[options.tokens]}; {model.num_parameters():,} parameters{given}"
            + (f"; {counted(left_out, 'pair')} longer than {options.max_len} tokens left out" if left_out else ""),
            facts={"seen": data.Seen.of(*texts, tokenizers["source"]).to_dict()},
        )  # fmt: skip

    def measure(self, run):
        """The share of unseen pairs that are translated exactly."""
        translator = Translator.of(run)
        max_len = run.options.max_len
        test = [pair for pair in run.data.test if 0 < len(translator.src_tokenizer.encode(pair[0])) <= max_len][:500]
        return {"exact match on unseen sentences": translator.exact_match(test)} if test else {}


def _put_vectors(embedding, path, tokenizer):
    """Set the rows of the words in a file to the file's vectors; the other rows stay random.

    A lower-case vocabulary uses the vector of "Paris" for "paris" if the file has no "paris". Only the directions and
    relative lengths of vectors matter, so one factor scales their root-mean-square length to 1, the length of the
    random rows. The model multiplies all rows by √d_model.

    ->  a text for the note. Raises ValueError for a dimension other than d_model, and for a file without source words.
    """
    wanted = {tokenizer.token(i): i for i in range(UNK + 1, len(tokenizer))}

    def row(word):
        return wanted.get(word, wanted.get(word.lower()) if tokenizer.lowercase else None)

    words, vectors = data.read_vectors(path, only=lambda word: row(word) is not None)
    D = embedding.table.shape[1]
    if vectors.shape[1] != D:
        own = vectors.shape[1]
        raise ValueError(f"the vectors in {path} have {own} dimensions: d_model must be {own}, not {D}")
    if not words:
        raise ValueError(f"{path} has none of the {len(wanted)} source words, such as {next(iter(wanted))!r}")
    chosen = {}
    for vector, word in zip(vectors, words, strict=True):
        if word in wanted or row(word) not in chosen:  # the word itself if it is in the file, else the first variant
            chosen[row(word)] = vector
    rows = np.stack(list(chosen.values()))  # (n, D)
    length = np.sqrt(np.vecdot(rows, rows).mean())
    embedding.table.data[list(chosen)] = rows / (length or 1)
    return f"; {len(chosen)} of {len(wanted)} source words begin with the vectors of {path}"


def _schedule(options):
    """The paper's schedule, scaled to a peak of options.lr if that is given; for Muon half a cosine down to 0."""
    if options.optimizer == "muon":
        return falling_cosine(options)
    peak = noam_schedule(options.warmup, options.d_model, options.warmup)
    scale = 1.0 if options.lr is None else options.lr / peak
    return lambda step: scale * noam_schedule(step, options.d_model, options.warmup)


def _encode(pairs, tokenizers, max_len):
    """The pairs of ids, without those where a side, with its start token, is longer than max_len."""
    source, target = tokenizers.values()
    encoded = ((source.encode(sentence), target.encode(translation)) for sentence, translation in pairs)
    return data.PackedPairs((src, tgt) for src, tgt in encoded if len(src) <= max_len and len(tgt) < max_len)


def _spaced(text):
    """The text with one space for each run of white space, and é as one character."""
    return " ".join(unicodedata.normalize("NFC", text).split())
