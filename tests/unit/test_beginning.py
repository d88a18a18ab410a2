"""Of a run that is too long to be read while somebody waits, its beginning is: and whatever is told says so."""

import json
from pathlib import Path

import pytest

import strobe
from strobe.api.trace import Trace
from strobe.present import summary
from strobe.present.summary_text import summary_text
from strobe.server import trace_context
from strobe.server.trace_context import TraceContext
from strobe.steps.steps import find_steps
from strobe.trace.derived.beginning_of_run import beginning_of
from tests.unit.hand_made import make_trace, train_steps


@pytest.fixture
def ranks() -> Trace:
    return make_trace(*({"main": train_steps(12 + number)} for number in range(4)))


def test_as_many_whole_processes_as_fit_keep_all_their_numbers(ranks: Trace) -> None:
    of_first = [int(str(n)) for n in ranks.locations.column("span_count")]
    part, said = beginning_of(ranks, sum(of_first[:3]) - 1)
    assert len(part.processes) == 2
    assert said == f"found in the first 2 of 4 processes: {sum(of_first[:2])} of {sum(of_first)} spans"
    for location in range(2):
        assert part.spans(location).rows() == ranks.spans(location).rows()
    assert part.regions.rows() == ranks.regions.rows()[: len(part.regions)]
    assert part.zero_ns == ranks.zero_ns


def test_a_run_that_is_short_enough_is_read_as_a_whole(ranks: Trace) -> None:
    part, said = beginning_of(ranks, ranks.span_count)
    assert part is ranks
    assert said == ""


def test_of_a_process_that_is_too_long_the_begin_is_read(tmp_path: Path) -> None:
    events = [
        {"ph": "X", "cat": "cpu_op", "name": "a", "pid": pid, "tid": tid, "ts": at, "dur": 5}
        for pid in (1, 2)
        for tid in (1, 2)
        for at in range(0, 300_000, 10)
    ]
    path = tmp_path / "made.json"
    path.write_text(json.dumps({"traceEvents": events}))
    whole = strobe.open(path)
    part, said = beginning_of(whole, 20_000)
    assert len(part.processes) == 1
    # To the block: it is not read how many spans of one begin before a moment.
    assert 20_000 - 2 * 4096 < part.span_count <= 20_000
    assert "of the first of 2 processes" in said
    for location in range(2):
        rows = part.spans(location).rows()
        assert rows == whole.spans(location).rows()[: len(rows)]


def test_the_page_and_the_end_of_a_run_tell_of_which_part_they_are(
    ranks: Trace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    of_first = int(str(ranks.locations.column("span_count")[0]))
    part = f"found in the first of 4 processes: {of_first} of {ranks.span_count} spans"
    monkeypatch.setattr(summary, "SOON_SPANS", of_first)
    monkeypatch.setattr(trace_context, "SOON_SPANS", of_first)
    soon = summary.summarise_soon(ranks)
    assert soon.part == part
    assert (soon.process_count, soon.quality.span_count) == (4, ranks.span_count)
    assert soon.step is not None
    assert soon.step.count == 12
    assert part in " ".join(summary_text(soon).split())

    page = TraceContext(ranks, tmp_path)
    assert page.steps.reason.endswith(part)
    assert len(page.steps) == 12
    assert json.loads(page.summary_json)["part"] == part
    # Whoever asks for everything gets everything.
    assert [len(each) for each in find_steps(ranks).processes] == [12, 13, 14, 15]
    assert summary.summarise(ranks).part == ""
