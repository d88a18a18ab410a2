"""A shop as a discrete-event simulation: customers arrive, queue, are served and leave; a step is one event."""

import heapq
import os
import random
import time


class Shop:
    def __init__(self, rng, tills):
        self.rng, self.free, self.queue, self.calendar = rng, tills, [], []
        self.now, self.served, self.waited = 0.0, 0, 0.0

    def schedule(self, delay, what):
        heapq.heappush(self.calendar, (self.now + delay, len(self.calendar), what))

    def arrive(self):
        self.schedule(self.rng.expovariate(1.0), "arrive")
        self.queue.append(self.now)
        self.serve()

    def serve(self):
        if self.free and self.queue:
            self.free -= 1
            self.waited += self.now - self.queue.pop(0)
            self.schedule(self.rng.expovariate(0.4), "leave")

    def leave(self):
        self.free += 1
        self.served += 1
        self.serve()

    def next(self):
        self.now, _, what = heapq.heappop(self.calendar)
        getattr(self, what)()


shop, begins = Shop(random.Random(6), 3), []
shop.schedule(0.0, "arrive")
while shop.served < 1000:
    begins.append(time.monotonic_ns())
    shop.next()
print(f"{shop.served} served, waited {shop.waited / shop.served:.2f}")
with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
    out.write("".join(map("event {}\n".format, begins)))
