"""Breadth-first crawl of a (made-up) web site: take a page from the frontier, find its links, queue the unseen ones.

Truth: 1500 pages. `Crawler.unseen` looks for each link in a list of all addresses seen so far, so that pages get slower
and slower; a set would save the measured time (less what the same look-ups take in a set, measured as well).
"""

import random
import re
import time
from collections import deque

from truth import problem, tile, write

HREF = re.compile(r'href="([^"]+)"')


class Site:
    def __init__(self, pages, seed=4):
        self.pages = pages
        self.seed = seed

    def get(self, url):
        number = int(url.rsplit("/", 1)[1])
        rng = random.Random(self.seed * 1_000_003 + number)
        links = (rng.randrange(self.pages) for _ in range(70))
        body = "\n".join(f'<li><a href="https://example.org/page/{k:06d}">entry {k}</a></li>' for k in links)
        return f"<html><title>Page {number}</title><ul>{body}</ul></html>"


class Crawler:
    def __init__(self, site, first):
        self.site = site
        self.frontier = deque([first])
        self.seen = [first]
        self.looking = 0

    def unseen(self, links):
        before = time.monotonic_ns()
        fresh = [link for link in links if link not in self.seen]
        self.looking += time.monotonic_ns() - before
        return fresh

    def visit(self):
        page = self.site.get(self.frontier.popleft())
        links = dict.fromkeys(HREF.findall(page))
        fresh = self.unseen(links)
        self.seen.extend(fresh)
        self.frontier.extend(fresh)
        return len(links)


crawler = Crawler(Site(3000), "https://example.org/page/000000")
visited = found = 0
cuts = [time.monotonic_ns()]
while crawler.frontier and visited < 1500:
    found += crawler.visit()
    visited += 1
    cuts.append(time.monotonic_ns())
print(f"{visited} pages, {found} links, {len(crawler.seen)} addresses")

as_set = set(crawler.seen)
sample = crawler.seen[:70]
t = time.monotonic_ns()
for _ in range(visited):
    [link for link in sample if link not in as_set]
with_set = time.monotonic_ns() - t
write(
    tile(cuts, "page"),
    unit="page",
    limiting="python",
    phases_ns={"look-up": crawler.looking},
    problem=problem(
        "each link is looked for in a growing list", "site_crawl.py:Crawler.unseen", "python",
        wasted_ns=crawler.looking - with_set,
    ),
)  # fmt: skip
