"""Classification: a BERT that predicts the label of a text."""

from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np

from .. import data
from .. import functional as F
from ..models import Bert
from ..models.bert import POOLERS
from ..pretrained import PretrainedFolder, PretrainedTokenizer
from ..pretrained.folder import check_ids, inputs
from ..pretrained.tokenizer import Encoded
from ..support.checks import listed, refusing
from ..support.counts import counted
from ..training import AdamW, Classification, is_matrix, load_model
from . import fine_tuning, mlm, runs
from . import options as flag
from .options import TaskOptions, falling_cosine, optimizer_of, option
from .task import Setup, Task, vocabulary
from .trained import ReadsEncoded

# The built-in sentences follow rules without exceptions, which take long to find. A few thousand real texts are soon
# memorized: on 10,605 snippets of film reviews, the validation loss ends at 1.29 with the defaults of BUILT_IN; with
# those of OWN_DATA it is 0.54, and 78.6 % of unseen snippets are right.
BUILT_IN = {"steps": 1200, "batch_size": 64, "lr": 1e-3, "dropout": 0.1, "label_smoothing": 0.0}
OWN_DATA = {"steps": 600, "batch_size": 64, "lr": 1e-3, "dropout": 0.3, "label_smoothing": 0.2}
PRETRAINED = {"batch_size": 32, "warmup": 100, "lr": 5e-4, "dropout": 0.1, "label_smoothing": 0.0, "old_rate": 0.1}
EPOCHS = 3  # of a pretrained model
WARM_TEXTS = 6400  # during the warm-up: with small batches and 100 steps, the built-in sentences are often not learned


def _defaults(name):
    usual = {"": OWN_DATA, "built-in sentiment: ": BUILT_IN, "pretrained: ": PRETRAINED}
    numbers = "; ".join(f"{when}{values.get(name, f'{EPOCHS} epochs')}" for when, values in usual.items())
    return f"(default: {numbers})"


@dataclass(frozen=True)
class ClassifyOptions(TaskOptions):
    """All options of a training run. The defaults learn the built-in sentiment set.

    Options in mlm.SIZES that are None take the defaults there,
    or the values of the run to fine-tune; those in OWN_DATA and BUILT_IN take the defaults there.
    """

    data: str | None = option(
        None, "training texts, one per line: label, tab, text; or pairs: label, tab, text, tab, text (default: "
        "built-in sentiment)", "FILE",
    )  # fmt: skip
    test: str | None = option(None, "test texts, in the format of --data (default: a tenth of the data)", "FILE")
    init: str | None = option(None, "folder of a `train mlm` run to fine-tune (default: train from scratch)", "DIR")
    pretrained: str | None = fine_tuning.pretrained("BERT")
    pooling: str | None = option(
        None, "with --pretrained: the classifier reads the mean over all tokens, or [CLS] (default: mean)",
        choices=tuple(POOLERS),
    )  # fmt: skip
    freeze: int | None = fine_tuning.freeze()
    lora: int | None = fine_tuning.lora()
    old_rate: float | None = option(
        None, "with --pretrained: the learning rate of pretrained layers, as a share of --lr (default: 0.1)",
        interval="[0, 1]",
    )  # fmt: skip
    tokens: str | None = option(None, "the unit of text (default: word)", choices=("word", "char"))
    steps: int | None = option(None, f"training steps; the learning rate falls until the last one {_defaults('steps')}")
    batch_size: int | None = option(None, f"texts per step {_defaults('batch_size')}")
    layers: int | None = option(None, f"blocks of the model (default: {mlm.SIZES['layers']})")
    heads: int | None = option(None, f"attention heads (default: {mlm.SIZES['heads']})")
    d_model: int | None = option(None, f"features of a token (default: {mlm.SIZES['d_model']})")
    d_ff: int | None = option(None, f"features inside the feed-forward network (default: {mlm.SIZES['d_ff']})")
    max_len: int | None = option(
        None, f"longest text in tokens; longer texts are cut off (default: {mlm.SIZES['max_len']})", least=3
    )
    dropout: float | None = flag.share(None, f"share of features dropped during training {_defaults('dropout')}")
    label_smoothing: float | None = flag.share(
        None, f"share of the target spread over all labels {_defaults('label_smoothing')}"
    )
    optimizer: str = flag.optimizer("adamw")
    lr: float | None = option(None, f"highest learning rate {_defaults('lr')}")
    warmup: int | None = option(
        None, f"steps to the highest learning rate; at most half of all steps (default: {WARM_TEXTS} / batch size; "
        f"pretrained: {PRETRAINED['warmup']})", least=0,
    )  # fmt: skip
    weight_decay: float = flag.weight_decay(0.01)
    seed: int = flag.seed("parameters, split, batches and dropout")

    def __post_init__(self):
        super().__post_init__()
        if self.test is not None and self.data is None:
            raise ValueError("test needs data: the built-in set has its own test part")
        fine_tuning.check_options(self)
        if self.pretrained is not None and self.init is not None:
            raise ValueError("pretrained and init exclude each other: both say where the weights come from")


