"""Which generators make the batches of a loop: the rule on paper, and what follows for the parts of a step."""

from __future__ import annotations

import numpy as np
import pytest

from strobe.advice import data_wait
from strobe.answers.ask import ask
from strobe.breakdown.host_time import host_times
from strobe.native import core
from strobe.steps.batch_makers import batch_makers, makers_of, making_regions
from strobe.steps.steps import find_steps
from strobe.steps.training_activities import BACKWARD, DATA_WAIT, FORWARD
from tests.unit.hand_made import FETCH_ALONE, MS, HandMadeProcess, Span, make_trace, span
from tests.unit.streams import paradigm_of

PASS, UPDATE = "autograd::engine::evaluate_function: AddmmBackward0", "Optimizer.step#SGD.step"
SOURCE = {
    "batches": "range (read yield)",
    "shuffled": "(yield?)",
    "all_of": "batches yield-from",
    "once": "yield",
    "main": "range (work)",
    "train": "range (work yield)",
    "<genexpr>": "(yield)",
    "report": "rows (write)",
    "rows": "(yield)",
    "Net.parts": "(yield)",
}


def makers(*paths: str, source: dict[str, str] = SOURCE) -> set[str]:
    """Which of the paths, written as `main/batches`, make batches. Each comes with those that it begins with."""
    known: dict[str, int] = {}
    for path in paths:
        parts = path.split("/")
        for depth in range(1, len(parts) + 1):
            known.setdefault("/".join(parts[:depth]), len(known))
    parent = np.array([known.get(path.rpartition("/")[0], -1) for path in known], dtype=np.int64)
    names = list(dict.fromkeys(path.rpartition("/")[2] for path in known))
    region = np.array([names.index(path.rpartition("/")[2]) for path in known], dtype=np.int64)
    codes = core.SourceCodes(names, {at: source[name] for at, name in enumerate(names) if name in source})
    found = makers_of(parent, region, names, [paradigm_of(name) for name in names], codes)
    return {path for path, makes in zip(known, found.tolist(), strict=True) if makes}


@pytest.mark.parametrize("work", [PASS, UPDATE, "Net.forward", f"train_step/{PASS}", "predict/Net.forward"])
def test_a_generator_that_feeds_a_training_or_an_inference_makes_batches(work: str) -> None:
    assert makers("main/batches/aten::tensor", f"main/{work}") == {"main/batches"}
    assert makers(f"main/{work}", "main/batches/aten::tensor") == {"main/batches"}


@pytest.mark.parametrize("name", ["shuffled", "all_of", "Reader.__next__"])
def test_so_does_one_that_hands_on_and_an_iterator(name: str) -> None:
    assert makers(f"main/{name}", f"main/{PASS}") == {f"main/{name}"}


@pytest.mark.parametrize("name", ["once", "<genexpr>", "main.<locals>.<genexpr>", "work", "next", "__next__#"])
def test_what_yields_once_is_a_context_and_expressions_are_none(name: str) -> None:
    assert makers(f"main/{name}", f"main/{PASS}", source={**SOURCE, "main.<locals>.<genexpr>": "(yield)"}) == set()


def test_the_outermost_of_a_chain_makes_them() -> None:
    assert makers("main/shuffled/all_of/batches/aten::tensor", f"main/{PASS}") == {"main/shuffled"}
    # Unless it trains itself.
    assert makers(f"main/train/{PASS}", "main/train/batches") == {"main/train/batches"}


def test_a_function_that_hands_a_batch_on_asks_for_its_caller() -> None:
    assert makers("main/Trainer.fetch/batches", f"main/{PASS}") == {"main/Trainer.fetch/batches"}
    assert makers("main/data/Trainer.fetch/batches", f"main/{PASS}") == {"main/data/Trainer.fetch/batches"}
    # Not one that goes over the items itself, or works with them: a report, a term of the loss.
    assert makers("main/report/rows", f"main/{PASS}") == set()
    assert makers("main/penalty/rows/aten::pow", "main/penalty/aten::add", f"main/{PASS}") == set()
    # Nor one whose caller does nothing with it.
    assert makers("main/Trainer.fetch/batches", f"other/{PASS}") == set()


def test_a_generator_that_trains_or_infers_makes_none() -> None:
    for work in (PASS, UPDATE, "Net.forward", f"train_step/{PASS}"):
        assert makers(f"main/train/{work}", f"main/{PASS}") == set()


def test_a_generator_around_a_loader_makes_none() -> None:
    assert makers(f"main/batches/{FETCH_ALONE}/Set.__getitem__", f"main/{PASS}") == set()
    assert makers(f"main/{FETCH_ALONE}/batches", f"main/{PASS}") == set()


def test_where_a_loader_feeds_the_loop_no_generator_does() -> None:
    """It splits batches, or goes over parameters."""
    assert makers(f"main/{FETCH_ALONE}", "main/batches", f"main/{PASS}") == set()
    assert makers("main/batches", f"main/{PASS}", f"main/{FETCH_ALONE}") == set()
    assert makers(f"main/{FETCH_ALONE}", "main/train_step/batches", f"main/train_step/{PASS}") == set()
    assert makers(f"main/batches/{FETCH_ALONE}", "main/shuffled", f"main/{PASS}") == set()  # a wrapper
    assert makers(f"main/Trainer.fetch/{FETCH_ALONE}", "main/shuffled", f"main/{PASS}") == set()
    # A validation with a loader of its own is another loop.
    validation = {**SOURCE, "validate": "(predict)"}
    assert makers(f"main/validate/{FETCH_ALONE}", "main/batches", f"main/{PASS}", source=validation) == {"main/batches"}


