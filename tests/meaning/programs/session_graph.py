"""A service's sessions as a graph of users, visits and pages that know each other both ways; old sessions are let go.

Each tick makes some thousand objects in cycles, held for a while beside a large index, so automatic full collections walk
the whole heap again and again. Truth: 500 ticks; time in collections is measured by `gc.callbacks` and is the gain; ticks
that hold a full collection stand out.
"""

import gc
import random
from collections import deque
from time import monotonic_ns

from truth import problem, tile, write


class Page:
    def __init__(self, visit, url):
        self.visit, self.url, self.next = visit, url, None


class Visit:
    def __init__(self, user, urls):
        self.user = user
        self.pages = [Page(self, url) for url in urls]
        for a, b in zip(self.pages, self.pages[1:]):
            a.next = b


class User:
    def __init__(self, name):
        self.name, self.visits = name, []

    def visit(self, urls):
        self.visits.append(Visit(self, urls))


spent, begun = [], 0


def watch(phase, info):
    global begun
    if phase == "start":
        begun = monotonic_ns()
    else:
        spent.append((begun, monotonic_ns() - begun, info["generation"]))


def arrivals(tick, urls):
    session = []
    for n in range(120):
        user = User(f"u{tick}-{n}")
        for _ in range(3):
            user.visit(random.choices(urls, k=6))
        session.append(user)
    return session


def count_hits(session, hits):
    for user in session:
        for visit in user.visits:
            page = visit.pages[0]
            while page is not None:
                hits[page.url] += 1
                page = page.next


def main():
    random.seed(6)
    urls = [f"/item/{n}" for n in range(500)]
    index = {n: {"tags": [[n], [n + 1]], "links": [[n % 7]]} for n in range(40_000)}
    hits = dict.fromkeys(urls, 0)
    recent = deque(maxlen=40)
    gc.callbacks.append(watch)
    cuts = [monotonic_ns()]
    for tick in range(500):
        session = arrivals(tick, urls)
        recent.append(session)
        count_hits(session, hits)
        cuts.append(monotonic_ns())
    gc.callbacks.remove(watch)

    loop = cuts[-1] - cuts[0]
    collecting = sum(ns for _, ns, _ in spent)
    full = {}
    for at, ns, generation in spent:
        if generation == 2:
            full[sum(cut <= at for cut in cuts) - 1] = f"full collection, {ns / 1e6:.0f} ms"
    print(f"{len(index)} entries, {len(full)} full collections, {collecting / loop:.0%} of the time in collections")
    assert collecting > 0.4 * loop and len(full) > 5
    most = collecting > 0.5 * loop
    write(
        tile(cuts, "tick"),
        unit="tick",
        limiting="garbage-collection" if most else "python",
        limiting_also=["python" if most else "garbage-collection"] if collecting < 0.65 * loop else [],
        phases_ns={"collections": collecting},
        outliers=full,
        problem=problem(
            "full collections walk a large heap, cycles keep them coming",
            "session_graph.py:arrivals",
            "garbage-collection",
            wasted_ns=collecting,
        ),
    )


main()
