"""The verdict and the host time it is made of, on hand-made runs whose shares are known."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strobe.advice import host_wait
from strobe.advice.python_time import run as python_time
from strobe.breakdown.host_time import host_times
from strobe.model.plugins import Finding
from strobe.present.summary import summarise
from strobe.steps.finding.requested_steps import Asked
from strobe.steps.steps import choose_steps
from strobe.sums.samples import RUNNING, WAITING
from strobe.trace.trace import Trace
from tests.unit.hand_made import MS, HandMadeProcess, Span, make_trace, span, train_steps

OWN, LIBRARY = "solve (/home/me/model.py:12)", "wait (/usr/lib/python3.11/threading.py:300)"


def host_waits(trace: Trace) -> list[Finding]:
    return [each for each in host_wait.run(trace) if isinstance(each, Finding)]


def sampled(
    states: Sequence[str],
    *,
    of_step: int = 10,
    stack: str = OWN,
    name: str = "solve",
    part: str = "part",
    lost: int = 0,
) -> list[Span]:
    """Calls of `solve`, each with a sample of 1 ms for `of_step` states in turn, in calls of their own.

    `lost`: so many in each have no stack.
    """
    spans: list[Span] = []
    for step in range(len(states) // of_step):
        begin = step * of_step * MS
        parts = []
        for number in range(of_step):
            at, state = begin + number * MS, states[step * of_step + number]
            ran = state in RUNNING
            row: Mapping[str, int | str] = {
                "time_ns": at + MS - 1,
                "call_stack": f"<module> (/home/me/model.py:1)\n{stack}" if number >= lost else "",
                "state": state,
                "line": 14,
                "period_ns": MS,
                "cpu_ns": MS if ran else 0,
            }
            parts.append(span(f"{part}{number}", at, at + MS, tables={"samples": row}))
        spans.append(span(name, begin, begin + of_step * MS, *parts))
    return spans


def of_states(*states: str, stack: str = OWN) -> Trace:
    """Thirty steps whose ten milliseconds are in these states."""
    return make_trace({"main": sampled(states * 30, stack=stack)})


@pytest.mark.parametrize(
    ("states", "kind", "share"),
    [
        (["python"] * 7 + ["native"] * 3, "python-bound", 0.7),
        (["python"] * 2 + ["native"] * 8, "compute-bound", 0.8),
        (["python"] * 3 + ["lock"] * 7, "lock-bound", 0.7),
        (["native"] * 4 + ["file"] * 6, "io-bound", 0.6),
        (["collecting"] * 7 + ["python"] * 3, "gc-bound", 0.7),
        (["gil"] * 9 + ["python"], "gil-bound", 0.9),
        (["sleep"] * 8 + ["python"] * 2, "sleeping", 0.8),
        # Who waits for a core does what it would do with one.
        (["ready"] * 6 + ["python"] * 4, "python-bound", 1.0),
    ],
)
def test_the_kind_with_most_time_limits_the_loop(states, kind, share):
    verdict = summarise(of_states(*states)).verdict
    assert verdict.kind == kind
    assert verdict.share == pytest.approx(share, abs=0.01)
    assert "100 % of it in solve (model.py:14)" in verdict.text
    # What it sleeps for is not known.
    assert verdict.confidence == ("medium" if kind == "sleeping" else "high")


@pytest.mark.parametrize(("wait", "kind"), [("lock", "lock-bound"), ("gil", "gil-bound"), ("file", "io-bound")])
@pytest.mark.parametrize(("waits", "named"), [(2, False), (4, True)])
def test_a_wait_of_a_third_of_the_time_is_named_before_the_work(wait, kind, waits, named):
    verdict = summarise(of_states(*[wait] * waits, *["python"] * (10 - waits))).verdict
    assert verdict.kind == (kind if named else "python-bound")
    assert verdict.share == pytest.approx(waits / 10 if named else 1 - waits / 10, abs=0.01)


@pytest.mark.parametrize(("busy", "kind"), [(9, "python-bound"), (3, "compute-bound")])
def test_where_another_thread_has_more_to_do_than_the_main_one_it_is_the_limit(busy, kind):
    """The main thread computes 6 ms of a step, and waits for the other 4 ms."""
    beside = sampled((["python"] * busy + ["waiting"] * (10 - busy)) * 30, stack="parse (/home/me/model.py:70)",
                     name="parse", part="piece")  # fmt: skip
    trace = make_trace({"main": sampled((["native"] * 6 + ["waiting"] * 4) * 30), "helper": beside})
    verdict = summarise(trace).verdict
    assert verdict.kind == kind
    assert ("in parse (model.py:14)" in verdict.text) == (busy == 9)


def test_who_waits_for_native_threads_is_bound_by_what_these_compute():
    verdict = summarise(of_states(*["threads"] * 6, *["native"] * 2, *["python"] * 2)).verdict
    assert (verdict.kind, verdict.confidence) == ("compute-bound", "high")
    assert re.search(r"waits (59|60) % of the loop's time for native threads that compute, 100 % of it", verdict.text)
    assert verdict.share == pytest.approx(0.8, abs=0.01)


def test_who_sleeps_where_it_also_waits_for_files_is_bound_by_them():
    verdict = summarise(of_states(*["sleep"] * 7, "file", *["python"] * 2)).verdict
    assert (verdict.kind, verdict.confidence) == ("io-bound", "medium")
    assert re.search(r"sleeps (69|70) % of the loop's time", verdict.text)
    assert "in solve (model.py:14), which waits for files, too" in verdict.text
    assert verdict.share == pytest.approx(0.7, abs=0.01)


def test_one_stray_look_at_a_file_changes_no_verdict():
    states = ["sleep"] * 299 + ["file"]
    assert summarise(make_trace({"main": sampled(states)})).verdict.kind == "sleeping"


def test_a_generator_that_sleeps_keeps_the_loop_waiting_for_its_input():
    def verdict(loops: dict[str, str]):
        spans = sampled((["sleep"] * 8 + ["python"] * 2) * 30)
        places = {"solve": ("/home/me/model.py", 12)}
        return summarise(make_trace(HandMadeProcess({"main": spans}, loops=loops, places=places))).verdict

    found = verdict({"solve": "range (yield)"})
    assert (found.kind, found.confidence) == ("input-bound", "medium")
    assert "in solve (model.py:14), a generator that the loop asks for its next item" in found.text
    assert verdict({"solve": "yield"}).kind == "sleeping"  # a context manager
    assert verdict({"solve": "range (step)"}).kind == "sleeping"


@pytest.mark.parametrize(("making_ms", "kind"), [(0, "compute-bound"), (13, "input-bound"), (40, "input-bound")])
def test_a_loop_that_makes_its_batches_for_most_of_the_time_is_bound_by_them(making_ms, kind):
    """Of the steps, 11 ms are the model's and 1 ms is a wait."""
    making = dict.fromkeys(range(60), making_ms * MS)
    found = summarise(make_trace({"main": train_steps(60, making=making)})).verdict
    assert found.kind == kind
    if making_ms:
        assert re.match(r"input-bound: the loop makes its batches itself, for \d\d % of its time; ", found.text)
        assert found.share == pytest.approx((making_ms + 2) / (making_ms + 12), abs=0.03)