class Classifier(ReadsEncoded):
    """A trained model with its tokenizer and labels: from a text to the probability of each label.

    classifier = Classifier.load("runs/classify-1")
    classifier.probabilities("not bad at all")            # {"negative": 0.01, "positive": 0.99}

    pairs: whether it was trained on pairs of texts, or None if that is unknown
    output: what the model says, as in `PretrainedFolder`
    """

    unit, pairs, output = "text", False, "one"

    def __init__(self, model, tokenizer, labels, max_len=None):
        self.model, self.tokenizer, self.labels = model, tokenizer, list(labels)
        self.max_len = max_len or model.config.max_len  # of a text, in tokens

    @classmethod
    def _made(cls, model, tokenizers, options, facts):
        labels = facts.get("labels")
        known = isinstance(labels, list) and all(isinstance(label, str) for label in labels)
        if not known or len(labels) != model.config.num_classes:
            raise ValueError(f"it does not name {model.config.num_classes} labels")
        classifier = cls(model, *tokenizers.values(), labels, options.max_len)
        classifier.pairs = facts.get("pairs", False) is True
        return classifier

    def read(self, text, second=None):
        """The Encoded of one text, or of a pair of texts; what is too long is cut off. Raises ValueError if it is
        empty, or if the model was trained on pairs and this is none, or the other way round."""
        if self.pairs is not None and self.pairs != (second is not None):
            raise ValueError(f"the model reads {'pairs of texts, not one' if self.pairs else 'one text, not a pair'}")
        encoded = _encoded(self.tokenizer, *(part and self.seen.fold(part) for part in (text, second)), self.max_len)
        if not encoded.ids:
            raise ValueError("the text is empty: there is nothing to classify")
        check_ids(encoded.ids, self.tokenizer, self.model.config.vocab_size)
        return encoded

    def probabilities(self, text, second=None):
        """{label: probability} of one text or a pair, in the order of `labels`. They add to 1 if the output is "one" of
        the labels; for a regression they are the numbers that the model returns."""
        return self.values_of(self.read(text, second))

    def values_of(self, encoded):
        """As `probabilities`, from the Encoded of `read`."""
        z = self._ask(self.model.classify, encoded)[0]  # (C,)
        said = {"one": F.softmax, "several": lambda z: (1 + F.tanh(z / 2)) / 2, "number": lambda z: z}[self.output]
        return dict(zip(self.labels, map(float, said(z)), strict=True))

    def _ask(self, method, encoded):
        """A method of the model for one text, with its padding: none."""
        with self.model.evaluating():
            return method(**inputs(encoded))

    def loss_and_accuracy(self, texts, batch_size=128):
        """The mean cross-entropy of (text, label) in nats, and the share whose label is the most likely one."""
        if not texts:
            raise ValueError("there are no texts to classify")
        rows = [(self.read(*_two(text, self.pairs)), self.labels.index(label)) for text, label in texts]
        with self.model.evaluating():
            in_order = _batches(rows, batch_size).in_order()
            found = [(self.model.classify(b.ids, b.padding, b.segments), b.labels) for b in in_order]
        z, labels = map(np.concatenate, zip(*found, strict=True))  # (N, C), (N,)
        return F.cross_entropy(z, labels)[0], float((z.argmax(axis=-1) == labels).mean())

    def evaluate(self, path):
        """The loss and the accuracy on labelled texts; see `Trained.evaluate`."""
        texts = data.read_labelled(path)
        unknown = sorted({label for _, label in texts} - set(self.labels))
        if unknown:
            raise ValueError(f"{path} has labels that the model lacks: {listed(unknown)}; it has {listed(self.labels)}")
        if self.pairs and not all("\t" in text for text, _ in texts):
            raise ValueError(f"{path}: the model reads pairs of texts: label, tab, text, tab, text on each line")
        loss, right = self.loss_and_accuracy(texts)
        longer = sum(self.left_out(*_two(text, self.pairs)) > 0 for text, _ in texts)
        found = {f"loss (nats per {self.unit})": loss, "accuracy": right, "texts": len(texts)}
        return found | ({"longer ones cut off": longer} if longer else {})

    def accuracy(self, texts, batch_size=128):
        """The share of (text, label) whose label is the likeliest, in [0, 1]."""
        return self.loss_and_accuracy(texts, batch_size)[1]


