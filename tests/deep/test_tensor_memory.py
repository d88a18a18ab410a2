"""Who owns memory, for what, how fragmented it is, what an allocation failed of: programs with known allocations."""

import random

import pytest

import strobe
from strobe.advice.rank import findings
from strobe.present.summary import summarise
from tests.deep.snapshots import MB, Allocator, frames

TORCH = "/opt/python/site-packages/torch"
LOOP = "main@train.py:50"
CALL = f"_call_impl@{TORCH}/nn/modules/module.py:1789"
LINEAR = frames(LOOP, CALL, "forward@model.py:20", CALL, f"forward@{TORCH}/nn/modules/linear.py:134")
SETUP = frames("main@train.py:12", "__init__@model.py:8", f"__init__@{TORCH}/nn/modules/linear.py:106")
LOADER = frames("main@train.py:48", "torch::autograd::THPVariable_to(_object*, _object*, _object*)")
BACKWARD = frames("torch::autograd::Engine::thread_main(std::shared_ptr<torch::autograd::GraphTask> const&)")
STEP = frames("main@train.py:53", f"step@{TORCH}/optim/adam.py:213", f"_init_group@{TORCH}/optim/adam.py:180")
CUBLAS = frames(LOOP, "at::cuda::getCurrentCUDABlasHandle()")
LEAK = frames("main@train.py:57", "remember@history.py:9")
CACHE = frames(LOOP, "lookup@cache.py:4")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("STROBE_CACHE", str(tmp_path / "cache"))


def rows(table):
    return table.to_arrow().to_pylist()


def owners(trace, **options):
    return {(row["owner"], row["category"]): row for row in rows(trace.memory_owners(**options))}


