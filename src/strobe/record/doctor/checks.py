"""What can be recorded and viewed on this machine, with this Python; and how to repair what cannot.

Reads only: nothing is started, changed or written. Sources: proc(5), perf_event_open(2), cgroups(7), statfs(2).
"""

from __future__ import annotations

import os
import platform
import resource
import sys
from collections.abc import Iterator, Mapping

from strobe.model.installed import FOR_READING, FOR_VIEWING, is_whole, missing
from strobe.record.control_groups import cpu_limit, memory_limit, number_in, text_of
from strobe.record.doctor.finding import LIMITED, MISSING, NOTE, OK, Finding, installed
from strobe.record.options.all_options import ADAPTERS

_NETWORK = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "lustre", "gpfs", "beegfs", "afs", "ceph")
_HARDWARE = ("instructions", "cycles", "cache-misses", "branch-misses")
_HOOKS = {
    "COVERAGE_PROCESS_START": "coverage.py measures this program, too",
    "COV_CORE_SOURCE": "pytest-cov measures this program, too",
    "PYTHONPROFILEIMPORTTIME": "Python prints import times",
    "PYTHONTRACEMALLOC": "tracemalloc slows every allocation down",
    "PYDEVD_USE_CYTHON": "a debugger traces this program",
    "KINETO_USE_DAEMON": "a daemon may start torch.profiler in this program",
    "NSYS_PROFILING_SESSION_ID": "Nsight Systems records this program, too",
    "SCOREP_EXPERIMENT_DIRECTORY": "Score-P records this program, too",
    "MALLOC_PERTURB_": "glibc fills memory, which costs time",
}


def examine(folder: str, environment: Mapping[str, str]) -> list[Finding]:
    """Run all checks; `folder` is where traces would go."""
    parts = (
        _python(),
        _viewing(),
        *(adapter.findings(environment) for adapter in ADAPTERS.values()),
        _kernel(),
        _clock(),
        _limits(),
        _cgroup_limits(),
        _place(folder),
        _conflicts(environment),
    )
    return [finding for part in parts for finding in part]


def _python() -> Iterator[Finding]:
    version = platform.python_version()
    how = "sys.monitoring (PEP 669)" if sys.version_info >= (3, 12) else "a frame evaluation function (PEP 523)"
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        mend = "PYTHON_GIL=1 strobe run ..."
        yield Finding("python", "calls", MISSING, f"Python {version} without a GIL: no Python calls", mend)
    else:
        yield Finding("python", "calls", OK, f"Python {version}: {how}")
    watching = [name for name, hook in (("profile", sys.getprofile()), ("trace", sys.gettrace())) if hook is not None]
    if watching:
        yield Finding("python", "hooks", LIMITED, f"a {' and a '.join(watching)} hook is set in every program here")
    others = []
    for folder in os.get_exec_path():
        for minor in range(11, 16):
            path = os.path.join(folder, f"python3.{minor}")
            if os.access(path, os.X_OK) and os.path.realpath(path) != os.path.realpath(sys.executable):
                others.append(path)
    if others:
        mend = f"{others[0]} -m pip install {'strobe' if is_whole() else 'strobe-recorder'}"
        found = f"Pythons that record only with strobe installed: {', '.join(dict.fromkeys(others))}"
        yield Finding("python", "others", NOTE, found, mend)


def _viewing() -> Iterator[Finding]:
    if not is_whole():
        found = "the recorder alone is installed: traces are read and shown where all of strobe is"
        yield Finding("viewing", "traces", NOTE, found, "pip uninstall strobe-recorder && pip install strobe")
        return
    for name, packages, purpose in (("traces", FOR_READING, "read"), ("page", FOR_VIEWING, "shown in a browser")):
        if lacking := missing(packages):
            found = f"not installed: {', '.join(lacking)}. Traces cannot be {purpose}"
            yield Finding("viewing", name, MISSING, found, f"pip install {' '.join(lacking)}")
        else:
            versions = ", ".join(f"{package} {installed(package)}" for package in packages)
            yield Finding("viewing", name, OK, f"{versions}: traces are {purpose}")


def _kernel() -> Iterator[Finding]:
    from strobe.native import core

    paranoid = number_in("/proc/sys/kernel/perf_event_paranoid")
    missing = [name for name in _HARDWARE if not core.hardware_counter(name)]
    if not missing:
        yield Finding("kernel", "hardware counters", OK, ", ".join(_HARDWARE))
    elif paranoid is None:
        yield Finding("kernel", "hardware counters", MISSING, "this kernel has no perf events: no hardware counters")
    elif paranoid > 2:
        mend = "sudo sysctl kernel.perf_event_paranoid=2"
        yield Finding("kernel", "hardware counters", MISSING, f"forbidden (perf_event_paranoid is {paranoid})", mend)
    else:
        found = f"this machine gives none (a virtual machine, or a container): {', '.join(missing)}"
        yield Finding("kernel", "hardware counters", MISSING, found)
    scope = number_in("/proc/sys/kernel/yama/ptrace_scope")
    if scope in (None, 0, 1):
        yield Finding("kernel", "ptrace", OK, "not needed by strobe run; debuggers may attach to own processes")
    else:
        found = f"ptrace_scope is {scope}: not needed by strobe run, but no other tool can attach"
        yield Finding("kernel", "ptrace", NOTE, found, "sudo sysctl kernel.yama.ptrace_scope=1")


