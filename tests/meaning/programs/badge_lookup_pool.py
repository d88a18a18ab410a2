"""A door controller checks waves of badges in a thread pool; a directory far away (4 ms a call) is asked under the cache's lock.

Truth: 100 waves of 8 badges, limited by lock: four threads ask one after the other. Asking outside of the lock
would leave the time that the busiest thread worked; the rest of each wave is the measured gain. One may say io
(what the lock's holder does) or synchronisation.
"""

import hashlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from truth import problem, tile, write


class Directory:
    """Stands for a server with a round trip of 4 ms."""

    def ask(self, badge):
        time.sleep(0.004)
        return {"badge": badge, "level": int(hashlib.sha256(badge.encode()).hexdigest()[:2], 16) % 4}


class DoorController:
    def __init__(self, directory):
        self.directory = directory
        self.cache = {}
        self.lock = threading.Lock()
        self.own = {}

    def lookup(self, badge):
        begin = time.monotonic_ns()
        with self.lock:
            got = time.monotonic_ns()
            person = self.cache.get(badge)
            if person is None:
                person = self.cache[badge] = self.directory.ask(badge)
        allowed = person["level"] >= 2
        token = hashlib.pbkdf2_hmac("sha256", badge.encode(), b"door", 300).hex() if allowed else None
        me = threading.get_ident()
        self.own[me] = self.own.get(me, 0) + time.monotonic_ns() - got
        return token, got - begin


def main():
    controller = DoorController(Directory())
    wasted = waited = opened = 0
    with ThreadPoolExecutor(4, thread_name_prefix="door") as pool:
        cuts = [time.monotonic_ns()]
        for wave in range(100):
            controller.own.clear()
            badges = [f"badge-{wave}-{i}" for i in range(8)]
            answers = list(pool.map(controller.lookup, badges))
            opened += sum(token is not None for token, _ in answers)
            waited += sum(wait for _, wait in answers)
            now = time.monotonic_ns()
            # without waits, four threads would have two badges each
            fair = sum(controller.own.values()) / 4
            wasted += max(0, int(now - cuts[-1] - fair))
            cuts.append(now)
    print(f"{opened} doors opened, threads waited {waited / 1e9:.2f} s in all")
    write(
        tile(cuts, "wave"),
        unit="wave of badges",
        limiting="lock",
        limiting_also=["io", "synchronisation"],
        levels={"badge": 800},
        problem=problem(
            "the directory is asked while the cache's lock is held",
            "badge_lookup_pool.py:DoorController.lookup",
            "lock",
            wasted_ns=wasted,
        ),
    )


if __name__ == "__main__":
    main()
