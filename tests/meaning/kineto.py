"""Chrome JSON as torch.profiler writes it, by construction; times are whole microseconds."""

import json
from pathlib import Path


def event(category, name, ts, dur, pid=100, tid=1, **args):
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def launch(events, number, at, kernel, begin, length, stream=7):
    """A launch, its kernel and the arrow between them."""
    events.append(event("cuda_runtime", "cudaLaunchKernel", at, 5, correlation=number, **{"External id": number}))
    args = {"device": 0, "stream": stream, "correlation": number, "External id": number}
    events.append(event("kernel", kernel, begin, length, 0, stream, **args))
    for ph, ts, pid, tid in (("s", at, 100, 1), ("f", begin, 0, stream)):
        arrow = {"ph": ph, "id": number, "pid": pid, "tid": tid, "ts": ts, "cat": "ac2g", "name": "ac2g"}
        events.append(arrow | ({"bp": "e"} if ph == "f" else {}))


def save(folder, events, rank=0):
    top = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}],
           "distributedInfo": {"rank": rank}, "traceEvents": events}  # fmt: skip
    Path(folder, f"trace_rank{rank}.json").write_text(json.dumps(top))