def _clock() -> Iterator[Finding]:
    flags = next((line for line in text_of("/proc/cpuinfo").splitlines() if line.startswith("flags")), "")
    if platform.machine() == "aarch64" or ("constant_tsc" in flags and "nonstop_tsc" in flags):
        yield Finding("clock", "ticks", OK, "the CPU's counter is invariant: a time stamp costs one instruction")
    else:
        found = "the CPU's counter is not invariant: time stamps come from clock_gettime and cost two to three times"
        yield Finding("clock", "ticks", LIMITED, found)


def _limits() -> Iterator[Finding]:
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if files != resource.RLIM_INFINITY and files < 256:
        yield Finding(
            "limits", "open files", LIMITED, f"{files}: the recorder needs 3 beside the program's", "ulimit -n 1024"
        )
    else:
        yield Finding("limits", "open files", OK, "no limit" if files == resource.RLIM_INFINITY else str(files))
    stack = resource.getrlimit(resource.RLIMIT_STACK)[0]
    if stack != resource.RLIM_INFINITY and stack < 4 << 20:
        found = f"{stack >> 10} KiB: deep recursion is recorded in part"
        yield Finding("limits", "stack", LIMITED, found, "ulimit -s 8192")
    else:
        yield Finding("limits", "stack", OK, "no limit" if stack == resource.RLIM_INFINITY else f"{stack >> 10} KiB")
    size = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if size != resource.RLIM_INFINITY:
        found = f"files of at most {size >> 20} MiB: a recording ends there"
        yield Finding("limits", "file size", LIMITED, found, "ulimit -f unlimited")


def _cgroup_limits() -> Iterator[Finding]:
    if processors := cpu_limit():
        yield Finding("cgroup", "cpu", NOTE, f"{processors:g} CPUs")
    if bytes_ := memory_limit():
        yield Finding("cgroup", "memory", NOTE, f"{bytes_ / 2**30:.1f} GiB")


def _place(folder: str) -> Iterator[Finding]:
    here = os.path.abspath(folder)
    while not os.path.isdir(here):
        here = os.path.dirname(here)
    if not os.access(here, os.W_OK):
        yield Finding("disk", "output", MISSING, f"{here} cannot be written", "strobe run -o /tmp/%n ...")
        return
    room = os.statvfs(here)
    free = room.f_bavail * room.f_frsize
    kind = file_system(here)
    words = f"{here}: {free / 2**30:.1f} GiB free, {kind}"
    if kind in _NETWORK:
        mend = "strobe run -o /tmp/%n ...   (and copy it afterwards)"
        yield Finding("disk", "output", LIMITED, f"{words}: a network file system slows the recorder's buffers", mend)
    elif free < 1 << 30:
        yield Finding("disk", "output", LIMITED, words, "strobe run --max-size 500M ...")
    else:
        yield Finding("disk", "output", OK, words)
    try:
        shared = os.statvfs("/dev/shm")
    except OSError:
        yield Finding("disk", "/dev/shm", NOTE, "not there: programs that share memory (DataLoader, MPI) may fail")
        return
    size = shared.f_bavail * shared.f_frsize
    state, mend = (OK, "") if size >= 256 << 20 else (LIMITED, "docker run --shm-size=1g ...")
    words = f"{size / 2**30:.2f} GiB free (used by DataLoader and MPI, not by us)"
    yield Finding("disk", "/dev/shm", state, words, mend)


def file_system(path: str) -> str:
    """Return the type of the file system that holds a path, as mount(8) calls it."""
    real, best, kind = os.path.realpath(path), "", "unknown"
    for line in text_of("/proc/self/mounts").splitlines():
        _, place, name, *_ = line.split(" ")
        place = place.replace("\\040", " ")
        if (real + "/").startswith(place.rstrip("/") + "/") and len(place) >= len(best):
            best, kind = place, name
    return kind


def _conflicts(environment: Mapping[str, str]) -> Iterator[Finding]:
    from strobe.native import library

    loaded = environment.get("LD_PRELOAD", "")
    if loaded:
        found = f"LD_PRELOAD={loaded}: keeps its place; ours comes behind"
        yield Finding("other tools", "LD_PRELOAD", NOTE, found, "unset LD_PRELOAD")
    events: dict[str, list[str]] = {}
    for adapter in sorted(ADAPTERS.values(), key=lambda each: each.name):
        if adapter.injection:
            events.setdefault(adapter.injection, []).append(adapter.events)
    for variable, lost in events.items():
        other = environment.get(variable, "")
        if other and other != library():
            found = f"{other} is there: no {' and '.join(lost)}"
            yield Finding("other tools", variable, MISSING, found, f"unset {variable}")
    for variable, words in _HOOKS.items():
        if environment.get(variable):
            yield Finding("other tools", variable, LIMITED, words, f"unset {variable}")
    if environment.get("STROBE_DISABLE", "") not in ("", "0"):
        yield Finding("other tools", "STROBE_DISABLE", MISSING, "nothing is recorded", "unset STROBE_DISABLE")
