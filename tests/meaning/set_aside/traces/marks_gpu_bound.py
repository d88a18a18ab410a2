"""Ten ProfilerStep marks of 10 ms each; kernels fill 9.5 ms of each step. Healthy, limited by the GPU."""

from kineto import event, launch, save
from truth import truth


def write(folder):
    events, n = [], 0
    for s in range(10):
        base = s * 10_000
        events.append(event("user_annotation", f"ProfilerStep#{s + 3}", base, 10_000))
        for k in range(19):
            n += 1
            events.append(event("cpu_op", "aten::mm", base + 20 * k, 15, **{"External id": n}))
            launch(events, n, base + 20 * k + 5, "sm90_gemm", base + 400 + 500 * k, 500)
    save(folder, events)
    cuts = [s * 10_000_000 for s in range(11)]
    steps = [(a, b, "train") for a, b in zip(cuts, cuts[1:], strict=False)]
    return truth(steps, unit="profiler step", limiting="gpu")
