"""Dumps of PyTorch's flight recorder: what is in them, and what a job hangs in."""

import argparse
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

import strobe
from strobe.cli.main import main
from strobe.errors import FormatError
from strobe.present.summary import summarise
from tests.ranks.flight_recorder_cases import CASES, START_NS, WORLD, Case, dump, entry, written

BY_NAME = {case.name: case for case in CASES}
SAMPLE = Path(__file__).parents[1] / "samples" / "flight_recorder"
# What PyTorch's analyser calls a difference. Its other one, of states, is when PyTorch noticed, not what ranks called.
_OF_TORCH = {
    "COLLECTIVE_TYPE_MISMATCH": "operation",
    "SIZE_OR_SYNTAX_MISMATCH": "size",
    "COLLECTIVE_DTYPE_MISMATCH": "dtype",
}
Answers = dict[tuple[str, int], tuple[set[int], dict[int, str]]]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STROBE_CACHE", str(tmp_path / "cache"))


def opened(folder: Path, name: str) -> strobe.Trace:
    return strobe.open(written(folder / name, BY_NAME[name].dumps))


def answers(trace: strobe.Trace) -> Answers:
    found: Answers = {}
    for row in trace.unfinished().to_pylist():
        missing, different = found.setdefault((str(row["group"]), int(str(row["sequence"]))), (set(), {}))
        if row["difference"] == "missing":
            assert row["operation"] is None
            missing.add(int(str(row["rank"])))
        elif row["difference"]:
            different[int(str(row["rank"]))] = str(row["difference"])
    return found


def sentence(trace: strobe.Trace) -> str:
    return summarise(trace).verdict.text


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_who_is_missing_or_differs_in_the_operation_that_ranks_wait_in(case: Case, tmp_path: Path) -> None:
    assert answers(strobe.open(written(tmp_path / "job", case.dumps))) == case.answers


def of_torch(case: Case) -> Answers:
    """The first collective of each group in which PyTorch's own analyser finds a rank that is missing or differs."""
    from torch.distributed.flight_recorder.components.builder import build_db

    dumps = {f"rank_{rank}": {**pickle.loads(pickle.dumps(each)), "rank": rank} for rank, each in case.dumps.items()}
    args = argparse.Namespace(verbose=False, just_print_entries=False, allow_incomplete_ranks=True, mismatch_cap=10)
    found: Answers = {}
    for each in build_db(dumps, args, "2.10").collectives:
        others = (each.mismatch_collectives or {}).items()
        states = {rank: one.type_of_mismatch.state.name for rank, one in others}
        different = {rank: _OF_TORCH[state] for rank, state in states.items() if state in _OF_TORCH}
        sequence = each.p2p_seq_id or each.collective_seq_id
        if (different or each.missing_ranks) and all(group != each.group_id for group, _ in found):
            found[each.group_id, sequence] = (set(each.missing_ranks or ()), different)
    return found


@pytest.mark.torch
def test_pytorchs_own_analyser_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from torch.distributed.flight_recorder.components import utils

    monkeypatch.setattr(utils, "tabulate", str, raising=False)  # a package of its own, which prints tables
    for case in CASES:
        blamed = {key: found for key, found in case.answers.items() if any(found)}
        if case.name == "all-to-all with too few bytes":  # it names the first rank only: nobody knows which one errs
            blamed = {("0", 5): (set(), {0: "size"})}
        assert of_torch(case) == blamed, case.name


