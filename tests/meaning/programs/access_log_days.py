"""Daily web-server logs (gzip) through a chain of generators: lines, records, sessions; a JSON report per day.

Healthy: regular expressions, dictionaries and dates in Python; unzipping and writing are little. Truth: 40 days.
"""

import gzip
import json
import random
import re
import statistics
import tempfile
import time
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path

from truth import tile, write

LINE = re.compile(r'(\S+) - - \[([^\]]+)\] "(\w+) (\S+) [^"]+" (\d{3}) (\d+) "([^"]*)"')


@dataclass
class Day:
    name: str
    hits: int = 0
    errors: int = 0
    sent: int = 0
    sessions: int = 0
    median_pages: float = 0.0
    by_section: dict = field(default_factory=dict)


def make_logs(folder, days=40, lines=4800):
    rng = random.Random(31)
    tails = [
        f'"GET /{rng.choice(["news", "shop", "help", "img"])}/{rng.randrange(4000)} HTTP/1.1" '
        f'{rng.choices([200, 304, 404, 500], [80, 12, 6, 2])[0]} {rng.randrange(200, 90000)} "agent/{rng.randrange(9)}"\n'
        for _ in range(3000)
    ]
    hosts = [f"10.{k // 250}.{k % 250}.7" for k in range(1200)]
    clock = [f"{s // 3600:02d}:{s // 60 % 60:02d}:{s % 60:02d}" for s in range(0, 86400, 86400 // lines)][:lines]
    for day in range(days):
        date = f"{day % 28 + 1:02d}/{'JanFeb'[day // 28 * 3:][:3]}/2024"
        hits = zip(rng.choices(hosts, k=lines), clock, rng.choices(tails, k=lines))
        text = "".join([f"{host} - - [{date}:{at} +0000] {tail}" for host, at, tail in hits])
        (folder / f"access-{day:03d}.log.gz").write_bytes(gzip.compress(text.encode(), 1))


def read_lines(path):
    with gzip.open(path, "rt") as lines:
        yield from lines


def parse(lines):
    for line in lines:
        if match := LINE.match(line):
            host, at, method, target, status, size, _agent = match.groups()
            when = datetime.strptime(at[:20], "%d/%b/%Y:%H:%M:%S")
            yield host, when.timestamp(), method, target, int(status), int(size)


def count(records, day):
    for record in records:
        day.hits += 1
        day.errors += record[4] >= 400
        day.sent += record[5]
        section = record[3].split("/", 2)[1]
        day.by_section[section] = day.by_section.get(section, 0) + 1
        yield record


def sessions(records, idle=1800):
    open_, pages = {}, {}
    for host, at, *_ in records:
        if host in open_ and at - open_[host] > idle:
            yield pages.pop(host)
        open_[host] = at
        pages[host] = pages.get(host, 0) + 1
    yield from pages.values()


def report(path):
    day = Day(path.name.split(".")[0])
    lengths = list(sessions(count(parse(read_lines(path)), day)))
    day.sessions, day.median_pages = len(lengths), statistics.median(lengths)
    return day


with tempfile.TemporaryDirectory() as folder:
    folder = Path(folder)
    make_logs(folder)
    cuts = [time.monotonic_ns()]
    for path in sorted(folder.glob("*.log.gz")):
        day = report(path)
        (folder / f"{day.name}.json").write_text(json.dumps(asdict(day), indent=1))
        cuts.append(time.monotonic_ns())
    print(day)
write(tile(cuts, "day"), unit="day", limiting="python")
