"""Callbacks for the Trainer of Hugging Face's transformers: `Trainer(..., callbacks=[StrobeCallback()])`.

Steps are those of the Trainer (updates of the model), counted from 0 from the beginning of `train`.
"""

from __future__ import annotations

from typing import Any

from strobe.integrations.training import StopAtStepOf, TrainingCallback, framework

__all__ = ["StopAtStep", "StrobeCallback"]

_TrainerCallback: Any = framework("transformers", "transformers", "transformers").TrainerCallback


class StrobeCallback(TrainingCallback, _TrainerCallback):
    """Records a training, or its steps `start_step` to `stop_step` (both included), and where each step ends.

    `path` is the trace folder, `options` are those of `strobe.record()`. Under `strobe run` they do not count: the
    steps are in that trace. `trace_path` names the trace that this callback made.
    """

    on_train_begin = TrainingCallback.training_begins
    on_step_begin = TrainingCallback.step_begins
    on_step_end = TrainingCallback.step_ends
    on_train_end = TrainingCallback.training_ends


class StopAtStep(StopAtStepOf, StrobeCallback):
    """Records the steps `start_step` to `stop_step`, both included, all of them in detail."""
