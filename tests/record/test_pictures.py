"""Pictures of a recorded run agree with its spans, computed the slow and obvious way."""

import numpy as np

import strobe
from tests.record.workshop import Workshop
from tests.unit.slow_pictures import SlowLocation

PROGRAM = """
import time

def short():
    pass

def wait():
    time.sleep(0.0005)

def step():
    wait()
    for _ in range(20): short()

for _ in range(300): step()
"""
WIDTH = 50


def test_a_nested_picture_says_how_full_each_pixel_is(workshop: Workshop) -> None:
    workshop.write("program.py", PROGRAM)
    assert workshop.recorded("program.py").returncode == 0
    trace = strobe.open(workshop.trace)
    spans = trace.span_arrays(0)
    start, end = int(spans["start_ns"].min()), int((spans["start_ns"] + spans["duration_ns"]).max())
    regions, filled = trace.pyramid.stack_cells(0, start, end, WIDTH, 64)
    edges = np.linspace(start, end, WIDTH + 1)
    for depth in range(len(regions)):
        of_depth = spans["depth"] == depth
        begin = spans["start_ns"][of_depth, None]
        stop = begin + spans["duration_ns"][of_depth, None]
        inside = np.clip(np.minimum(stop, edges[1:]) - np.maximum(begin, edges[:-1]), 0, None).sum(axis=0)
        # A cell's share is a byte, and a pixel's edge may cut a nanosecond.
        assert np.abs(filled[depth] - 255 * inside / np.diff(edges)).max() < 3, f"depth {depth}"
    names = trace.regions.column("name")
    assert {names[r] for r in regions[1].tolist() if r < len(names)} == {"step"}
    assert filled[0].min() >= 254, "the module runs all the time"


def test_every_pixel_of_a_recorded_run_is_what_its_spans_say(workshop: Workshop) -> None:
    workshop.write("program.py", PROGRAM)
    assert workshop.recorded("program.py").returncode == 0
    trace = strobe.open(workshop.trace)
    assert (workshop.trace / f"process-{trace.processes.column('pid')[0]}.tiles").exists()
    slow, end = SlowLocation(trace, 0), trace.info.duration_ns
    for level in range(6, end.bit_length()):
        start = (end // 3) >> level << level
        edges = start + (np.arange(101) << level)
        own, window = slow.own_ns(edges), (start, int(edges[-1]))
        regions, shares, marks = (each[0] for each in trace.pyramid.cells([0], *window, 100))
        there = own.max(axis=0) > 0
        assert (own[regions[there], np.flatnonzero(there)] == own.max(axis=0)[there]).all()
        assert np.abs(shares - 255 * own.max(axis=0) / (1 << level)).max() <= 0.5
        assert np.abs(trace.pyramid.group_shares([0], *window, 100)[0] - slow.shares(edges)).max() <= 0.5
        assert (marks == slow.marks(edges)[0]).all()
        count, own_ns = trace.pyramid.profile([0], *window)
        assert (count[0] == slow.profile(*window)[0]).all()
        assert (own_ns[0] == slow.profile(*window)[1]).all()
