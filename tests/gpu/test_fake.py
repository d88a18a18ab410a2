"""The fake driver and the fake CUPTI do what they say, and refuse what the genuine ones refuse."""

import json
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.gpu import fake_cuda

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")

BEGIN = """
import ctypes, json, os, threading, time
import fake_cuda
from cupti_client import Client
from fake_cuda import *
gpu = Gpu()
"""


def run(program: str, truth: Path | None = None, release: str = "13.0", **settings: object) -> Any:
    """What the program prints, as JSON; it has a Gpu called gpu."""
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + textwrap.dedent(program)],
        env=fake_cuda.environment(release, truth, **settings),
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_records_of_enabled_kinds_only_and_as_the_driver_says(tmp_path: Path) -> None:
    told = run(
        """
        client = Client()
        enabled = client.start(CONCURRENT_KERNEL, RUNTIME, SYNCHRONIZATION)
        stream = gpu.stream()
        for size in (1, 2, 3):
            gpu.launch("gemm", grid=(size, 1, 1), stream=stream, ns=size * 100_000)
        gpu.memcpy(1, 1 << 20, stream)
        gpu.synchronize(stream)
        client.flush()
        print(json.dumps([enabled, client.records, sorted(client.threads), threading.get_native_id()]))
        """,
        tmp_path / "truth",
    )
    enabled, records, threads, own = told
    assert enabled == [0, 0, 0]
    assert {record["kind"] for record in records} == {10, 5, 38}
    kernels = [record for record in records if record["kind"] == 10]
    truth = fake_cuda.read_truth(tmp_path / "truth", "kernel")
    assert [kernel["grid_x"] for kernel in kernels] == [1, 2, 3]
    assert [kernel["name"] for kernel in kernels] == ["gemm"] * 3
    for kernel, true in zip(kernels, truth, strict=True):
        assert kernel["correlation"] == true["correlation"]
        assert abs(kernel["start"] - true["start_ns"]) < 50_000
        assert abs(kernel["end"] - kernel["start"] - true["grid"][0] * 100_000) < 50_000
    launches = [record for record in records if record["kind"] == 5 and record["cbid"] == 211]
    assert [launch["correlation"] for launch in launches] == [kernel["correlation"] for kernel in kernels]
    assert {launch["thread"] for launch in launches} == {own}
    assert own not in threads  # buffers come back on another thread
    calls = {(call["name"], call["nested"]) for call in fake_cuda.read_truth(tmp_path / "truth", "call")}
    assert {("cudaLaunchKernel", False), ("cuLaunchKernel", True)} <= calls


def test_what_is_refused() -> None:
    told = run(
        """
        client = Client()
        cupti = client.cupti
        answers = {"flush first": client.flush()}
        answers["enable"] = client.start(CONCURRENT_KERNEL, 0, 59, KERNEL)
        answers["clock after enable"] = cupti.cuptiActivityRegisterTimestampCallback(client._now)
        answers["subscribe"] = [client.subscribe(), Client().subscribe()]
        answers["unsubscribe"] = [cupti.cuptiUnsubscribe(None), cupti.cuptiUnsubscribe(client.subscriber)]
        answers["again"] = client.subscribe()
        answers["pop"] = cupti.cuptiActivityPopExternalCorrelationId(3, None)
        value, size = ctypes.c_uint8(1), ctypes.c_size_t(1)
        both = ctypes.byref(size), ctypes.byref(value)
        answers["attributes"] = [cupti.cuptiActivitySetAttribute(number, *both) for number in (5, 2, 99)]
        print(json.dumps(answers))
        """
    )
    assert told == {
        "flush first": 7,
        "enable": [0, 21, 21, 14],
        "clock after enable": 14,
        "subscribe": [0, 39],
        "unsubscribe": [1, 0],
        "again": 0,
        "pop": 18,
        "attributes": [0, 10, 1],
    }


def test_codes_can_be_forced_and_another_tool_is_a_subscriber() -> None:
    program = """
        client = Client()
        print(json.dumps([client.start(CONCURRENT_KERNEL, MEMCPY, PEER), client.subscribe(), client.flush()]))
        """
    assert run(program, FAIL="ActivityEnable/22:27,ActivityFlushAll:999") == [[0, 0, 27], 0, 999]
    assert run(program, FAIL="ActivityEnable:35", OTHER_TOOL=1) == [[35, 35, 35], 39, 0]


