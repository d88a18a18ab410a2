"""Callbacks for MindSpore: `model.train(epochs, data, callbacks=[StopAtStep(10, 20)], dataset_sink_mode=False)`.

Steps are MindSpore's own, `cur_step_num`: they count from 1. With data sinking, MindSpore reports whole epochs only.
"""

from __future__ import annotations

from typing import Any

from strobe.integrations.training import StopAtStepOf, TrainingCallback, framework

__all__ = ["StopAtStep", "StrobeCallback"]

_Callback: Any = framework("MindSpore", "mindspore", "mindspore.train").Callback


class StrobeCallback(TrainingCallback, _Callback):
    """Records a training, or its steps `start_step` to `stop_step` (both included), and where each step ends.

    `path` is the trace folder, `options` are those of `strobe.record()`. Under `strobe run` they do not count: the
    steps are in that trace. `trace_path` names the trace that this callback made.
    """

    on_train_begin = TrainingCallback.training_begins
    on_train_end = TrainingCallback.training_ends

    def on_train_step_begin(self, run_context: Any) -> None:
        """Begin with the first step."""
        self._recorder.step_begins(run_context.original_args().cur_step_num)

    def on_train_step_end(self, run_context: Any) -> None:
        """End a step."""
        self._recorder.step_ends(run_context.original_args().cur_step_num)


class StopAtStep(StopAtStepOf, StrobeCallback):
    """Records the steps `start_step` to `stop_step`, both included, all of them in detail."""
