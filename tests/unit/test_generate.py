"""Generated traces: what is in them is the template, again and again; only the time between two events is random."""

import json
import random
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import strobe
from strobe.api.trace import Trace
from strobe.cli.main import main

CALLS, KERNELS = 60, 25


def template(folder: Path) -> Path:
    """A host thread with calls in calls, some at equal times, and a stream whose kernels follow their launches."""
    draw = random.Random(5)
    events: list[dict[str, object]] = []

    def call(start: int, end: int, depth: int) -> None:
        events.append(
            {"ph": "X", "cat": "cpu_op", "name": f"op{depth}", "pid": 1, "tid": 1, "ts": start, "dur": end - start}
        )
        inside = start
        while depth < 4 and end - inside > 8:
            length = draw.randrange(1, end - inside)
            call(inside, inside + length, depth + 1)
            inside += length + draw.choice([0, 0, 3])

    at = 10
    while len(events) < CALLS:
        call(at, at + 200, 0)
        at += draw.choice([200, 220])
    free = 0
    for number in range(1, KERNELS + 1):
        launch = 2000 + number * 40
        begin = free = max(launch + 3, free)
        free += draw.randrange(5, 70)
        arguments = {"correlation": number, "External id": number}
        common = {"ph": "X", "pid": 1}
        events.append(
            {
                **common,
                "cat": "cuda_runtime",
                "name": "cudaLaunchKernel",
                "tid": 2,
                "ts": launch,
                "dur": 9,
                "args": arguments,
            }
        )
        kernel = {**common, "cat": "kernel", "name": "gemm", "tid": 7, "ts": begin, "dur": free - begin}
        events.append({**kernel, "args": {**arguments, "device": 0, "stream": 7}})
    path = folder / "template.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trace, Trace]:
    """A template, and what was generated from it: 3 ranks, and spans for five repetitions each."""
    folder = tmp_path_factory.mktemp("generated")
    source = strobe.open(template(folder))
    spans = source.span_count * 3 * 5
    words = ["generate", str(folder / "template.json"), "-o", str(folder / "big"), "--ranks", "3"]
    assert main([*words, "--spans", str(spans), "--seed", "7", "--straggler", "1", "--stalls", "2"]) == 0
    return source, strobe.open(folder / "big.strobe")


def edges(trace: Trace, process: int) -> dict[str, npt.NDArray[np.int64]]:
    """Start and end of every span of a process, by location: what was told, untouched."""
    found = {}
    for row in trace.locations.to_pylist():
        if row["process"] == process and row["span_count"]:
            spans = trace.span_arrays(int(str(row["location"])))
            found[str(row["name"])] = np.stack([spans["start_ns"], spans["start_ns"] + spans["duration_ns"]])
    return found


def test_every_repetition_has_the_order_of_the_template_over_all_locations(made: tuple[Trace, Trace]) -> None:
    source, big = made
    wanted = edges(source, 0)
    order = np.unique(np.concatenate([each.ravel() for each in wanted.values()]), return_inverse=True)[1]
    assert big.span_count == 15 * source.span_count
    for process in range(3):
        written = edges(big, process)
        assert written.keys() == wanted.keys()
        for repetition in range(5):
            parts = [
                written[name][:, repetition * spans.shape[1] : (repetition + 1) * spans.shape[1]].ravel()
                for name, spans in wanted.items()
            ]
            assert np.array_equal(np.unique(np.concatenate(parts), return_inverse=True)[1], order)


def test_spans_keep_their_names_and_what_encloses_them(made: tuple[Trace, Trace]) -> None:
    source, big = made

    def calls(trace: Trace) -> list[list[object]]:
        names = "select name, depth, parent from spans where process = 0 and thread = "
        thread = "(select thread from spans where name = 'op0' limit 1)"
        return trace.sql(f"{names}{thread} order by row limit {CALLS}").rows()

    assert calls(big) == calls(source)


def test_no_two_repetitions_last_equally_long(made: tuple[Trace, Trace]) -> None:
    _, big = made
    durations = big.spans(0).column("duration_ns")
    assert len(set(durations)) > len(durations) / 2


def test_launches_and_kernels_still_belong_together_and_are_unique(made: tuple[Trace, Trace]) -> None:
    _, big = made
    pairs = big.sql(
        "select s.process, k.correlation, c.start_ns, s.start_ns from kernel_spans k"
        " join spans s on k.location = s.location and k.row = s.row"
        " join (select spans.process, spans.start_ns, call_spans.correlation from call_spans join spans"
        "   on call_spans.location = spans.location and call_spans.row = spans.row) c"
        " on c.process = s.process and c.correlation = k.correlation"
    ).rows()
    assert len(pairs) == 3 * 5 * KERNELS
    assert len({(process, number) for process, number, _, _ in pairs}) == len(pairs)
    assert all(int(str(launch)) < int(str(kernel)) for _, _, launch, kernel in pairs)


def test_the_straggler_takes_longer_and_stalls_are_where_they_are_said_to_be(made: tuple[Trace, Trace]) -> None:
    _, big = made
    lasting = [max(int(each[1].max()) for each in edges(big, process).values()) for process in range(3)]
    told = big.job.settings["generated"]
    assert isinstance(told, dict)
    assert len(told["stalls"]) == 6
    for stall in told["stalls"]:
        # Nothing begins and nothing ends from the stall's begin on, for as long as it lasts.
        moments = np.concatenate([each.ravel() for each in edges(big, stall["rank"]).values()])
        inside = (moments > stall["time_ns"]) & (moments < stall["time_ns"] + stall["duration_ns"])
        assert stall["time_ns"] in moments
        assert not inside.any()
    assert lasting[1] == max(lasting)


def test_the_same_seed_makes_the_same_trace(made: tuple[Trace, Trace], tmp_path: Path) -> None:
    source, big = made
    words = ["generate", str(source.path), "--ranks", "3", "--spans", str(big.span_count), "--stalls", "2"]

    def files(seed: str) -> list[bytes]:
        name = tmp_path / f"{seed}.strobe"
        assert main([*words, "--straggler", "1", "--seed", seed, "-o", str(name)]) == 0
        return [path.read_bytes() for path in sorted(name.glob("*.blocks"))]

    known = [path.read_bytes() for path in sorted(big.path.glob("*.blocks"))]
    assert files("7") == known
    assert all(a != b for a, b in zip(files("8"), known, strict=True))


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--ranks", "2", "--spans", "3"], "3 spans are too few"),
        (["--ranks", "2", "--spans", "1e4", "--straggler", "2"], "rank 2 does not exist"),
        (["--ranks", "0", "--spans", "1e4"], "'0' is not a whole number from 1 on"),
        (["--spans", "many"], "'many' is not a whole number from 0 on"),
        (["--spans", "inf"], "'inf' is not a whole number from 0 on"),
    ],
)
def test_what_cannot_be_made_is_refused_with_a_sentence(
    words: list[str], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["generate", str(template(tmp_path)), "-o", str(tmp_path / "new"), *words]) == 2
    assert why in capsys.readouterr().err
    assert not (tmp_path / "new.strobe").exists()


def test_a_trace_that_is_there_stays(made: tuple[Trace, Trace], capsys: pytest.CaptureFixture[str]) -> None:
    _, big = made
    assert main(["generate", str(big.path), "-o", str(big.path), "--spans", "1e5"]) == 4
    assert "is there already" in capsys.readouterr().err