def test_samples_without_a_stack_are_no_place():
    """Where functions of 10 us are called, most stacks change while they are looked at."""
    verdict = summarise(make_trace({"main": sampled(["python"] * 300, lost=7)})).verdict
    assert "100 % of the loop's time, 100 % of it in solve (model.py:14)" in verdict.text


def test_the_function_that_waits_for_a_lock_is_named():
    (finding,) = host_waits(of_states(*["lock"] * 5, *["python"] * 5))
    assert re.fullmatch(
        r"the main thread waits \S+ ms \(\d+ %\) a step on average for a lock or another thread, mostly in solve",
        finding.what,
    )
    assert finding.where == "/home/me/model.py:14"
    assert finding.gain_high_ns == pytest.approx(5 * MS, rel=0.02)
    assert finding.gain_low_ns == 0


def test_waiting_for_another_thread_is_no_waiting_for_a_lock():
    trace = of_states(*["lock"] * 8, *["python"] * 2, stack=f"{OWN}\n{LIBRARY}")
    verdict = summarise(trace).verdict
    assert (verdict.kind, verdict.share) == ("waiting", pytest.approx(0.8, abs=0.01))
    assert "in solve (model.py:12)" in verdict.text
    assert not host_waits(trace)


def test_of_several_ranks_the_one_that_waits_most_is_named():
    waits = [HandMadeProcess({"main": sampled(states * 30)}, pid=100 + rank, main=rank == 0, rank=rank)
             for rank, states in enumerate((["lock"] * 2 + ["python"] * 8, ["lock"] * 6 + ["python"] * 4))]  # fmt: skip
    (finding,) = host_waits(make_trace(*waits))
    assert finding.what.startswith("the main thread of rank 1 waits 5.9")


