"""Fuzzes one reader: every input is opened as a user would, and must open or be refused in one sentence.

    ./dev bench fuzz otf2 --minutes 10              coverage-guided (atheris), changes made as the format is built
    ./dev bench fuzz otf2 --tool hypothesis         the same changes, chosen and shrunk by hypothesis
    ./dev bench fuzz otf2 --sanitize                ... with a core that clang builds with ASan, UBSan and coverage

What counts as a finding: any exception but StrobeError, a message that is not one sentence, a signal, more than 10 s of
CPU, more than 2 GiB of memory, a file read or written outside of the work folder, a file left behind. Each is kept once
in build/fuzz/READER/findings with what it was. The seeds are the small files that the tests of the formats write.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import io
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from strobe.api.trace import Trace

ROOT = Path(__file__).parents[1]
WORK = ROOT / "build/fuzz"
READERS = (
    *("chrome", "otf2", "perfetto", "xplane", "nsys", "nsys-stats", "nvprof", "nvprof-text"),
    *("speedscope", "pprof", "collapsed", "pstats", "line-profiler", "cube4", "callgrind", "containers", "blocks"),
    *("ncu", "rocm", "ascend", "memory-snapshot", "execution-trace", "memory-timeline", "key-averages"),
    *("memray", "perf", "firefox", "cpuprofile", "pyinstrument", "jfr", "stackprof", "tau", "utf-16"),
)
# Of these the files of a run lie beside each other: such folders are seeds, too, as tar.
IN_FOLDERS = ("rocm", "ascend", "tau", "nsys")
MOST_IN_FOLDER = 20
MOST_CPU_S = 10.0
MOST_BYTES = 2 << 30
SEED_BYTES = 200_000
SEEDS = 60
_SYSTEM = (
    "/dev/null",
    "/dev/urandom",
    "/proc/",
    "/sys/",
    "/usr/share/zoneinfo",
)  # what the libraries look at by themselves


# --- one input --------------------------------------------------------------------------------------------------------


class Target:
    """Opens inputs of one reader in a folder of its own, and keeps what goes wrong."""

    def __init__(self, reader: str) -> None:
        self.reader = reader
        self.folder = WORK / reader
        self.work = Path(tempfile.mkdtemp(prefix="strobe-fuzz-"))  # TMPDIR=/dev/shm makes it faster
        self.findings = self.folder / "findings"
        (self.work / "tmp").mkdir()
        self.findings.mkdir(exist_ok=True)
        os.environ["STROBE_CACHE"] = str(self.work / "cache")
        os.environ["PATH"] = ""  # tools that convert files are not fuzzed
        tempfile.tempdir = str(self.work / "tmp")
        self.counts: Counter[str] = Counter()
        self._touched: set[str] = set()
        self._watching = False
        self._allowed = (str(self.work), str(ROOT / "src"), sys.prefix, sys.base_prefix, *_SYSTEM)
        self._listed = {os.path.abspath(each) for each in sys.path}  # what importing looks into
        sys.addaudithook(self._audit)

    def _audit(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self._watching:
            return
        if event in ("subprocess.Popen", "os.system", "os.exec", "socket.connect", "os.symlink", "os.link", "os.fork"):
            self._touched.add(f"{event} {arguments!r:.200}")
        elif event in (
            "open",
            "os.listdir",
            "os.scandir",
            "os.mkdir",
            "os.remove",
            "os.rename",
            "os.rmdir",
            "sqlite3.connect",
            "shutil.rmtree",
            "shutil.move",
        ):
            for each in arguments[: 2 if event == "os.rename" else 1]:
                if isinstance(each, str | bytes | os.PathLike):
                    path = os.fsdecode(each)
                    path = path[5:].partition("?")[0] if path.startswith("file:") else path
                    whole = os.path.abspath(path)
                    if (event == "os.listdir" and whole in self._listed) or self._in_open_folder(event, arguments):
                        continue
                    if path and path != ":memory:" and not whole.startswith(self._allowed):
                        self._touched.add(f"{event} {path:.200}")

    @staticmethod
    def _in_open_folder(event: str, arguments: tuple[object, ...]) -> bool:
        """Whether the path counts from an open folder, as in rmtree: that folder was checked itself."""
        return event in ("os.remove", "os.rmdir") and arguments[-1] != -1

    def __call__(self, data: bytes) -> None:
        """Open the input and read it; keep it where something is wrong."""
        self.counts["inputs"] += 1
        begun, peak = time.process_time(), _peak_bytes()
        wrong = ""
        self._touched.clear()
        try:
            path = self._laid_down(data)
            self._watching = True
            try:
                wrong = self._opened(path, data)
            finally:
                self._watching = False
        except Exception as error:
            wrong = f"{type(error).__name__} at {_place(error)}\n{''.join(traceback.format_exception(error))}"
        if not wrong and self._touched:
            wrong = f"touched elsewhere: {sorted(self._touched)[0]}"
        left = [each for each in (self.work / "tmp").iterdir() if each.name.startswith("strobe")]
        if not wrong and left:
            wrong = f"left behind: {len(left)}"
        spent = time.process_time() - begun
        if not wrong and spent > MOST_CPU_S:
            wrong = f"slow: {spent:.0f} s of CPU"
        if wrong:
            self.keep(data, wrong)
        if (grown := _peak_bytes() - peak) > self.counts["most grown"]:
            self.counts["most grown"] = grown
            (self.folder / "heaviest.bin").write_bytes(data)
        for gone in (*left, *(self.work / each for each in ("cache", "input", "input.strobe"))):
            shutil.rmtree(gone, ignore_errors=True) if gone.is_dir() else gone.unlink(missing_ok=True)

    def _laid_down(self, data: bytes) -> Path:
        if self.reader != "blocks":
            path = self.work / "input"
            path.write_bytes(data)
            return path
        folder = self.work / "input.strobe"  # the members of a tar, by names that stay in the folder
        folder.mkdir()
        try:
            with tarfile.open(fileobj=io.BytesIO(data)) as archive:
                for member in archive:
                    name = re.sub(r"[^\w.-]", "_", member.name.rpartition("/")[2])[:80]
                    if member.isreg() and name.strip(".") and not (folder / name).exists():
                        stream = archive.extractfile(member)
                        (folder / name).write_bytes(stream.read() if stream else b"")
        except (tarfile.TarError, OSError, ValueError, EOFError):
            pass
        return folder

    def _opened(self, path: Path, data: bytes) -> str:
        import strobe

        try:
            with strobe.open(path) as trace:
                self.counts["opened"] += 1
                self._read(trace, hashlib.sha256(data).digest()[0])
        except strobe.StrobeError as error:
            self.counts["refused"] += 1
            message = str(error.what)
            if not message.strip() or len(message) > 2000 or any(ord(each) < 32 for each in message):
                return f"no sentence at {_place(error)}: {message[:300]!r}"
        return ""

    def _read(self, trace: Trace, depth: int) -> None:
        """Read what every command reads; of one input in 4 the side tables, too, of one in 64 what needs the engine."""
        from strobe.errors import StrobeError
        from strobe.model.schema import EVENT_TABLES, SPAN_TABLES

        _ = trace.info, trace.quality, trace.processes, trace.regions, trace.call_paths, trace.folded_count
        for location in range(min(len(trace.locations), 50)):
            for _ in trace.span_batches(location):
                pass
        if depth < 64:
            self.counts["read whole"] += 1
            trace.metrics()
            for name in (*SPAN_TABLES, *EVENT_TABLES):
                trace.side_table(name)
        if depth < 4:
            for ask in ("profile", "statistics", "steps"):
                with suppress(StrobeError):
                    trace.ask(ask)
            with suppress(StrobeError):
                trace.sql("SELECT count(*) FROM spans")

    def keep(self, data: bytes, wrong: str) -> None:
        """Keep an input with what it was, once for every place and kind; the shortest."""
        first = wrong.partition("\n")[0].replace(str(self.work), "WORK")
        if first.startswith("slow"):
            first = "slow"
        name = hashlib.sha256(first.encode()).hexdigest()[:10]
        self.counts["finding " + first[:150]] += 1
        report, kept = self.findings / f"{name}.txt", self.findings / f"{name}.bin"
        if not kept.exists() or kept.stat().st_size > len(data):
            kept.write_bytes(data)
            report.write_text(wrong, encoding="utf-8", errors="backslashreplace")


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _place(error: BaseException) -> str:
    """Where in strobe it was raised: the innermost line of ours."""
    found = [each for each in traceback.extract_tb(error.__traceback__) if "/strobe/" in each.filename]
    return f"{Path(found[-1].filename).name}:{found[-1].name}" if found else "?"


# --- seeds ------------------------------------------------------------------------------------------------------------


def seeds(reader: str, more: list[Path]) -> list[bytes]:
    """Return the small files of a reader among those that the tests wrote, and others; archives as tar."""
    written = WORK / "tests"
    if not written.exists():
        WORK.mkdir(parents=True, exist_ok=True)
        keep = ("--basetemp", str(written), "-o", "tmp_path_retention_policy=all", "-p", "no:cacheprovider")
        subprocess.run([sys.executable, "-m", "pytest", "-q", "-n", "0", *keep, "tests/formats"], cwd=ROOT, check=False)
    found: dict[bytes, bytes] = {}
    for folder in (written, *more):
        for path in sorted(folder.rglob("*")):
            if path.is_symlink() or not path.is_file() or path.stat().st_size > SEED_BYTES * 5:
                continue
            for data in _seed(reader, path):
                if 0 < len(data) <= SEED_BYTES * (5 if data.startswith(b"SQLite") else 1):
                    found[hashlib.sha256(data).digest()] = data
    chosen = sorted(found.values(), key=lambda data: (len(data), data))
    # Many tests write nearly the same: small ones, and some of every size.
    return chosen if len(chosen) <= SEEDS else [chosen[i * len(chosen) // SEEDS] for i in range(SEEDS)]


def _seed(reader: str, path: Path) -> Iterator[bytes]:
    from strobe import registry
    from strobe.errors import StrobeError
    from strobe.formats.reading.inputs import inputs_of

    ours = any(part.endswith(".strobe") for part in path.parts)
    if reader == "blocks":
        if ours and path.suffix == ".blocks" and path.stat().st_size < SEED_BYTES:
            yield _tar(path.parent, [path, path.with_name("job.json")])
        return
    if ours:
        return
    if reader == "containers":
        if zipfile.is_zipfile(path) or path.name.endswith((".tar", ".gz", ".zst")):
            yield path.read_bytes()
        return
    try:
        inputs = inputs_of(path)
        if len(inputs) != 1 or inputs[0].name != str(path):
            return
        head = inputs[0].head()
    except (StrobeError, OSError):
        return
    formats = [registry.load("formats", name) for name in registry.names("formats")]
    known = next((each for each in formats if each.read is not None and each.sniff(head)), None)
    if known is not None and reader == "utf-16":
        yield from _in_utf_16(path.read_bytes())
    if known is None or _reader_of(known.name, path) != reader:
        return
    if reader == "otf2":
        members = [path, path.with_suffix(".def"), *sorted(path.with_suffix("").glob("*"))]
        yield _tar(path.parent, [each for each in members if each.is_file()])
        return
    yield path.read_bytes()
    files = sorted(each for each in path.parent.iterdir() if each.is_file() and not each.is_symlink())
    if reader in IN_FOLDERS and 1 < len(files) <= MOST_IN_FOLDER:
        yield _tar(path.parent, files)


def _in_utf_16(data: bytes) -> Iterator[bytes]:
    """Yield a text as PowerShell writes it."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        yield data
    elif b"\0" not in data:
        with suppress(UnicodeDecodeError):
            yield b"\xff\xfe" + data.decode().encode("utf-16-le")


