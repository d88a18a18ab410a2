"""Eight marks of 10 ms: `.item()` waits for 4 ms of kernels, then the host computes 5 ms while the GPU idles."""

from kineto import event, launch, save
from truth import problem, truth


def write(folder):
    events = []
    for s in range(8):
        base = s * 10_000
        events.append(event("user_annotation", f"ProfilerStep#{s}", base, 10_000))
        events.append(event("cpu_op", "aten::mm", base + 100, 100, **{"External id": s + 1}))
        launch(events, s + 1, base + 150, "gemm", base + 500, 4_000)
        events.append(event("cpu_op", "aten::item", base + 300, 4_250))
        events.append(event("cuda_runtime", "cudaStreamSynchronize", base + 400, 4_110))
        events.append(event("python_function", "train.py(40): log_images", base + 4_600, 5_000))
    save(folder, events)
    steps = [(s * 10_000_000, (s + 1) * 10_000_000, "train") for s in range(8)]
    what = "item() keeps the host's 5 ms from overlapping with 4 ms of kernels"
    found = problem(what, "trace:aten::item", "synchronisation", gain=0.425)
    return truth(steps, unit="profiler step", limiting="python", limiting_also=["synchronisation"], problem=found)
