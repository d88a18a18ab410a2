"""A GPU that is none: a CUDA driver and a CUPTI of our own (tests/gpu/fake), built once a session, and what a program
needs to use the driver. What really happened is in the driver's own log, so that a trace can be compared with it.

In a test: `folder = build("13.0")`, `environment(folder, truth=...)`, `read_truth(...)`. In the program that it runs
(`import fake_cuda` works there): `gpu = fake_cuda.Gpu()`, `gpu.launch("gemm", grid=(8, 1, 1), ns=20_000)`.
"""

import atexit
import contextlib
import ctypes
import functools
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
NATIVE = HERE.parents[1] / "native"
FLAGS = ["-std=c++20", "-O1", "-w", "-fPIC", "-fvisibility=hidden", "-I", str(NATIVE)]

# Kinds of activity, as CUPTI numbers them.
MEMCPY, MEMSET, KERNEL, DRIVER, RUNTIME, DEVICE, CONTEXT, CONCURRENT_KERNEL = 1, 2, 3, 4, 5, 8, 9, 10
OVERHEAD, PEER, EVENT, STREAM, SYNCHRONIZATION, EXTERNAL, GRAPH_TRACE, JIT = 17, 22, 36, 37, 38, 39, 51, 52
UNIFIED_MEMORY, MEMORY, MEMORY_POOL = 25, 49, 50


@functools.cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="fake_cuda_"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _compile(source: str, output: Path, *flags: str) -> None:
    """Where CI has a cache of compiled files, processes that run tests at the same time compile each only once."""
    output.parent.mkdir(parents=True, exist_ok=True)
    cached = os.environ.get("CMAKE_CXX_COMPILER_LAUNCHER", "").split()
    compiled = output.with_suffix(".o")
    for command in (
        [*cached, "g++", *FLAGS, *flags, "-c", str(HERE / "fake" / source), "-o", str(compiled)],
        ["g++", "-shared", *flags, str(compiled), "-o", str(output), "-ldl", "-pthread"],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr[:4000])


@functools.cache
def driver() -> Path:
    """The fake driver, libcuda.so.1: its folder has no CUPTI."""
    library = _folder() / "driver" / "libcuda.so.1"
    _compile("fake_cuda.cpp", library, "-Wl,-soname,libcuda.so.1")
    return library


@functools.cache
def cupti(release: str = "13.0") -> Path:
    """A fake CUPTI that behaves as the one of this CUDA release does, from 11.8 to 13.5."""
    major, minor = release.split(".")
    name = f"libcupti.so.{'11.8' if major == '11' else major}"
    library = _folder() / release / name
    _compile("fake_cupti.cpp", library, f"-DFAKE_RELEASE={int(major) * 1000 + int(minor) * 10}", f"-Wl,-soname,{name}")
    return library


def environment(release: str | None = "13.0", truth: Path | None = None, **settings: object) -> dict[str, str]:
    """The environment of a program that uses the fake driver and, unless `release` is None, the fake CUPTI.

    `settings` are those of the fakes, without their prefix: FAIL="ActivityEnable/10:35,Subscribe:39" (the codes that
    calls return, for one kind after a slash), DRIVER=12080 (its version), DEVICES=2, CRASH=1 (in cuptiGetVersion),
    USELESS=1 (a driver that CUPTI cannot use), OTHER_TOOL=1 (somebody else has subscribed), NESTED="own" (driver calls
    inside runtime calls have correlation numbers of their own), DRIFT_PPM=100 (of the GPU's clock), SMS=66 (its
    multiprocessors), EVENTS="late" (records of events come when the GPU comes to them), RELEASED="unknown" (records of
    releases have no size), JIT_NS=5_000_000 (to compile a module), OVERHEAD_NS=2_000_000 (that CUPTI says a
    request of a buffer cost).
    """
    folders = [str(driver().parent), os.environ.get("LD_LIBRARY_PATH", "")]
    paths = [str(HERE), os.environ.get("PYTHONPATH", "")]
    made = {
        **{name: value for name, value in os.environ.items() if not name.startswith("FAKE_CUDA_")},
        "LD_LIBRARY_PATH": ":".join(filter(None, folders)),
        "PYTHONPATH": ":".join(filter(None, paths)),
        **{f"FAKE_CUDA_{name}": str(value) for name, value in settings.items()},
    }
    if release is not None:
        made["STROBE_CUPTI"] = str(cupti(release))
    if truth is not None:
        made["FAKE_CUDA_TRUTH"] = str(truth)
    return made


