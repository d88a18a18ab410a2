"""Eight marks; each step launches 200 kernels of 5 us, one every 50 us: the GPU idles 90 % for want of launches."""

from kineto import event, launch, save
from truth import problem, truth


def write(folder):
    events, n = [], 0
    for s in range(8):
        base = s * 10_000
        events.append(event("user_annotation", f"ProfilerStep#{s}", base, 10_000))
        for k in range(200):
            n += 1
            at = base + 50 * k
            events.append(event("cpu_op", "aten::add", at, 48, **{"External id": n}))
            launch(events, n, at + 30, "elementwise_kernel", at + 40, 5)
    save(folder, events)
    steps = [(s * 10_000_000, (s + 1) * 10_000_000, "train") for s in range(8)]
    what = "kernels are far shorter than their launches (a captured graph would run them back to back)"
    return truth(
        steps, unit="profiler step", limiting="launch", problem=problem(what, "trace:aten::add", "launch", gain=0.9)
    )