def test_a_job_that_hangs_is_one_sentence(tmp_path: Path) -> None:
    assert sentence(opened(tmp_path, "missing")) == (
        "ranks 0, 1 and 3 wait in all_reduce 5 of group 0 (default_pg) ([16] Float at step (train.py:20)); "
        "rank 2 has not called it, its last call is all_reduce 4 at step (train.py:10)"
    )
    assert sentence(opened(tmp_path, "operation")) == (
        "ranks 0-2 wait in all_reduce 5 of group 0 (default_pg) ([16] Float at step (train.py:20)); "
        "rank 3 called broadcast instead ([16] Float at step (train.py:20))"
    )
    assert "rank 2 called it with another size ([8] Float" in sentence(opened(tmp_path, "size"))
    assert "rank 1 called it with another type ([16] Double" in sentence(opened(tmp_path, "dtype"))
    assert sentence(opened(tmp_path, "alike")).endswith("; all its ranks have called it alike")
    assert sentence(opened(tmp_path, "no receive")) == (
        "rank 0 waits in send 1 of group 2 (pp) ([16] Float at step (train.py:50)); rank 1 has called nothing"
    )


def test_where_all_completed_nothing_is_said_to_hang(tmp_path: Path) -> None:
    for name, count, ranks in (("complete", 16, 4), ("coalesced messages", 6, 2)):
        trace = opened(tmp_path, name)
        assert sentence(trace) == f"all {count} operations in the dumps of {ranks} ranks are complete"
        assert len(trace.unfinished()) == 0


def test_of_two_groups_the_one_comes_first_that_the_other_waits_for(tmp_path: Path) -> None:
    """Rank 1 is missing in the world's all-reduce because it waits in its own group, where rank 0 is missing."""
    text = sentence(opened(tmp_path, "two groups"))
    assert text.startswith("rank 1 waits in all_gather 1 of group 1 (tp)")
    assert (
        "rank 0 has not called it, its last call is all_reduce 5 of group 0 (default_pg) at step (train.py:40" in text
    )
    assert text.endswith("; 1 other operation is not complete")


def test_a_rank_without_a_dump_is_not_blamed(tmp_path: Path) -> None:
    dumps = dict(BY_NAME["missing"].dumps)
    del dumps[2]
    trace = strobe.open(written(tmp_path / "job", dumps))
    assert answers(trace) == {("0", 5): (set(), {})}
    assert {row["rank"]: row["state"] for row in trace.unfinished().to_pylist()}[2] == "no dump"
    assert sentence(trace).endswith("; of rank 2 there is no dump")


def test_a_rank_whose_buffer_has_only_later_entries_is_not_missing(tmp_path: Path) -> None:
    late = [entry(i) for i in range(8, 10)]
    dumps = {0: dump([entry(4, state="started")], {WORLD: range(2)}), 1: dump(late, {WORLD: range(2)})}
    trace = strobe.open(written(tmp_path / "job", dumps))
    assert answers(trace) == {("0", 5): (set(), {})}
    assert [row["state"] for row in trace.unfinished().to_pylist()] == ["started", "overwritten"]


def test_times_shapes_and_stacks_are_those_of_the_entries(tmp_path: Path) -> None:
    trace = opened(tmp_path, "missing")
    rows = trace.sql(
        "select process, start_ns, duration_ns, shapes, types, call_stack from operator_spans "
        "order by start_ns, process"
    ).to_pylist()
    every = [(each, rank) for rank, one in BY_NAME["missing"].dumps.items() for each in one["entries"]]
    assert [(row["start_ns"], row["duration_ns"], row["process"]) for row in rows] == sorted(
        (each["time_created_ns"] - START_NS, 0, rank) for each, rank in every
    )
    assert rows[0]["shapes"] == "[[16]]"
    assert rows[0]["types"] == '["Float"]'
    stack = str(rows[0]["call_stack"]).splitlines()
    assert stack[:2] == ["<module> (/home/user/train.py:90)", "step (/home/user/train.py:10)"]
    pending = trace.side_table("collective_spans").column("pending_ns")
    assert list(pending).count(300_000) == 16
    assert list(pending).count(None) == 3
    assert trace.info.started_unix_ns == START_NS