def test_callbacks_only_as_enabled() -> None:
    told = run(
        """
        client = Client()
        client.start()
        client.subscribe()
        gpu.launch("unseen")
        before = list(client.callbacks)
        client.cupti.cuptiEnableCallback(1, client.subscriber, 2, 211)
        gpu.launch("seen"); gpu.memset(8)
        one = list(client.callbacks)
        client.callbacks.clear()
        client.cupti.cuptiEnableCallback(0, client.subscriber, 2, 211)
        client.cupti.cuptiEnableDomain(1, client.subscriber, 3)
        stream = gpu.stream()
        with gpu.capture(stream) as graph:
            gpu.launch("node", stream=stream)
        gpu.instantiate(graph)
        print(json.dumps([before, one, client.callbacks]))
        """
    )
    before, one, resources = told
    assert before == []
    assert one == [[2, 211, 0], [2, 211, 1]]
    # A stream, a graph, its node; then the executable graph's own node, made and cloned, and the executable graph.
    assert resources == [[3, cbid, 0] for cbid in (3, 9, 13, 13, 20, 18)]


def test_a_flush_gives_what_is_complete_and_a_forced_one_everything() -> None:
    told = run(
        """
        client = Client()
        client.start(CONCURRENT_KERNEL)
        gpu.launch("long", ns=300_000_000)
        client.flush()
        plain = len(client.records)
        client.flush(1)
        forced = [(record["name"], record["end"]) for record in client.of(10)]
        gpu.synchronize()
        client.flush()
        print(json.dumps([plain, forced, len(client.records)]))
        """
    )
    assert told == [0, [["long", 0]], 1]  # the record is used up


def test_buffers_are_filled_in_place_and_returned_when_full() -> None:
    told = run(
        """
        client = Client(size=2048)
        client.start(CONCURRENT_KERNEL)
        for number in range(20):
            gpu.launch("k", ns=1000); time.sleep(0.0005)
        gpu.synchronize(); time.sleep(0.1)
        returned = list(client.delivered)
        here = [bytes(memory)[0] for memory in client._buffers.values()]
        client.flush()
        print(json.dumps([returned, here, len(client.of(10))]))
        """
    )
    returned, here, kernels = told
    assert returned == [9 * 216, 9 * 216]
    assert here == [10, 10, 10]  # the third is not returned yet and has a record in it
    assert kernels == 20


@pytest.mark.parametrize(("release", "buffers"), [("12.8", 1), ("13.0", 2)])
def test_buffers_are_of_threads_from_13_0(release: str, buffers: int) -> None:
    told = run(
        """
        client = Client()
        client.start(CONCURRENT_KERNEL)
        gpu.launch("one")
        other = threading.Thread(target=gpu.launch, args=("two",))
        other.start(); other.join()
        gpu.synchronize()
        client.flush()
        print(json.dumps([len(client.delivered), sorted(record["name"] for record in client.of(10))]))
        """,
        release=release,
    )
    assert told == [buffers, ["one", "two"]]


def test_a_refused_buffer_loses_records_and_before_12_9_the_process() -> None:
    program = """
        client = Client(give=False)
        client.start(CONCURRENT_KERNEL)
        gpu.launch("k", ns=10); time.sleep(0.01); gpu.synchronize(); client.flush()
        dropped = ctypes.c_size_t()
        client.cupti.cuptiActivityGetNumDroppedRecords(None, 0, ctypes.byref(dropped))
        print(json.dumps([dropped.value, len(client.records)]))
        """
    assert run(program) == [1, 0]
    with pytest.raises(AssertionError, match="does not survive"):
        run(program, release="12.8")


