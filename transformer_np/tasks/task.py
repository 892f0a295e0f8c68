"""The workflow shared by all training tasks: data, folder, resume, steps, final loss."""

import hashlib
import json
import math
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from ..module import Module
from ..support.checks import check_at_least, check_choice, check_number, refusing
from ..support.files import held
from ..training import Trainer
from ..training.choice import team_of
from ..training.mpi import MPITeam
from ..training.optim import Optimizer
from ..training.team import Team
from . import runs
from .advice import advice, measure
from .fine_tuning import read_tokenizer

SAVE_SECONDS = 60.0
# how a run is trained, apart from its options: stored in its description, and the same again when it is resumed
HOW = {"workers": 1, "validate_every": None, "save_seconds": SAVE_SECONDS, "keep": "best"}
# the options with files of data and with models to start from: a resumed run may read them elsewhere
ELSEWHERE = {"text", "pairs", "data", "test", "init", "pretrained"}
CACHED = 1 << 18  # float32 of an array, several of which fit into the cache of a core
VALIDATION_SHARE = 0.04  # of the training time
CHANGED = 0.1  # of a learning rate: a smaller change is not worth a line
OVERFITTING = 1.02  # times the lowest validation loss: a smaller increase may be chance


@dataclass(frozen=True)
class Setup:
    """The parts of a training run, ready for the Trainer; `schedule` and `clip_norm` are the Trainer's.

    batches: .batch(step); validation: a list of batches; note: a line about data and model for the user
    header: JSON data for the checkpoint
    facts: JSON data for the description of the run, which users of its model need: "seen", the data.Seen of the texts
        that it learns to read, unless it began with a pretrained model, which has read others too; and the task's own
    """

    model: Module
    objective: Any
    optimizer: Optimizer
    batches: Any
    validation: list
    schedule: Any = None
    clip_norm: float | None = 1.0
    note: str = ""
    header: dict = field(default_factory=dict)
    facts: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """The result of a training run: its options, data, tokenizers and setup, and the trainer (history, interrupted).

    If the run was interrupted or this process does not lead, validation_loss is NaN and nothing is measured.
    measured: {name: share in [0, 1]} of the task's own measurements on unseen data
    kept: a line of text about the model's weights, if they are not those of the last step
    advice: lines of text about what could make the model better
    """

    options: Any
    data: Any
    tokenizers: dict
    setup: Setup = field(repr=False)
    trainer: Trainer = field(repr=False)
    validation_loss: float = float("nan")
    measured: dict = field(default_factory=dict)
    kept: str = ""
    advice: list = field(default_factory=list)


def vocabulary(what, train, texts, **how):
    """The tokenizer that `train` learns from texts. what: "the text gives", for the ValueError if they give none"""
    with refusing(f"{what} no vocabulary"):
        return train(texts, **how)


