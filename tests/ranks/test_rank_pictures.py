"""Pictures of ranks in a part of the run, worked out by hand: steps of all ranks, and waits in a window."""

from __future__ import annotations

import base64
import json
import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from strobe.api.trace import open_trace
from strobe.formats.html.page import report
from strobe.server.routing.routes import endpoint
from strobe.server.trace_context import TraceContext
from tests.ranks import wait_archives
from tests.ranks.wait_case import Case, Event, around, mpi_collective

STEPS, LENGTH, LATE_STEP = 40, 10_000, 7


def late_rank(ranks: int = 3, steps: int = STEPS) -> Case:
    """Ranks compute for 4000 ns and meet at 8000 ns of each step; in step 7 rank 1 computes until 7000."""

    def events(rank: int) -> Iterator[Event]:
        for step in range(steps):
            begin, late = 1000 + step * LENGTH, (rank, step) == (1, LATE_STEP)
            arrival = begin + (7000 if late else 4000)
            inside = [around(begin, arrival, "compute"), mpi_collective(arrival, begin + 8000, "MPI_Allreduce")]
            yield from around(begin, begin + 9000, "step", *inside)

    return Case("late_rank", "One rank is late in one step.", {each: [*events(each)] for each in range(ranks)}, [])


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> TraceContext:
    trace = open_trace(wait_archives.write(late_rank(), tmp_path_factory.mktemp("late") / "late"))
    return TraceContext(trace, trace.path)


def ask(context: TraceContext, question: str) -> pa.Table:
    name, _, query = question.partition("?")
    found = endpoint(name)
    assert found is not None
    values = found.values(context, [tuple(each.split("=", 1)) for each in filter(None, query.split("&"))])
    data = found.body(context, values).data
    return json.loads(data) if name.endswith("cell") else pa.ipc.open_stream(data).read_all()


def picture(context: TraceContext, question: str) -> tuple[np.ndarray, dict[str, list[int]]]:
    table = ask(context, question)
    about = json.loads(table.schema.metadata[b"about"])
    shape = len(about["first_rank"]), len(about["first_step"])
    return table.column("value_ns").to_numpy().reshape(shape), about


def test_cells_are_what_the_time_of_steps_went_into(context: TraceContext) -> None:
    values, about = picture(context, "ranks/steps?value=computation")
    assert about["first_rank"] == about["last_rank"] == [0, 1, 2]
    expected = np.full((3, STEPS), 6000.0)  # 4000 in compute, 1000 behind the call, 1000 between steps
    expected[1, LATE_STEP] = 9000
    expected[:, -1] = 5000
    assert values[:, 1:-1].tolist() == expected[:, 1:-1].tolist()
    late, _ = picture(context, "ranks/steps?value=lateness")
    assert late[1, LATE_STEP] == 3000
    assert np.delete(late, LATE_STEP, axis=1).max() == 0
    waits, _ = picture(context, "ranks/steps?value=wait")
    assert waits[:, LATE_STEP].tolist() == [3000, 0, 3000]


def test_a_picture_follows_the_window_and_a_cell_leads_to_its_step(context: TraceContext) -> None:
    begin = context.chosen().trace.steps().to_arrow().column("start_ns")[LATE_STEP].as_py()
    window = f"start_ns={begin + 10}&end_ns={begin + LENGTH + 10}"
    values, about = picture(context, f"ranks/steps?value=communication&{window}")
    assert about["first_step"] == [LATE_STEP, LATE_STEP + 1]
    assert values.tolist() == [[4000, 4000], [1000, 4000], [4000, 4000]]
    place = ask(context, f"ranks/steps/cell?value=computation&row=1&column=0&{window}")
    assert (place["rank"], place["step"], place["start_ns"], place["value_ns"]) == (1, LATE_STEP, begin, 9000)
    assert ask(context, f"ranks/steps/cell?row=1&column=2&{window}") is None


def test_waits_are_of_the_window_and_the_classes(context: TraceContext) -> None:
    def total(query: str, by: str = "rank") -> dict[tuple[int, int], int]:
        rows = ask(context, f"ranks/waits?by={by}{query}").to_pylist()
        rows = [row for row in rows if row["state"] == "wait_at_nxn"]
        return {(row["rank"], row["awaited_rank"]): row["wait_ns"] for row in rows}

    assert total("", "pair") == {(0, 1): 3000, (2, 1): 3000}
    assert total("&start_ns=0&end_ns=50000") == {}
    assert total("&start_ns=60000&end_ns=90000") == {(0, 1): 3000, (2, 1): 3000}
    (name,) = {*context.chosen().trace.steps().to_arrow().column("class").to_pylist()} - {"partial"}
    assert total(f"&classes={name}") == {(0, 1): 3000, (2, 1): 3000}
    assert total("&classes=another") == {}
    note = ask(context, "ranks/waits?start_ns=60000&end_ns=90000").schema.metadata[b"note"].decode()
    assert note.startswith("ranks waited 6.00 us for one another, 6.7 % of the run")  # of 3 * 30 us


def test_many_steps_share_columns_and_a_column_has_the_most(tmp_path: Path) -> None:
    trace = open_trace(wait_archives.write(late_rank(ranks=2, steps=600), tmp_path / "many"))
    values, about = picture(TraceContext(trace, trace.path), "ranks/steps?value=computation")
    assert values.shape == (2, 512)
    assert about["steps"] >= 599
    (column,) = [at for at in range(512) if about["first_step"][at] <= LATE_STEP <= about["last_step"][at]]
    assert (values == 9000).nonzero() == ([1], [column])


def test_the_report_has_a_picture_of_the_ranks(context: TraceContext) -> None:
    text, _ = report(context.trace, ["ranks"])
    (source,) = re.findall(r'src="data:image/png;base64,([^"]+)"', text)
    header, pixels = decoded(base64.b64decode(source))
    assert header[:2] == (STEPS, 3)
    strength = pixels.reshape(3, STEPS, 4)[..., 3]
    assert (strength == 255).nonzero() == ([1], [LATE_STEP])  # the latest is the strongest
    assert "most: 3.00 us, rank 1 in step 7" in text
    assert "ank 1 delays collectives most" in text


def decoded(png: bytes) -> tuple[tuple[int, ...], np.ndarray]:
    """Width, height, depth and kind of a picture, and the bytes of its lines (RFC 2083; only filter 0)."""
    at, header, data = 8, (), b""
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at : at + 8])
        body = png[at + 8 : at + 8 + size]
        assert struct.unpack(">I", png[at + 8 + size : at + 12 + size]) == (zlib.crc32(kind + body),)
        if kind == b"IHDR":
            header = struct.unpack(">IIBB", body[:10])
        data += body if kind == b"IDAT" else b""
        at += 12 + size
    lines = np.frombuffer(zlib.decompress(data), dtype=np.uint8).reshape(header[1], -1)
    assert not lines[:, 0].any()
    return header, lines[:, 1:]
