"""An epidemic of agents: every day all of them move, the ill infect who is near, all of them age; a step is a day."""

import os
import random
import time

rng = random.Random(3)


class Agent:
    def __init__(self):
        self.x, self.y, self.state, self.ill = rng.random(), rng.random(), "susceptible", 0

    def move(self):
        self.x, self.y = (self.x + rng.gauss(0, 0.05)) % 1, (self.y + rng.gauss(0, 0.05)) % 1

    def infect(self):
        self.state = "ill"

    def age(self):
        if self.state == "ill":
            self.ill += 1
            if self.ill > 10:
                self.state = "recovered"


def near(a, b):
    return abs(a.x - b.x) + abs(a.y - b.y) < 0.08


def meet(agents):
    for one in agents:
        for other in agents:
            if one.state == "ill" and other.state == "susceptible" and near(one, other) and rng.random() < 0.5:
                other.infect()


def count(agents, state):
    return sum(agent.state == state for agent in agents)


agents = [Agent() for _ in range(40)]
agents[0].infect()
begins, history = [], []
for _ in range(80):
    begins.append(time.monotonic_ns())
    for agent in agents:
        agent.move()
    meet(agents)
    for agent in agents:
        agent.age()
    history.append(count(agents, "ill"))
print(history)
with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
    out.writelines(f"day {ns}\n" for ns in begins)
