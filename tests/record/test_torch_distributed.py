"""Collectives of torch.distributed as the program itself counts them: real torchrun, two ranks, gloo."""

import json
import re
import shlex
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import strobe
from strobe.advice.rank import findings
from strobe.cli.main import main
from tests.record.workshop import Workshop

pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.torch

GUIDE = Path(__file__).parents[2] / "docs/how-to/ranks.md"
PROGRAM = Path(__file__).with_name("distributed") / "collectives.py"
TORCHRUN = Path(sys.executable).with_name("torchrun")
ONE_THREAD = {"OMP_NUM_THREADS": "1"}


def said(beginning: str) -> str:
    """The command of the guide that begins like this."""
    (line,) = [line for line in GUIDE.read_text().splitlines() if line.startswith(beginning)]
    return line.partition("#")[0].strip()


@dataclass(frozen=True)
class Run:
    """A recorded run: its trace, and by rank what the program says that it asked for."""

    trace: Path
    asked: list[list[tuple[Any, ...]]]
    buckets: list[list[list[int]]]

    def rows(self, query: str) -> list[dict[str, Any]]:
        """Rows of a query; `c` are collectives with the rank of their process."""
        with strobe.open(self.trace) as trace:
            found = trace.sql(
                """with c as (select s.*, p.rank as job_rank from collective_spans s join processes p using (process))
                """
                + query
            )
            return found.to_arrow().to_pylist()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """`strobe run torchrun ...`, once for all tests."""
    workshop = Workshop(tmp_path_factory.mktemp("distributed"))
    path = {"PATH": f"{TORCHRUN.parent}:/usr/bin:/bin"}
    command = said("strobe run torchrun").replace("train.py", str(PROGRAM))
    done = workshop.recorded(*shlex.split(command)[2:], env={**ONE_THREAD, **path})
    assert done.returncode == 0, done.stderr
    assert "strobe" not in done.stderr
    told = [json.loads((workshop.folder / f"asked-{rank}.json").read_text()) for rank in range(2)]
    asked = [[tuple(each) for each in rank["asked"]] for rank in told]
    return Run(done.trace, asked, [rank["buckets"] for rank in told])


def test_bytes_types_groups_and_roots_are_what_the_program_counted(run: Run) -> None:
    for rank in range(2):
        rows = run.rows(
            f"""select collective, dtype, sent_bytes, received_bytes, root, group_ranks from c
            where job_rank = {rank} and bucket is null"""
        )
        found = Counter(tuple(row.values()) for row in rows)
        missing, more = Counter(run.asked[rank]) - found, found - Counter(run.asked[rank])
        assert not missing
        # DDP compares its models and broadcasts them when it is made, and tells how it has put its buckets together.
        assert {collective for collective, *_ in more} == {"all_gather", "broadcast"}
        assert sum(more.values()) == 5
    pairs = run.rows("select distinct \"group\" as name from c where group_ranks = '[0, 1]'")
    assert len(pairs) == 2  # the group of all, and the one that the program made


def test_ranks_agree_on_the_number_of_every_collective(run: Run) -> None:
    rows = run.rows(
        """select "group", group_ranks, sequence, count(*)::bigint as n, count(distinct job_rank)::bigint as ranks,
        count(distinct collective || coalesce(dtype, ''))::bigint as kinds, any_value(group_size) as size from c
        where sequence is not null group by all"""
    )
    assert len(rows) == len(run.rows('select distinct sequence, group_ranks, "group" from c where sequence > 0'))
    for row in rows:
        assert (row["n"], row["ranks"], row["kinds"]) == (row["size"], row["size"], 1), row
    without = {row["collective"] for row in run.rows("select collective from c where sequence is null")}
    assert without == {"send", "recv"}


def test_every_bucket_of_every_backward_pass(run: Run) -> None:
    for rank in range(2):
        rows = run.rows(
            f"select bucket, sent_bytes, collective from c where job_rank = {rank} and bucket is not null"
            " order by sequence"
        )
        assert len(run.buckets[rank]) == 3
        assert len(run.buckets[rank][-1]) >= 2
        expected = [(number, size) for sizes in run.buckets[rank] for number, size in enumerate(sizes)]
        assert [(row["bucket"], row["sent_bytes"]) for row in rows] == expected
        assert {row["collective"] for row in rows} == {"all_reduce"}