class ClassifyTask(Task):
    """An encoder with a classifier on [CLS], from scratch or fine-tuned (Devlin et al. 2019, §4.1), with AdamW."""

    kind = "classify"
    example = "--data reviews.tsv --out runs/reviews"
    Options, Result = ClassifyOptions, Classifier

    def settled(self, options):
        """The options with all sizes and training settings: as given, from the run to fine-tune, or the defaults.

        Raises ValueError for a given size that differs from the run's.
        """
        if options.pretrained is not None:
            return _settled_for_pretrained(options)
        if options.old_rate is not None:  # asked here, because runs of earlier versions always have a value
            raise ValueError("old_rate needs pretrained: a model that starts from scratch has no older layers")
        usual = BUILT_IN if options.data is None else OWN_DATA
        options = replace(options, **{name: usual[name] for name in usual if getattr(options, name) is None})
        if options.warmup is None:
            options = replace(options, warmup=WARM_TEXTS // options.batch_size)
        given = {name: getattr(options, name) for name in mlm.SIZES if getattr(options, name) is not None}
        if options.init is None:
            return replace(options, **{**mlm.SIZES, **given})
        _, trained, _ = mlm.MLMTask().read(options.init)
        sizes = {name: getattr(trained, name) for name in mlm.SIZES}
        differing = [f"{name} {sizes[name]!r}, not {given[name]!r}" for name in given if given[name] != sizes[name]]
        if differing:
            raise ValueError(f"the run in {options.init} has {', '.join(differing)}: leave this option out")
        return replace(options, **sizes)

    def check_stored(self, options):
        names = (*(() if options.pretrained else mlm.SIZES), "steps", "warmup", "dropout")
        missing = [name for name in names if getattr(options, name) is None]
        if missing:
            raise ValueError(f"{missing[0]} is missing")

    def load(self, options):
        """The texts with their labels, as a data.Split of (text, label)."""
        if options.data is None:
            return data.split_pairs(data.sentiment_sentences(), seed=options.seed)
        split = data.split_pairs(data.read_labelled(options.data), seed=options.seed)
        if options.test is not None:
            split = data.Split(split.train + split.test, split.validation, data.read_labelled(options.test))
        data.labels_of(split)
        return split

    def train_tokenizers(self, options, split):
        """The tokenizer of the model to fine-tune; without one, a new one of lower-case words or characters."""
        if options.pretrained is not None:
            return {"tokenizer": PretrainedTokenizer(options.pretrained)}
        if options.init is not None:
            return mlm.MLMTask().read(options.init)[2]
        kind = data.WordTokenizer if options.tokens == "word" else data.CharTokenizer
        texts = [text for text, _ in split.train]
        return {"tokenizer": vocabulary("the training texts give", kind.train, texts, min_count=2, lowercase=True)}

    def setup(self, options, split, tokenizers):
        tokenizer, labels = tokenizers["tokenizer"], data.labels_of(split)
        pairs = _are_pairs(split)
        facts = {"labels": labels, **({"pairs": True} if pairs else {}), **fine_tuning.facts(options)}
        if options.pretrained is None:
            texts = ([text for text, _ in part] for part in (split.train, split.validation))
            facts["seen"] = data.Seen.of(*texts, tokenizer).to_dict()
        train, validation = (
            [(_encoded(tokenizer, *_two(text, pairs), options.max_len), labels.index(label)) for text, label in part]
            for part in (split.train, split.validation)
        )
        train, validation = ([(one, label) for one, label in part if one.ids] for part in (train, validation))
        if not train or not validation:
            raise ValueError("all texts are empty: the data need texts for training and validation")
        head = {"mlm_head": False, "token_classes": None, "span_head": False, "num_classes": len(labels)}
        if options.pretrained is not None:
            head |= {"pooler": True, "pooling": options.pooling, "dropout": options.dropout, "seed": options.seed}
            model = fine_tuning.start(options, Bert, **head)
        else:
            model = Bert(replace(mlm.config(options, len(tokenizer)), **head))
        pretrained = options.init and Path(options.init) / runs.CHECKPOINT
        if pretrained and pretrained.is_file():  # a resumed run has its own weights and does not need the file
            _take_over(model, pretrained)
        for one, _ in train + validation:
            check_ids(one.ids, tokenizer, model.config.vocab_size)
        longer = sum(one.left_out > 0 for one, _ in train)
        what = "pairs of texts" if pairs else "texts"
        of = f"different {options.tokens}s" if options.tokens else "different tokens"
        rates = fine_tuning.rates(model, options) if options.pretrained else None
        adamw = partial(AdamW, weight_decay=options.weight_decay, decays=is_matrix, rates=rates)
        smoothing = options.label_smoothing or 0.0  # None in older runs
        return Setup(
            model, Classification(model, label_smoothing=smoothing), optimizer_of(options, model, adamw),
            _batches(train, options.batch_size, options.seed), list(_batches(validation, 128).in_order()),
            schedule=falling_cosine(options),
            note=f"{len(split.train):,} {what} to learn from, {len(split.validation):,} for validation, "
            f"{len(split.test):,} unseen for the test; {len(labels)} labels: {listed(labels)}; "
            f"{len(tokenizer)} {of}; {model.num_parameters():,} parameters"
            + (f", which start from {options.init}" if options.init else "")
            + fine_tuning.note(model, options)
            + (f"; {counted(longer, 'text')} cut off after {options.max_len - 2} tokens" if longer else ""),
            header=fine_tuning.header(model, options), facts=facts,
        )  # fmt: skip

    def measure(self, run):
        """The share of unseen texts whose label is the likeliest."""
        classifier = Classifier.of(run)
        test = [pair for pair in run.data.test if _encoded(classifier.tokenizer, *_two(pair[0], classifier.pairs)).ids]
        return {"accuracy on unseen sentences": classifier.accuracy(test)} if test else {}


def _settled_for_pretrained(options):
    """The options with the settings of fine-tuning. Raises ValueError for sizes, which are the pretrained model's."""
    given = [name for name in mlm.SIZES if getattr(options, name) is not None and name != "max_len"]
    if given:
        raise ValueError(f"{given[0]} is that of the model in {options.pretrained}: leave this option out")
    if options.lora is not None and options.old_rate is not None:
        raise ValueError("old_rate and lora exclude each other: with LoRA, the pretrained layers stay as they are")
    longest = PretrainedFolder(options.pretrained).settings.get("max_position_embeddings")
    longest = min(mlm.SIZES["max_len"], longest) if isinstance(longest, int) else mlm.SIZES["max_len"]
    usual = {**PRETRAINED, "pooling": "mean", "max_len": longest}
    options = replace(options, **{name: usual[name] for name in usual if getattr(options, name) is None})
    if options.steps is None:
        texts = data.sentiment_sentences() if options.data is None else data.read_labelled(options.data)
        options = replace(options, steps=max(1, EPOCHS * len(texts) // options.batch_size))
    return options


def _take_over(model, checkpoint):
    """Load the weights of a checkpoint, except the masked-language-model head, which the model lacks."""
    pretrained, _ = load_model(checkpoint)
    state = {name: values for name, values in pretrained.state_dict().items() if not name.startswith("mlm_head.")}
    with refusing(f"{checkpoint} does not fit the model"):
        model.load_state_dict(state, strict=False)


def _are_pairs(split):
    """Whether every text has two columns: the label, a text and a second text on each line."""
    texts = [text for part in (split.train, split.validation, split.test) for text, _ in part]
    counts = {text.count("\t") for text in texts}
    if {text.count("\t") for text, _ in split.train} == {1} != counts:
        raise ValueError("the texts to learn from are pairs, with three columns, but some of the others are not")
    return counts == {1}


def _two(text, pairs):
    """A text and its second text, or None."""
    return [part.strip() for part in text.split("\t", 1)] if pairs else (text, None)


def _encoded(tokenizer, text, second=None, max_len=None):
    """The Encoded of a text between [CLS] and [SEP], or of two with another [SEP] behind the second, at most max_len
    tokens; without ids if a text is empty."""
    texts = [text] if second is None else [text, second]
    if isinstance(tokenizer, PretrainedTokenizer):
        empty = not all(tokenizer.encode(one, special=False) for one in texts)
        return Encoded([], []) if empty else tokenizer.read(text, second, max_len)
    parts = [tokenizer.encode(one) for one in texts]
    if not all(parts):
        return Encoded([], [])
    room = sum(map(len, parts)) if max_len is None else max_len - 1 - len(parts)
    left_out = max(0, sum(map(len, parts)) - room)
    for _ in range(left_out):
        max(parts, key=len).pop()
    rows = [[*part, data.EOS] for part in parts]
    segments = [number for number, row in enumerate(rows) for _ in row]
    return Encoded([data.BOS, *chain.from_iterable(rows)], [0, *segments], left_out=left_out)


def _batches(texts, batch_size, seed=0):
    """The batches of (Encoded, index of the label)."""
    rows = [(one.ids, label) for one, label in texts]
    return data.LabelledBatches(rows, batch_size, seed, segments=[one.segments for one, _ in texts])