def read_truth(path: Path, what: str | None = None) -> list[dict[str, Any]]:
    """What the driver did, in the order in which it was asked: see `what` in each. Times are ns of CLOCK_MONOTONIC.

    kernel, memcpy, memset, graph: name, correlation, device, context, stream, grid, block, shared, bytes, copy_kind,
    graph, node, source_node, queued_ns, start_ns, end_ns; call: domain, name, cbid, correlation, nested, result,
    start_ns, end_ns; node (added to a graph): name, node, graph, time_ns; synchronization: type, stream, correlation,
    event, recorded_by (correlation), recorded_on (stream), start_ns, end_ns; memory: allocated, kind, address, bytes,
    device, context, correlation, pool, pool_bytes, time_ns; pool: operation, address, size, time_ns; migration:
    address, bytes, from, to, cause, start_ns, end_ns; page_fault: device, groups; compiled: ns. In all: pid and thread,
    of the call.
    """
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [row for row in rows if what is None or row["what"] == what]


class Dim3(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint32), ("y", ctypes.c_uint32), ("z", ctypes.c_uint32)]


class _KernelNode(ctypes.Structure):
    _fields_ = [("function", ctypes.c_void_p), ("grid", Dim3), ("block", Dim3), ("shared", ctypes.c_uint32)]


class _Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("padding", ctypes.c_int), ("value", ctypes.c_uint32 * 16)]


class _LaunchConfig(ctypes.Structure):
    _fields_ = [
        ("grid", Dim3),
        ("block", Dim3),
        ("shared", ctypes.c_size_t),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("count", ctypes.c_uint),
    ]


