"""A damaged trace is read as far as it is sound, and what is missing is stated exactly."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

import strobe
from strobe.present.summary import write_summary, written_summary
from strobe.trace.archive import process_files
from strobe.trace.derived.repair import repair
from strobe.trace.processes.process_reader import RecordedProcess
from strobe.trace.quality import counters
from tests.damage.damages import DAMAGES, HARMLESS, chunks_of, damage
from tests.damage.every_answer import answers_of, findings
from tests.unit.blocks_twin import (
    CLASSES,
    END,
    HEADER,
    ITERATIONS,
    LOOPS,
    PROCESS,
    REGIONS,
    SAMPLES,
    SPANS,
    STATISTICS,
)

TABLE = 15  # chunks of side tables: docs/format/blocks.md

Copied = Callable[[str], Path]


def blocks_of(folder: Path) -> Path:
    return sorted(folder.glob("*.blocks"))[0]


def damage_chunk(path: Path, number: int, kind: int, *, header: bool = False) -> int:
    """Damage one chunk of a kind that has rows; how many."""
    data = bytearray(path.read_bytes())
    heads = {begin: HEADER.unpack_from(data, begin) for begin, _ in chunks_of(bytes(data))}
    begin = [at for at, head in heads.items() if head[1] == kind and head[6]][number]
    rows = heads[begin][6]
    data[begin + (4 if header else HEADER.size + 3)] ^= 0x55
    path.write_bytes(data)
    return int(rows)


def answers(folder: Path) -> tuple[object, ...]:
    with strobe.open(folder) as trace:
        info = trace.info
        facts = (info.command, info.host, info.ended, info.duration_ns, info.started_unix_ns, info.working_directory)
        return facts, trace.span_count, trace.ask("steps").rows(), trace.processes.rows()


@pytest.mark.parametrize("kind", DAMAGES)
def test_every_question_to_a_damaged_trace_has_an_answer_or_one_sentence(copied: Copied, kind: str) -> None:
    folder = copied("loop")
    sound = answers_of(folder, all_of_them=False)
    for seed in range(6):
        shutil.rmtree(folder)
        damage(copied("loop"), kind, Random(seed))  # its name and place are in answers, too
        # Chunks in another order are no loss, and give some names other numbers.
        assert findings(folder, None if kind in HARMLESS else sound, all_of_them=False) == []


@pytest.mark.parametrize("header", [False, True], ids=["payload", "header"])
@pytest.mark.parametrize("number", [0, 1, -1], ids=["first", "second", "last"])
def test_lost_spans_are_counted_exactly_wherever_their_block_was(copied: Copied, number: int, header: bool) -> None:
    folder = copied("lost")
    whole = strobe.open(folder).span_count
    rows = damage_chunk(blocks_of(folder), number, SPANS, header=header)
    with strobe.open(folder) as trace:
        assert counters(trace)["spans_lost"] == rows
        assert trace.span_count == whole - rows
        lost = [each for reader in trace.readers for each in reader.lost_spans()]
        assert sum(each.spans for each in lost) == rows
        assert all(each.begin_ns <= each.end_ns for each in lost)
        assert f"{rows:,}".replace(",", " ") in dict(trace.ask("info").rows())["lost"].replace("\u202f", " ")


@pytest.mark.parametrize("header", [False, True], ids=["payload", "header"])
def test_lost_statistics_are_counted_in_executions(copied: Copied, header: bool) -> None:
    folder = copied("lost")
    with strobe.open(folder) as trace:
        folded = trace.folded_count
        left = sum(int(each.count.sum()) for process, each in trace.folded.items() if process)
        main = trace.files[0].blocks
    damage_chunk(main, -1, STATISTICS, header=header)
    with strobe.open(folder) as trace:
        assert trace.folded_count == left
        assert counters(trace)["executions_lost"] == folded - left > 1000


@pytest.mark.parametrize("header", [False, True], ids=["payload", "header"])
def test_a_damaged_end_is_stated_as_such_and_not_as_a_kill(copied: Copied, header: bool) -> None:
    folder = copied("end")
    for path in folder.glob("*.blocks"):
        damage_chunk(path, -1, END, header=header)
    with strobe.open(folder) as trace:
        assert counters(trace)["ends_lost"] == 2
        assert trace.endings[0].startswith("ended with exit code 0; the end of its file is damaged or missing; ")
        assert trace.endings[1].startswith("ended; the end of its file is damaged or missing; ")
        assert [row["end_state"] for row in trace.processes.to_pylist()] == ["cut", "cut"]
        assert dict(trace.ask("info").rows())["lost"].startswith("2 processes whose end is lost")


def test_a_lost_block_of_a_file_with_an_index_is_stated_before_anything_is_read(copied: Copied) -> None:
    folder = copied("indexed")
    path = blocks_of(folder)
    assert RecordedProcess(process_files(folder)[0]).core.write_index()
    state = path.stat()
    rows = damage_chunk(path, 0, SPANS)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    with strobe.open(folder) as trace:
        assert counters(trace)["spans_lost"] == rows
        (lost,) = trace.lost_spans
        assert (lost.spans, lost.begin_ns <= lost.end_ns) == (rows, True)


def test_steps_stay_those_of_the_whole_where_the_description_of_their_loop_is_lost(copied: Copied) -> None:
    folder = copied("loop")
    path = blocks_of(folder)
    found = [each for each in chunks_of(path.read_bytes()) if path.read_bytes()[each[0] + 4] == LOOPS]
    assert found, "a loop was accepted while the program ran"
    data = bytearray(path.read_bytes())
    for begin, _ in found:
        data[begin + HEADER.size + 3] ^= 0x55
    path.write_bytes(data)
    with strobe.open(folder) as trace:
        assert counters(trace)["loops_lost"] == 1
        assert len(trace.ask("steps")) > 0


def test_a_damaged_summary_is_made_anew(copied: Copied) -> None:
    folder = copied("summary")
    assert written_summary(folder) == ""
    text = write_summary(strobe.open(folder)).to_json()
    assert json.loads(written_summary(folder)) == json.loads(text)
    data = (folder / "summary.json").read_bytes()
    for number in Random(1).sample(range(len(data) - 1), 40):
        (folder / "summary.json").write_bytes(data[:number] + bytes([data[number] ^ 0x91]) + data[number + 1 :])
        assert written_summary(folder) == "", number
    (folder / "summary.json").write_text(text)  # as an older strobe wrote it
    assert written_summary(folder) == ""


def test_statistics_of_classes_that_are_lost_have_their_numbers(copied: Copied) -> None:
    folder = copied("classes")
    for path in folder.glob("*.blocks"):
        data = bytearray(path.read_bytes())
        for begin, _ in chunks_of(bytes(data)):
            if data[begin + 4] in (ITERATIONS, CLASSES):
                data[begin + HEADER.size + 3] ^= 0x55
        path.write_bytes(data)
    with strobe.open(folder) as trace:
        assert trace.folded_count > 1000
        assert {row["class"] for row in trace.ask("statistics").to_pylist()} - {None} == {"class 0", "class 1"}


def test_chunks_in_another_order_or_there_twice_change_no_answer(copied: Copied) -> None:
    expected = answers(copied("whole"))
    for kind in HARMLESS:
        for seed in range(6):
            folder = copied(f"{kind}{seed}")
            path = blocks_of(folder)
            path.write_bytes(DAMAGES[kind](path.read_bytes(), Random(seed)))
            assert answers(folder) == expected, f"{kind} {seed}"


def swap_first_and_last(path: Path, kind: int, name: bytes = b"") -> None:
    """Let two chunks change places, as `name` begins them."""
    data = path.read_bytes()
    found = [each for each in chunks_of(data) if data[each[0] + 4] == kind and name in data[each[0] : each[0] + 64]]
    (a, b), (c, d) = found[0], found[-1]
    assert data[a:b] != data[c:d]
    path.write_bytes(data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:])


def test_definitions_in_another_place_change_no_answer(copied: Copied) -> None:
    folder = copied("places")
    sound = answers_of(folder)
    shutil.rmtree(folder)
    swap_first_and_last(blocks_of(copied("places")), REGIONS)
    assert answers_of(folder).differing(sound) == []


def test_readings_in_another_place_are_all_there(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import strobe\nfor n in range(3000): strobe.counter('loss', n)\n")
    words = (Path(sys.executable).with_name("strobe"), "run", "--quiet", "-o", "in.strobe", "program.py")
    subprocess.run(words, cwd=tmp_path, check=True)
    swap_first_and_last(blocks_of(tmp_path / "in.strobe"), SAMPLES)
    with strobe.open(tmp_path / "in.strobe") as trace:
        rows = trace.sql("select value from metrics where metric = 'loss' order by time_ns").to_pylist()
    assert [row["value"] for row in rows] == list(range(3000))


def test_rows_of_a_side_table_in_another_place_keep_their_spans(tmp_path: Path) -> None:
    events = [
        {"ph": "X", "name": "call", "pid": 1, "tid": 1, "ts": 10 * n, "dur": 5, "args": {"key": n}}
        for n in range(10_000)
    ]
    (tmp_path / "in.json").write_text(json.dumps({"traceEvents": events}))
    with strobe.open(tmp_path / "in.json") as trace:
        folder = trace.path
        before = trace.side_table("arguments").to_pylist()
    assert len(before) == 10_000
    swap_first_and_last(blocks_of(folder), TABLE, b"arguments")
    with strobe.open(folder) as trace:
        assert trace.side_table("arguments").to_pylist() == before


def test_a_damaged_or_missing_manifest_changes_no_answer(copied: Copied) -> None:
    folder = copied("manifest")
    path, random = folder / "job.json", Random(1)
    expected, sound = answers(folder)[0], path.read_bytes()
    for damaged in [b"", b"{", bytes(4096), *(DAMAGES["flip"](sound, random) for _ in range(60))]:
        path.write_bytes(damaged)
        assert answers(folder)[0] == expected
    path.unlink()
    assert answers(folder)[0] == expected


@pytest.mark.parametrize("header", [False, True], ids=["payload", "header"])
def test_the_facts_of_a_process_survive_the_loss_of_its_first_chunk(copied: Copied, header: bool) -> None:
    folder = copied("first")
    expected = answers(folder)
    for path in folder.glob("*.blocks"):
        damage_chunk(path, 0, PROCESS, header=header)
    assert answers(folder) == expected


def test_a_repaired_trace_is_sound_and_has_the_losses_of_the_damaged_one(copied: Copied, tmp_path: Path) -> None:
    folder = copied("damaged")
    rows = damage_chunk(blocks_of(folder), 0, SPANS) + damage_chunk(blocks_of(folder), -1, SPANS)
    damage_chunk(blocks_of(folder), 0, PROCESS, header=True)
    (folder / "job.json").write_bytes(b"")
    expected, before = answers(folder), {each.name: each.read_bytes() for each in folder.iterdir()}
    wrong = repair(folder, tmp_path / "sound.strobe")
    assert any("job.json" in each for each in wrong)
    assert {name: (folder / name).read_bytes() for name in before} == before, "the damaged one is as it was"
    with strobe.open(tmp_path / "sound.strobe") as trace:
        assert counters(trace)["spans_lost"] == rows
        assert counters(trace)["bytes_lost"] > 0
        assert counters(trace)["chunks_damaged"] == 0
    assert answers(tmp_path / "sound.strobe") == expected
    assert repair(tmp_path / "sound.strobe", tmp_path / "again.strobe") == []
    assert not (tmp_path / "again.strobe").exists()


def test_a_sound_trace_is_not_repaired(recorded: Path, tmp_path: Path) -> None:
    assert repair(recorded, tmp_path / "copy.strobe") == []
    assert not (tmp_path / "copy.strobe").exists()
