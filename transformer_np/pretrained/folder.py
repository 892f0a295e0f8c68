"""A pretrained folder as a whole: the model, and all that the files beside it say about its use."""

from functools import cached_property

import numpy as np

from ..data.batching import pad_batch
from ..data.files import read_utf8
from ..models.layouts.folder import KEPT_TEXTS, MODELS, kept_settings, load_any, located, model_type, read_settings
from ..support.checks import check_at_least, check_number, refusing, short
from ..support.files import read_json_object
from .tokenizer import PretrainedTokenizer

GENERATION = "generation_config.json"
PROBLEMS = {  # {problem_type: what the outputs of a classifier are}
    "single_label_classification": "one", "multi_label_classification": "several", "regression": "number",
}  # fmt: skip
# Settings of generation that change what is written, with the values that change nothing
PLAIN = {
    "repetition_penalty": 1.0, "encoder_repetition_penalty": 1.0, "no_repeat_ngram_size": 0, "min_length": 0,
    "encoder_no_repeat_ngram_size": 0, "min_new_tokens": 0, "typical_p": 1.0, "min_p": 0.0, "epsilon_cutoff": 0.0,
    "eta_cutoff": 0.0, "top_h": 0.0, "num_beams": 1, "diversity_penalty": 0.0, "bad_words_ids": [],
    "suppress_tokens": [], "begin_suppress_tokens": [], "forced_bos_token_id": None, "forced_eos_token_id": None,
    "sequence_bias": None, "guidance_scale": 1.0, "penalty_alpha": 0.0, "stop_strings": None,
}  # fmt: skip