class Gpu:
    """The fake GPU as a program uses it, from any of its threads. A stream of None is the default stream."""

    def __init__(self, device: int = 0) -> None:
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.device = device
        self._here = threading.local()
        self._functions: dict[str, ctypes.c_void_p] = {}
        self._module: ctypes.c_void_p | None = None
        self._start()

    def _check(self, code: int) -> None:
        if code:
            raise RuntimeError(f"the fake driver says {code}")

    def _start(self) -> None:  # each thread has a current context of its own
        if getattr(self._here, "started", False):
            return
        context = ctypes.c_void_p()
        self._check(self.cuda.cuInit(0))
        self._check(self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), self.device))
        self._check(self.cuda.cuCtxSetCurrent(context))
        self._here.started = True
        self.context = context

    def function(self, name: str, registers: int = 32, static_shared: int = 0) -> ctypes.c_void_p:
        """The kernel of this name; made at its first use."""
        self._start()
        if self._module is None:  # not before it is loaded: another thread may ask, too
            module = ctypes.c_void_p()
            self._check(self.cuda.cuModuleLoadData(ctypes.byref(module), b"fake"))
            self._module = module
        if name not in self._functions:
            found = ctypes.c_void_p()
            self._check(self.cuda.cuModuleGetFunction(ctypes.byref(found), self._module, name.encode()))
            self.cuda.fake_cuda_function(found, registers, static_shared)
            self._functions[name] = found
        return self._functions[name]

    def unload(self) -> None:
        """Unload the module of all kernels so far: their names' memory is somebody else's then."""
        self._check(self.cuda.cuModuleUnload(self._module))
        self._module, self._functions = None, {}

    def _takes(self, ns: int | None) -> None:
        self._start()
        if ns is not None:
            self.cuda.fake_cuda_next(ctypes.c_uint64(ns))

    def next_ends(self, ns: int) -> None:
        """The next work of this thread ends at this time of CLOCK_MONOTONIC, whatever else is said of it."""
        self.cuda.fake_cuda_next_ends(ctypes.c_uint64(ns))

    def launch(
        self,
        name: str,
        grid: tuple[int, int, int] = (1, 1, 1),
        block: tuple[int, int, int] = (128, 1, 1),
        stream: ctypes.c_void_p | None = None,
        ns: int = 10_000,
        *,
        shared: int = 0,
        cluster: tuple[int, int, int] | None = None,
        runtime: bool = True,
    ) -> None:
        """Launch a kernel that takes `ns`: by the runtime's function or the driver's; a cluster needs the Ex ones."""
        function = self.function(name)
        self._takes(ns)
        if cluster is not None:
            attribute = _Attribute(4, 0, (ctypes.c_uint32 * 16)(*cluster))
            address = ctypes.cast(ctypes.pointer(attribute), ctypes.c_void_p)
            config = _LaunchConfig(Dim3(*grid), Dim3(*block), shared, stream, address, 1)
            run = self.cuda.cudaLaunchKernelExC if runtime else self.cuda.cuLaunchKernelEx
            self._check(run(ctypes.byref(config), function, None, *(() if runtime else (None,))))
        elif runtime:
            launch = self.cuda.cudaLaunchKernel
            self._check(launch(function, Dim3(*grid), Dim3(*block), None, ctypes.c_size_t(shared), stream))
        else:
            self._check(self.cuda.cuLaunchKernel(function, *grid, *block, shared, stream, None, None))

    def memcpy(
        self, kind: int, size: int, stream: ctypes.c_void_p | None = None, ns: int | None = None, *, wait: bool = False
    ) -> None:
        """Copy `size` bytes: kind 1 to the device, 2 to the host, 3 on the device. `wait`: cuMemcpyHtoD, which returns
        when it is done."""
        self._takes(ns)
        if wait:
            self._check(self.cuda.cuMemcpyHtoD_v2(ctypes.c_uint64(0), None, ctypes.c_size_t(size)))
        else:
            self._check(self.cuda.cudaMemcpyAsync(None, None, ctypes.c_size_t(size), kind, stream))

    def peer_copy(self, size: int, other: "Gpu", stream: ctypes.c_void_p | None = None, ns: int | None = None) -> None:
        """Copy from this device to another."""
        self._takes(ns)
        zero = ctypes.c_uint64(0)
        self._check(self.cuda.cuMemcpyPeerAsync(zero, other.context, zero, self.context, ctypes.c_size_t(size), stream))

    def memset(self, size: int, value: int = 0, stream: ctypes.c_void_p | None = None, ns: int | None = None) -> None:
        """Set `size` bytes."""
        self._takes(ns)
        self._check(self.cuda.cudaMemsetAsync(None, value, ctypes.c_size_t(size), stream))

    def allocate(self, size: int) -> int:
        """Address of new memory."""
        self._start()
        address = ctypes.c_uint64()
        self._check(self.cuda.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(size)))
        return address.value

    def free(self, address: int) -> None:
        """Give memory back."""
        self._check(self.cuda.cudaFree(ctypes.c_uint64(address)))

    def _address(self, call: str, size: int, *rest: object) -> int:
        self._start()
        address = ctypes.c_uint64()
        self._check(getattr(self.cuda, call)(ctypes.byref(address), ctypes.c_size_t(size), *rest))
        return address.value

    def allocate_host(self, size: int) -> int:
        """Address of new pinned memory of the host."""
        return self._address("cudaMallocHost", size)

    def free_host(self, address: int) -> None:
        """Give it back."""
        self._check(self.cuda.cudaFreeHost(ctypes.c_uint64(address)))

    def allocate_managed(self, size: int) -> int:
        """Address of new unified memory."""
        return self._address("cudaMallocManaged", size, 1)

    def allocate_async(
        self, size: int, stream: ctypes.c_void_p | None = None, pool: ctypes.c_void_p | None = None
    ) -> int:
        """Address of new memory of a pool, of the device's default one if none is given."""
        if pool is None:
            return self._address("cudaMallocAsync", size, stream)
        return self._address("cuMemAllocFromPoolAsync", size, pool, stream)

    def free_async(self, address: int, stream: ctypes.c_void_p | None = None) -> None:
        """Give it back to its pool."""
        self._check(self.cuda.cudaFreeAsync(ctypes.c_uint64(address), stream))

    def pool(self) -> ctypes.c_void_p:
        """A new pool, without memory."""
        self._start()
        made = ctypes.c_void_p()
        self._check(self.cuda.cuMemPoolCreate(ctypes.byref(made), None))
        return made

    def trim(self, pool: ctypes.c_void_p, size: int = 0) -> None:
        """Let the pool give back what is not used, but for `size` bytes."""
        self._check(self.cuda.cuMemPoolTrimTo(pool, ctypes.c_size_t(size)))

    def destroy(self, pool: ctypes.c_void_p) -> None:
        """Give the pool back."""
        self._check(self.cuda.cuMemPoolDestroy(pool))

    def prefetch(self, address: int, size: int, device: int) -> None:
        """Move unified memory to a device; -1 is the host."""
        self._check(self.cuda.cudaMemPrefetchAsync(ctypes.c_uint64(address), ctypes.c_size_t(size), device, None))

    def touch(self, address: int, size: int, device: int, groups: int = 1) -> None:
        """Let a device, or the host (-1), touch unified memory that is elsewhere: faults bring it."""
        self._start()
        self.cuda.fake_cuda_touch(ctypes.c_uint64(address), ctypes.c_uint64(size), device, ctypes.c_uint64(groups))

    def await_unified_memory(self) -> None:
        """Wait until CUPTI tells of unified memory: what moves before that is nobody's."""
        until = time.monotonic() + 20
        while not self.cuda.fake_cuda_unified_memory_told():
            assert time.monotonic() < until, "CUPTI was not asked about unified memory"
            time.sleep(0.002)

    def compile(self) -> None:
        """Load a module of PTX, which the driver compiles first."""
        self._start()
        self._check(self.cuda.cuModuleLoadData(ctypes.byref(ctypes.c_void_p()), b".version 8.0"))

    def stream(self, *, non_blocking: bool = False, priority: int = 0) -> ctypes.c_void_p:
        """A new stream; a non-blocking one does not wait for the default stream."""
        self._start()
        made = ctypes.c_void_p()
        self._check(self.cuda.cuStreamCreateWithPriority(ctypes.byref(made), int(non_blocking), priority))
        return made

    def event(self, stream: ctypes.c_void_p | None = None) -> ctypes.c_void_p:
        """A new event, recorded in the stream."""
        self._start()
        made = ctypes.c_void_p()
        self._check(self.cuda.cudaEventCreate(ctypes.byref(made)))
        self._check(self.cuda.cudaEventRecord(made, stream))
        return made

    def record(self, event: ctypes.c_void_p, stream: ctypes.c_void_p | None = None) -> None:
        """Record an event again."""
        self._start()
        self._check(self.cuda.cudaEventRecord(event, stream))

    def wait(self, stream: ctypes.c_void_p | None, event: ctypes.c_void_p) -> None:
        """Let the stream wait for the event."""
        self._check(self.cuda.cudaStreamWaitEvent(stream, event, 0))

    def synchronize(self, stream: ctypes.c_void_p | None = None, event: ctypes.c_void_p | None = None) -> None:
        """Wait for an event, for a stream, or without either for the device."""
        self._start()
        if event is not None:
            self._check(self.cuda.cudaEventSynchronize(event))
        elif stream is not None:
            self._check(self.cuda.cudaStreamSynchronize(stream))
        else:
            self._check(self.cuda.cudaDeviceSynchronize())

    @contextlib.contextmanager
    def capture(self, stream: ctypes.c_void_p) -> Iterator[ctypes.c_void_p]:
        """What is launched meanwhile in the stream becomes the graph that this gives; it is whole at the end."""
        graph = ctypes.c_void_p()
        self._check(self.cuda.cudaStreamBeginCapture(stream, 0))
        yield graph
        self._check(self.cuda.cudaStreamEndCapture(stream, ctypes.byref(graph)))

    def graph(self, kernels: list[tuple[str, int]]) -> ctypes.c_void_p:
        """A graph of explicit nodes, (name, ns) one after the other."""
        self._start()
        graph, before = ctypes.c_void_p(), (ctypes.c_void_p * 1)()
        self._check(self.cuda.cuGraphCreate(ctypes.byref(graph), 0))
        for number, (name, ns) in enumerate(kernels):
            parameters = _KernelNode(self.function(name), Dim3(1, 1, 1), Dim3(128, 1, 1), 0)
            self._takes(ns)
            node = ctypes.c_void_p()
            add = self.cuda.cuGraphAddKernelNode
            count = ctypes.c_size_t(min(number, 1))
            self._check(add(ctypes.byref(node), graph, before, count, ctypes.byref(parameters)))
            before[0] = node.value
        return graph

    def instantiate(self, graph: ctypes.c_void_p) -> ctypes.c_void_p:
        """The executable graph, whose nodes have numbers of their own."""
        made = ctypes.c_void_p()
        self._check(self.cuda.cudaGraphInstantiate(ctypes.byref(made), graph, ctypes.c_ulonglong(0)))
        return made

    def launch_graph(
        self, executable: ctypes.c_void_p, stream: ctypes.c_void_p | None = None, *, runtime: bool = True
    ) -> None:
        """Launch it, by the runtime's function or by the driver's."""
        self._start()
        self._check((self.cuda.cudaGraphLaunch if runtime else self.cuda.cuGraphLaunch)(executable, stream))
