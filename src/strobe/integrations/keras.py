"""Callbacks for Keras 3, on any backend: `model.fit(..., callbacks=[StrobeCallback()])`.

Steps are batches of the training (`steps_per_execution` of them where the model has it), counted from 0 from the
beginning of `fit`, through all epochs.
"""

from __future__ import annotations

from typing import Any

from strobe.integrations.training import StopAtStepOf, TrainingCallback, framework

__all__ = ["StopAtStep", "StrobeCallback"]

_Callback: Any = framework("Keras", "keras", "keras.callbacks").Callback


class StrobeCallback(TrainingCallback, _Callback):
    """Records a training, or its steps `start_step` to `stop_step` (both included), and where each step ends.

    `path` is the trace folder, `options` are those of `strobe.record()`. Under `strobe run` they do not count: the
    steps are in that trace. `trace_path` names the trace that this callback made.
    """

    on_train_begin = TrainingCallback.training_begins
    on_train_batch_begin = TrainingCallback.step_begins
    on_train_batch_end = TrainingCallback.step_ends
    on_train_end = TrainingCallback.training_ends


class StopAtStep(StopAtStepOf, StrobeCallback):
    """Records the steps `start_step` to `stop_step`, both included, all of them in detail."""