def test_a_row_belongs_to_the_span_that_runs_the_collective(run: Run) -> None:
    rows = run.rows(
        """select name, thread, pending_ns, duration_ns, collective from c where collective is not null
        and collective not in ('send', 'recv')"""
    )
    on_threads = [row for row in rows if row["pending_ns"] is not None]
    assert {row["thread"] for row in on_threads} == {"pt_gloo_runloop"}
    assert all(row["name"].startswith("gloo:") and row["pending_ns"] > 0 for row in on_threads)
    # What the observer does not see has a row at the call.
    assert [(row["name"], row["collective"]) for row in rows if row["pending_ns"] is None] == [
        ("c10d::allreduce_", "all_reduce")
    ] * 2


COMPILED = """
import os, torch
import torch.distributed as dist
dist.init_process_group("gloo", init_method=f"file://{os.getcwd()}/meet", rank=0, world_size=1)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
step = torch.compile(model, backend="eager")
for _ in range(3):
    step(torch.ones(4, 8)).sum().backward()
print(float(model.module.weight.grad.sum()))
dist.destroy_process_group()
"""


def test_compiled_code_that_runs_collectives_runs_as_it_does_without_us(workshop: Workshop) -> None:
    # torch.compile takes what it meets in Python apart, and warns of what it cannot: our kernel is none of that.
    done = workshop.recorded("-c", COMPILED, env=ONE_THREAD)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == 4.0 * 3 * 8 * 8
    assert "UserWarning" not in done.stderr
    with strobe.open(done.trace) as trace:
        rows = trace.sql("select name, thread from collective_spans where bucket is not null").to_arrow().to_pylist()
    assert rows == [{"name": "gloo:all_reduce", "thread": "pt_gloo_runloop"}] * 3


def test_sums_of_a_process_are_those_of_its_collectives(run: Run) -> None:
    rows = run.rows("select coalesce(sum(sent_bytes), 0)::bigint as sent, sum(received_bytes)::bigint as got from c")
    sums = run.rows("select sum(sent_bytes)::bigint as sent, sum(received_bytes)::bigint as got from message_totals")
    assert rows == sums
    with strobe.open(run.trace) as trace:
        told = trace.quality.to_arrow().to_pylist()
    found = [(row["what"], row["value"]) for row in told if row["what"].startswith(("collectives_", "not_recorded"))]
    # The broadcast that gloo refuses, on each rank.
    assert found == [("collectives_without_row", 1)] * 2


def test_analyses_see_sizes_bandwidths_and_who_came_last(run: Run) -> None:
    with strobe.open(run.trace) as trace:
        rows = trace.collectives().to_arrow().to_pylist()
        late = {row["rank"]: row for row in trace.stragglers().to_arrow().to_pylist()}
    for rank in range(2):
        own = [row for row in rows if row["rank"] == rank and row["group_size"] == 2]
        sizes = {"allreduce": 0, "allgather": 0, "reducescatter": 0, "broadcast": 0}
        for row in own:
            if row["collective"] in sizes:
                sizes[row["collective"]] += row["size_bytes"]
        # As nccl-tests counts: the buffer of an all-reduce or a broadcast, all parts of the others.
        asked = run.asked[rank]
        reduced = sum(sent for kind, _, sent, _, _, ranks in asked if kind == "all_reduce" and ranks == "[0, 1]")
        reduced -= 16  # asked for by a thread that nobody observes: it has no time
        assert sizes["allreduce"] == reduced + sum(sum(each) for each in run.buckets[rank])
        assert sizes["reducescatter"] == 32
        assert sizes["broadcast"] >= 56
        factor = {"allreduce": 1.0, "allgather": 0.5, "reducescatter": 0.5, "alltoall": 0.5, "broadcast": 1.0}
        for row in own:
            if row["collective"] in factor:
                assert row["algbw_gb_s"] * row["total_ns"] == pytest.approx(row["size_bytes"])
                assert row["busbw_gb_s"] == pytest.approx(row["algbw_gb_s"] * factor[row["collective"]])
    assert sorted(late) == [0, 1]
    assert late[0]["collectives"] == late[1]["collectives"] >= 30