@pytest.mark.parametrize("callers", [["exchange"], ["exchange", "reduce"]])
def test_who_calls_what_communicates_is_named_if_it_is_one(callers):
    """Each step receives for 8 of its 10 ms: always in `exchange`, or there and in another function in turn."""
    steps = []
    for number in range(60):
        begin, caller = number * 10 * MS, callers[number % len(callers)]
        receive = span("MPI_Recv", begin + 2 * MS, begin + 10 * MS, paradigm="mpi")
        steps.append(span("solve", begin, begin + 10 * MS, span(caller, begin + 2 * MS, begin + 10 * MS, receive)))
    text = summarise(make_trace({"main": steps})).verdict.text
    assert "100 % of it in MPI_Recv" in text
    assert (", called by exchange (" in text) == (len(callers) == 1)
    assert ("called by" in text) == (len(callers) == 1)


def test_who_calls_an_operator_is_a_function_and_no_module():
    steps = []
    for number in range(60):
        begin = number * 10 * MS
        product = span("aten::addmm", begin + MS, begin + 10 * MS)
        module = span("nn.Module: Net", begin + MS, begin + 10 * MS, product)
        steps.append(span("solve", begin, begin + 10 * MS, span("predict", begin + MS, begin + 10 * MS, module)))
    text = summarise(make_trace({"main": steps})).verdict.text
    assert "of it in aten::addmm, called by predict (" in text


def test_what_another_thread_does_meanwhile_is_told():
    beside = sampled((["python"] * 9 + ["lock"]) * 30, stack="hold (/home/me/model.py:70)", name="hold", part="piece")
    (finding,) = host_waits(make_trace({"main": sampled((["lock"] * 5 + ["python"] * 5) * 30), "helper": beside}))
    assert finding.do.endswith("; thread helper is in hold (/home/me/model.py:70) most")


WAITS = (["lock"] * 8 + ["python"] * 2) * 30  # in the standard library: for the end of another thread


@pytest.mark.parametrize(
    ("states", "kind", "does"),
    [
        (["lock"] * 7 + ["sleep"] * 3, "lock-bound", "wait for a lock or another thread (69|70) % of the time"),
        (["native"] * 9 + ["python"], "compute-bound", "compute (89|90) % of the time"),
        (["file"] * 6 + ["waiting"] * 4, "io-bound", "wait for files (59|60) % of the time"),
    ],
)
def test_where_the_main_thread_waits_for_others_it_is_told_what_limits_these(states, kind, does):
    threads = {
        f"worker {k}": sampled(states * 30, stack="fetch (/home/me/store.py:30)", name="fetch", part="piece")
        for k in (1, 2)
    }
    verdict = summarise(make_trace({"main": sampled(WAITS, stack=f"{OWN}\n{LIBRARY}"), **threads})).verdict
    assert verdict.kind == kind
    assert verdict.share == pytest.approx(0.8, abs=0.01)
    assert re.search(f"the main thread waits 80 % of the loop's time; meanwhile 2 other threads {does}", verdict.text)
    assert "100 % of it in fetch (store.py:14)" in verdict.text
    assert verdict.confidence == "medium"