def _reader_of(name: str, path: Path) -> str:
    return name.replace("_", "-")


def _tar(folder: Path, members: list[Path]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for each in members:
            if each.exists():
                info = tarfile.TarInfo(str(each.relative_to(folder)))
                info.size = each.stat().st_size
                archive.addfile(info, io.BytesIO(each.read_bytes()))
    return out.getvalue()


# --- tools ------------------------------------------------------------------------------------------------------------


def sanitized_core() -> Path:
    """Build the core with clang, for atheris: its coverage, AddressSanitizer, UndefinedBehaviorSanitizer."""
    found = [path for folder in os.environ["PATH"].split(":") for path in Path(folder).glob("clang++*")]
    if not found:
        raise SystemExit("--sanitize needs clang++ (Debian: clang-19 and libclang-rt-19-dev)")
    newest = max(found, key=lambda path: [int(each) for each in re.findall(r"\d+", path.name)])
    folder = WORK.with_name("fuzz-native")
    settings = {
        "CMAKE_BUILD_TYPE": "RelWithDebInfo",
        "CMAKE_C_COMPILER": str(newest).replace("clang++", "clang"),
        "CMAKE_CXX_COMPILER": str(newest),
        "CMAKE_C_FLAGS": "-w",  # its warnings are not those that the code is kept free of
        "CMAKE_CXX_FLAGS": "-w",
        "SKBUILD": "ON",  # the module, not the core's own tests
        "SKBUILD_PROJECT_NAME": "strobe",
        "Python_EXECUTABLE": sys.executable,
        # The library that atheris has these from lacks the parts that need C++.
        "STROBE_SANITIZE": "address,undefined,fuzzer-no-link;-fno-sanitize=vptr,function",
    }
    options = [f"-D{name}={value}" for name, value in settings.items()]
    subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", *options], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", folder, "-j", "2", "--target", "_native"], check=True, stdout=sys.stderr)
    return folder


