"""Whether training waits for its data: profiles by hand, workers that strobe recorded, and published profiles."""

import pytest

from strobe.advice.rank import findings
from tests.deep.kineto import US, call, copy, kernel, operator, profile, step
from tests.unit.hand_made import HandMadeProcess, make_trace
from tests.unit.hand_made import span as span_of

ALONE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
PART = 100 * US
WORKERS = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def rows_of(table):
    return table.to_arrow().to_pylist()


def steps(loader, wait, copied=0, computed=60):
    """Four steps of 10 ms, times in a hundredth of that: wait, copy, compute, and Python for the rest."""
    events, wait, copied = [], 100 * wait, 100 * copied
    for n in range(4):
        at = 10000 * n
        events += [step(n, at, 10000), operator(loader, at, wait), call(at + wait, 100, correlation=2 * n + 1)]
        if copied:
            events += [copy("Memcpy HtoD (Pinned -> Device)", at + wait, copied, correlation=2 * n + 1)]
        events += [kernel("gemm", at + wait + copied, 100 * computed, correlation=2 * n + 2)]
    return events


@pytest.mark.parametrize(
    ("wait", "copied", "verdict", "bound"),
    [
        (30, 2, "data processing", "highly"),
        (6, 2, "data processing", "moderately"),
        (4, 4, "neither", "not"),
        (4, 12, "data transmission", "moderately"),
    ],
)
def test_the_verdict_follows_what_the_step_waits_for(tmp_path, wait, copied, verdict, bound):
    trace = profile(tmp_path, *steps(ALONE, wait, copied), rank=1)
    (row,) = rows_of(trace.data_pipeline())
    assert (row["verdict"], row["input_bound"], row["rank"], row["workers"]) == (verdict, bound, 1, 0)
    assert (row["duration_ns"], row["wait_ns"], row["copy_ns"]) == (100 * PART, wait * PART, copied * PART)
    assert (row["fetch_ns"], row["needed_workers"], row["batches"]) == (wait * PART, 1, 1)
    gained = wait / 2 if bound == "highly" else 0
    assert (row["best_step_ns"], row["predicted_step_ns"]) == ((100 - wait) * PART, (100 - gained) * PART)
    assert ("num_workers" in row["advice"]) == (bound == "highly")