def test_a_generator_in_a_module_is_forward() -> None:
    assert makers("main/Net.forward/Net.parts/aten::linear", f"main/{PASS}") == set()
    assert makers("main/Net.forward/blocks/Net.parts", f"main/{PASS}") == set()


def test_a_program_without_modules_and_training_has_none() -> None:
    assert makers("main/batches/read", "main/simulate/aten::mm") == set()
    assert makers("batches", PASS) == set()  # nobody asks


def training(count: int, maker: str) -> tuple[Span, list[tuple[int, int]]]:
    """A `main` with steps of 8 ms in the generator, a third of it in an operator, and 4 ms of training."""
    now, spans, waits = MS, [], []
    for step in range(count):
        jitter = 1000 * ((step * 7) % 11)
        done = now + 8 * MS + jitter
        waits.append((now, done))
        inside = span("featurise", now, now + 4 * MS), span("aten::tensor", done - 3 * MS, done)
        spans.append(span(maker, now, done, *inside))
        for name in ("aten::linear", "aten::relu", PASS, UPDATE):
            role = "range" if name == UPDATE else "operator"
            # What an update does outside of its operators is Python's.
            work = [span("aten::add_", done, done + MS, paradigm="torch", role="operator")] if name == UPDATE else []
            spans.append(span(name, done, done + MS, *work, paradigm="torch", role=role))
            done += MS
        now = done
    return span("main", 0, now + MS, *spans), waits


def test_the_time_in_it_is_the_wait_for_data_in_every_answer() -> None:
    whole, waits = training(60, "batches")
    trace = make_trace(HandMadeProcess({"main": [whole]}, loops=SOURCE))
    assert [int(each.sum()) for each in batch_makers(trace)] == [1]
    (steps,) = find_steps(trace).processes
    assert steps.start_ns.tolist() == [begin for begin, _ in waits]
    assert steps.parts_ns[5, [DATA_WAIT, FORWARD, BACKWARD]].tolist() == [waits[5][1] - waits[5][0], 2 * MS, MS]
    (time,) = host_times(trace)
    share = 8.005 / 12.005
    assert time.kinds_ns["data"] / time.duration_ns == pytest.approx(share, abs=0.001)
    assert time.kinds_ns["operators"] / time.duration_ns == pytest.approx(1 - share, abs=0.001)
    (row,) = ask(trace, "step_time").to_pylist()
    assert row["data_loader_share"] == pytest.approx(share, abs=0.001)
    (row,) = ask(trace, "data_pipeline").to_pylist()
    assert (row["verdict"], row["workers"]) == ("data processing", 0)
    assert row["wait_share"] == pytest.approx(share, abs=0.001)
    assert "in batches" in row["advice"]
    (found,) = data_wait.run(trace)
    assert "made in the loop itself" in found.what
    assert "makes batches itself, in batches" in found.do
    assert "num_workers" not in found.do


def test_one_that_hands_batches_on_makes_none_when_it_is_closed() -> None:
    """A function that returns closes its generator in its caller: nothing of a loader lies in that call."""
    spans, now = [], MS
    for _ in range(60):
        wait = span(FETCH_ALONE, now + 1000, now + 2 * MS, paradigm="torch", role="wait")
        spans.append(span("epochs", now, now + 2 * MS + 1000, wait))
        for at, name in enumerate(("aten::linear", PASS, UPDATE)):
            role = "range" if name == UPDATE else "operator"
            spans.append(span(name, now + (3 + at) * MS, now + (4 + at) * MS, paradigm="torch", role=role))
        now += 7 * MS
    train = span("train", 0, now, *spans)
    main = span("main", 0, now + MS, train, span("epochs", now + 1000, now + 2000))
    loops = {"train": "range (next)", "epochs": "(yield-from)", "main": "range (train)"}
    trace = make_trace(HandMadeProcess({"main": [main]}, loops=loops))
    assert not making_regions(trace).any()


def test_without_the_source_nothing_is_guessed() -> None:
    for maker, loops in (("batches", {}), ("Reader.__next__", {}), ("batches", {"main": "range (batches)"})):
        trace = make_trace(HandMadeProcess({"main": [training(60, maker)[0]]}, loops=loops))
        (steps,) = find_steps(trace).processes
        assert steps.parts_ns[:, DATA_WAIT].sum() == 0


def test_ranks_are_told_apart() -> None:
    """What one rank trains with, another only reads."""
    reads = [span("main", 0, 100 * MS, *(span("batches", at * MS, at * MS + 1000) for at in range(1, 90)))]
    ranks = [training(60, "batches")[0]], reads
    made = [HandMadeProcess({"main": spans}, pid=100 + at, rank=at, loops=SOURCE) for at, spans in enumerate(ranks)]
    assert [bool(each.any()) for each in batch_makers(make_trace(*made))] == [True, False]