@pytest.mark.parametrize(("waits", "idle", "kind"), [(1, 0, "compute-bound"), (3, 0, "lock-bound"),
                                                      (1, 7, "compute-bound"), (3, 5, "lock-bound")])  # fmt: skip
def test_waits_for_locks_are_named_if_they_are_not_a_few_percent_of_what_threads_do(waits, idle, kind):
    """Two threads of a native program, 300 ms each: one waits for a lock, and may have nothing to do the other time."""
    states, spans = ["lock"] * waits + ["waiting"] * idle + ["native"] * (10 - waits - idle), []
    for step, one in enumerate(sampled(states * 30)):
        stack, ns = "main (a.c:3)\nwork (a.c:8)\npthread_mutex_lock(table)", waits * MS
        row: Mapping[str, int | str] = {
            "time_ns": step * 10 * MS, "call_stack": stack, "state": "lock_contention",
            "cause": 0, "waits": 1, "wait_ns": ns, "max_ns": ns,
        }  # fmt: skip
        spans.append(replace(one, tables={"thread_waits": row}))
    process = HandMadeProcess({"main": sampled(["native"] * 300), "worker": spans}, python="")
    verdict = summarise(make_trace(process)).verdict
    assert verdict.kind == kind
    if kind == "lock-bound":
        assert verdict.share == pytest.approx(waits / (20 - idle), abs=0.001)
        text = "most in pthread_mutex_lock(table), called by work (a.c:8) < main (a.c:3); most of it for main, which"
        assert f"{text} computes most in solve (model.py:12)" in verdict.text


def test_threads_that_only_wait_for_work_limit_nothing():
    idle = sampled(["waiting"] * 300, stack="fetch (/home/me/store.py:30)", name="fetch", part="piece")
    trace = make_trace({"main": sampled(WAITS, stack=f"{OWN}\n{LIBRARY}"), "worker": idle})
    assert summarise(trace).verdict.kind == "waiting"


@pytest.mark.parametrize(
    ("of_others", "name", "kind"),
    [(1, "fetch", "imbalanced"), (6, "fetch", "compute-bound"), (1, "log", "compute-bound")],
)
def test_one_of_several_threads_with_most_of_the_work_is_named(of_others, name, kind):
    """Worker 1 computes 9 of 10 ms, the two others 1 or 6 of them; what another function does is another's work."""
    threads = {}
    for number in (1, 2, 3):
        busy, own = (9, "fetch") if number == 1 else (of_others, name)
        states = (["native"] * busy + ["waiting"] * (10 - busy)) * 30
        threads[f"worker {number}"] = sampled(states, stack=f"{own} (/home/me/store.py:30)", name=own, part="piece")
    verdict = summarise(make_trace({"main": sampled(WAITS, stack=f"{OWN}\n{LIBRARY}"), **threads})).verdict
    assert verdict.kind == kind
    named = re.search("; 8[12] % of what they run is in worker 1 alone", verdict.text) is not None
    assert named == (kind == "imbalanced")


@pytest.mark.parametrize("workers", [3, 2])
def test_one_of_several_processes_with_all_of_the_work_is_named(workers):
    main = HandMadeProcess({"main": sampled(WAITS, stack=f"{OWN}\n{LIBRARY}")}, pid=1)
    others = []
    for pid in range(2, 2 + workers):
        states = (["python"] * 9 + ["lock"]) * 30 if pid == 2 else (["lock"] * 9 + ["waiting"]) * 30
        work = sampled(states, stack="fetch (/home/me/store.py:30)", name="fetch", part="piece")
        others.append(HandMadeProcess({"main": work}, pid=pid, main=False))
    verdict = summarise(make_trace(main, *others)).verdict
    assert (verdict.kind == "imbalanced") == (workers == 3)
    assert verdict.text.endswith("; 100 % of what they run is in process 2 alone") == (workers == 3)