def test_who_comes_late_is_known_by_the_calls(tmp_path: Path) -> None:
    dumps = {
        rank: dump([entry(i, at_us=1000 * i + (250 if rank == 1 else 0)) for i in range(6)], {WORLD: range(3)})
        for rank in range(3)
    }
    rows = strobe.open(written(tmp_path / "job", dumps)).stragglers().to_pylist()
    assert [(row["rank"], row["last"], row["delay_ns"], row["wait_ns"]) for row in rows] == [
        (0, 0, 0, 6 * 250_000),
        (1, 6, 6 * 250_000, 0),
        (2, 0, 0, 6 * 250_000),
    ]


def test_nobody_comes_last_to_what_a_rank_has_not_come_to(tmp_path: Path) -> None:
    rows = opened(tmp_path, "missing").stragglers(by="collective").to_pylist()
    assert sorted(int(str(row["sequence"])) for row in rows) == [1, 2, 3, 4]


def test_bytes_of_collectives_are_known_and_durations_are_not(tmp_path: Path) -> None:
    table = opened(tmp_path, "complete").collectives()
    assert table.note == "a flight recorder's dump has no durations of collectives: of 16 no bandwidth is known"
    assert [(row["rank"], row["calls"], row["in_bytes"]) for row in table.sort("rank").to_pylist()] == [
        (rank, 4, 4 * 16 * 4) for rank in (3, 2, 1, 0)
    ]


def test_messages_have_their_ranks_and_bytes(tmp_path: Path) -> None:
    trace = opened(tmp_path, "coalesced messages")
    rows = trace.sql("select direction, peer_rank, size_bytes from messages").to_pylist()
    assert [(row["peer_rank"], row["size_bytes"]) for row in rows if row["direction"] == "send"] == [(1, 64), (0, 64)]


# Files that PyTorch wrote


def test_dumps_of_gloo_are_read(tmp_path: Path) -> None:
    """Rank 1 left out the last all-reduce of the program beside the sample."""
    trace = strobe.open(SAMPLE / "pickles")
    assert answers(trace) == {("0", 5): ({1}, {})}
    assert sentence(trace) == (
        "ranks 0 and 2 wait in all_reduce 5 of group 0 (default_pg) ([32] Double at main (job.py:24)); "
        "rank 1 has not called it, its last call is all_gather 4 at main (job.py:22)"
    )
    for rank in range(3):
        written_by_torch = pickle.loads((SAMPLE / "pickles" / f"gloo_rank_{rank}").read_bytes())
        times = [each["time_created_ns"] for each in written_by_torch["entries"]]
        zero = trace.info.started_unix_ns
        spans = trace.sql(f"select start_ns from spans where process = {rank} order by start_ns").to_pylist()
        assert [int(str(row["start_ns"])) + zero for row in spans] == times


def test_json_has_the_same_answers_without_stacks(tmp_path: Path) -> None:
    trace = strobe.open(SAMPLE / "json")
    assert answers(trace) == {("0", 5): ({1}, {})}
    assert "([32] Double); rank 1 has not called it, its last call is all_gather 4" in sentence(trace)