def test_stages_add_up_to_the_step_and_one_is_the_bottleneck(tmp_path):
    # The wait 0..30 is hidden for 10 us behind a kernel of its own step; launching takes 1 us under a copy.
    events = steps(ALONE, 30, 10, 40)
    for n in range(4):
        events += [call(10000 * n, 100, thread=2, correlation=50 + n)]
        events += [kernel("early", 10000 * n, 1000, stream=9, correlation=50 + n)]
    stages = rows_of(profile(tmp_path, *events).data_pipeline(form="stages"))
    found = {row["stage"]: (row["time_ns"] // PART, row["exposed_ns"] // PART, row["bottleneck"]) for row in stages}
    expected = {"fetch": (30, 20, True), "copy": (10, 10, False), "compute": (50, 50, False), "host": (20, 20, False)}
    assert found == expected
    assert [row["utilisation"] for row in stages[:3]] == pytest.approx([0.3, 0.1, 0.5])


def test_more_workers_are_needed_where_a_fetch_takes_longer_than_the_rest(tmp_path):
    (row,) = rows_of(profile(tmp_path, *steps(ALONE, 75, 0, 20)).data_pipeline())
    assert (row["needed_workers"], row["best_step_ns"]) == (3, 2500 * US)
    assert "num_workers=4" in row["advice"]


def trained(waits, fetches):
    """A loop that waits for each batch from begin to end, then computes for 70; workers that end fetches at times.

    Times are in a hundredth of 10 ms.
    """
    loop = []

    def span(name, begin, end, **kind):
        return span_of(name, begin * PART, end * PART, **kind)

    for begin, end in waits:
        loop += [span(WORKERS, begin, end, paradigm="torch", role="wait"), span("aten::mm", end, end + 40)]
        loop += [span("autograd::engine::evaluate_function: MmBackward0", end + 40, end + 60)]
        loop += [span("Optimizer.step#SGD.step", end + 60, end + 70, paradigm="torch", role="range")]
    main = HandMadeProcess({"main": loop}, pid=1)
    workers = [
        HandMadeProcess(
            {"w": [span("DataLoader.fetch", done - 20, done, paradigm="torch", role="data") for done in ends]},
            pid=2 + number,
            main=False,
        )
        for number, ends in enumerate(fetches)
    ]
    return main, workers


@pytest.mark.parametrize(
    ("done", "empty", "verdict"),
    [
        (lambda begin, end: end - 5, 8, "data processing"),  # a worker finishes the batch during the wait
        (lambda begin, end: begin - 5, 0, "data transmission"),  # it was ready, and has a long way to the loop
    ],
)
def test_the_queue_tells_processing_from_transmission(done, empty, verdict):
    waits = [(100 * n + 50, 100 * n + 80) for n in range(8)]
    ends = [done(*wait) for wait in waits]
    main, workers = trained(waits, [ends[::2], ends[1::2]])
    trace = make_trace(main, *workers)
    (row,) = rows_of(trace.data_pipeline())
    assert (row["verdict"], row["workers"], row["asked"], row["empty"]) == (verdict, 2, 8, empty)
    assert row["fetch_ns"] == 20 * PART
    stages = {each["stage"]: each for each in rows_of(trace.data_pipeline(form="stages"))}
    assert stages["queue"]["utilisation"] == 1 - empty / 8
    assert stages["fetch"]["utilisation"] == pytest.approx(20 * PART / (2 * row["duration_ns"]))
    assert stages["fetch" if empty else "queue"]["bottleneck"]
    # 20 of fetching in the 70 that the rest of a step takes: one worker is enough on average.
    assert row["needed_workers"] == 1
    assert ("prefetch_factor" if empty else "larger tensors") in row["advice"]


def test_published_pairs_have_their_verdicts_and_the_second_is_predicted_from_the_first(public):
    (alone,) = rows_of(public("kineto/resnet50_loader_workers0.json.gz").data_pipeline())
    (four,) = rows_of(public("kineto/resnet50_loader_workers4.json.gz").data_pipeline())
    assert (alone["verdict"], alone["input_bound"]) == ("data processing", "highly")
    assert (four["verdict"], four["input_bound"]) == ("neither", "not")
    # Figures of torch-tb-profiler 0.4.3 (*.tensorboard.json).
    # Its steps last until the GPU is done with them.
    assert (alone["wait_share"], four["wait_share"]) == pytest.approx((0.3337, 0.0084), abs=0.006)
    assert four["duration_ns"] == pytest.approx(141_068_000, rel=0.08)
    assert alone["predicted_step_ns"] == pytest.approx(141_068_000, rel=0.1)
    assert alone["best_step_ns"] <= four["duration_ns"] <= alone["duration_ns"]


def test_the_advice_counts_what_the_gpu_does_not_hide(public, tmp_path):
    (finding,) = [
        each for each in findings(public("kineto/resnet50_loader_workers0.json.gz")) if each.rule == "data.wait"
    ]
    # What four workers gained: 177 592 - 141 068 us a step (*.tensorboard.json).
    assert finding.gain_low_ns < 36_524_000 < finding.gain_high_ns < 62_000_000
    assert "fetched in the loop itself" in finding.what
    rules = {each.rule for each in findings(public("kineto/resnet50_loader_workers4.json.gz"))}
    assert "data.wait" not in rules
    # The wait of 15 ms lies behind a kernel of the step before, all of it.
    hidden = [event for n in range(12) for event in (step(n, 50000 * n, 50000), operator(ALONE, 50000 * n, 15000))]
    hidden += [call(50000 * n + 16000, 10, correlation=n + 1) for n in range(12)]
    hidden += [operator("aten::mm", 50000 * n + 15500, 30000) for n in range(12)]
    hidden += [kernel("gemm", 50000 * n + 17000, 49900, correlation=n + 1) for n in range(12)]
    assert "data.wait" not in {each.rule for each in findings(profile(tmp_path, *hidden))}


def test_without_a_loader_a_sentence_says_so(tmp_path):
    table = profile(tmp_path, *(step(n, 100 * n, 100) for n in range(4))).data_pipeline()
    assert len(table) == 0
    assert "waits for a data loader" in table.note
