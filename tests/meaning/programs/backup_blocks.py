"""Backs up a folder: each file is read in blocks of 128 KiB, which are hashed, compressed and appended to one archive.

Healthy: the compressor takes nearly all of the time, in native code, and neither reading nor writing waits for a disk.
After every 60th block `save_index` writes down where the blocks lie. Truth: 12 files of 50 blocks; a step is a block,
600 in all, of which 10 save the index; limited by operators (zlib).
"""

import hashlib
import json
import os
import random
import tempfile
import zlib
from time import monotonic_ns

from truth import tile, write

BLOCK = 128 * 1024
FILES, BLOCKS = 12, 50


def make_folder(folder):
    rng = random.Random(3)
    words = ["".join(rng.choices("etaoinshrdlucmfw", k=rng.randint(2, 9))) for _ in range(4000)]
    text = " ".join(rng.choices(words, k=500_000)).encode()
    for i in range(FILES):
        start = rng.randrange(len(text))
        rotated = text[start:] + text[:start]
        with open(os.path.join(folder, f"mail-{i:02}.mbox"), "wb") as out:
            out.write((rotated * 8)[: BLOCKS * BLOCK])


def save_index(index, path):
    with open(path, "w") as out:
        json.dump(index, out, indent=1)


folder = tempfile.mkdtemp()
make_folder(folder)
sources = sorted(os.listdir(folder))
archive = open("backup.bin", "wb")
index = []
read = packed = 0

cuts = [monotonic_ns()]
for name in sources:
    with open(os.path.join(folder, name), "rb") as source:
        while block := source.read(BLOCK):
            digest = hashlib.sha256(block).hexdigest()
            small = zlib.compress(block, 9)
            index.append((name, digest, archive.tell(), len(small)))
            archive.write(small)
            read += len(block)
            packed += len(small)
            if len(index) % 60 == 0:
                save_index(index, "backup.json")
            cuts.append(monotonic_ns())
archive.close()
save_index(index, "backup.json")
for name in sources:
    os.remove(os.path.join(folder, name))
os.rmdir(folder)

print(f"{len(index)} blocks, {read >> 20} MiB packed into {packed >> 20} MiB")
write(
    tile(cuts, lambda i: "block" if (i + 1) % 60 else "block+index"),
    unit="block",
    limiting="operators",
    levels={"file": FILES},
)