def test_messages_are_those_that_the_program_sent_and_received(workshop: Workshop) -> None:
    program = str(PROGRAM.with_name("messages.py"))
    done = workshop.recorded("--", str(TORCHRUN), "--nproc-per-node", "2", program, env=ONE_THREAD)
    assert done.returncode == 0, done.stderr
    told = [json.loads((workshop.folder / f"noted-{rank}.json").read_text()) for rank in range(2)]
    with strobe.open(done.trace) as trace:
        rows = trace.sql(
            """select p.rank as own, m.* from messages m join locations using (location) join processes p
            using (process) order by time_ns"""
        ).to_pylist()
        waits = trace.sql("select max(duration_ns) as ns from spans where name = 'gloo:wait'").to_pylist()
        cut = trace.sql("select count(*)::bigint as n from spans where not complete").to_pylist()
    for rank in range(2):
        columns = ("direction", "communicator", "peer_rank", "tag", "size_bytes")
        found = [[row[name] for name in columns] for row in rows if row["own"] == rank]
        assert sorted(found) == sorted(told[rank]["noted"])
    # Each was sent before it was received, in the same order between the same ranks.
    sent, received = ([row for row in rows if row["direction"] == way] for way in ("send", "receive"))
    for sender in range(2):
        for key in {(row["communicator"], row["tag"]) for row in rows}:
            pairs = zip(
                [row for row in sent if row["own"] == sender and (row["communicator"], row["tag"]) == key],
                [row for row in received if row["own"] != sender and (row["communicator"], row["tag"]) == key],
                strict=True,
            )
            assert all(a["size_bytes"] == b["size_bytes"] and a["time_ns"] < b["time_ns"] for a, b in pairs)
    first = next(row for row in received if row["tag"] == 3)
    assert 0.7 * told[1]["waited_ns"] < waits[0]["ns"] < first["pending_ns"] < told[1]["waited_ns"]
    assert cut == [{"n": 0}]


def test_clocks_of_nodes_are_checked_by_messages_of_gloo(workshop: Workshop) -> None:
    shifted = ["sh", "-c", 'test $RANK = 0 || export STROBE_CLOCK_SHIFT_NS=250000000; exec "$@"', "sh"]
    program = workshop.command(str(PROGRAM.with_name("messages.py")))
    torchrun = [str(TORCHRUN), "--no-python", "--nproc-per-node", "2"]
    done = workshop.plain("--", *torchrun, *shifted, *program, env=ONE_THREAD)
    assert done.returncode == 0, done.stderr
    with strobe.open(workshop.trace) as trace:
        checked = {row["what"]: row["value"] for row in trace.quality.to_pylist() if row["process"] is None}
    assert checked["messages_checked"] == sum(
        each[0] == "send"
        for rank in range(2)
        for each in json.loads((workshop.folder / f"noted-{rank}.json").read_text())["noted"]
    )


@pytest.mark.parametrize("beginning", ["strobe collectives", "strobe stragglers", "strobe sql"])
def test_the_commands_of_the_guide_answer(run: Run, beginning: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = shlex.split(said(beginning).replace("train.strobe", str(run.trace)))
    assert main([*words[1:], "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["rows"]) > 1


def test_ranks_that_each_run_strobe_share_one_trace(workshop: Workshop) -> None:
    workshop.write("program.py", "import os\nos.write(1, (os.environ['RANK'] + ' 42\\n').encode())\n")
    strobe_run = workshop.command("program.py")
    launcher, _, _ = said("torchrun").partition(" strobe run")
    done = workshop.plain("--", str(TORCHRUN), *shlex.split(launcher)[1:], *strobe_run, env=ONE_THREAD)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split("\n")) == ["", "0 42", "1 42"]
    assert [each.name for each in workshop.folder.glob("*.strobe")] == ["out.strobe"]
    with strobe.open(workshop.trace) as trace:
        processes = trace.processes.to_arrow().to_pylist()
    assert [each["main"] for each in processes] == [True, True]
    assert not list(workshop.trace.glob("rank-*"))


def test_waits_on_threads_of_gloo_are_no_useful_time_and_due_to_the_work_of_the_late_rank(workshop: Workshop) -> None:
    """The main threads compute, or wait for their optimizer's gradients in a call that nobody records."""
    program = Path(__file__).parents[2] / "examples/train_ranks.py"
    path = {"PATH": f"{TORCHRUN.parent}:/usr/bin:/bin"}
    done = workshop.recorded("torchrun", "--nproc-per-node", "3", str(program), env={**ONE_THREAD, **path})
    assert done.returncode == 0, done.stderr
    with strobe.open(done.trace) as trace:
        note = trace.efficiency().note
        (found,) = (each for each in findings(trace) if each.rule == "rank.waits")
    assert re.match(r"ranks wait for one another \d\d % of their steps on other threads than the main ones", note), note
    why = r"for rank 2, because of `read_shard`, ([\d.]+) ms of a step there and [\d.]+ [mun]s on the other ranks"
    late = re.search(why, found.what)
    assert late, found.what
    assert float(late[1]) >= 5  # it sleeps for longer than that
    assert "train_ranks.py:" in found.where