class PretrainedFolder:
    """A folder in Hugging Face's layout. Its parts are read when they are first used.

        folder = PretrainedFolder("folder")
        folder.model.classify(**inputs(folder.read("not bad at all")))

    settings: config.json, a dict;  model, tokenizer;  max_tokens: the longest text that the model reads
    output: what a classifier says of a text: "one" of its labels (softmax), "several" at once (a sigmoid each, and for
        a single label too), or a "number" for each (a regression)
    end_ids: the tokens that end a generated text
    sampling: {temperature, top_k, top_p: value} for generating, if the folder asks to sample

    Raises FileNotFoundError, NotADirectoryError and ValueError for a missing or damaged part, and for a part that is
    not supported, by its name.
    """

    def __init__(self, folder):
        self.path = located(folder)
        self.settings = read_settings(self.path)

    @cached_property
    def model(self):
        return load_any(self.path)

    def model_for(self, kinds, use):
        """The model; ValueError if it is of none of these classes, before it is read. use: the rest of the message"""
        kind = MODELS[model_type(self.path, self.settings)]
        if not issubclass(kind, kinds):
            raise ValueError(f"{self.path} holds a {kind.__name__}, {use}")
        return self.model

    @cached_property
    def tokenizer(self):
        return PretrainedTokenizer(self.path)

    # --- texts -------------------------------------------------------------------------------------------------------

    @cached_property
    def max_tokens(self):
        """The longest text in tokens: the smaller one of the model's and the tokenizer's bound."""
        most = self.tokenizer.settings.get("model_max_length")
        longest = self.model.config.max_len
        return min(longest, int(most)) if isinstance(most, int | float) and most >= 1 else longest

    def read(self, text, second=None, max_tokens=None, cut="longest_first"):
        """A text, or two as a pair  ->  Encoded, at most max_tokens long (default: the folder's)

        Raises ValueError for an id that the table of the model lacks.
        """
        encoded = self.tokenizer.read(text, second, self.max_tokens if max_tokens is None else max_tokens, cut)
        check_ids(encoded.ids, self.tokenizer, self.model.config.vocab_size)
        return encoded

    # --- what the model says -----------------------------------------------------------------------------------------

    @cached_property
    def output(self):
        problem = self.settings.get("problem_type")
        if problem not in (None, *PROBLEMS):
            what = f"problem_type is {problem!r}, which is not supported; supported are {', '.join(PROBLEMS)}"
            raise ValueError(f"{self.path / 'config.json'}: {what}")
        return "several" if problem != "regression" and self._classes == 1 else PROBLEMS.get(problem, "one")

    @property
    def _classes(self):
        config = self.model.config
        return getattr(config, "num_classes", None) or getattr(config, "token_classes", None) or 0

    @cached_property
    def labels(self):
        """The name of each class. Classes with the same name are kept apart by their number: "bad (0)", "bad (2)"."""
        names = self.settings.get("id2label")
        names = names if isinstance(names, dict) else {}
        labels = [str(names.get(str(i), f"LABEL_{i}")) for i in range(self._classes)]
        return [f"{label} ({i})" if labels.count(label) > 1 else label for i, label in enumerate(labels)]

    # --- generation --------------------------------------------------------------------------------------------------

    @cached_property
    def generation(self):
        return read_json_object(self.path / GENERATION, optional=True)

    @property
    def end_ids(self):
        return end_ids(self.settings, self.generation)

    @property
    def sampling(self):
        if not self.generation.get("do_sample"):
            return {}
        names = ("temperature", "top_k", "top_p")
        found = {name: self.generation[name] for name in names if self.generation.get(name) is not None}
        with refusing(self.path / GENERATION, (TypeError, ValueError)):
            check_number("temperature", found.get("temperature", 1.0), "[0, ∞)")
            check_at_least("top_k", found.get("top_k", 0), 0)
            check_number("top_p", found.get("top_p", 1.0), "(0, 1]")
        return {name: value for name, value in found.items() if value}  # a top_k of 0 keeps all

    @property
    def not_applied(self):
        """The settings of generation that this package does not have: ["repetition_penalty 1.2", …]"""
        given = ((name, self.generation.get(name)) for name in PLAIN)
        return [f"{name} {value}" for name, value in given if value is not None and value != PLAIN[name]]

    def conversation(self, said):
        """What a person says, in the folder's template of a conversation: the text that the model answers by continuing
        it. Raises ValueError without a template, or for one that refuses this text."""
        import jinja2
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        beside = self.path / "chat_template.jinja"
        template = read_utf8(beside) if beside.is_file() else self.tokenizer.settings.get("chat_template")
        if not isinstance(template, str):
            raise ValueError(f"{self.path} has no template of a conversation: its model only continues texts")

        def refuse(message):
            raise jinja2.TemplateError(message)

        special = {name: self.tokenizer.settings.get(name) or "" for name in ("bos_token", "eos_token")}
        special = {name: one.get("content", "") if isinstance(one, dict) else one for name, one in special.items()}
        what = f"the template of a conversation in {self.path} cannot be used"
        with refusing(what, (jinja2.TemplateError, TypeError, ValueError, OverflowError)):
            page = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True).from_string(template)
            messages = [{"role": "user", "content": said}]
            return page.render(messages=messages, add_generation_prompt=True, raise_exception=refuse, **special)

    # --- for a training run that starts from the folder --------------------------------------------------------------

    def kept(self):
        """JSON data of what a run needs beside model and tokenizer, for `end_ids` and to be written back."""
        texts = {name: read_utf8(self.path / name) for name in KEPT_TEXTS if (self.path / name).is_file()}
        return {"settings": kept_settings(self.settings), "generation": self.generation, "texts": texts}


def inputs(*encoded, pad_id=0):
    """Texts as the arguments of a BERT: ids, padding (True hides) and segments, (B, S) each. The padding is known from
    the lengths: a token that a text has is never hidden, whatever its id."""
    ids, segments = pad_batch([one.ids for one in encoded], pad_id), pad_batch([one.segments for one in encoded], 0)
    padding = np.arange(ids.shape[1]) >= np.array([[len(one.ids)] for one in encoded])
    return {"ids": ids, "padding": padding, "segments": segments}


def check_ids(ids, tokenizer, size):
    """Raise ValueError if a tokenizer gives an id that a table of this size lacks, and name the tokenizer."""
    if ids and max(ids) >= size:
        token = f"the token {tokenizer.token(max(ids))!r} with the id {max(ids)}"
        table = f"the table of the model has {size:,} rows: they are not from the same model"
        raise ValueError(f"{tokenizer.name} has {token}, but {table}")


def end_ids(settings, generation):
    """The ids that end a text: eos_token_id, a number or a list, of generation_config.json, or else of config.json."""
    found = generation.get("eos_token_id")
    found = settings.get("eos_token_id") if found is None else found
    ids = found if isinstance(found, list) else [] if found is None else [found]
    if not all(type(i) is int and i >= 0 for i in ids):
        raise ValueError(f"eos_token_id must be the id of a token or a list of such ids, got {short(found)}")
    return tuple(ids)