class Task:
    """One kind of training run. A subclass defines the name of the `kind`, its `Options` (a frozen dataclass with
    `steps`, a TaskOptions), its `tokenizer_names` if it has several, and the first three methods below.

    `Result` is the class that uses the model of a run, a Trained. `changeable` names the options that may change when a
    run is resumed.
    """

    kind = None  # its summary is in `tasks`
    example = None  # arguments for the command line
    Options = Result = None
    tokenizer_names = ("tokenizer",)
    changeable = ("steps",)

    def __init_subclass__(cls):
        cls.Result.task = cls

    def settled(self, options):
        """The options of a new run, with what depends on files. Raises OSError and ValueError if one is missing."""
        return options

    def load(self, options):
        """The data, in lists, strings, numbers and dataclasses: a resumed run must find the same data."""
        raise NotImplementedError

    def fingerprint(self, data):
        """The checksum of the data: a resumed run must have the same."""
        digest = hashlib.sha256()
        for piece in json.JSONEncoder(default=vars).iterencode(data):  # in pieces, for large data
            digest.update(piece.encode())
        return digest.hexdigest()

    def train_tokenizers(self, options, data):
        """{name: Tokenizer} for the tokenizer_names."""
        raise NotImplementedError

    def setup(self, options, data, tokenizers):
        """The Setup of a new training run."""
        raise NotImplementedError

    def measure(self, run):
        """{name: share in [0, 1]} of unseen data that the trained model, now in eval mode, gets right."""
        return {}

    def speed(self, run):
        """{name: number} for the training speed, if the task has a measure of its own."""
        return {}

    def train(
        self, options, folder, resume=False, overwrite=False, progress=True, report=None, workers=None,
        validate_every=None, save_seconds=None, keep=None, constant_lr=None,
    ):  # fmt: skip
        """Train in the folder of a run, or resume the run in it.

        options: the task's Options; with resume a dict of the options that the user gave, which must agree with the
            run's (`steps` may be larger)
        overwrite: discard an existing run in the folder
        report: called with a line of text before the training starts
        workers: processes that share each batch, as in `Trainer`; default: 1. With "mpi" all of them call this method
            and read the data and, to resume, the folder; only the first writes, measures and reports
        validate_every: steps between validations; default: a tenth of all steps, at least 100. Validations before the
            end use a sample of the validation data, which costs at most about 5 % of the training time
        save_seconds: seconds between saves, default: SAVE_SECONDS; the run is also saved at the end
        keep: "best" keeps the weights of the step with the lowest validation loss, "last" those of the last step;
            default: "best". A run is always resumed from its last step
        constant_lr: with resume, the learning rate from now on; without it, the rate follows the schedule of all steps

        The run stores the last five; with resume, None means as before. So a run that was interrupted at any moment and
        resumed is the uninterrupted run, and it keeps the same weights.

        Raises OSError and ValueError, before any training step, for data or a folder that cannot be used; TrainingError
        during training.
        """
        leads = workers is None or team_of(workers).rank == 0  # of mpiexec's processes, the first holds it for all
        with held(folder) if leads else nullcontext():  # while one process trains in a folder, others are refused
            how = {"workers": workers, "validate_every": validate_every, "save_seconds": save_seconds, "keep": keep}
            how = {name: value for name, value in how.items() if value is not None}
            if resume:
                run, description, lines = self._resumed_run(options, folder, how, constant_lr)
                write = runs.write_description
            elif constant_lr is not None:
                raise ValueError("constant_lr is for a run that is resumed: a new one has its schedule")
            else:
                run, description, lines = self._new_run(options, folder, how)
                write = runs.replace_run if overwrite else runs.create_run
            setup, trainer, steps = run.setup, run.trainer, run.options.steps
            if trainer.leads:
                write(folder, description)
            every = description["validate_every"] or max(100, steps // 10)
            sample = _sample(setup, every)
            whole = len(setup.validation)
            sampled = len(sample) < whole
            team = trainer.choose_team(setup.batches, steps)
            if trainer.leads:
                if not isinstance(trainer.team, MPITeam):
                    runs.write_description(folder, {**description, "workers": team.size})
                if sampled and every < steps:
                    lines.insert(0, f"validation: {len(sample)} of {whole} batches, at the end all of them")
                for line in filter(None, [setup.note, team.reason, *lines] if report else []):
                    report(line)
            trainer.fit(
                setup.batches, steps, setup.validation, validate_every=every, sample=sample,
                save_seconds=description["save_seconds"], progress=progress,
            )  # fmt: skip
            setup.model.eval()
            return run if trainer.interrupted or not trainer.leads else self._measured(run, sampled)

    def _new_run(self, options, folder, how):
        """The Run before its first step, its description, and lines for the user."""
        how, options = _checked({**HOW, **how}), self.settled(options)
        data = self.load(options)
        run = self._prepared(options, folder, how, data, self.train_tokenizers(options, data))
        description = {"kind": self.kind, "options": asdict(options), "data": self.fingerprint(data)}
        description |= {name: tokenizer.to_dict() for name, tokenizer in run.tokenizers.items()}
        description |= {**run.setup.facts, **how}
        if hasattr(run.setup.batches, "longest"):
            description["longest"] = run.setup.batches.longest
        return run, description, []

    def _resumed_run(self, asked, folder, how, constant_lr):
        """The same of the run in a folder, after its last saved step."""
        if constant_lr is not None:
            check_number("constant_lr", constant_lr, "(0, ∞)")
        description, stored, tokenizers = self.read(folder)
        options = self._resumed(stored, asked)
        how = _checked({**HOW, **{name: description[name] for name in HOW if name in description}, **how})
        try:
            data = self.load(options)
            if description.get("data") != self.fingerprint(data):
                what = f"the data differ from those that the run in {folder} started with"
                raise ValueError(f"{what}: it cannot be resumed")
            run = self._prepared(options, folder, how, data, tokenizers)
        except FileNotFoundError as error:
            where = "if it is elsewhere, pass its option with the path from the present folder"
            raise FileNotFoundError(f"{error}; {where}") from None
        trainer, schedule = run.trainer, run.setup.schedule
        fresh = not trainer.checkpoint.exists()
        if not fresh:
            trainer.resume()
        if constant_lr is not None:  # the step after which the rate is constant, and the rate
            description["constant_lr"] = [trainer.step, constant_lr]
        if "constant_lr" in description:
            last, rate = description["constant_lr"]
            trainer.schedule = lambda step: schedule(step) if step <= last else rate
        if trainer.step > options.steps:
            raise ValueError(f"steps is {options.steps}, but the run in {folder} has already done {trainer.step}")
        why = None if constant_lr is not None else (stored.steps, options.steps)
        line = runs.nothing_saved(folder) if fresh else _what_the_rate_does(trainer, why)
        return run, {**description, "options": asdict(options), **how}, [line]

    def _prepared(self, options, folder, how, data, tokenizers):
        """The Run of these options and data. In `how`, a team of workers becomes what the description stores of it."""
        setup = self.setup(options, data, tokenizers)
        header = {"kind": self.kind, "vocabulary": runs.sum_of_vocabulary(tokenizers), **setup.header}
        trainer = Trainer(
            setup.model, setup.optimizer, setup.objective, setup.schedule, setup.clip_norm,
            Path(folder) / runs.CHECKPOINT, header, how["workers"], keep_best=how["keep"] == "best",
            tokens_at_once=tokens_at_once(setup.model),
        )  # fmt: skip
        if isinstance(trainer.team, MPITeam) or isinstance(how["workers"], Team):
            how["workers"] = HOW["workers"]  # the next mpiexec decides; the size of another team is stored later
        return Run(options, data, tokenizers, setup, trainer)

    def _measured(self, run, sampled):
        """The Run at its end, with its weights, its loss on all validation data, and what else is measured."""
        kept = _which_weights(run.trainer)
        if kept:
            run.trainer.best.put()
        loss = run.trainer.validate(run.setup.validation) if kept else run.trainer.history.validation[-1][1]
        run = replace(run, validation_loss=loss, measured=self.measure(run), kept=kept)
        return replace(run, advice=advice(measure(run, sampled=sampled)))

    def read(self, folder):
        """Read the folder of a run  ->  the description, its options, {name: tokenizer}"""
        description = runs.read_run(folder, self.kind)
        with refusing(f"{Path(folder) / runs.DESCRIPTION} is damaged", (TypeError, ValueError)):
            older = {"optimizer": "adamw"} if any(f.name == "optimizer" for f in fields(self.Options)) else {}
            options = self.Options(**{**older, **description.get("options")})  # an older run names no optimizer
            tokenizers = {name: read_tokenizer(description.get(name)) for name in self.tokenizer_names}
            _checked({name: description[name] for name in HOW if name in description})
            step, rate = description.get("constant_lr", (0, 1.0))
            check_at_least("the step of constant_lr", step, 0)
            check_number("constant_lr", rate, "(0, ∞)")
            self.check_stored(options)
        return description, options, tokenizers

    def check_stored(self, options):
        """Raise ValueError for options that no run of this task has."""

    def _resumed(self, stored, asked):
        """The stored options with the new values of those that may change."""
        wanted = replace(stored, **asked)
        differing = [
            f"{f.name} {getattr(stored, f.name)!r}, not {getattr(wanted, f.name)!r}"
            for f in fields(stored)
            if f.name not in self.changeable
            and getattr(stored, f.name) != getattr(wanted, f.name)
            and not (f.name in ELSEWHERE and None not in (getattr(stored, f.name), getattr(wanted, f.name)))
        ]
        if differing:
            may_change = f"only {' and '.join(self.changeable)} may change when it is resumed"
            raise ValueError(f"the run was started with {', '.join(differing)}; {may_change}")
        return wanted


def tokens_at_once(model):
    """So many tokens that the arrays with d_model features fit into the cache; with fewer than 1,024, to add the
    gradients of all parameters for each piece would take longer than that saves. None for a model without d_model."""
    d_model = getattr(model.config, "d_model", None)
    return d_model and max(1024, CACHED // d_model)


def _checked(how):
    """These values of HOW; TypeError or ValueError if one is wrong."""
    for name, value in how.items():
        if name == "keep":
            check_choice(name, value, ("best", "last"))
        elif name == "save_seconds":
            check_number(name, value, "[0, ∞)")
        elif value is not None and not isinstance(value, Team) and value not in ("auto", "mpi"):
            check_at_least(name, value, 1)
    return how


def _what_the_rate_does(trainer, steps):
    """A line of text if a run that goes on changes its learning rate; else empty. steps: how many were planned, and how
    many are now, or None if a constant rate was asked for"""
    if trainer.schedule is None or not trainer.step or (steps and steps[1] <= steps[0]):
        return ""
    last, new = trainer.history.learning_rates[-1], trainer.schedule(trainer.step + 1)
    if abs(new - last) <= CHANGED * max(new, last):
        return ""
    line = f"the learning rate goes from {last:.2g} to {new:.2g}"
    if steps is None:
        return line
    before, now = steps
    own = last if last > 0 else float(f"{max(trainer.history.learning_rates) / 10:.1g}")
    why = f"because its schedule now has {now:,} steps instead of {before:,}"
    return f"{line}, {why}; --constant-lr {own:.2g} goes on with that rate instead"


def _which_weights(trainer):
    """A line of text about the best weights; empty if they are those of the last step, or none were kept."""
    best = trainer.best
    if best is None or best.step in (None, trainer.step):
        return ""
    since = "it has risen" if best.latest > OVERFITTING * best.loss else "it has not fallen further"
    losses = f"{best.loss:.4f} there, {best.latest:.4f} at step {trainer.step}"
    return f"kept the weights of step {best.step}, with the lowest validation loss; since then {since} ({losses})"


def _sample(setup, every):
    """One batch in n of the validation data: so few that measuring the loss on them costs about VALIDATION_SHARE of the
    time of `every` training steps. A forward takes a third of a step."""
    count = setup.objective.count
    most = 3 * VALIDATION_SHARE * every * count(setup.batches.batch(0))  # tokens
    n = max(1, math.ceil(sum(map(count, setup.validation)) / max(1, most)))
    if hasattr(setup.objective, "state_dict"):  # the carried state needs consecutive batches
        return setup.validation[: math.ceil(len(setup.validation) / n)]
    return setup.validation[::n]
