"""Many viewers of one trace who zoom at random: errors, slow answers, the server's memory, and what they leave behind.

./dev bench viewers TRACE [--viewers 10] [--seconds 60] [--rows 1000] [--pause 0.5] [--busy]
"""

import argparse
import asyncio
import os
import random
import statistics
import subprocess
import time
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

from connections import Connections
from measure import STROBE, table

WIDTH_PX = 1400
ROWS_AT_ONCE = 512
# A picture whose tiles are not all there after this time is one that an impatient viewer leaves, in a fifth of all.
IMPATIENT_S, IMPATIENT = 0.05, 0.2
SLOW_S = 1.0


@dataclass
class Seen:
    """What viewers saw: wall time of every answer by question, s; errors; pictures, s; those that were left."""

    answers: dict[str, list[float]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    pictures: list[float] = field(default_factory=list)
    left: int = 0
    bytes: int = 0


async def ask(client: Connections, question: str, seen: Seen) -> None:
    """One question; its wall time counts to the last byte."""
    begun = time.perf_counter()
    try:
        answer = await client.get(f"api/{question}")
    except (OSError, EOFError) as error:
        seen.errors.append(f"{type(error).__name__} {question[:60]}")
        return
    seen.answers.setdefault(question.partition("?")[0], []).append(time.perf_counter() - begun)
    seen.bytes += len(answer.sent)
    if answer.status != 200:
        seen.errors.append(f"{answer.status} {answer.body[:100]!r} {question[:60]}")


async def viewer(address: str, chance: random.Random, until: float, options: argparse.Namespace, seen: Seen) -> None:
    """Zoom and pan at random, as the page does: tiles of all visible rows, and the nesting of one of them."""
    rows, pause_s = options.rows, options.pause
    await asyncio.sleep(pause_s * chance.random())
    with closing(Connections(address)) as client:
        meta = (await client.get("api/meta")).json()
        start, whole = meta["start_ns"], meta["end_ns"] - meta["start_ns"]
        locations = len(await ask_locations(client))
        while time.perf_counter() < until:
            length = whole / 2 ** chance.uniform(0, 20)
            begin = start + chance.random() * (whole - length)
            first = chance.randrange(max(1, locations - rows + 1))
            questions = tiles(begin, length, list(range(first, min(locations, first + rows))))
            questions += [q.replace("cells?locations=", "stack?location=") for q in tiles(begin, length, [first])]
            begun = time.perf_counter()
            picture = asyncio.gather(*(ask(client, question, seen) for question in questions))
            patience = IMPATIENT_S if chance.random() < IMPATIENT else None
            try:
                await asyncio.wait_for(picture, patience)
                seen.pictures.append(time.perf_counter() - begun)
            except TimeoutError:
                seen.left += 1
            await asyncio.sleep(pause_s * chance.uniform(0.5, 1.5))


def tiles(begin: float, length: float, locations: list[int]) -> list[str]:
    """The questions of a picture: tiles of 1024 cells of 2**level ns, one to two cells a pixel."""
    level = max(0, int(length / WIDTH_PX).bit_length() - 1)
    width = 1024 << level
    return [
        f"cells?locations={','.join(map(str, locations[at : at + ROWS_AT_ONCE]))}&level={level}&tile={tile}"
        for tile in range(int(begin) // width, int(begin + length) // width + 1)
        for at in range(0, len(locations), ROWS_AT_ONCE)
    ]


async def ask_locations(client: Connections) -> range:
    """As many numbers as the trace has locations."""
    described = (await client.get("api/openapi.json")).json()
    highest = described["paths"]["/stack"]["get"]["parameters"][0]["schema"]["maximum"]
    return range(highest + 1)


async def analyst(address: str, until: float) -> None:
    """Somebody who asks one slow question after the other."""
    with closing(Connections(address)) as client:
        number = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(until - time.perf_counter()):
                while True:
                    await client.get(f"api/search/density?{urlencode({'text': f'a -nothing{number}', 'bins': 500})}")
                    number += 1


async def watch(pid: int, until: float) -> list[int]:
    """Memory of the server every half second, bytes."""
    found = []
    while time.perf_counter() < until:
        found.append(memory_of(pid))
        await asyncio.sleep(0.5)
    return found


def memory_of(pid: int) -> int:
    """Private and shared memory of a process that is not of files, bytes."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(fields["RssAnon"].split()[0]) * 1024


def cpu_s(pid: int) -> float:
    """CPU time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(options: argparse.Namespace, address: str, pid: int) -> None:
    """Let all viewers zoom, then print what they measured."""
    seen, until = Seen(), time.perf_counter() + options.seconds
    before, begun = memory_of(pid), cpu_s(pid)
    work = [viewer(address, random.Random(number), until, options, seen) for number in range(options.viewers)]
    if options.busy:
        work.append(analyst(address, until))
    memory, *_ = await asyncio.gather(watch(pid, until), *work)
    spent = cpu_s(pid) - begun
    await asyncio.sleep(1)
    idle = cpu_s(pid)
    await asyncio.sleep(2)
    left_s = cpu_s(pid) - idle
    load = os.getloadavg()[0]
    print(f"{options.viewers} viewers, {options.seconds} s, {options.rows} rows, {options.pause} s a look")
    print(f"load {load:.1f}, beside somebody who searches: {options.busy}")
    rows = []
    for name, times in [*sorted(seen.answers.items()), ("a whole picture", seen.pictures)]:
        ordered = sorted(times)
        parts = {
            "median": statistics.median(ordered),
            "95 % below": ordered[int(0.95 * (len(ordered) - 1))],
            "most": ordered[-1],
        }
        slow = sum(each > SLOW_S for each in ordered)
        times = {part: f"{1e3 * each:.0f} ms" for part, each in parts.items()}
        rows.append({"answer": name, "times": len(ordered), **times, "over 1 s": slow})
    print(table(rows))
    print(f"errors: {len(seen.errors)} {seen.errors[:3]}")
    print(f"pictures that were left: {seen.left}; received: {seen.bytes / 1e6:.0f} MB")
    peak, end = max(memory), memory_of(pid)
    print(f"memory (not of files): {before / 1e6:.0f} MB before, {peak / 1e6:.0f} at most, {end / 1e6:.0f} after")
    print(f"CPU: {spent:.0f} s; in two seconds, a second after all had left: {left_s:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev bench viewers", description=__doc__)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--viewers", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rows", type=int, default=1000, help="rows that fit on the screen of each")
    parser.add_argument("--pause", type=float, default=0.5, help="seconds that a viewer looks at a picture")
    parser.add_argument("--busy", action="store_true", help="somebody searches all the time")
    options = parser.parse_args()
    command = [STROBE, "view", str(options.trace), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            asyncio.run(measure(options, server.stdout.readline().strip(), server.pid))
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