def test_graphs_by_node_or_whole(tmp_path: Path) -> None:
    told = run(
        """
        client = Client()
        client.start(CONCURRENT_KERNEL)
        stream = gpu.stream()
        with gpu.capture(stream) as graph:
            gpu.launch("a", stream=stream, ns=5000); gpu.launch("b", stream=stream, ns=7000)
        executable = gpu.instantiate(graph)
        gpu.launch_graph(executable, stream); gpu.synchronize(stream); client.flush()
        nodes = client.of(10)
        client.cupti.cuptiActivityEnable(GRAPH_TRACE)
        gpu.launch_graph(executable, stream, runtime=False); gpu.synchronize(stream); client.flush()
        print(json.dumps([nodes, client.of(10)[len(nodes):], client.of(51)]))
        """,
        tmp_path / "truth",
    )
    nodes, later, whole = told
    truth = fake_cuda.read_truth(tmp_path / "truth", "kernel")
    assert [(node["name"], node["node"], node["graph"]) for node in nodes] == [
        (each["name"], each["node"], each["graph"]) for each in truth[:2]
    ]
    captured = {each["name"]: each["node"] for each in fake_cuda.read_truth(tmp_path / "truth", "node")}
    assert [each["source_node"] for each in truth[:2]] == [captured["a"], captured["b"]]
    assert {node["node"] for node in nodes}.isdisjoint(captured.values())
    assert nodes[0]["correlation"] == nodes[1]["correlation"] == truth[0]["correlation"]
    assert later == []
    assert len(whole) == 1
    assert abs(whole[0]["end"] - whole[0]["start"] - 12_000) < 10_000


def test_single_calls_can_be_enabled_from_12_6() -> None:
    told = run(
        """
        client = Client()
        client.start(RUNTIME)
        client.cupti.cuptiActivityEnableRuntimeApi(51, 0)
        client.cupti.cuptiActivityEnableDriverApi(307, 1)
        gpu.launch("k", runtime=False); gpu.memset(8); gpu.launch("k"); client.flush()
        print(json.dumps([(record["kind"], record["cbid"]) for record in client.records]))
        """
    )
    assert told == [[4, 307], [4, 307], [5, 211]]


def test_objects_that_are_there_already_are_told_on_request() -> None:
    told = run(
        """
        client = Client()
        other = gpu.stream()
        client.start()
        plain = [client.cupti.cuptiActivityEnable(kind) for kind in (DEVICE, CONTEXT, STREAM)]
        client.flush(); first = len(client.records)
        dumped = [client.cupti.cuptiActivityEnableAndDump(kind) for kind in (DEVICE, CONTEXT, STREAM)]
        client.flush()
        print(json.dumps([first, [(record["kind"]) for record in client.records]]))
        """
    )
    assert told == [0, [8, 9, 37, 37]]


def test_the_clock_is_the_clients_even_where_the_gpus_drifts(tmp_path: Path) -> None:
    told = run(
        """
        client = Client()
        client.start(CONCURRENT_KERNEL)
        time.sleep(0.5)
        gpu.launch("k", ns=1_000_000); gpu.synchronize(); client.flush()
        print(json.dumps(client.of(10)[0]))
        """,
        tmp_path / "truth",
        DRIFT_PPM=2000,
    )
    (true,) = fake_cuda.read_truth(tmp_path / "truth", "kernel")
    assert abs(told["start"] - true["start_ns"]) < 100_000  # 0.5 s at 2000 ppm would be 1 ms


def test_names_are_lost_with_their_module() -> None:
    told = run(
        """
        client = Client()
        client.start(CONCURRENT_KERNEL)
        gpu.launch("kernel", ns=10); time.sleep(0.01); gpu.synchronize()
        gpu.unload()
        client.flush()
        print(json.dumps(client.of(10)[0]["name"]))
        """
    )
    assert told == "??????"


def test_a_forked_child_has_no_cuda() -> None:
    told = run(
        """
        child = os.fork()
        if not child:
            os._exit(gpu.cuda.cuInit(0))
        print(json.dumps(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
        """
    )
    assert told == 3


