"""Optimizers, schedules, objectives, the training loop and its checkpoints."""

from .checkpoint import load_checkpoint, load_model, save_checkpoint, save_model
from .history import History
from .muon import Muon, in_blocks, orthogonalised
from .objectives import Classification, MaskedLanguageModel, NegativeSampling, NextToken, TeacherForcing
from .optim import SGD, Adam, AdamW, Optimizer, clip_grad_norm, is_matrix
from .recurrence import SegmentRecurrence
from .schedules import cosine_schedule, noam_schedule
from .trainer import Trainer, TrainingError

__all__ = [
    "SGD", "Adam", "AdamW", "Classification", "History", "MaskedLanguageModel", "Muon", "NegativeSampling",
    "NextToken", "Optimizer", "SegmentRecurrence", "TeacherForcing", "Trainer", "TrainingError", "clip_grad_norm",
    "cosine_schedule", "in_blocks", "is_matrix", "load_checkpoint", "load_model", "noam_schedule", "orthogonalised",
    "save_checkpoint", "save_model",
]  # fmt: skip
