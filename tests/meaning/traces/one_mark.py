"""A single ProfilerStep of 8 ms with 24 equal layers inside: one step; layers are the inner level. GPU-bound."""

from kineto import event, launch, save
from truth import truth


def write(folder):
    events = [event("user_annotation", "ProfilerStep#6", 0, 8_000)]
    for n in range(24):
        events.append(event("cpu_op", "aten::linear", 10 + 100 * n, 90, **{"External id": n + 1}))
        launch(events, n + 1, 50 + 100 * n, "cutlass_gemm", 200 + 320 * n, 310)
    save(folder, events)
    return truth([(0, 8_000_000, "train")], unit="profiler step", limiting="gpu", levels={"layer": 24})
