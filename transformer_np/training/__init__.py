"""Optimizers, schedules, objectives, the training loop and its checkpoints."""

from .checkpoint import load_checkpoint, load_model, save_checkpoint
from .objectives import TeacherForcing
from .optim import SGD, Adam, AdamW, Optimizer, clip_grad_norm
from .schedules import cosine_schedule, noam_schedule
from .trainer import History, Trainer, TrainingError

__all__ = [
    "SGD",
    "Adam",
    "AdamW",
    "History",
    "Optimizer",
    "TeacherForcing",
    "Trainer",
    "TrainingError",
    "clip_grad_norm",
    "cosine_schedule",
    "load_checkpoint",
    "load_model",
    "noam_schedule",
    "save_checkpoint",
]