def test_processes_that_the_main_one_waits_for_are_looked_at():
    work = sampled((["python"] * 9 + ["socket"]) * 30, stack="fetch (/home/me/store.py:30)", name="fetch", part="piece")
    main = HandMadeProcess({"main": sampled(WAITS, stack=f"{OWN}\n{LIBRARY}")}, pid=1)
    trace = make_trace(main, *(HandMadeProcess({"main": work}, pid=pid, main=False) for pid in (2, 3)))
    verdict = summarise(trace).verdict
    assert verdict.kind == "python-bound"
    assert "meanwhile 2 child processes are in the Python interpreter 90 % of the time" in verdict.text


def test_workers_are_told_and_not_the_threads_that_hand_them_their_work():
    """A pool has threads of its own, which compute a tenth of the time; its processes compute all of it."""
    own = sampled((["native"] + ["waiting"] * 9) * 30, stack="hand (/home/me/pool.py:5)", name="hand", part="piece")
    work = sampled(["native"] * 300, stack="fetch (/home/me/store.py:30)", name="fetch", part="piece")
    main = HandMadeProcess({"main": sampled(WAITS, stack=f"{OWN}\n{LIBRARY}"), "handler": own}, pid=1)
    verdict = summarise(make_trace(main, HandMadeProcess({"main": work}, pid=2, main=False))).verdict
    assert verdict.kind == "compute-bound"
    assert "meanwhile 1 child process computes" in verdict.text
    assert "in fetch (store.py:14)" in verdict.text


def test_a_function_of_several_threads_takes_no_share_of_a_step():
    threads = {
        f"worker {k}": sampled(["native"] * 300, stack="band (/a.py:3)", name="band", part="band") for k in (1, 2)
    }
    (first, *_) = python_time(make_trace({"main": sampled(WAITS, stack=f"{OWN}\n{LIBRARY}"), **threads}))
    assert re.search(r"itself takes \S+ ms a step, of all threads together", first.what), first.what


