"""A billion spans: opening, first picture, zooms, frames, memory, sums, bytes; of a trace beside another of a tenth.

strobe generate TEMPLATE -o d8 --ranks 200 --spans 1e8 --only-spans, the same with 1e9, then
./dev bench scale d8.strobe d9.strobe [--windows 200] [--only open,windows,page,sums,bytes]
"""

import argparse
import math
import random
import statistics
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from browser import chromium, load, memory_mib, view
from measure import STROBE, checked, folder, table
from playwright.sync_api import CDPSession, sync_playwright

import strobe
from strobe.api.trace import Trace

PARTS = ("open", "windows", "page", "sums", "bytes")
FIRST = "performance.getEntriesByName('first-picture')[0]?.startTime"
# All that the page draws, it draws in frames: their time is that of the callbacks.
TIME_FRAMES = """
window.frames_ms = [];
let now = 0, sum = 0;
const plain = window.requestAnimationFrame.bind(window);
window.requestAnimationFrame = (call) => plain((at) => {
  if (at !== now) { if (sum) window.frames_ms.push(sum); now = at; sum = 0; }
  const begun = performance.now();
  call(at);
  sum += performance.now() - begun;
});
"""
ROWS, WIDTH, TILE, AT_ONCE = 1000, 1500, 1024, 256
JSON_SPANS = 1e6


def figures(name: str, values: list[float], unit: str) -> dict[str, object]:
    """A row: median, 95 % and worst."""
    ordered = sorted(values)
    return {
        "what": name,
        "samples": len(values),
        "median": f"{statistics.median(values):.1f} {unit}",
        "95 % below": f"{ordered[int(0.95 * (len(ordered) - 1))]:.1f} {unit}",
        "worst": f"{ordered[-1]:.1f} {unit}",
    }


def timed_ms(work: Callable[..., object], *given: object) -> tuple[float, float]:
    """Wall and CPU milliseconds of a call."""
    begun, used = time.perf_counter(), time.process_time()
    work(*given)
    return 1e3 * (time.perf_counter() - begun), 1e3 * (time.process_time() - used)


def windows_of(trace: Trace, count: int, seed: int) -> list[tuple[int, int]]:
    """Random windows: any width from everything to a hundred thousandth of it is as likely."""
    draw, end = random.Random(seed), trace.info.duration_ns
    found = []
    for _ in range(count):
        width = int(end * math.exp(-draw.random() * math.log(1e5)))
        start = draw.randrange(max(1, end - width))
        found.append((start, start + max(width, WIDTH)))
    return found


