"""A program of 100 000 events a second, watched by a page and by `strobe top`: what do viewers cost, and do they grow?

./dev bench live [--minutes 30] [--rate 100000] [--alone]

The program is that of `soak`. `strobe view` has one page open in headless Chromium, which goes from Overview to
Timeline to Steps; `strobe top --json` runs beside it. Every half minute: memory of the server and of the page's process
(PSS), of all processes of the browser, and of JS; how long ago the last record was made that the server's answer has
(lag), how long opening and summary took it, how old the last line of `top` is, and CPU time of the program's process
and of the server. A second reader is killed then. `--alone`: nobody looks.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path

from bare_page import bare_page
from browser import memory_mib, page_mib, pss_mib, view
from measure import STROBE, folder, table
from soak import calls_in, memory, numbers, start

PAGES = ("overview", "timeline", "steps")


def asked(address: str, route: str) -> tuple[bytes, float]:
    """What the server answers to a route, and how long it took, ms."""
    begin = time.monotonic()
    with urllib.request.urlopen(f"{address}api/{route}") as answer:
        data = answer.read()
    return data, (time.monotonic() - begin) * 1e3


def age_ms(zero_ns: int, end_ns: int) -> float:
    """How long ago a moment of the trace was."""
    return (time.clock_gettime_ns(time.CLOCK_MONOTONIC) - zero_ns - end_ns) / 1e6


def last_line(path: Path) -> dict[str, object]:
    """The last whole line of JSON of a file; empty while there is none."""
    lines = path.read_text().splitlines()
    return json.loads(lines[-1]) if lines else {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--rate", type=int, default=100_000)
    parser.add_argument("--every", type=float, default=30, metavar="SECONDS")
    parser.add_argument("--alone", action="store_true", help="nobody looks")
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    with folder() as place, ExitStack() as stack:
        way = start("watched", ("--throttle", "off"), place, options.minutes, options.rate)
        zero_ns = json.loads((way.trace / "job.json").read_text())["zero_ns"]
        if not options.alone:
            address, _, server = stack.enter_context(view(way.trace))
            profile = place / "profile"
            page = stack.enter_context(bare_page(profile))
            lines = place / "top.json"
            top = subprocess.Popen([STROBE, "top", str(way.trace), "--json"], stdout=lines.open("w"))
            stack.callback(top.terminate)
        begin, shown = time.monotonic(), 0
        while not numbers(way.truth)[3] and way.process.poll() is None:
            if not options.alone:
                page.go(f"{address}#{PAGES[shown % len(PAGES)]}")
                shown += 1
                killed = subprocess.Popen([STROBE, "top", str(way.trace), "--json"], stdout=subprocess.DEVNULL)
                time.sleep(2)
                killed.kill()
                killed.wait()
            time.sleep(options.every)
            now = memory(way.pid)
            if not now:
                break
            row: dict[str, object] = {
                "minute": f"{(time.monotonic() - begin) / 60:.1f}",
                "load": f"{os.getloadavg()[0]:.0f}",
                "program, CPU s": f"{now['cpu_s']:.1f}",
                "steps": numbers(way.truth)[1],
            }
            if not options.alone:
                time.sleep(1.1)  # so that the run is opened anew
                meta, opened_ms = asked(address, "meta")
                row |= {
                    "lag, ms": f"{age_ms(zero_ns, json.loads(meta)['end_ns']):.0f}",
                    "opening, ms": f"{opened_ms:.0f}",
                    "summary, ms": f"{asked(address, 'summary')[1]:.0f}",
                    "server, MiB": f"{pss_mib(server):.0f}",
                    "server, CPU s": f"{memory(server)['cpu_s']:.0f}",
                    "page, MiB": f"{page_mib(profile):.0f}",
                    "browser, MiB": f"{memory_mib(profile):.0f}",
                    "JS heap, MiB": f"{page.js_mib():.0f}",
                    "top, s ago": f"{age_ms(zero_ns, int(str(last_line(lines).get('duration_ns', 0)))) / 1e3:.1f}",
                }
            rows.append(row)
            print(row, flush=True)
        code = way.process.wait(timeout=1800)
        _, main_calls, short_calls, _ = numbers(way.truth)
        print(f"\n## {options.minutes:g} minutes at {options.rate} events a second\n\n{table(rows)}")
        calls, lost = calls_in(way.trace)
        counted = main_calls + short_calls
        print(f"\nexit code {code}; {counted} calls counted, {calls} in the trace, {lost} records lost")
        if code or calls != counted:
            sys.exit(1)


if __name__ == "__main__":
    main()
