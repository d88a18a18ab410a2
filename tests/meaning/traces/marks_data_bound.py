"""Six marks of 20 ms; the DataLoader's `next` takes 15 ms of each, then 4 ms of kernels. Limited by data."""

from kineto import event, launch, save
from truth import problem, truth


def write(folder):
    events = []
    for s in range(6):
        base = s * 20_000
        events.append(event("user_annotation", f"ProfilerStep#{s}", base, 20_000))
        name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
        events.append(event("user_annotation", name, base, 15_000))
        events.append(event("cpu_op", "aten::mm", base + 15_100, 100, **{"External id": s + 1}))
        launch(events, s + 1, base + 15_150, "gemm", base + 15_200, 4_000)
        events.append(event("cuda_runtime", "cudaDeviceSynchronize", base + 15_250, 3_960))
    save(folder, events)
    steps = [(s * 20_000_000, (s + 1) * 20_000_000, "train") for s in range(6)]
    what = "the loop waits for its loader"
    where = "trace:enumerate(DataLoader)"
    return truth(steps, unit="profiler step", limiting="data", problem=problem(what, where, "data", gain=0.75))
