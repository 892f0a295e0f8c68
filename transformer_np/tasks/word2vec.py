"""Word2Vec: word vectors learned from a text, with their neighbours and analogies."""

import difflib
from dataclasses import dataclass

import numpy as np

from .. import data
from ..data.tokenizers import UNK
from ..models import Word2Vec, Word2VecConfig
from ..support.checks import as_float_array, check_at_least
from ..support.counts import counted
from ..training import Adam, NegativeSampling
from . import options as flag
from .options import TaskOptions, option
from .task import Setup, Task, vocabulary
from .trained import Trained, share_right

MOST_COMPARED = 100_000  # the number of most frequent words that are searched for a similar spelling
PIECE, MOST_PIECES = 100, 200  # words per piece, and the number of pieces, for validation


@dataclass(frozen=True)
class Word2VecOptions(TaskOptions):
    """All options of a training run. The defaults learn the built-in text, which is small. A larger text needs more
    steps and larger batches, because each step also updates all rows of both tables.
    """

    text: str | None = flag.text()
    steps: int = option(1500, "training steps; the learning rate falls until the last one")
    batch_size: int = option(1000, "words of the text per step")
    d_model: int = option(100, "dimension of the word vectors")
    window: int = option(8, "largest distance of two near words; the distance is drawn from 1 to this for each word")
    negatives: int = option(
        5, "words drawn at random for each pair, which the model learns to distinguish from the real one"
    )
    min_count: int = option(5, "ignore words with fewer occurrences")
    subsample: float = option(
        1e-3, "drop occurrences of words whose share of the text is above this; 0: never", interval="[0, ∞)"
    )
    lr: float = option(0.02, "learning rate at the first step; it falls linearly to 0")
    seed: int = flag.seed("parameters, dropped words, windows and drawn words")


class WordVectors(Trained):
    """Words and their vectors (V, D), from a training run or a file, with the most frequent words first.

    vectors = WordVectors.load("runs/word2vec-1")
    vectors.neighbours("tuple")                           # [("list", 0.61), …]
    vectors.analogy("man", "king", "woman")               # [("queen", 0.71), …], if the text has them
    """

    unit = "pair"

    def __init__(self, words, vectors):
        self.words, self.vectors = list(words), as_float_array(vectors, "vectors")
        self._rows = {word: row for row, word in enumerate(self.words)}
        lengths = np.sqrt(np.vecdot(self.vectors, self.vectors))[:, None]
        self._units = self.vectors / np.where(lengths == 0, 1, lengths)  # (V, D), of length 1

    @classmethod
    def _made(cls, model, tokenizers, options, facts):
        """The center vectors of all words; special tokens are left out."""
        return cls(tokenizers["tokenizer"].vocabulary[UNK + 1 :], model.center.data[UNK + 1 :])

    @classmethod
    def read(cls, path):
        """From a file in one of the word2vec formats; see `data.read_vectors`."""
        return cls(*data.read_vectors(path))

    def write(self, path, binary=False):
        """Write a file in one of the word2vec formats; see `data.write_vectors`."""
        data.write_vectors(path, self.words, self.vectors, binary)

    def row(self, word):
        """The index of a word in `words`, as written or else in lower case.

        Raises ValueError for a missing word, and suggests words with a similar spelling.
        """
        for written in (word, word.lower()):
            if written in self._rows:
                return self._rows[written]
        alike = difflib.get_close_matches(word.lower(), self.words[:MOST_COMPARED], n=3)
        hint = f"; did you mean {' or '.join(map(repr, alike))}?" if alike else ""
        raise ValueError(f"the word {word!r} is not among the {len(self.words):,} that have a vector{hint}")

    def neighbours(self, word, count=10):
        """The words with the most similar directions: [(word, cosine of the angle), …]"""
        row = self.row(word)
        return self._nearest(self._units[row], [row], count)

    def analogy(self, a, b, c, count=10):
        """a is to b as c is to …: the words nearest to b − a + c, without a, b and c (Mikolov et al. 2013a, §4)."""
        rows = [self.row(word) for word in (a, b, c)]
        away, toward, start = self._units[rows]
        wanted = toward - away + start
        length = np.sqrt(wanted @ wanted)
        return self._nearest(wanted / (length or 1), rows, count)

    def _nearest(self, direction, excluded, count):
        """The words nearest to a direction of length 1, without the excluded rows."""
        check_at_least("count", count, 1)
        cosines = self._units @ direction  # (V,)
        order = np.argsort(-np.round(cosines, 6), kind="stable")  # no word moves by the last bits
        order = order[~np.isin(order, excluded)][:count]
        return [(self.words[row], float(cosines[row])) for row in order]


class Word2VecTask(Task):
    """Skip-gram with negative sampling on one text, with Adam and a learning rate that falls linearly."""

    kind = "word2vec"
    example = "--text play.txt --out runs/words"
    Options, Result = Word2VecOptions, WordVectors

    def load(self, options):
        """The text, as a data.TextSplit: validation uses pieces from the whole text, because its end may have a
        different subject."""
        text = data.documentation_text() if options.text is None else data.read_text(options.text)
        words = text.split()
        if len(words) <= (window := options.window):
            needed = f"a word and a window of {window} need {window + 1}: pass a longer text or a smaller window"
            raise ValueError(f"the text has {counted(len(words), 'word')}, but {needed}")
        size = min(PIECE, -(-len(words) // 20))
        pieces = [" ".join(words[start : start + size]) for start in range(0, len(words), size)]
        every = max(20, len(pieces) // MOST_PIECES)
        train = [piece for number, piece in enumerate(pieces, 1) if number % every]
        return data.TextSplit("\n".join(train), "\n".join(pieces[every - 1 :: every]))

    def train_tokenizers(self, options, split):
        """The words of the training part, in lower case, without punctuation."""
        train = data.PlainWordTokenizer.train
        return {"tokenizer": vocabulary("the text gives", train, [split.train], min_count=options.min_count)}

    def setup(self, options, split, tokenizers):
        tokenizer = tokenizers["tokenizer"]
        model = Word2Vec(Word2VecConfig(len(tokenizer), options.d_model, seed=options.seed))
        how = options.window, options.negatives, options.batch_size, options.subsample, options.seed
        grams = data.SkipGrams(tokenizer.encode(split.train), len(tokenizer), *how)
        validation = grams.validation(tokenizer.encode(split.validation))
        if not validation:
            raise ValueError("the text is too short: its validation part has no two words of the vocabulary")
        return Setup(
            model, NegativeSampling(model), Adam(model.parameters()), grams, validation,
            schedule=lambda step: options.lr * max(1e-4, 1 - (step - 1) / options.steps), clip_norm=None,
            note=f"{len(grams.ids):,} words to learn from, {len(tokenizer) - UNK - 1:,} different ones; "
            f"{options.steps:,} steps are {options.steps / grams.steps_per_epoch:.1f} times through the text; "
            f"{model.num_parameters():,} parameters",
        )  # fmt: skip

    def measure(self, run):
        """The share of unseen pairs in which the true neighbour scores higher than all drawn words."""
        model = run.setup.model

        def hits(batch):
            center, context = model.center.data[batch.center], model.context.data
            scores = np.vecdot(center, context[batch.context])  # (N,)
            noise = np.vecdot(center[:, None], context[batch.negatives])  # (N, K)
            return scores > noise.max(axis=-1)

        share = share_right(model, run.setup.validation, hits)
        return {"true neighbours told from drawn words in unseen text": share}

    def speed(self, run):
        history = run.trainer.history
        return {"words per minute": 60 * run.options.batch_size * len(history.losses) / max(history.seconds, 1e-9)}
