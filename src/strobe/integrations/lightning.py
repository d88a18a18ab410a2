"""Callbacks for Lightning (`lightning` or `pytorch_lightning`): `Trainer(callbacks=[StrobeCallback()])`.

Steps are batches of the training, counted from 0 from the beginning of `fit`.
"""

from __future__ import annotations

import os
from typing import Any

from strobe.integrations.training import StopAtStepOf, TrainingCallback, framework
from strobe.model.terminal import talk

__all__ = ["StopAtStep", "StrobeCallback"]

_Callback: Any = framework("Lightning", "lightning", "lightning.pytorch", "pytorch_lightning").Callback


class StrobeCallback(TrainingCallback, _Callback):
    """Records a training, or its steps `start_step` to `stop_step` (both included), and where each step ends.

    `path` is the trace folder, `options` are those of `strobe.record()`. Under `strobe run` they do not count: the
    steps are in that trace. `trace_path` names the trace that this callback made; with `log_to_logger` the trainer's
    loggers get its `strobe/step_ms` (median) and `strobe/data_wait_pct`.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, log_to_logger: bool = True, **options: Any
    ) -> None:
        super().__init__(path, **options)
        self._log = log_to_logger

    on_train_start = TrainingCallback.training_begins
    on_train_batch_start = TrainingCallback.step_begins
    on_train_batch_end = TrainingCallback.step_ends
    on_exception = TrainingCallback.training_ends

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """End the recording, and log its figures."""
        self._recorder.training_ends()
        if self._log and self.trace_path is not None and trainer.loggers:
            try:
                _log_figures(trainer, self.trace_path)
            except Exception as error:
                talk(f"the figures of {self.trace_path} are not logged: {error}")


class StopAtStep(StopAtStepOf, StrobeCallback):
    """Records the steps `start_step` to `stop_step`, both included, all of them in detail."""


def _log_figures(trainer: Any, path: str) -> None:
    from strobe.api.trace import open_trace
    from strobe.present.summary import summarise_soon

    with open_trace(path) as trace:
        summary = summarise_soon(trace)
    if summary.step is None:
        return
    waits = sum(part.share for part in summary.step.parts if part.name == "data_wait")
    figures = {"strobe/step_ms": summary.step.median_ns / 1e6, "strobe/data_wait_pct": 100 * waits}
    for logger in trainer.loggers:
        logger.log_metrics(figures, step=trainer.global_step)
        logger.save()
