"""What a recorded collective of torch.distributed costs: two ranks, gloo, 8 bytes of each rank.

./dev bench collectives [--rounds 5] [--count 5000] [--split]

CPU time of both ranks, all threads of theirs (gloo's and the recorder's own), over the loops alone; per collective and
rank. In each round every way runs once; the figures are medians over the rounds, of the ratio and of the difference to
the plain run of the same round. `--split` also records without collectives, and collectives alone.
"""

import argparse
import json
import os
import shutil
import sys

from measure import STROBE, checked, folder, interleaved, middle, table

COLLECTIVES = ("all_reduce", "broadcast", "all_gather")
PROGRAM = """
import contextlib, json, os, subprocess, sys, time

def rank_main(rank, count, profiled):
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{os.getcwd()}/meet", rank=rank, world_size=2)
    tensor = torch.zeros(1, dtype=torch.float64)
    gathered = [torch.zeros_like(tensor), torch.zeros_like(tensor)]

    def measured(collective):
        for _ in range(300):
            collective()
        dist.barrier()
        whole, own = time.process_time(), time.thread_time()
        for _ in range(count):
            collective()
        own, whole = time.thread_time() - own, time.process_time() - whole
        return own / count * 1e6, whole / count * 1e6

    cpu = torch.profiler.ProfilerActivity.CPU
    with torch.profiler.profile(activities=[cpu]) if profiled else contextlib.nullcontext():
        found = [
            measured(lambda: dist.all_reduce(tensor)),
            measured(lambda: dist.broadcast(tensor, 0)),
            measured(lambda: dist.all_gather(gathered, tensor)),
        ]
    print(json.dumps(found), flush=True)
    dist.destroy_process_group()

if len(sys.argv) == 4:
    rank_main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "profiled")
else:
    ranks = [subprocess.Popen([sys.executable, __file__, str(rank), *sys.argv[1:]], stdout=subprocess.PIPE, text=True)
             for rank in range(2)]
    first, second = [json.loads(rank.communicate()[0]) for rank in ranks]
    with contextlib.suppress(FileNotFoundError):
        os.unlink("meet")
    print(json.dumps([[(a + b) / 2 for a, b in zip(*both)] for both in zip(first, second)]))
"""
PROFILER = "torch.profiler"
SPLIT = {"strobe without collectives": "--trace=-distributed", "collectives alone": "--trace=distributed"}
CLOCKS = ("calling thread", "process")


def main() -> None:
    """Run all ways in each round, and print what a collective gains."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--split", action="store_true", help="record without collectives, and nothing else, too")
    asked = parser.parse_args()
    ways = ["plain", "strobe", PROFILER, *(SPLIT if asked.split else ())]
    found: dict[str, list[list[tuple[float, float]]]] = {}  # by way, round and collective: microseconds by clock
    one_thread = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    with folder() as place:
        program = place / "ranks.py"
        program.write_text(PROGRAM)
        for _, way in interleaved(asked.rounds, ways):
            words = [str(program), str(asked.count), "profiled" if way == PROFILER else "plain"]
            recording = [STROBE, "run", "--quiet", "-o", "ranks.strobe", *([SPLIT[way]] if way in SPLIT else [])]
            command = [*recording, *words] if way not in ("plain", PROFILER) else [sys.executable, *words]
            found.setdefault(way, []).append(json.loads(checked(command, place, one_thread).stdout))
            for trace in place.glob("*.strobe"):
                shutil.rmtree(trace)
    rows = []
    for at, collective in enumerate(COLLECTIVES):
        for way in ways:
            row: dict[str, object] = {"collective": collective, "way": way}
            for clock, name in enumerate(CLOCKS):
                pairs = [
                    (mine[at][clock], plain[at][clock]) for mine, plain in zip(found[way], found["plain"], strict=True)
                ]
                row[f"us ({name})"] = f"{middle([mine for mine, _ in pairs]):.1f}"
                row[f"added, us ({name})"] = f"{middle([mine - plain for mine, plain in pairs]):.1f}"
                row[f"ratio ({name})"] = f"{middle([mine / plain for mine, plain in pairs]):.2f}"
            rows.append(row)
    print(f"\n## A collective of 8 bytes, 2 ranks, gloo ({asked.rounds} rounds, load {os.getloadavg()[0]:.0f})\n")
    print(table(rows))


if __name__ == "__main__":
    main()
