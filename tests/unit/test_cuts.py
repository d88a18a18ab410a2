"""Cuts: the reader, which sees a whole run at once, cuts where the recorder did, mark by mark and under pressure."""

from collections.abc import Sequence
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strobe.steps.finding.cuts import activity_table, cut, cutter_of
from strobe.steps.loop_choice.main_loop import MainLoop
from strobe.steps.thread_spans import Stream
from strobe.steps.training_activities import activities
from tests.unit.streams import BACKWARD, FORWARD, SINGLE_WAIT, STEP, WORKERS_WAIT, ZERO, Program

ACCEPTED = 6  # marks after which the recorder believes in the loop
SAMPLER = ("aten::empty", "aten::random_", "aten::set_")
VALIDATION = ("aten::conv2d", "aten::relu", "aten::argmax", "aten::eq")
LITTLE = st.lists(st.sampled_from(("aten::item", "save", "log")), max_size=2)
Pressed = Sequence[tuple[int, bool]]  # when the ring is full, and whether so full that little doubt has to do


class Drawn(Program):
    """A program of which everything is drawn that may differ between two that train, or that only run forward."""

    def __init__(self, draw: st.DrawFn, *, trains: bool) -> None:
        super().__init__()
        self._draw = draw
        self.trains = trains
        self.fed = draw(st.booleans()) or not trains
        self._batches = draw(st.integers(1, 3)) if self.fed and self.trains else 1
        self._epoch = draw(st.integers(2, 9)) if self.trains else draw(st.integers(12, 16))
        self._samples = draw(st.integers(0, 3))
        self._generator = draw(st.booleans())
        self.validates = draw(st.sampled_from(("", "here", "other loader", "validate"))) if self.fed else ""
        with self.inside("main"):
            self.run("aten::randn", *draw(LITTLE))
            for number in range(draw(st.integers(ACCEPTED + 3, 30))):
                self._step(number)
            if self.fed and draw(st.booleans()):  # the last one is cut off
                self._ask(again=False)
                self.run(*FORWARD)

    def _ask(self, *, again: bool) -> None:
        with self.inside("batches") if self._generator else nullcontext():
            self.run(*(("stack",) if self._generator else ()))
            if again:
                self.run(WORKERS_WAIT, us=self._draw(st.integers(1, 9)))
                self.run(*SAMPLER[: self._samples])
            self.run(WORKERS_WAIT, us=self._draw(st.integers(1, 300)))

    def _step(self, number: int) -> None:
        for batch in range(self._batches):
            if self.fed:
                self._ask(again=batch == 0 and number > 0 and number % self._epoch == 0)
            self.run(*FORWARD, *(("aten::mul",) if self._draw(st.integers(0, 9)) == 0 else ()))
            self.run(*(BACKWARD if self.trains else ()))
        if not self.trains:
            return
        self.run(*self._draw(LITTLE), STEP, ZERO, *self._draw(LITTLE))
        if self.validates and number % self._epoch == self._epoch - 1:
            with self.inside("validate") if self.validates == "validate" else nullcontext():
                for _ in range(self._draw(st.integers(2, 4))):
                    self.run(SINGLE_WAIT if self.validates == "other loader" else WORKERS_WAIT, *VALIDATION)
                self.run(WORKERS_WAIT)


def recorded(stream: Stream, loop: MainLoop, pressed: Pressed) -> list[tuple[int, int]]:
    """The steps since the loop was accepted, cut as the recorder does while the program runs."""
    acts, cutter, rows = activities(stream), cutter_of(stream, loop), loop.rows.tolist()
    table, fed, found = activity_table(acts), 0, []

    def feed(until_ns: int) -> None:
        nonlocal fed
        ended = int(np.searchsorted(acts.end_ns, until_ns, side="right"))
        cutter.add(table[fed:ended].ravel())
        fed = ended

    def take(step: tuple[int, int] | None) -> None:
        if step is not None:
            found.append(step)
            cutter.forget(step[0])

    for row in rows[:ACCEPTED]:
        feed(int(stream.end_ns[row]))
        cutter.cut(row)
    cutter.learn(stream.start_ns[rows[:ACCEPTED]])
    for before, row in zip(rows[ACCEPTED - 1 :], rows[ACCEPTED:], strict=False):
        for ns, nearly in pressed:
            if stream.end_ns[before] <= ns < stream.end_ns[row]:
                feed(ns)
                take(cutter.cut_early(nearly))
        feed(int(stream.end_ns[row]))
        take(cutter.cut(row))
    feed(int(stream.end_ns.max()))
    begun = cutter.cut_early(hurry=True)
    return found if begun is None or begun[0] == begun[1] else [*found, begun]


@pytest.mark.parametrize("kind", ["optimizer", "zero_grad", "data_wait"])
@settings(max_examples=100, deadline=None)
@given(st.data())
def test_the_reader_cuts_where_the_recorder_did(kind: str, data: st.DataObject) -> None:
    program = Drawn(data.draw, trains=kind != "data_wait")
    stream = program.stream()
    name = {"optimizer": STEP, "zero_grad": ZERO, "data_wait": WORKERS_WAIT}[kind]
    rows = np.flatnonzero(stream.region == stream.names.index(name))
    loop = MainLoop(kind, rows, "medium", "")
    # A validation that asks where the training asks leaves a doubt until its second batch, and so does whatever opens a
    # step that asks for no data: the model may be evaluated first.
    nearly = st.booleans() if program.validates != "here" and program.fed else st.just(False)
    acts = activities(stream)
    pressed = data.draw(st.lists(st.tuples(st.sampled_from(acts.end_ns.tolist()), nearly), max_size=40).map(sorted))
    found = recorded(stream, loop, pressed)
    cuts = cut(stream, loop, acts)
    steps = list(zip(cuts.start_ns.tolist(), cuts.fed_ns.tolist(), strict=True))
    assert len(found) > 1
    assert steps[-len(found) :] == found