def test_the_verb_prints_the_sentence_and_a_row_per_rank(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = written(tmp_path / "job", BY_NAME["missing"].dumps)
    assert main(["unfinished", str(folder)]) == 0
    printed = capsys.readouterr()
    assert "rank 2 has not called it" in " ".join((printed.out + printed.err).split())
    assert printed.out.count("started") == 3


# Files that are broken, or made to harm


class _Harm:
    def __reduce__(self) -> Any:
        return print, ("executed",)


def test_nothing_in_a_pickle_is_executed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = dump([entry(0)], {WORLD: range(1)})
    made["entries"][0]["state"] = _Harm()
    folder = written(tmp_path / "job", {0: made})
    with pytest.raises(FormatError, match="more than numbers, texts, lists and dictionaries") as refused:
        strobe.open(folder)
    assert "nccl_trace_rank_0" in str(refused.value)
    assert "executed" not in capsys.readouterr().out


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_tuples_in_tuples_are_refused(tmp_path: Path, protocol: int) -> None:
    head = pickle.dumps({"version": "2.10", "pg_config": {}, "entries": []}, protocol)[:-1]
    pair = b"X\x01\x00\x00\x00a" + b"X\x01\x00\x00\x00b\x86" * 200_000
    (tmp_path / "nccl_trace_rank_0").write_bytes(head + b"(" + pair + b"K\x01u.")
    with pytest.raises(FormatError, match="more than numbers"):
        strobe.open(tmp_path / "nccl_trace_rank_0")


@pytest.mark.parametrize(
    ("remember", "get"),
    [
        (b"q\xc8", b"h\xc8"),
        (b"q\xc7q\xc8", b"h\xc8"),  # under two numbers
        (b"(eq\xc8", b"h\xc8"),  # after adding nothing to it
        (b"r\xc8\0\0\0", b"j\xc8\0\0\0"),
    ],
)
def test_a_tuple_that_is_remembered_is_not_put_into_another(tmp_path: Path, remember: bytes, get: bytes) -> None:
    """As a key of a dictionary it would overflow the stack of the interpreter."""
    head = pickle.dumps({"version": "2.10", "pg_config": {}, "entries": []}, 2)[:-1]
    first = b"X\x01\x00\x00\x00aq\xc8X\x01\x00\x00\x00b\x86" + remember
    more = (get + b"X\x01\x00\x00\x00b\x86" + remember) * 200_000
    (tmp_path / "nccl_trace_rank_0").write_bytes(head + b"(" + first + more + get + b"K\x01u.")
    with pytest.raises(FormatError, match="more than numbers"):
        strobe.open(tmp_path / "nccl_trace_rank_0")


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_pickles_of_all_protocols_are_read(tmp_path: Path, protocol: int) -> None:
    for rank, each in BY_NAME["two groups"].dumps.items():
        (tmp_path / f"fr_{rank}.pkl").write_bytes(pickle.dumps(each, protocol))
    assert answers(strobe.open(tmp_path)) == BY_NAME["two groups"].answers


def test_entries_without_a_group_a_name_or_a_time_are_left_out(tmp_path: Path) -> None:
    sound = [entry(i) for i in range(3)]
    broken = [{**entry(3), "process_group": 7}, {**entry(4), "time_created_ns": None}, 5, {"record_id": 9}]
    trace = strobe.open(written(tmp_path / "job", {0: dump([*sound, *broken], {WORLD: range(1)})}))  # type: ignore[list-item]
    assert trace.span_count == 3
    counted = {str(row["what"]): row["value"] for row in trace.quality.to_pylist()}
    assert counted["records_taken"] == 3
    assert counted["records_left_out"] == 4
    assert counted["damaged_records"] == 3
    assert counted["events_without_time"] == 1


def test_a_dump_without_entries_is_refused_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "nccl_trace_rank_0.json"
    path.write_text(json.dumps({"comm_lib_version": "2.27.5", "pg_config": {}, "version": "2.10"}))
    with pytest.raises(FormatError, match="it has no entries"):
        strobe.open(path)


@pytest.mark.parametrize("field", ["input_sizes", "output_sizes", "input_dtypes", "output_dtypes", "state", "frames"])
@pytest.mark.parametrize("value", [None, 7, "x", [5], [[None]], [[[1]]], {"a": 1}])
def test_fields_of_a_wrong_type_stop_no_answer(tmp_path: Path, field: str, value: object) -> None:
    dumps = dict(BY_NAME["missing"].dumps)
    last = {**dumps[0]["entries"][-1], field: value}
    dumps[0] = {**dumps[0], "entries": [*dumps[0]["entries"][:-1], last]}
    trace = strobe.open(written(tmp_path / "job", dumps))
    assert "rank 2 has not called it" in sentence(trace)
    assert [row["rank"] for row in trace.unfinished().to_pylist()] == [0, 1, 2, 3]


def test_dumps_without_ranks_are_stated(tmp_path: Path) -> None:
    path = tmp_path / "a dump"
    path.write_bytes(pickle.dumps(BY_NAME["missing"].dumps[0], 4))
    assert "of unknown ranks" in sentence(strobe.open(path))
