"""A pure Python simulation: foxes and rabbits on a torus; populations, and with them the calls per tick, change."""

import os
import random
import time

SIDE = 30


class Animal:
    def __init__(self, x, y, energy):
        self.x, self.y, self.energy = x, y, energy

    def move(self):
        self.x = (self.x + random.choice((-1, 0, 1))) % SIDE
        self.y = (self.y + random.choice((-1, 0, 1))) % SIDE
        self.energy -= 1


class Rabbit(Animal):
    def act(self, world):
        self.move()
        if world.grass[self.x][self.y]:
            world.grass[self.x][self.y] = False
            self.energy += 4
        if self.energy > 12:
            self.energy //= 2
            world.rabbits.append(Rabbit(self.x, self.y, self.energy))


class Fox(Animal):
    def act(self, world):
        self.move()
        prey = world.rabbit_at(self.x, self.y)
        if prey is not None:
            prey.energy = -1
            self.energy += 10
        if self.energy > 40:
            self.energy //= 2
            world.foxes.append(Fox(self.x, self.y, self.energy))


class World:
    def __init__(self):
        self.grass = [[True] * SIDE for _ in range(SIDE)]
        self.rabbits = [Rabbit(random.randrange(SIDE), random.randrange(SIDE), 8) for _ in range(60)]
        self.foxes = [Fox(random.randrange(SIDE), random.randrange(SIDE), 20) for _ in range(8)]

    def rabbit_at(self, x, y):
        return next((rabbit for rabbit in self.rabbits if rabbit.x == x and rabbit.y == y and rabbit.energy > 0), None)

    def grow(self):
        for column in self.grass:
            for y in range(SIDE):
                if not column[y] and random.random() < 0.08:
                    column[y] = True

    def tick(self):
        self.grow()
        for rabbit in list(self.rabbits):
            rabbit.act(self)
        for fox in list(self.foxes):
            fox.act(self)
        self.rabbits = [rabbit for rabbit in self.rabbits if rabbit.energy > 0]
        self.foxes = [fox for fox in self.foxes if fox.energy > 0]


def main():
    random.seed(3)
    world = World()
    begins = []
    for tick in range(120):
        begins.append(time.monotonic_ns())
        world.tick()
        if tick % 20 == 0:
            print(f"tick {tick}: {len(world.rabbits)} rabbits, {len(world.foxes)} foxes")
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"tick {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