def test_a_function_that_lasts_beyond_the_usual_steps_has_no_share_of_one() -> None:
    """`work` begins in the middle of each fourth step, of 1 ms, and lasts all of the next one, an outlier of 40 ms."""
    parts, now = [], 0
    for step in range(120):
        if step % 4 == 2:
            parts.append(span("tick", now, now + 1000))
            inside = span("tick", now + MS, now + MS + 1000)
            parts.append(span("work", now + MS // 2, now + 41 * MS - 1000, inside))
        elif step % 4 != 3:
            parts.append(span("tick", now, now + 1000))
        now += 40 * MS if step % 4 == 3 else MS
    trace = make_trace({"main": [span("main", 0, now, *parts)]})
    choose_steps(trace, Asked(at="tick"))
    found = [each.what for each in python_time(trace) if isinstance(each, Finding)]
    assert found == ["main itself takes 832.7 us (83 %) of a step"]


AUTOGRAD = "_engine_run_backward (/lib/python3.11/site-packages/torch/autograd/graph.py:860)"
SCHEDULE = "step (/lib/python3.11/site-packages/torch/distributed/pipelining/schedules.py:500)"


@pytest.mark.parametrize(
    ("stack", "kind"),
    [
        (f"{OWN}\n{AUTOGRAD}", "communication-bound"),  # DDP waits there for the gradients of others
        (f"{AUTOGRAD}\n{OWN}", "sleeping"),  # a backward pass of the program's own
        (f"{SCHEDULE}\n{OWN}", "sleeping"),  # a stage of a pipeline
        (f"{SCHEDULE}\n{OWN}\nwait (/lib/python3.11/site-packages/torch/distributed/work.py:9)", "communication-bound"),
    ],
)
def test_what_pytorch_calls_back_is_not_a_wait_for_other_ranks(stack: str, kind: str) -> None:
    row = {"collective": "all_reduce", "group_size": 2}
    one = span("gloo:all_reduce", 5 * MS, 6 * MS, paradigm="torch", role="collective", tables={"collective_spans": row})
    threads = {"main": sampled((["sleep"] * 8 + ["python"] * 2) * 30, stack=stack), "pt_gloo_runloop": [one]}
    processes = [HandMadeProcess(threads, pid=100 + rank, main=not rank, rank=rank) for rank in range(2)]
    assert summarise(make_trace(*processes)).verdict.kind == kind


def test_of_few_samples_nothing_is_advised():
    trace = make_trace({"main": sampled((["lock"] * 2 + ["python"] * 8) * 4)})
    (found,) = host_times(trace)
    assert found.samples * found.kinds_ns["lock"] / found.duration_ns < 10
    assert not host_waits(trace)


@pytest.mark.parametrize(
    ("frame", "kind"), [("main (/home/me/saxpy)", "compute-bound"), ("solve (/home/me/model.py:12)", "python-bound")]
)
def test_samples_without_a_state_are_of_the_language_of_their_function(frame, kind):
    assert summarise(of_states(*[""] * 10, stack=frame)).verdict.kind == kind


@pytest.mark.parametrize(("steps", "confidence"), [(8, "low"), (15, "medium")])
def test_few_samples_make_a_verdict_less_sure(steps, confidence):
    # 60 and 40 %: of n samples the difference is known to sqrt(0.96 / n), and 0.2 are 1.8 or 2.4 of these.
    verdict = summarise(make_trace({"main": sampled((["python"] * 6 + ["native"] * 4) * steps)})).verdict
    assert (verdict.kind, verdict.confidence) == ("python-bound", confidence)


def test_a_run_without_steps_is_told_without_its_imports():
    inner = []
    for number in range(200):
        imports = (
            "<module> (/home/me/a.py:1)\n_find_and_load (<frozen importlib._bootstrap>:1165)\n<module> (/x/b.py:1)"
        )
        stack, state = (imports, "native") if number < 100 else ("work (/home/me/a.py:3)", "python")
        row: Mapping[str, int | str] = {
            "time_ns": number * MS, "call_stack": stack, "state": state, "line": 4, "period_ns": MS, "cpu_ns": MS
        }  # fmt: skip
        inner.append(span(f"call{number}", number * MS, (number + 1) * MS, tables={"samples": row}))
    verdict = summarise(make_trace({"main": [span("work", 0, 200 * MS, *inner)]})).verdict
    assert verdict.kind == "python-bound"
    assert "the main thread is in the Python interpreter 100 % of the run without its imports" in verdict.text
    assert verdict.confidence == "low"


def waiting_for_a_core(share: float, *states: str) -> HandMadeProcess:
    times = [10 * MS * number for number in range(32)]
    metric = {
        "metric": 0, "name": "main thread waits for a core", "unit": "cores", "location": 2**32 - 1,
        "time_ns": times, "value": [share] * len(times),
    }  # fmt: skip
    return HandMadeProcess(
        {"main": sampled([*(states or ["python"])] * (300 // max(1, len(states))))}, metrics=[metric]
    )


@pytest.mark.parametrize(("share", "kind"), [(0.3, "python-bound"), (0.7, "starved")])
def test_a_machine_with_too_few_cores_limits_the_loop(share, kind):
    verdict = summarise(make_trace(waiting_for_a_core(share))).verdict
    assert verdict.kind == kind
    if kind == "starved":
        assert "waits for a core 70 % of the loop's time: more threads and processes run than" in verdict.text


@pytest.mark.parametrize(("share", "gil"), [(0.01, 0.39), (0.1, 0.3), (0.2, 0.2)])
def test_who_wakes_up_while_it_waits_for_the_gil_waits_for_no_core(share, gil):
    """Two of ten samples find it ready to run; what it did not wait for a core is among its waits."""
    states = ["python"] * 6 + ["ready"] * 2 + ["gil"] * 2
    (found,) = host_times(make_trace(waiting_for_a_core(share, *states)))
    assert found.kinds_ns["gil"] / found.duration_ns == pytest.approx(gil, abs=0.012)
    assert sum(found.kinds_ns.values()) == found.duration_ns


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from([*RUNNING, "gil", *WAITING]), min_size=10, max_size=10))
def test_kinds_add_up_to_the_steps_and_are_what_was_sampled(states):
    (found,) = host_times(of_states(*states))
    assert sum(found.kinds_ns.values()) == found.duration_ns
    for state in {*states}:
        assert found.kinds_ns[state] / found.duration_ns == pytest.approx(states.count(state) / 10, abs=0.01)


def ranks(*works_ms: int, step_ms: int = 40) -> Trace:
    """Forty steps of ranks that work and then wait for each other."""
    processes = []
    for rank, works in enumerate(works_ms):
        spans: list[Span] = []
        for step in range(40):
            begin = step * step_ms * MS
            spans.append(span("compute", begin, begin + works * MS))
            spans.append(span("MPI_Allreduce", begin + works * MS, begin + step_ms * MS, paradigm="mpi"))
        processes.append(HandMadeProcess({"main": spans}, pid=100 + rank, main=rank == 0, rank=rank))
    return make_trace(*processes)


def test_native_code_of_ranks_that_exchange_objects_makes_no_verdict_sure():
    """It may be what makes bytes of the objects."""

    def rank(number: int, *more: Span) -> HandMadeProcess:
        return HandMadeProcess(
            {"main": [*sampled((["native"] * 9 + ["python"]) * 30), *more]},
            pid=100 + number,
            main=number == 0,
            rank=number,
        )

    alone = make_trace(rank(0), rank(1))
    assert (summarise(alone).verdict.kind, summarise(alone).verdict.confidence) == ("compute-bound", "high")
    call = span("MPI_Send", 295 * MS, 295 * MS + 1000, paradigm="mpi")
    together = make_trace(rank(0, call), rank(1, call))
    assert (summarise(together).verdict.kind, summarise(together).verdict.confidence) == ("compute-bound", "medium")


def manager(*works_ms: int) -> Trace:
    """A manager that hands out 80 tasks, and two workers with 40 steps each, in 1.6 s; so long each works in a step."""
    processes = []
    for rank, (count, works) in enumerate(zip((80, 40, 40), works_ms, strict=True)):
        spans: list[Span] = []
        for step in range(count):
            begin, each = step * 1600 * MS // count, 1600 * MS // count
            spans.append(span("compute", begin, begin + works * MS))
            spans.append(span("MPI_Recv", begin + works * MS, begin + each, paradigm="mpi"))
        processes.append(HandMadeProcess({"main": spans}, pid=100 + rank, main=rank == 0, rank=rank))
    return make_trace(*processes)


def test_a_manager_and_its_workers_are_not_compared_by_step():
    assert summarise(manager(1, 30, 35)).verdict.kind != "imbalanced"
    verdict = summarise(manager(18, 8, 10)).verdict
    assert verdict.kind == "imbalanced"
    assert "rank 0 works 90 % of the time, the median of the 2 others 22 %" in verdict.text


def test_a_rank_that_works_longer_than_the_others_is_named():
    verdict = summarise(ranks(10, 40, 10)).verdict
    assert verdict.kind == "imbalanced"
    assert "rank 1 works 40.00 ms a step on average, the median of the 2 others 10.00 ms" in verdict.text
    assert verdict.share == pytest.approx(0.5, abs=0.01)  # (40 - 20) / 40
    assert "even work would save up to 50 %" in verdict.text


@pytest.mark.parametrize(("works", "kind"), [((10, 10, 10), "communication-bound"), ((10, 40, 40), "host-bound")])
def test_where_no_single_rank_is_late_none_is_named(works, kind):
    verdict = summarise(ranks(*works)).verdict
    assert verdict.kind == kind
    assert "rank 1" not in verdict.text
