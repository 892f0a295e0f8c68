"""Advice at the end of a training run: at most two lines, from what was measured, and none if all is well."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ..data import UNK, Tokenizer
from ..support.counts import counted
from ..training import NegativeSampling
from .options import MUON_LR

MOST = 2  # lines
WELL = 0.98  # the share of unseen data that is right from which nothing needs advice
NOTHING = 0.05  # nats per target, about 95 % of probability: nothing is left to gain, where no answers are measured
FALLING = 0.03, 0.01  # the fall of the loss over the last fifth of the steps: as a share of it, and in nats
FAST = 0.1  # such a fall asks for four times the steps, a slower one for twice as many
OVERFITTING = 1.05  # times the lowest validation loss: a smaller increase may be chance
LITTLE = 0.9  # of the baseline's loss: more than this is little learned
STUCK = 0.5  # the share of unseen data that is right below which a loss that no longer falls needs advice
UNKNOWN = 0.05  # the share of unknown tokens in unseen data
ANSWERS = "exact match", "accuracy"  # in the names of what a task measures, where a whole answer is right or wrong
BATCHES = 50  # that the baseline and the lengths are counted in


@dataclass(frozen=True)
class Measured:
    """What advice is made from.

    losses: of every training step; validation: [(step, loss)]; kept: the step whose weights are the model
    right: the smallest share of unseen data that the model answers exactly, or None
    examples: the number of examples to learn from, or None for a text
    baseline: the validation loss of a model that knows only how often each target occurs, or None
    unknown: the share of unknown tokens in the validation data
    longer: how many validation sources are longer than any in training, and the longest one there, in tokens
    rate: the highest learning rate, or None
    options: those that could be changed, {name: value}
    whole: the validation loss of the model on all data, or None if `validation` has it
    """

    losses: list
    validation: list
    kept: int
    right: float | None = None
    examples: int | None = None
    baseline: float | None = None
    unknown: float = 0.0
    longer: tuple = (0, 0)
    rate: float | None = None
    options: dict = field(default_factory=dict)
    whole: float | None = None

    @property
    def loss(self):
        """The validation loss of the weights that the model has."""
        return dict(self.validation).get(self.kept, self.validation[-1][1]) if self.whole is None else self.whole

    @cached_property
    def risen(self):
        """(step, loss) where the validation loss was lowest, if it has risen since then; else None."""
        step, lowest = min(self.validation, key=lambda entry: entry[1])
        last = self.validation[-1][1]
        return (step, lowest) if last > max(OVERFITTING * lowest, lowest + FALLING[1]) else None


def advice(measured):
    """The most important lines of advice for this run, at most MOST, and of those about the number of steps only one:
    they would contradict each other."""
    can_gain = measured.loss > NOTHING if measured.right is None else measured.right < WELL
    kinds = (_diverged, _overfitting, _little_learned, _still_falling) if can_gain else ()
    steps = next((line for kind in kinds if (line := kind(measured))), None)
    lines = [line for line in (steps, _unknown(measured), _longer(measured)) if line] or [_stuck(measured)]
    return [line for line in lines if line][:MOST]


def _little_learned(measured):
    """Far above a simple baseline, or no better than it."""
    loss = measured.loss
    if measured.baseline is None or loss < LITTLE * measured.baseline:
        return None
    rate, steps = measured.options.get("lr"), measured.options["steps"]
    losses = f"the validation loss is {loss:.2f}, and {measured.baseline:.2f} from the frequencies of the targets alone"
    way_on = f"try more --steps (now {steps:,}), or a different --lr" + (f" (now {rate:g})" if rate else "")
    return f"little was learned: {losses}; {way_on}"


def _diverged(measured):
    """The training loss has risen: above twice that of the first step, or together with the validation loss."""
    size = max(1, len(measured.losses) // 20)

    def around(step):
        return float(np.mean(measured.losses[max(0, step - size) : step]))

    first, ended = measured.losses[0], around(len(measured.losses))
    before = min(first, around(measured.risen[0])) if measured.risen else 2 * first
    if ended <= before:
        return None
    lower = f"try a smaller --lr (now {measured.rate:.2g})" if measured.rate else "try a smaller learning rate"
    return f"training diverged: its loss was {min(first, before):.4g} before, and is {ended:.4g} at the end; {lower}"


def _overfitting(measured):
    """The validation loss has risen since its lowest value."""
    if not measured.risen:
        return None
    (step, lowest), last = measured.risen, measured.validation[-1][1]
    which = "the model has the weights of that step" if measured.kept == step else f"--keep best or --steps {step}"
    dropout = measured.options.get("dropout")
    how = "" if dropout is None else f" or a higher --dropout (now {dropout:g})"
    risen = f"since step {step:,} the validation loss has risen from {lowest:.2f} to {last:.2f} ({which})"
    return f"overfitting: {risen}; more training data help{how}"


def _still_falling(measured):
    """The loss falls to the end: of validation, or of training if there were few validations and the last is the
    lowest."""
    curve, spread = np.array(measured.validation, float), 0.0  # (n, 2)
    if curve[-1, 1] > curve[:, 1].min():  # more steps would follow those that made it worse
        return None
    if len(curve) < 4:
        size = max(1, len(measured.losses) // 10)
        tenths = np.array(measured.losses[-10 * size :][: 10 * size], float).reshape(-1, size)
        if len(tenths) < 10 or size < 5:
            return None
        spread = tenths[-1].std() / size**0.5
        curve = np.stack([len(measured.losses) * np.arange(1, 11) / 10, tenths.mean(axis=1)], axis=1)
    steps, losses = curve.T
    before, last = losses[steps <= 0.8 * steps[-1] + 1e-9][-1:], losses[-1]
    share, nats = FALLING
    if not before.size or last > losses.min() or before[0] - last < nats + 3 * spread:
        return None
    fall = (before[0] - last) / before[0]
    if fall < share:
        return None
    more = int(steps[-1]) * (2 if fall < FAST else 4)
    falls = f"the loss still falls, by {fall:.0%} over the last fifth of the steps"
    return f"{falls}: train again with --steps {more}"


def _stuck(measured):
    """The loss no longer falls, for no other reason known here, and most answers are wrong."""
    if measured.right is None or measured.right >= STUCK:
        return None
    factors = {"d_model": 2, "d_ff": 2, "dropout": 0, "label_smoothing": 0}
    freer = [(name, factor * measured.options[name]) for name, factor in factors.items() if measured.options.get(name)]
    freer += [("lr", float(f"{measured.rate / 2:.1g}"))] if freer and measured.rate else []
    if measured.options.get("optimizer") == "muon" and (measured.rate or 0) > MUON_LR / 2:
        freer = [("lr", float(f"{measured.rate / 3:.1g}"))]  # sums of numbers are learned only so
    flags = " ".join(f"--{name.replace('_', '-')} {value:g}" for name, value in freer)
    data = "" if measured.examples is None else f" than {measured.examples:,} examples"
    way_on = f"train with {flags}{' and with ' * bool(flags)}more data{data}"
    return f"only {measured.right:.0%} of unseen data are right, and the loss no longer falls: {way_on}"


def _unknown(measured):
    if measured.unknown < UNKNOWN:
        return None
    why = "because they occur at most once in training"
    way_on = "more data, or smaller units (--tokens char), would make them known"
    return f"{measured.unknown:.0%} of the tokens in unseen data are unknown, {why}: {way_on}"


def _longer(measured):
    count, longest = measured.longer
    if not count:
        return None
    sources = f"{counted(count, 'unseen source')} {'is' if count == 1 else 'are'}"
    longer = f"{sources} longer than any in training (at most {counted(longest, 'token')})"
    return f"{longer}: the model has not learned these positions; train with long ones"


# --- measuring -------------------------------------------------------------------------------------------------------


def measure(run, sampled=False):
    """The Measured of a finished run. sampled: whether the losses before the end are those of a sample."""
    trainer, setup = run.trainer, run.setup
    validation = list(trainer.history.validation)
    if sampled and len(validation) > 1:  # the last one is of all the data: compare like with like
        latest = [(trainer.step, trainer.best.latest)] if trainer.best else []
        validation = validation[:-1] + latest
    right = [share for name, share in run.measured.items() if any(what in name for what in ANSWERS)]
    examples = len(setup.batches) if hasattr(setup.batches, "__len__") else None
    return Measured(
        trainer.history.losses, validation, trainer.best.step if run.kept else trainer.step, min(right, default=None),
        examples, _baseline(setup, min(BATCHES, trainer.step)), _share_unknown(run), _longer_sources(run),
        max(trainer.history.learning_rates, default=None), vars(run.options), run.validation_loss,
    )  # fmt: skip


def _baseline(setup, steps):
    """The cross-entropy of the validation targets under their frequencies in the first training batches."""
    if isinstance(setup.objective, NegativeSampling):  # no choice among all targets
        return None
    trained = _counted(setup.objective, [setup.batches.batch(step) for step in range(steps)])
    unseen = _counted(setup.objective, setup.validation)
    counts = np.bincount(trained, minlength=unseen.max() + 1) + 1.0  # 1: these batches may lack a target
    return float(-np.log(counts / counts.sum())[unseen].mean())


def _counted(objective, batches):
    """The targets that count, in one array."""
    targets = np.concatenate([objective.targets(batch).ravel() for batch in batches])
    return targets if objective.ignore_index is None else targets[targets != objective.ignore_index]


def _sources(batch):
    """The arrays of ids that a model reads and writes in a batch of sentences; none for a text."""
    names = ("ids",) if hasattr(batch, "labels") else ("src", "tgt_out")
    return [getattr(batch, name) for name in names if hasattr(batch, name)]


def _ours(run):
    """Whether the ids are those of our tokenizers: a pretrained one has other special tokens."""
    return all(isinstance(tokenizer, Tokenizer) for tokenizer in run.tokenizers.values())


def _share_unknown(run):
    arrays = [array for batch in run.setup.validation for array in _sources(batch)] if _ours(run) else []
    total = sum(np.count_nonzero(array) for array in arrays)  # without padding, which is 0
    return sum(np.count_nonzero(array == UNK) for array in arrays) / total if total else 0.0


def _longer_sources(run):
    """How many sources of the validation and test data are longer than any in training, and the longest one there."""
    longest = getattr(run.setup.batches, "longest", None)
    sources = [_sources(batch)[0] for batch in run.setup.validation if _sources(batch)]
    if longest is None or not sources or not _ours(run):
        return 0, 0
    lengths = [length for source in sources for length in np.count_nonzero(source, axis=1)]
    tokenizer = next(iter(run.tokenizers.values()))
    ends = 2 if hasattr(run.setup.validation[0], "labels") else 0
    lengths += [len(tokenizer.encode(text)) + ends for text, _ in run.data.test]  # [CLS] and [SEP] of a labelled text
    return sum(length > longest for length in lengths), longest
