"""Masked language model: a BERT that learns from unlabelled texts to predict masked tokens."""

from dataclasses import dataclass, replace
from functools import partial

from .. import data
from ..data.masking import MASK_WORD
from ..models import Bert, BertConfig
from ..pretrained import PretrainedFolder
from ..training import AdamW, MaskedLanguageModel, is_matrix
from . import options as flag
from .options import TaskOptions, falling_cosine, optimizer_of, option, sizes
from .task import Setup, Task, vocabulary
from .trained import ReadsEncoded, Trained, share_right

# the default model of `train mlm` and `train classify`
SIZES = {"tokens": "word", "layers": 2, "heads": 4, "d_model": 64, "d_ff": 128, "max_len": 128}


@dataclass(frozen=True)
class MLMOptions(TaskOptions):
    """All options of a training run. The defaults learn the sentences of the built-in sentiment set without labels,
    except those that `train classify` with the same seed tests on.
    """

    text: str | None = option(None, "UTF-8 training texts, one per line (default: built-in sentences)", "FILE")
    tokens: str = option(SIZES["tokens"], "the unit of text", choices=("word", "char"))
    steps: int = option(1500, "training steps; the learning rate falls until the last one")
    batch_size: int = option(64, "texts per step")
    layers: int = option(SIZES["layers"], "blocks of the model")
    heads: int = option(SIZES["heads"], "attention heads")
    d_model: int = option(SIZES["d_model"], "features of a token")
    d_ff: int = option(SIZES["d_ff"], "features inside the feed-forward network")
    max_len: int = option(SIZES["max_len"], "longest text in tokens; longer lines are cut into pieces", least=3)
    dropout: float = flag.share(0.1, "share of features dropped during training")
    optimizer: str = flag.optimizer("muon")
    lr: float | None = flag.lr(2e-3)
    warmup: int | None = flag.warmup()
    weight_decay: float = flag.weight_decay(0.01)
    seed: int = flag.seed("parameters, split, batches, masks and dropout")


class MaskedWords(Trained):
    """A trained BERT with its tokenizer: finds the words that [MASK] stands for.

    words = MaskedWords.load("runs/mlm-1")
    words.model.mlm_logits(*words.inputs("the [MASK] is dull"))           # (1, S, V)
    """

    seen = data.Seen(spaces=None)

    def __init__(self, model, tokenizer, max_len=None):
        self.model, self.tokenizer, self.max_len = model, tokenizer, max_len or model.config.max_len
        self.mask = len(tokenizer) - 1  # of `data.with_mask`

    @classmethod
    def _made(cls, model, tokenizers, options, facts):
        return cls(model, *tokenizers.values(), options.max_len)

    def encode(self, text):
        """The ids of a text with [MASK] between those of [CLS] and [SEP]; what is too long is cut off."""
        ids = [i for part in text.split(MASK_WORD) for i in (self.mask, *self.tokenizer.encode(part))][1:]
        return data.as_encoder_input(ids, self.max_len)

    def plain(self, text):
        return text.replace(MASK_WORD, " ")


class PretrainedMaskedWords(ReadsEncoded, MaskedWords):
    """The same with a pretrained BERT, whose own tokenizer knows [MASK]."""

    @classmethod
    def load(cls, folder):
        """From a folder with a tokenizer.json; ValueError if its model does not predict masked words, or if its
        tokenizer has no [MASK]."""
        found = PretrainedFolder(folder)
        model = found.model_for(Bert, "which has no masked words; a BERT has some")
        if model.mlm_head is None:
            raise ValueError(f"{found.path} holds a BERT that has no logits of words or of classes of a text")
        words = cls(model, found.tokenizer)
        mask = found.tokenizer.encode(MASK_WORD, special=False)
        if len(mask) != 1:
            raise ValueError(f"{found.path} has a tokenizer without {MASK_WORD}, the word to be predicted")
        words.mask = mask[0]
        words.read = found.read
        return words


class MLMTask(Task):
    """An encoder on masked texts: it predicts 15 % of the tokens (Devlin et al. 2019, §3.1)."""

    kind = "mlm"
    example = "--text play.txt --out runs/words"
    Options, Result = MLMOptions, MaskedWords

    def load(self, options):
        """The texts, one per line, as a data.TextSplit."""
        if options.text is not None:
            return data.split_text(data.read_text(options.text))
        split = data.split_pairs(data.sentiment_sentences(), seed=options.seed)
        return data.TextSplit(*("\n".join(text for text, _ in part) for part in (split.train, split.validation)))

    def train_tokenizers(self, options, split):
        """Lower-case words or characters of the training part, and <mask>."""
        kind = data.WordTokenizer if options.tokens == "word" else data.CharTokenizer
        words = vocabulary("the text gives", kind.train, [split.train], min_count=2, lowercase=True)
        return {"tokenizer": data.with_mask(words)}

    def setup(self, options, split, tokenizers):
        tokenizer = tokenizers["tokenizer"]
        train, validation = (_pieces(part, tokenizer, options.max_len) for part in (split.train, split.validation))
        if not train or not validation:
            raise ValueError("the text is too short: its validation part has no token of the vocabulary")
        model = Bert(replace(config(options, len(tokenizer)), pooler=False))
        return Setup(
            model, MaskedLanguageModel(model),
            optimizer_of(options, model, partial(AdamW, weight_decay=options.weight_decay, decays=is_matrix)),
            data.MaskedBatches(train, options.batch_size, len(tokenizer), seed=options.seed),
            list(data.MaskedBatches(validation, 128, len(tokenizer)).in_order()), schedule=falling_cosine(options),
            note=f"{len(train):,} texts to learn from, {len(validation):,} for validation; "
            f"{len(tokenizer)} different {options.tokens}s; {model.num_parameters():,} parameters",
        )  # fmt: skip

    def measure(self, run):
        """The share of the masked validation tokens that the model predicts as the likeliest."""

        def hits(batch):
            places = batch.targets >= 0  # (B, S)
            likeliest = run.setup.model.mlm_logits(batch.ids, places=places).argmax(axis=-1)  # (N,)
            return likeliest == batch.targets[places]

        found = share_right(run.setup.model, run.setup.validation, hits)
        return {"hidden tokens found on unseen sentences": found}


def config(options, vocab_size):
    """The BertConfig of the encoder that the options describe."""
    return BertConfig(vocab_size, max_len=options.max_len, **sizes(options))


def _pieces(text, tokenizer, max_len):
    """The ids of each line between [CLS] and [SEP], a long line in several pieces. Pieces that have only unknown tokens
    are dropped."""
    unknown, room = data.UNK, max_len - 2
    pieces = []
    for line in text.split("\n"):
        ids = tokenizer.encode(line)
        parts = [ids[start : start + room] for start in range(0, len(ids), room)]
        pieces += [data.as_encoder_input(part, max_len) for part in parts if any(i != unknown for i in part)]
    return pieces
