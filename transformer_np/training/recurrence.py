"""The objective of a model that carries a memory from one batch to the next."""

from collections.abc import Mapping

import numpy as np

from ..support.checks import check_at_least, check_kind
from .objectives import Objective


class SegmentRecurrence(Objective):
    """A Transformer-XL reads segment after segment and predicts the next token at every position.

        logits, mems = model(ids, mems),    loss = cross_entropy(logits, targets)

    The memory of each training step is kept for the next step; validation has a memory of its own. A batch that is
    `first` starts with an empty memory. `state_dict` contains the memory, because an exact resume needs it.

    eval_mem_len: the length of the memory in eval mode; by default the model's own
    ignore_index: the value of targets that do not count
    """

    def __init__(self, model, eval_mem_len=None, ignore_index=None):
        super().__init__(model, ignore_index)
        if eval_mem_len is not None:
            check_at_least("eval_mem_len", eval_mem_len, 0)
        self.eval_mem_len = eval_mem_len
        self._mems = {True: None, False: None}  # in training, in eval mode

    def logits(self, batch):
        training = self.model.training
        mems = None if batch.first else self._mems[training]
        logits, self._mems[training] = self._run(batch.ids, mems)  # (B, T, V)
        return logits

    def _run(self, ids, mems):
        if self.model.training or self.eval_mem_len is None:
            return self.model(ids, mems)
        own = self.model.mem_len
        self.model.mem_len = self.eval_mem_len
        try:
            return self.model(ids, mems)
        finally:
            self.model.mem_len = own

    # --- exact resume --------------------------------------------------------------------------------------------

    def state_dict(self):
        """{"mems": (L, B, M, D)}, the memory that the next training step reads; empty before the first step."""
        return {} if self._mems[True] is None else {"mems": np.stack(self._mems[True])}

    def check_state(self, state):
        """Raises ValueError if the state does not belong to this objective."""
        check_kind("state", state, Mapping)
        if not state:
            return
        config = self.model.config
        shape = np.shape(state.get("mems"))
        if state.keys() != {"mems"} or len(shape) != 4 or (shape[0], shape[3]) != (config.num_layers, config.d_model):
            got, wanted = {n: np.shape(a) for n, a in state.items()}, f"({config.num_layers}, B, M, {config.d_model})"
            raise ValueError(f"the state must be mems of shape {wanted}, got {got}")

    def load_state_dict(self, state):
        """Continue from a state_dict; it is checked before anything changes."""
        self.check_state(state)
        self._mems = {True: list(state["mems"]) if state else None, False: None}

    # --- several processes, each with some rows of every batch ---------------------------------------------------

    @staticmethod
    def state_of_rows(state, rows):
        """The part of a state_dict for these rows of the batch, a slice."""
        return {name: values[:, rows] for name, values in state.items()}

    @staticmethod
    def join_states(states):
        """The state_dict of the whole batch from the state_dicts of its parts, in order."""
        return {name: np.concatenate([state[name] for state in states], axis=1) for name in states[0]}