def training(steps, allocator=None):
    """Parameters 3 MB; a step: input 1 MB, activations 4 MB, details 2 MB, gradients 3 MB; Adam's state 6 MB once.

    A leak of 1 MB a step in history.py:9; a cache in cache.py:4 of 8 MB that is full after a few steps.
    """
    gpu = allocator or Allocator(1 << 34)
    for _ in range(3):
        gpu.alloc(MB, SETUP)
    gpu.alloc(8 * MB + 512, CUBLAS)
    for number in range(steps):
        gpu.annotate(f"ProfilerStep#{number}", "START")
        batch = gpu.alloc(MB, LOADER)
        activations = [gpu.alloc(2 * MB, LINEAR), gpu.alloc(2 * MB, LINEAR)]
        if number < 4:
            gpu.alloc(2 * MB, CACHE)
        gradients = []
        for each in activations:
            gradients.append(gpu.alloc(3 * MB // 2, BACKWARD))
            detail = gpu.alloc(2 * MB, BACKWARD)
            gpu.free(each)
            gpu.free(detail)
        gradients.append(gpu.alloc(512, BACKWARD))
        if number == 0:
            gpu.alloc(3 * MB, STEP), gpu.alloc(3 * MB, STEP)
        scratch = gpu.alloc(MB, STEP)
        gpu.free(scratch)
        for each in (*gradients, batch):
            gpu.free(each)
        gpu.alloc(MB, LEAK)
        gpu.annotate(f"ProfilerStep#{number}", "END")
    return gpu


def test_who_owns_the_memory_at_the_end_to_the_byte(tmp_path):
    gpu = training(20)
    found = owners(gpu.dump(tmp_path / "t.pickle"), at="end")
    assert {key: (row["allocated_bytes"], row["blocks"]) for key, row in found.items()} == {
        ("history.py:9", "unknown"): (20 * MB, 20),
        ("cache.py:4", "unknown"): (8 * MB, 4),
        ("train.py:50", "workspace"): (8 * MB + 512, 1),
        ("train.py:53", "optimizer state"): (6 * MB, 2),
        ("model.py:8", "parameters"): (3 * MB, 3),
    }
    assert sum(row["allocated_bytes"] for row in found.values()) == gpu.allocated
    assert sum(row["share"] for row in found.values()) == pytest.approx(1)


def test_categories_at_the_peak_of_a_step(tmp_path):
    """After the first detail of the last step: all activations, one gradient, one detail."""
    found = owners(training(20).dump(tmp_path / "t.pickle"), by="category", at="peak")
    assert {row["category"]: row["allocated_bytes"] for row in found.values()} == {
        "gradients": 3 * MB // 2, "activations": 4 * MB, "autograd details": 2 * MB, "inputs": MB, "parameters": 3 * MB,
        "optimizer state": 6 * MB, "workspace": 8 * MB + 512, "unknown": (19 + 8) * MB,
    }  # fmt: skip


def test_a_leak_names_its_line_and_a_cache_that_is_full_does_not(tmp_path):
    trace = training(40).dump(tmp_path / "t.pickle")
    assert len(rows(trace.steps())) == 40
    found = owners(trace, at="end")
    leak, cache = found["history.py:9", "unknown"], found["cache.py:4", "unknown"]
    assert (leak["steady"], cache["steady"]) == (True, False)
    assert leak["step_growth_bytes"] == pytest.approx(MB, rel=0.04)
    assert [key[0] for key, row in found.items() if row["steady"]] == ["history.py:9"]


def test_the_finding_of_growth_names_the_line_that_keeps_allocating(tmp_path):
    (found,) = [each for each in findings(training(60).dump(tmp_path / "t.pickle")) if each.rule == "memory.growth"]
    assert "100 % of it is allocated at history.py:9" in found.what, found.what


def test_modules_own_what_their_calls_allocate(tmp_path):
    gpu = training(3)
    gpu.alloc(5 * MB, LINEAR)
    found = owners(gpu.dump(tmp_path / "t.pickle"), by="module", at="end")
    (module,) = [row for (owner, _), row in found.items() if "linear.py:134" in owner]
    assert (module["allocated_bytes"], module["category"]) == (5 * MB, "activations")


def fragmented():
    """Eight segments of 20 MB, each with 12 MB free in one piece: nothing of 15 MB fits."""
    gpu = Allocator(160 * MB)
    large = [(gpu.alloc(8 * MB, LINEAR), gpu.alloc(9 * MB, LEAK)) for _ in range(8)]
    for _, each in large:
        gpu.free(each)
    with pytest.raises(MemoryError):
        gpu.alloc(15 * MB, frames("main@train.py:70", "big@model.py:33"))
    return gpu


def test_what_an_allocation_failed_of(tmp_path):
    trace = fragmented().dump(tmp_path / "t.pickle")
    (found,) = [each for each in findings(trace) if each.rule == "memory.oom"]
    for words in (
        "GPU 0 ran out of memory: an allocation of 15.7 MB failed, 0 B of the GPU were left",
        "of 168 MB reserved by PyTorch, 101 MB were free, at most 12.6 MB in one piece",
        "of 67.1 MB in use, most was allocated at model.py:20 (67.1 MB of activations)",
    ):
        assert words in found.what, found.what
    assert "not in one piece" in found.do
    assert "expandable_segments" in found.do
    assert summarise(trace).verdict.text.startswith("GPU 0 ran out of memory: an allocation of 15.7 MB failed")
    at = owners(trace, at="oom")
    assert {key: row["allocated_bytes"] for key, row in at.items()} == {("model.py:20", "activations"): 64 * MB}


def test_a_full_gpu_is_not_called_fragmented(tmp_path):
    gpu = Allocator(100 * MB)
    for _ in range(10):
        gpu.alloc(10 * MB, LINEAR)
    with pytest.raises(MemoryError):
        gpu.alloc(10 * MB, LINEAR)
    (found,) = [each for each in findings(gpu.dump(tmp_path / "t.pickle")) if each.rule == "memory.oom"]
    assert "grows with the batch" in found.do, found.do


def test_without_a_failure_nothing_is_found(tmp_path):
    trace = training(12).dump(tmp_path / "t.pickle")
    assert not [each for each in findings(trace) if each.rule == "memory.oom"]
    assert "no allocation failed" in trace.memory_owners(at="oom").note


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("part", [1.0, 0.4], ids=["whole", "last events only"])
def test_levels_after_every_event_are_those_of_the_allocator(tmp_path, seed, part):
    dice, gpu, held = random.Random(seed), Allocator(1 << 34), []
    for _ in range(400):
        if held and dice.random() < 0.48:
            gpu.free(held.pop(dice.randrange(len(held))))
        else:
            size = dice.choice([dice.randint(1, 4000), dice.randint(1, 3 * MB), dice.randint(MB, 30 * MB)])
            held.append(gpu.alloc(size, LINEAR))
    kept = int(len(gpu.events) * part)
    trace = gpu.dump(tmp_path / "t.pickle", kept)
    # A free and its completion are one row.
    shown = [each for each in gpu.truth if each[0] != "free_completed"]
    expected = [each[1:] for each in gpu.truth]
    table = trace.sql(
        "select total_allocated_bytes, total_reserved_bytes, largest_free_bytes, total_active_bytes from allocations"
        " order by event_index"
    ).rows()
    assert len(shown) <= len(expected)
    last = expected[-len(table) :]
    assert [row[:2] for row in table] == [each[:2] for each in last]
    assert [row[3] for row in table] == [each[0] for each in last]
    if part == 1.0:
        assert [row[2] for row in table] == [each[2] for each in last]
    else:  # of blocks from before, the bytes that they take are not in the file
        assert table[-1][2] in (last[-1][2], None)


def test_a_block_that_a_stream_still_uses_is_active(tmp_path):
    gpu = Allocator(1 << 34)
    one = gpu.alloc(MB, LINEAR)
    gpu.free(one)
    gpu.events.insert(-1, {**gpu.events[1], "addr": one + 4 * MB, "size": 5, "time_us": gpu.events[-1]["time_us"]})
    trace = gpu.dump(tmp_path / "t.pickle")
    found = trace.sql("select size_bytes, total_active_bytes from allocations order by event_index").rows()
    assert found[-3:] == [(-MB, None), (5, None), (None, None)]  # events that do not lead to the state at the end


def test_categories_add_up_to_what_is_allocated_at_every_moment(tmp_path):
    trace = training(6).dump(tmp_path / "t.pickle")
    sums: dict[int, int] = {}
    for row in rows(trace.memory(by="category", points=0)):
        if row["category"] != "cache":
            sums[row["time_ns"]] = sums.get(row["time_ns"], 0) + row["allocated_bytes"]
    assert sums == {row["time_ns"]: row["allocated_bytes"] for row in rows(trace.memory(by="time", points=0))}


def test_a_snapshot_without_blocks_says_what_is_needed(tmp_path):
    trace = Allocator(1 << 30).dump(tmp_path / "t.pickle")
    assert isinstance(trace, strobe.Trace)
    assert "_dump_snapshot" in trace.memory_owners().note


def test_the_verdict_of_a_snapshot_is_about_memory_and_knows_the_state_of_the_last_step(tmp_path):
    """A step of the optimizer that makes 6 MB of state and 1 MB of scratch ends the file."""
    gpu = Allocator(1 << 34)
    gpu.annotate("Optimizer.step#Adam.step", "START")
    for _ in range(2):
        gpu.alloc(3 * MB, STEP)
    gpu.free(gpu.alloc(MB, STEP))
    gpu.annotate("Optimizer.step#Adam.step", "END")
    trace = gpu.dump(tmp_path / "t.pickle")
    found = owners(trace, by="category", at="end")
    assert {row["category"]: row["allocated_bytes"] for row in found.values()} == {"optimizer state": 6 * MB}
    summary = summarise(trace)
    assert summary.verdict.kind == "memory"
    assert "at its peak GPU 0 has 7.34 MB allocated" in summary.verdict.text  # 7 * 1 048 576 bytes
    assert "86 % optimizer state" in summary.verdict.text
    assert not summary.hot