def tiles_of(start_ns: int, end_ns: int) -> tuple[int, range]:
    """What the page asks for to draw a window: tiles of cells no wider than a pixel."""
    level = max(0, int(math.log2((end_ns - start_ns) / WIDTH)))
    return level, range(start_ns // (TILE << level), (end_ns - 1) // (TILE << level) + 1)


def requests(start_ns: int, end_ns: int, rows: int) -> list[str]:
    """The same as questions to the server."""
    level, tiles = tiles_of(start_ns, end_ns)
    batches = [range(first, min(first + AT_ONCE, rows)) for first in range(0, rows, AT_ONCE)]
    return [
        f"cells?locations={','.join(map(str, batch))}&level={level}&tile={tile}" for tile in tiles for batch in batches
    ]


def draw(trace: Trace, locations: range, start_ns: int, end_ns: int) -> None:
    """The same in this process."""
    level, tiles = tiles_of(start_ns, end_ns)
    for tile in tiles:
        trace.pyramid.cells(locations, (TILE << level) * tile, (TILE << level) * (tile + 1), TILE)


def measure_open(traces: list[Path]) -> list[dict[str, object]]:
    """Opening in Python, and until the server listens."""
    rows = []
    for path in traces:
        code = (
            "import time, strobe.trace.trace as t; w, c = time.monotonic(), time.process_time();"
            f"x = t.open_trace({str(path)!r}); x.span_count;"
            "print(1e3 * (time.monotonic() - w), 1e3 * (time.process_time() - c))"
        )
        python = str(Path(STROBE).with_name("python"))
        opened = [list(map(float, checked([python, "-c", code], path.parent).stdout.split())) for _ in range(5)]
        rows.append(figures(f"{path.stem}: strobe.open(), wall", [wall for wall, _ in opened], "ms"))
        rows.append(figures(f"{path.stem}: strobe.open(), CPU", [cpu for _, cpu in opened], "ms"))
        waits = []
        for _ in range(5):
            with view(path) as (_, seconds, _):
                waits.append(1e3 * seconds)
        rows.append(figures(f"{path.stem}: until `strobe view` listens, Python's start included", waits, "ms"))
    return rows


def measure_windows(traces: list[Path], count: int) -> list[dict[str, object]]:
    """Pictures of random windows: in this process, and from the server as the page asks for them."""
    rows, medians = [], []
    for path in traces:
        trace = strobe.open(path)
        locations = range(min(ROWS, trace.info.location_count))
        chosen = windows_of(trace, count, 1)
        for window in chosen:  # what a page that is open has read already
            draw(trace, locations, *window)
        native = [timed_ms(draw, trace, locations, *window) for window in chosen]
        for at, what in enumerate(("wall", "CPU")):
            name = f"{path.stem}: {len(locations)} rows x {WIDTH} px in whole tiles, the picture itself, {what}"
            rows.append(figures(name, [each[at] for each in native], "ms"))
        medians.append(statistics.median(cpu for _, cpu in native))
        with view(path) as (address, _, _), ThreadPoolExecutor(2) as pool:

            def fetch(question: str, address: str = address) -> float:
                with urllib.request.urlopen(f"{address}api/{question}") as answer:
                    answer.read()
                    return float(answer.headers["Server-Timing"].rsplit("dur=", 1)[1])

            def picture(window: tuple[int, int], rows: int, pool: ThreadPoolExecutor = pool) -> list[float]:
                return list(pool.map(fetch, requests(*window, rows)))

            picture(chosen[0], len(locations))
            whole = [timed_ms(picture, window, len(locations))[0] for window in chosen[: count // 2]]
            each = [took for window in chosen for took in picture(window, AT_ONCE)]
        rows.append(figures(f"{path.stem}: the same over HTTP, all its tiles", whole, "ms"))
        rows.append(figures(f"{path.stem}: one answer of the server ({AT_ONCE} rows x {TILE} cells)", each, "ms"))
    if len(medians) == 2:
        rows.append({"what": "the larger over the smaller trace, CPU", "median": f"{medians[1] / medians[0]:.2f}"})
    return [{name: row.get(name, "") for name in rows[0]} for row in rows]


def script_ms(session: CDPSession) -> float:
    """CPU time of the page's scripts so far."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return 1e3 * next(each["value"] for each in metrics if each["name"] == "ScriptDuration")


def measure_page(traces: list[Path], place: Path, rounds: int) -> list[dict[str, object]]:
    """The page in Chromium: first picture, frames, memory above that of an empty page."""
    rows = []
    profile = place / "profile"
    for path in traces:
        with view(path) as (address, _, _), sync_playwright() as playwright:
            # 200 ranks with their threads and streams, a pixel each and more: nothing is folded, all rows fit.
            for shown, height, fields in (("as it opens", 1000, ""), (f"{ROWS} rows", 1500, "&fold=none&fit=1")):
                first, frames, busy, memory = [], [], [], []
                for _ in range(rounds):
                    with chromium(playwright, profile, 2000, height) as context:
                        page = context.pages[0]
                        page.wait_for_timeout(1000)
                        base = memory_mib(profile)
                        page.add_init_script(TIME_FRAMES)
                        page.goto(f"{address}#page=timeline{fields}")
                        while (at := page.evaluate(FIRST)) is None:
                            page.wait_for_timeout(20)
                        first.append(float(at))
                        page.wait_for_timeout(3000)
                        page.evaluate("window.frames_ms = []")
                        session = context.new_cdp_session(page)
                        session.send("Performance.enable", {"timeDomain": "threadTicks"})
                        before = script_ms(session)
                        page.mouse.move(1200, 600)
                        for key in "wwwddsaw":
                            page.keyboard.down(key)
                            page.wait_for_timeout(400)
                            page.keyboard.up(key)
                        drawn = page.evaluate("window.frames_ms")
                        frames += drawn
                        busy.append((script_ms(session) - before) / max(1, len(drawn)))
                        memory.append(memory_mib(profile) - base)
                rows.append(figures(f"{path.stem}, {shown}: first picture after opening the page", first, "ms"))
                rows.append(figures(f"{path.stem}, {shown}: drawing a frame (2000 px wide)", frames, "ms"))
                rows.append(figures(f"{path.stem}, {shown}: CPU of all scripts for a frame", busy, "ms"))
                rows.append(figures(f"{path.stem}, {shown}: memory above the empty browser", memory, "MiB"))
    return rows


def measure_sums(traces: list[Path]) -> list[dict[str, object]]:
    """CPU time a span of what reads all of them: whole commands, then without opening and Python's start.

    Of the latter the first processes, which hold a tenth of the spans, stand for the others.
    """
    from strobe.steps.selection import select
    from strobe.sums.path_statistics import path_statistics

    rows = []
    for path in traces:
        spans = strobe.open(path).span_count
        for form in ("flat", "tree"):
            used = checked([STROBE, "profile", f"--{form}", "--step", "all", "--csv", str(path)], path.parent).cpu_s
            what = f"{path.stem}: `strobe profile --{form} --step all`, all of the command"
            rows.append({"what": what, "spans": spans, "CPU ns a span": f"{1e9 * used / spans:.1f}"})
        trace = strobe.open(path)
        some, _ = trace.beginning(trace.span_count // 10)
        some.call_paths, some.locations  # noqa: B018 - definitions are read once, and are not what is measured
        begun = time.process_time()
        path_statistics(some, select(some, "all"))
        took = time.process_time() - begun
        rows.append(
            {
                "what": f"{path.stem}: count, total, own, least and most by call path",
                "spans": some.span_count,
                "CPU ns a span": f"{1e9 * took / some.span_count:.1f}",
            }
        )
    return rows


def measure_bytes(traces: list[Path], place: Path) -> list[dict[str, object]]:
    """Bytes a span of these traces, and of a part of the last one in the formats of others."""
    rows = []
    for path in traces:
        trace = strobe.open(path)
        for what, suffixes in (("blocks", ["blocks"]), ("with index and tiles", ["blocks", "index", "tiles"])):
            size = sum(file.stat().st_size for suffix in suffixes for file in path.glob(f"*.{suffix}"))
            rows.append({"what": f"{path.stem}: {what}", "bytes a span": f"{size / trace.span_count:.2f}"})
    whole = strobe.open(traces[-1])
    length = whole.info.duration_ns * JSON_SPANS * len(whole.processes) / whole.span_count
    part = place / "part.strobe"
    checked([STROBE, "cut", str(traces[-1]), "--ranks", "0", "--time", f"0-{int(length)}ns", "-o", str(part)], place)
    spans = strobe.open(part).span_count
    for name, output in (("chrome", "part.json"), ("otf2", "part-otf2")):
        checked([STROBE, "export", str(part), "--to", name, "-o", str(place / output)], place)
        files = [file for file in [place / output, *(place / output).rglob("*")] if file.is_file()]
        size = sum(file.stat().st_size for file in files)
        rows.append({"what": f"{spans} of these spans as {name}", "bytes a span": f"{size / spans:.2f}"})
    return rows


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+", type=Path)
    parser.add_argument("--windows", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas between: " + ", ".join(PARTS))
    options = parser.parse_args()
    traces = [path.resolve() for path in options.traces]
    with folder() as place:
        parts: dict[str, Callable[[], list[dict[str, object]]]] = {
            "open": lambda: measure_open(traces),
            "windows": lambda: measure_windows(traces, options.windows),
            "page": lambda: measure_page(traces, place, options.rounds),
            "sums": lambda: measure_sums(traces),
            "bytes": lambda: measure_bytes(traces, place),
        }
        for name in options.only.split(","):
            before = load()
            rows = parts[name]()
            print(f"\n## {name} ({before} before, {load()} after)\n\n{table(rows)}", flush=True)


if __name__ == "__main__":
    main()
