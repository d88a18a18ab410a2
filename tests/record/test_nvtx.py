"""NVTX of programs: domains, strings, ranges that end elsewhere, and what NCCL says of its calls in payloads."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import strobe
from strobe.gpu.devices import devices
from tests.record.workshop import Workshop, nvtx_headers, quality_of

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

HERE = Path(__file__).parent
CALLS = 5
COMMUNICATOR = "0x1234567890abcdef"


@pytest.fixture(scope="session")
def headers() -> Path:
    """The genuine NVTX's folder of headers."""
    return nvtx_headers()


@pytest.fixture(scope="session")
def client(headers: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that speaks as NCCL does."""
    program = tmp_path_factory.mktemp("nccl") / "client"
    flags = ["-O1", "-pthread", f"-I{headers}", "-o", str(program), str(HERE / "nccl_client.c"), "-ldl"]
    subprocess.run(["gcc", *flags], check=True)
    return program


def rows(trace: strobe.Trace, sql: str) -> list[tuple[object, ...]]:
    """What a question has for an answer."""
    return [tuple(row.values()) for row in trace.sql(sql).to_arrow().to_pylist()]


@pytest.fixture(scope="module")
def ranks(client: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[strobe.Trace]:
    """Two ranks that call NCCL, and see nothing of being recorded. The first one sends, the second one comes late."""
    workshop = Workshop(tmp_path_factory.mktemp("ranks"))
    (workshop.folder / "arrived").write_bytes(bytes(4096))
    both = " & ".join(f"{client} {rank} 2 {CALLS} arrived > {rank}.txt" for rank in (0, 1))
    assert workshop.recorded("--", "sh", "-c", f"{both} & wait").visible == ("", "", 0)
    assert [(workshop.folder / f"{rank}.txt").read_text() for rank in (0, 1)] == ["rank 0: 1\n", "rank 1: 1\n"]
    with strobe.open(workshop.trace) as trace:
        yield trace


def processes(trace: strobe.Trace) -> list[int]:
    """The processes of rank 0 and 1."""
    found = dict(rows(trace, "select distinct name, process from spans where name in ('ncclSend', 'ncclRecv')"))
    return [int(str(found[name])) for name in ("ncclSend", "ncclRecv")]


def test_declarations_are_those_of_the_genuine_headers(headers: Path, tmp_path: Path) -> None:
    pairs = {
        "Attributes nvtxEventAttributes_t": "version size category color_type=colorType color payload_type=payloadType"
        " payload_count=reserved0 payload message_type=messageType message",
        "Data nvtxPayloadData_t": "schema=schemaId size bytes=payload",
        "SchemaEntry nvtxPayloadSchemaEntry_t": "flags type name description detail=arrayOrUnionDetail offset semantics"
        " reserved",
        "SchemaAttributes nvtxPayloadSchemaAttr_t": "fields=fieldMask name type flags entries entry_count=numEntries"
        " static_size=payloadStaticSize pack_align=packAlign id=schemaId extension",
        "EnumAttributes nvtxPayloadEnumAttr_t": "fields=fieldMask name entries entry_count=numEntries"
        " size_of_enum=sizeOfEnum id=schemaId extension",
        "ModuleSegment nvtxExtModuleSegment_t": "id=segmentId slot_count=slotCount slots=functionSlots",
        "ModuleInfo nvtxExtModuleInfo_t": "nvtx_version=nvtxVer struct_size=structSize module=moduleId"
        " compatible=compatId segment_count=segmentsCount segments get_export=getExportFunction more=extInfo",
    }
    asserts = [
        "static_assert(strobe::nvtx::kExtendedPayload == NVTX_PAYLOAD_TYPE_EXT);",
        "static_assert(strobe::nvtx::kFirstDynamicId == NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START);",
        "static_assert(strobe::nvtx::kPayloadModule == NVTX_EXT_PAYLOAD_MODULEID);",
        "static_assert(NVTX_EXT_PAYLOAD_COMPATID >> 8 == 1);",
        "static_assert(strobe::nvtx::kUnicode == int(NVTX_MESSAGE_TYPE_UNICODE));",
        "static_assert(strobe::nvtx::kRegisteredMessage == int(NVTX_MESSAGE_TYPE_REGISTERED));",
    ]
    slots = ("SchemaRegister", "EnumRegister", "Mark", "RangePush", "RangePop", "RangeStart", "RangeEnd")
    for slot, name in enumerate(slots):
        of = f"nvtxPayload{name}" if "Register" in name else f"nvtx{name}Payload"
        asserts.append(f"static_assert(NVTX3EXT_CBID_{of} == {slot});")
    asserts.append("static_assert(NVTX3EXT_CBID_nvtxDomainIsEnabled == 7);")
    for types, members in pairs.items():
        ours, theirs = types.split()
        asserts.append(f"static_assert(sizeof(strobe::nvtx::{ours}) == sizeof({theirs}));")
        for member in members.split():
            own, _, other = member.partition("=")
            here, there = f"strobe::nvtx::{ours}, {own}", f"{theirs}, {other or own}"
            asserts.append(f"static_assert(offsetof({here}) == offsetof({there}));")
    source = tmp_path / "layouts.cpp"
    includes = ["<stddef.h>", "<nvtx3/nvToolsExt.h>", "<nvtx3/nvToolsExtPayload.h>", '"adapters/nvtx/nvtx_payload.h"']
    source.write_text("\n".join([*(f"#include {name}" for name in includes), *asserts]), encoding="utf-8")
    native = HERE.parents[1] / "native"
    command = ["g++", "-std=c++20", "-fsyntax-only", f"-I{headers}", f"-I{native}", str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_calls_of_nccl_say_what_a_rank_puts_in_and_gets_out(ranks: strobe.Trace) -> None:
    found = rows(
        ranks,
        "select l.process, c.collective, c.root, c.sent_bytes, c.received_bytes, c.group_size, count(*) as calls"
        f" from collective_spans c join locations l using (location) where c.\"group\" = '{COMMUNICATOR}'"
        " and c.collective <> 'reduce' group by all",
    )
    first, second = processes(ranks)
    # Of two ranks. NCCL says the bytes of one message.
    alike = {("all_reduce", None, 1000, 1000), ("all_gather", None, 200, 400), ("reduce_scatter", None, 600, 300)}
    expected = {(process, *each, 2, CALLS) for process in (first, second) for each in alike}
    expected |= {(first, "broadcast", 1, 0, 500, 2, CALLS), (second, "broadcast", 1, 500, 0, 2, CALLS)}
    expected |= {(first, "send", 1, 70, 0, 2, CALLS), (second, "recv", 0, 0, 70, 2, CALLS)}
    assert set(found) == expected
    totals = rows(
        ranks,
        "select sum(calls)::int, sum(sent_bytes)::int, sum(received_bytes)::int from message_totals"
        " where function = 'ncclAllGather'",
    )
    assert totals == [(2 * CALLS, 2 * CALLS * 200, 2 * CALLS * 400)]


def test_collectives_are_counted_by_communicator_and_messages_are_not(ranks: strobe.Trace) -> None:
    found = rows(
        ranks,
        "select l.process, c.collective, list(c.sequence order by c.sequence) from collective_spans c"
        f" join locations l using (location) where c.\"group\" = '{COMMUNICATOR}' group by all",
    )
    numbers = {(process, collective): sequence for process, collective, sequence in found}
    first, second = processes(ranks)
    for process in (first, second):
        assert numbers[process, "all_reduce"] == [1 + 4 * i for i in range(CALLS)]
        assert numbers[process, "broadcast"] == [4 + 4 * i for i in range(CALLS)]
        assert numbers[process, "reduce"] == [4 * CALLS + 1]
    assert numbers[first, "send"] == numbers[second, "recv"] == [None] * CALLS


def test_other_communicators_threads_and_older_versions_of_nccl_are_told_apart(ranks: strobe.Trace) -> None:
    found = rows(
        ranks,
        'select distinct c."group", c.collective, c.sequence, c.sent_bytes, c.received_bytes, c.group_size, l.name ='
        " 'main thread' from collective_spans c join locations l using (location)"
        f" where coalesce(c.\"group\", '') <> '{COMMUNICATOR}' or c.collective = 'reduce'",
    )
    assert set(found) == {
        ("0x000000000000beef", "all_reduce", 1, 64, 64, 2, False),
        (None, "all_reduce", None, 42, 42, None, True),
        (COMMUNICATOR, "reduce", 4 * CALLS + 1, None, None, 2, True),  # its payload ends before the bytes
    }


def test_ranges_of_nccl_end_with_payloads_and_have_roles(ranks: strobe.Trace) -> None:
    found = rows(ranks, "select name, role, count(*), max(depth) from spans where paradigm = 'nvtx' group by all")
    spans = {name: (role, count, depth) for name, role, count, depth in found}
    assert spans["ncclAllReduce"] == ("collective", 2 * (CALLS + 2), 0)
    assert spans["ncclCommInitRank"] == spans["ncclCommSplit"] == spans["ncclCommDestroy"] == ("range", 2, 0)
    assert (spans["ncclSend"][0], spans["ncclRecv"][0]) == ("p2p", "p2p")
    assert quality_of(ranks.path, "nvtx_pops_without_push") == 2


def test_collectives_of_nccl_have_bytes_and_no_bandwidth_without_kernels(ranks: strobe.Trace) -> None:
    table = ranks.collectives()
    found = {(row["process"], row["collective"], row["group"]): row for row in table.to_arrow().to_pylist()}
    for process in processes(ranks):
        row = found[process, "allreduce", COMMUNICATOR]
        assert (row["calls"], row["in_bytes"], row["out_bytes"], row["group_size"]) == (CALLS, 5000, 5000, 2)
        assert row["total_ns"] >= CALLS * 200_000  # each takes 0.2 ms
        assert (row["algbw_gb_s"], row["busbw_gb_s"], row["peak_busbw_gb_s"]) == (None, None, None)
    calls = sum(row["calls"] for row in found.values())
    assert table.note.startswith(f"the times of {calls} collectives are those of NCCL's calls")


def test_who_comes_late_to_collectives_of_nccl_is_named(ranks: strobe.Trace) -> None:
    table = ranks.stragglers()
    rows_ = {row["process"]: row for row in table.to_arrow().to_pylist()}
    first, second = processes(ranks)
    # Of each turn's four the broadcast is none that all wait for; the second rank sleeps 50 ms before them.
    assert rows_[first]["collectives"] == rows_[second]["collectives"] == 3 * CALLS + 1
    assert rows_[second]["last"] > 2 * CALLS > CALLS > rows_[first]["last"]
    assert rows_[second]["delay_ns"] > CALLS * 50_000_000
    assert table.note.startswith(f"process {second} is late: it came last to ")


def test_domains_texts_and_ranges_that_end_elsewhere_of_the_python_package(workshop: Workshop) -> None:
    workshop.write(
        "program.py",
        """
        import threading
        import nvtx

        one, two = nvtx.get_domain("one"), nvtx.get_domain("two")
        for domain in (one, two):
            attributes = domain.get_event_attributes("gleich, größer 😀", color="red", category="kind", payload=2.5)
            domain.push_range(attributes)
            domain.pop_range()
        with nvtx.annotate("gleich, größer 😀", category="kind", payload=7):
            pass
        one.pop_range()
        nvtx.pop_range()
        started = [nvtx.start_range(f"overlaps {i}") for i in range(3)]
        other = threading.Thread(target=lambda: [nvtx.end_range(each) for each in started])
        other.start()
        other.join()
        nvtx.end_range(started[0])
        print(len(set(started)))
        """,
    )
    assert workshop.recorded("program.py").visible == ("3\n", "", 0)
    with strobe.open(workshop.trace) as trace:
        found = rows(
            trace,
            "select s.name, r.module, count(*) from spans s join regions r using (region) where s.paradigm = 'nvtx'"
            " group by all order by 2",
        )
    nested = [("gleich, größer 😀", module, 1) for module in ("", "one", "two")]
    assert sorted(found) == sorted([*nested, *((f"overlaps {i}", "", 1) for i in range(3))])
    assert quality_of(workshop.trace, "nvtx_pops_without_push") == 3
    assert not quality_of(workshop.trace, "nvtx_start_end_ranges_not_recorded")


def test_start_end_ranges_lie_beside_the_threads(workshop: Workshop) -> None:
    workshop.write(
        "program.py",
        """
        import threading, time
        import nvtx

        domain = nvtx.get_domain("requests")
        attributes = domain.get_event_attributes("request")
        requests = [domain.start_range(attributes) for _ in range(3)]
        left = nvtx.start_range("never over")
        time.sleep(0.02)
        threads = [threading.Thread(target=domain.end_range, args=(request,)) for request in requests]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for _ in range(2):
            nvtx.end_range(nvtx.start_range("alone"))
        """,
    )
    assert workshop.recorded("program.py").visible == ("", "", 0)
    assert quality_of(workshop.trace, "nvtx_ranges_never_ended") == 1
    with strobe.open(workshop.trace) as trace:
        found = rows(
            trace,
            "select l.name as location, l.kind, l.device, s.name, r.module, r.role, count(*) from spans s"
            " join locations l using (location) join regions r using (region) where s.paradigm = 'nvtx'"
            " group by all order by 1, 4",
        )
        request, alone = ("request", "requests", "range", 1), ("alone", "", "range", 2)
        of_task = ("task", None)
        assert found == [
            ("NVTX ranges", *of_task, *alone),
            ("NVTX ranges", *of_task, *request),
            ("NVTX ranges (lane 2)", *of_task, *request),
            ("NVTX ranges (lane 3)", *of_task, *request),
        ]
        # They are no GPU's, not the work of a thread in the profile, and ranges as others.
        assert devices(trace) == []
        assert "request" not in [row["name"] for row in trace.profile().to_arrow().to_pylist()]
        table = {row["name"]: row for row in trace.ranges().to_arrow().to_pylist()}
        assert (table["request"]["calls"], table["alone"]["calls"], table["request"]["projected"]) == (3, 2, 0)
        assert 3 * 20_000_000 <= table["request"]["total_ns"] < 3 * 10_000_000_000


def test_ranges_that_ended_before_a_kill_are_there(workshop: Workshop) -> None:
    workshop.write(
        "program.py",
        """
        import os, signal
        import nvtx

        open_ranges = [nvtx.start_range("over") for _ in range(2000)]
        for each in open_ranges[:1000:50]:
            nvtx.end_range(each)
        for _ in range(1000):
            nvtx.end_range(nvtx.start_range("alone"))
        os.kill(os.getpid(), signal.SIGKILL)
        """,
    )
    workshop.recorded("program.py")
    with strobe.open(workshop.trace) as trace:
        of = "select s.name, l.kind, count(*) from spans s join locations l using (location) where s.paradigm = 'nvtx'"
        assert rows(trace, f"{of} group by all order by 1") == [("alone", "task", 1000), ("over", "task", 20)]


@pytest.mark.parametrize("kept", [0, 5])
def test_start_end_ranges_follow_their_iteration_and_none_is_lost(workshop: Workshop, kept: int) -> None:
    workshop.write(
        "program.py",
        """
        import time
        import nvtx
        import strobe

        over = None
        for number in range(300):
            with_end = nvtx.start_range("within")
            time.sleep(0.0005)
            nvtx.end_range(with_end)
            if over is not None:
                nvtx.end_range(over)
            over = nvtx.start_range("into the next")
            strobe.step()
        nvtx.end_range(over)
        """,
    )
    assert workshop.recorded("--keep", str(kept), "program.py").visible == ("", "", 0)
    with strobe.open(workshop.trace) as trace:
        of = "where name in ('within', 'into the next') group by name order by name"
        spans = dict(rows(trace, f"select name, count(*) from spans {of}"))
        sums = dict(rows(trace, f"select name, sum(count)::int from statistics {of}"))
        # What threads do is the profile; folded or not, these are of none.
        assert not {"within", "into the next"} & {row["name"] for row in trace.profile().to_arrow().to_pylist()}
    for name in ("within", "into the next"):
        assert int(str(spans.get(name, 0))) + int(str(sums[name])) == 300
        assert int(str(sums[name])) > 100


def test_what_pytorch_asks_nccl_for_counts_once(workshop: Workshop, headers: Path) -> None:
    workshop.write(
        "call.c",
        """
        #include <nvtx3/nvToolsExt.h>
        void call(void) {
          static nvtxDomainHandle_t domain;
          nvtxEventAttributes_t event = {0};
          if (!domain) domain = nvtxDomainCreateA("NCCL");
          event.version = NVTX_VERSION, event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
          event.messageType = NVTX_MESSAGE_TYPE_ASCII, event.message.ascii = "ncclAllReduce";
          nvtxDomainRangePushEx(domain, &event);
          nvtxDomainRangePop(domain);
        }
        """,
    )
    library = workshop.folder / "call.so"
    flags = ["-shared", "-fPIC", f"-I{headers}", "-o", str(library), str(workshop.folder / "call.c"), "-ldl"]
    subprocess.run(["gcc", *flags], check=True)
    # What the adapter of torch.distributed does around c10d's operators, and PyTorch's range inside of them.
    workshop.write(
        "program.py",
        """
        import ctypes
        from strobe.native import core

        call = ctypes.CDLL("./call.so").call
        region = core.region("nccl:all_reduce", 2, 10, module="PyTorch")
        text, none = core.text, core.NOTHING_32
        for number in range(3):
            core.collective_begin(text("all_reduce"), text("Float"), text("0"), text("[0, 1]"), 2, number + 1, none,
                                  none, 4000, 4000, region, none, False)
            call(), call()
            core.collective_end()
        """,
    )
    assert workshop.recorded("program.py").visible == ("", "", 0)
    with strobe.open(workshop.trace) as trace:
        (row,) = trace.collectives().to_arrow().to_pylist()
        assert trace.sql("select 1 from spans where name = 'ncclAllReduce'").to_arrow().num_rows == 6
    assert (row["group"], row["group_ranks"], row["dtype"], row["calls"]) == ("0", "[0, 1]", "Float", 3)
    assert (row["in_bytes"], row["out_bytes"], row["busbw_gb_s"]) == (12000, 12000, None)