def with_native(folder: Path | None) -> None:
    """Import strobe from its sources, as atheris can then instrument it, with the core of this or another build."""
    installed = importlib.util.find_spec("strobe._native")
    assert installed is not None
    assert installed.origin is not None
    path = Path(installed.origin) if folder is None else next(folder.glob("_native*.so"))
    for name in [name for name in sys.modules if name.partition(".")[0] == "strobe"]:
        del sys.modules[name]
    # An editable install has a finder of its own, whose modules stay as they are.
    sys.meta_path[:] = [each for each in sys.meta_path if type(each).__name__ != "ScikitBuildRedirectingFinder"]
    sys.path.insert(0, str(ROOT / "src"))
    spec = importlib.util.spec_from_file_location("strobe._native", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import strobe

    sys.modules["strobe._native"] = strobe._native = module
    spec.loader.exec_module(module)


def fuzz_atheris(arguments: argparse.Namespace) -> None:
    """One process of atheris: ends after its time, or with a signal."""
    import atheris

    with_native(arguments.native)
    with atheris.instrument_imports(include=["strobe.formats", "strobe.api", "strobe.trace"]):
        from strobe import registry

        for name in registry.names("formats"):
            registry.load("formats", name)
    from tests.formats.mutations import mutate

    target = Target(arguments.reader)
    begun = time.monotonic()

    def changed(data: bytes, max_size: int, seed: int) -> bytes:
        chosen = random.Random(seed)
        if chosen.random() < 0.1:
            return atheris.Mutate(data, max_size)
        out = mutate(data, chosen)
        return out if len(out) <= max_size else out[:max_size]

    def one(data: bytes) -> None:
        target(data)
        if target.counts["inputs"] % 50 == 0:
            counts = {**target.counts, "seconds": time.monotonic() - begun}
            (target.folder / f"counts-{arguments.run}.json").write_text(json.dumps(counts))

    (target.folder / "corpus").mkdir(exist_ok=True)
    atheris.Setup(
        [
            sys.argv[0],
            f"-max_total_time={int(arguments.seconds)}",
            f"-rss_limit_mb={(MOST_BYTES + (1 << 30 if arguments.native else 0)) >> 20}",
            "-timeout=60",
            f"-max_len={SEED_BYTES * 5}",
            "-len_control=0",
            f"-artifact_prefix={target.findings}/signal-",
            "-print_final_stats=1",
            "-reload=0",
            str(target.folder / "corpus"),
            str(target.folder / "seeds"),
        ],
        one,
        custom_mutator=changed,
    )
    atheris.Fuzz()


def fuzz_hypothesis(arguments: argparse.Namespace) -> None:
    """As many examples as fit into the time, a hundred a go."""
    from hypothesis import HealthCheck, Phase, given, settings

    with_native(arguments.native)
    from tests.formats.strategies import damaged

    target = Target(arguments.reader)
    begun = time.monotonic()
    given_files = [each.read_bytes() for each in sorted((target.folder / "seeds").iterdir())]
    if arguments.native is None:  # the sanitizers reserve far more
        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES * 4, MOST_BYTES * 4))

    @settings(
        max_examples=100,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(damaged(given_files))
    def go(data: bytes) -> None:
        if time.monotonic() - begun < arguments.seconds:
            (target.folder / "last.bin").write_bytes(data)
            target(data)

    while time.monotonic() - begun < arguments.seconds:
        go()
        counts = {**target.counts, "seconds": time.monotonic() - begun}
        (target.folder / f"counts-{arguments.run}.json").write_text(json.dumps(counts))


def environment(native: Path | None) -> dict[str, str]:
    """Return what a process that opens inputs starts with: the sanitizers have to be there before Python is."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    if native is not None:
        spec = importlib.util.find_spec("atheris")
        assert spec is not None
        assert spec.origin is not None
        env["LD_PRELOAD"] = str(Path(spec.origin).parents[1] / "asan_with_fuzzer.so")
        env["ASAN_OPTIONS"] = "detect_leaks=0:allocator_may_return_null=1:quarantine_size_mb=16:detect_odr_violation=0"
        env["UBSAN_OPTIONS"] = "print_stacktrace=1:halt_on_error=1"
    return env


def run(arguments: argparse.Namespace) -> None:
    """Run the tool until the time is up, and restart it if an input ends it. Print the findings."""
    folder = WORK / arguments.reader
    shutil.rmtree(folder / "seeds", ignore_errors=True)
    for each in ("seeds", "findings", "corpus"):
        (folder / each).mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(seeds(arguments.reader, arguments.seeds)):
        (folder / f"seeds/{number:03}").write_bytes(data)
    if not any((folder / "seeds").iterdir()):
        raise SystemExit(f"no seeds for {arguments.reader}")
    env = environment(arguments.native)
    env["TMPDIR"] = tempfile.mkdtemp(prefix="strobe-fuzz-")
    begun = time.monotonic()
    total: Counter[str] = Counter()
    log, edges, starts = "", 0, 0
    while (left := arguments.minutes * 60 - (time.monotonic() - begun)) > 5:
        starts += 1
        command = [
            sys.executable,
            __file__,
            arguments.reader,
            "--tool",
            arguments.tool,
            "--child",
            "--run",
            str(starts),
        ]
        command += ["--seconds", str(left)] + (["--native", str(arguments.native)] if arguments.native else [])
        counts = folder / f"counts-{starts}.json"
        counts.unlink(missing_ok=True)
        with (folder / "log.txt").open("wb") as out:
            ended = subprocess.run(command, cwd=ROOT, env=env, stdout=out, stderr=subprocess.STDOUT, check=False)
        log = (folder / "log.txt").read_text(encoding="utf-8", errors="replace")
        edges = max([edges, *(int(each) for each in re.findall(r"\bcov: (\d+)", log))])
        if counts.exists():
            total.update(json.loads(counts.read_text()))
        if ended.returncode and left - 5 > (time.monotonic() - begun) - (arguments.minutes * 60 - left):
            tail = log[-20_000:]
            kept = folder / f"findings/ended-{time.strftime('%H%M%S')}.txt"
            kept.write_text(tail, encoding="utf-8")
            if arguments.tool == "hypothesis" and (folder / "last.bin").exists():
                shutil.copy(folder / "last.bin", kept.with_suffix(".bin"))
            total[f"finding ended with {ended.returncode}"] += 1
            if starts > 5 and total["inputs"] < 100:
                raise SystemExit(tail[-3000:])
    shutil.rmtree(env["TMPDIR"], ignore_errors=True)
    print(
        f"{arguments.reader} {arguments.tool}{' sanitized' if arguments.native else ''}: "
        f"{(time.monotonic() - begun) / 60:.1f} min, {total['inputs']} inputs ({total['opened']} opened, "
        f"{total['refused']} refused, {total['read whole']} read whole), {edges} edges, {starts} starts, "
        f"peak {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10} MiB"
    )
    for what, number in total.items():
        if what.startswith("finding "):
            print(f"  {number} x {what[8:]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reader", choices=READERS)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--tool", choices=("atheris", "hypothesis"), default="atheris")
    parser.add_argument("--sanitize", action="store_true", help="build the core with sanitizers, by clang, and use it")
    parser.add_argument("--native", type=Path, help="folder of such a build, as it is")
    parser.add_argument("--seeds", type=Path, action="append", default=[], help="a folder with more seeds")
    parser.add_argument("--again", type=Path, help="open this one input, and print the result")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--run", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.sanitize:
        arguments.native = sanitized_core()
    if arguments.again and arguments.native and "LD_PRELOAD" not in os.environ:
        command = [sys.executable, __file__, arguments.reader, "--native", arguments.native, "--again", arguments.again]
        os.execve(sys.executable, list(map(str, command)), environment(arguments.native))
    if arguments.again:
        with_native(arguments.native)
        target = Target(arguments.reader)
        target(arguments.again.read_bytes())
        print(dict(target.counts))
    elif not arguments.child:
        run(arguments)
    elif arguments.tool == "atheris":
        fuzz_atheris(arguments)
    else:
        fuzz_hypothesis(arguments)


if __name__ == "__main__":
    main()