def test_the_injection_is_started_by_cu_init(tmp_path: Path) -> None:
    source = tmp_path / "injection.c"
    source.write_text(
        '#include <stdio.h>\nint InitializeInjection(void) { puts("[\\"injected\\"]"); fflush(stdout); return 1; }\n'
    )
    subprocess.run(["gcc", "-shared", "-fPIC", source, "-o", tmp_path / "injection.so"], check=True)
    done = subprocess.run(
        [sys.executable, "-c", "import fake_cuda; fake_cuda.Gpu(); fake_cuda.Gpu()"],
        env={**fake_cuda.environment(None), "CUDA_INJECTION64_PATH": str(tmp_path / "injection.so")},
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert (done.stdout, done.returncode) == ('["injected"]\n', 0), done.stderr


def test_many_threads_lose_nothing() -> None:
    told = run(
        """
        client = Client(size=4096)
        client.start(CONCURRENT_KERNEL, RUNTIME)
        def work(name):
            stream = gpu.stream(non_blocking=True)
            for _ in range(200):
                gpu.launch(name, stream=stream, ns=1000)
            gpu.synchronize(stream)
        threads = [threading.Thread(target=work, args=(f"k{number}",)) for number in range(4)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            client.flush()
        client.flush()
        counts = {f"k{n}": sum(record["name"] == f"k{n}" for record in client.of(10)) for n in range(4)}
        calls = {record["correlation"] for record in client.of(5) if record["cbid"] == 211}
        print(json.dumps([counts, calls == {record["correlation"] for record in client.of(10)}]))
        """
    )
    assert told == [{"k0": 200, "k1": 200, "k2": 200, "k3": 200}, True]


def test_a_crash_can_be_asked_for() -> None:
    library = fake_cuda.cupti("13.0")
    program = f"import ctypes; ctypes.CDLL({str(library)!r}).cuptiGetVersion(ctypes.byref(ctypes.c_uint32()))"
    done = subprocess.run([sys.executable, "-c", program], env=fake_cuda.environment(None, CRASH=1), timeout=20)
    assert done.returncode == -signal.SIGSEGV


def test_memory_is_told_of_kinds_that_are_enabled_and_unified_memory_once_the_driver_is_there(tmp_path: Path) -> None:
    told = run(
        """
        client = Client()
        client.start()
        gpu.free(gpu.allocate(1000))
        cupti = client.cupti
        class Config(ctypes.Structure):
            _fields_ = [(name, ctypes.c_uint32) for name in ("scope", "kind", "device", "enable")]
        configs = (Config * 2)(Config(2, 1, 0, 1), Config(2, 2, 0, 0))  # to the device, not to the host
        answers = [cupti.cuptiActivityConfigureUnifiedMemoryCounter(None, 0)]
        answers.append(cupti.cuptiActivityConfigureUnifiedMemoryCounter(configs, 2))
        answers += [cupti.cuptiActivityEnable(kind) for kind in (MEMORY, UNIFIED_MEMORY)]
        answers.append(cupti.cuptiActivityConfigureUnifiedMemoryCounter(configs, 2))
        address = gpu.allocate_managed(4096)
        pool = gpu.pool()  # MEMORY_POOL is not enabled
        gpu.prefetch(address, 4096, 0)
        gpu.prefetch(address, 4096, -1)
        gpu.touch(address, 4096, 0)
        client.flush()
        print(json.dumps([answers, [record["kind"] for record in client.records]]))
        """
    )
    assert told == [[1, 0, 0, 0, 7], [49, 25, 25]]


def test_an_allocator_gives_addresses_again_and_pools_grow_and_shrink(tmp_path: Path) -> None:
    run(
        """
        first = gpu.allocate(1000)
        gpu.free(first)
        pool = gpu.pool()
        both = [gpu.allocate_async(3 << 20, None, pool) for _ in range(2)]
        gpu.free_async(both[1])
        gpu.trim(pool)
        print(json.dumps(0))
        """,
        tmp_path / "truth",
    )
    memory = fake_cuda.read_truth(tmp_path / "truth", "memory")
    assert [(row["allocated"], row["bytes"]) for row in memory] == [
        *((True, 1000), (False, 1000)),
        *((True, 3 << 20), (True, 3 << 20), (False, 3 << 20)),
    ]
    assert memory[0]["address"] == memory[2]["address"]
    assert [row["pool_bytes"] for row in memory] == [0, 0, 4 << 20, 6 << 20, 6 << 20]
    assert [row["size"] for row in fake_cuda.read_truth(tmp_path / "truth", "pool")] == [0, 4 << 20]
