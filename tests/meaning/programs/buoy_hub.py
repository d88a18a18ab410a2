"""A hub for wave buoys: five buoys push packets into a bounded asyncio queue, the hub checks and evaluates them.

All in one process and one event loop; the hub takes packets by `async for` from its own generator. Planted: `checksum`
computes the CRC of each packet bit by bit in Python, which `binascii.crc_hqx` does in a few microseconds. Truth: 3500
packets, which are the steps; every 700th prints a bulletin. Limited by Python, in `checksum`. The gain is the measured
time of all checksums less that of the same ones from `binascii`, taken after the loop.
"""

import asyncio
import binascii
import random
import struct
from collections import Counter, defaultdict
from time import monotonic_ns

from truth import problem, tile, write

BUOYS = ("Amrum", "Borkum", "Deutsche Bucht", "Elbe", "Fino")
PACKETS, SAMPLES, BULLETIN = 700, 300, 700
HEADER = struct.Struct(">BHH")
times = {"receive": 0, "checksum": 0, "waves": 0}


def checksum(payload, crc=0xFFFF):
    for byte in payload:
        crc ^= byte << 8
        for _ in range(8):
            crc = ((crc << 1) ^ 0x1021) & 0xFFFF if crc & 0x8000 else (crc << 1) & 0xFFFF
    return crc


def recordings(number, rng, kinds=12):
    """What a buoy's instrument gives: some dozen packets that come again and again, one of them garbled."""
    packets = []
    for kind in range(kinds):
        heave, heights = 0.0, []
        for _ in range(SAMPLES):
            heave = 0.95 * heave + rng.gauss(0.0, 60.0)
            heights.append(int(heave))
        payload = struct.pack(f">{SAMPLES}h", *heights)
        crc = binascii.crc_hqx(payload, 0xFFFF)
        packets.append(HEADER.pack(number, kind, crc ^ (kind == 7)) + payload)
    return packets


async def buoy(number, queue, packets):
    for n in range(PACKETS):
        await queue.put(packets[n % len(packets)])
        await asyncio.sleep(0)  # the others' turn
    await queue.put(None)


class Hub:
    def __init__(self):
        self.queue = asyncio.Queue(maxsize=8)
        self.heights = defaultdict(list)
        self.garbled = Counter()

    async def packets(self, senders):
        while senders:
            packet = await self.queue.get()
            if packet is None:
                senders -= 1
            else:
                yield packet

    def waves(self, heights):
        """Heights of single waves, from one zero crossing upwards to the next."""
        crests, low, high = [], 0, 0
        for before, now in zip(heights, heights[1:]):
            low, high = min(low, now), max(high, now)
            if before < 0 <= now:
                crests.append(high - low)
                low = high = 0
        crests.sort(reverse=True)
        third = crests[: max(1, len(crests) // 3)]
        return sum(third) / len(third) if third else 0.0

    def bulletin(self, received):
        means = {BUOYS[b]: round(sum(h) / len(h) / 100, 2) for b, h in sorted(self.heights.items()) if h}
        print(f"{received} packets, significant heights {means}, garbled {self.garbled.total()}")

    async def listen(self):
        cuts = [monotonic_ns()]
        async for packet in self.packets(len(BUOYS)):
            t0 = monotonic_ns()
            sender, _, crc = HEADER.unpack_from(packet)
            payload = packet[HEADER.size :]
            t1 = monotonic_ns()
            sound = checksum(payload) == crc
            t2 = monotonic_ns()
            if sound:
                self.heights[sender].append(self.waves(struct.unpack(f">{SAMPLES}h", payload)))
            else:
                self.garbled[sender] += 1
            times["receive"] += t1 - cuts[-1]
            times["checksum"] += t2 - t1
            times["waves"] += monotonic_ns() - t2
            if len(cuts) % BULLETIN == 0:
                self.bulletin(len(cuts))
            cuts.append(monotonic_ns())
        return cuts


async def main():
    rng = random.Random(3)
    tapes = [recordings(number, rng) for number in range(len(BUOYS))]
    hub = Hub()
    async with asyncio.TaskGroup() as group:
        for number, tape in enumerate(tapes):
            group.create_task(buoy(number, hub.queue, tape))
        listening = group.create_task(hub.listen())
    cuts = listening.result()

    t = monotonic_ns()
    for tape in tapes:
        for n in range(PACKETS):
            binascii.crc_hqx(tape[n % len(tape)][HEADER.size :], 0xFFFF)
    native = monotonic_ns() - t
    write(
        tile(cuts, lambda i: "packet" if (i + 1) % BULLETIN else "packet+bulletin"),
        unit="packet",
        limiting="python",
        levels={"buoy": len(BUOYS)},
        phases_ns=times,
        problem=problem(
            "the CRC is computed bit by bit in Python", "buoy_hub.py:checksum", "python",
            wasted_ns=times["checksum"] - native,
        ),
    )  # fmt: skip


if __name__ == "__main__":
    asyncio.run(main())
