"""Steps: hand-made programs with known steps, and the sample of a real training that wrote down its own."""

import re
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from strobe.steps.finding.offline_search import steps_of
from strobe.steps.steps import find_steps
from strobe.steps.thread_spans import Stream
from strobe.steps.training_activities import BACKWARD, DATA_WAIT, FORWARD, OPTIMIZER, PARTS, REST, VALIDATION
from tests.unit.hand_made import MS, make_trace, span, train_steps
from tests.unit.streams import BACKWARD as BACKWARD_NAMES
from tests.unit.streams import FORWARD as FORWARD_NAMES
from tests.unit.streams import SINGLE_WAIT, STEP, WORKERS_WAIT, ZERO, Program, sample, update
from tests.unit.trainings import Training, assert_true, validating


def without(stream: Stream, *words: str) -> Stream:
    """The stream as if regions with these words in their names had not been recorded."""
    gone = np.array([any(word in name for word in words) for name in stream.names])
    rows = np.flatnonzero(~gone[stream.region])
    number = np.full(len(stream) + 1, -1)
    number[rows] = np.arange(len(rows))
    parent = stream.parent.copy()
    while (skipped := (parent >= 0) & gone[stream.region[np.maximum(parent, 0)]]).any():
        parent[skipped] = parent[parent[skipped]]
    path_parent = stream.path_parent.copy()
    while (skipped := (path_parent >= 0) & gone[stream.path_region[np.maximum(path_parent, 0)]]).any():
        path_parent[skipped] = path_parent[path_parent[skipped]]
    # Equal chains become one call path again.
    known: dict[tuple[int, int], int] = {}
    new = [-1] * len(path_parent)
    for path, (above, region) in enumerate(zip(path_parent.tolist(), stream.path_region.tolist(), strict=True)):
        if not gone[region]:
            new[path] = known.setdefault((new[above] if above >= 0 else -1, region), len(known))
    return replace(
        stream,
        start_ns=stream.start_ns[rows],
        duration_ns=stream.duration_ns[rows],
        region=stream.region[rows],
        call_path=np.array(new)[stream.call_path[rows]],
        parent=number[parent[rows]],
        path_parent=np.array([above for above, _ in known]),
        path_region=np.array([region for _, region in known]),
    )


def only_torch(stream: Stream) -> Stream:
    return without(stream, *(n for n, p in zip(stream.names, stream.paradigms, strict=True) if p != "torch"))


def test_a_step_begins_where_the_loop_asks_for_its_data() -> None:
    training = Training()
    training.run("aten::empty", "aten::uniform_", "aten::randn")  # the model is made
    for _ in range(20):
        training.step()
    found = steps_of(training.stream())
    assert_true(found, training)
    assert set(found.classes) == {"train"}
    assert found.anchored
    assert found.confidence == "medium"  # PyTorch alone says so
    assert STEP in found.reason


def test_the_parts_of_a_step_are_what_the_operators_say() -> None:
    training = Training()
    for _ in range(5):
        training.step(wait_us=50)
        training.run("aten::item", us=40)  # reads the loss: no forward pass
        training.pause(2000)
        training.more()
    parts = dict(zip(PARTS, steps_of(training.stream()).parts_ns[2].tolist(), strict=True))
    # 200 ns for entering and leaving; operators of one part follow each other without a pause.
    assert parts["data_wait"] == 50_200
    assert parts["forward"] == 4 * 100_200
    assert parts["backward"] == 4 * 150_200
    assert parts["optimizer"] == 10_200 + 200 + 2 * 10_200
    assert parts["rest"] == 40_200 + 2_000_000


def test_a_long_pause_between_two_operators_is_rest() -> None:
    program = Program()
    for _ in range(5):
        program.run(WORKERS_WAIT)
        program.run("aten::conv2d", us=100)
        program.pause(900)  # the interpreter at work for the forward pass
        program.run("aten::relu", us=100)
        program.pause(1100)
        program.run("aten::linear", us=100)
        program.run(*BACKWARD_NAMES, STEP)
    parts = steps_of(program.stream()).parts_ns[2]
    assert parts[FORWARD] == 3 * 100_200 + 900_000
    assert parts[REST] == 1_100_000


def test_an_epoch_that_ends_belongs_to_the_step_that_asks_again() -> None:
    training = Training()
    for number in range(24):
        training.step(ask_twice=number % 8 == 0 and number > 0)
    found = steps_of(training.stream())
    assert_true(found, training)
    assert set(found.classes) == {"train"}
    assert found.parts_ns[8, DATA_WAIT] == 5_200 + 2 * 10_200 + 50_200


@pytest.mark.parametrize("function", ["validate", "evaluate", "Trainer._run_evaluation", None])
@pytest.mark.parametrize("wait", [SINGLE_WAIT, WORKERS_WAIT])
def test_a_validation_belongs_to_the_step_before_it(function: str | None, wait: str) -> None:
    training = Training()
    with training.inside("main"):
        for number in range(30):
            training.step()
            if number % 10 == 9:
                validating(training, wait, function=function)
    found = steps_of(training.stream())
    if function is None:
        # Nothing tells the end of the validation data from the wait for the next batch, if the loader is of one kind.
        late = found.start_ns - [begin for begin, _ in training.truth]
        assert np.abs(late).max() <= 5_200
    else:
        assert_true(found, training)
    assert [number for number, name in enumerate(found.classes) if name == "train+validation"] == [9, 19, 29]
    assert set(found.classes) == {"train", "train+validation"}
    assert found.parts_ns[9, VALIDATION] >= 12 * 100_000
    assert found.parts_ns[8, VALIDATION] == 0
    assert found.parts_ns[9, FORWARD] == found.parts_ns[8, FORWARD]


def test_a_validation_by_the_function_that_trains_is_no_wait_for_data() -> None:
    """`run_epoch(loader, train)`: both ask their loaders at the same place, and the call ends with the validation."""
    training = Training()
    with training.inside("main"):
        for epoch in range(4):
            with training.inside("run_epoch"):
                for number in range(12):
                    training.step(ask_twice=number == 0 and epoch > 0)
            with training.inside("run_epoch"):
                for _ in range(5):
                    training.run(WORKERS_WAIT, us=30)
                    training.run(*FORWARD_NAMES, us=100)
                training.run(WORKERS_WAIT, us=5)
            training.more()
    found = steps_of(training.stream())
    late = found.start_ns - [begin for begin, _ in training.truth]
    assert np.abs(late).max() <= 6_000  # the last wait of the validation may be the first of the next step
    assert [number for number, name in enumerate(found.classes) if name == "train+validation"] == [11, 23, 35, 47]
    assert found.parts_ns[11, VALIDATION] >= 5 * len(FORWARD_NAMES) * 100_000
    assert found.parts_ns[12, DATA_WAIT] == pytest.approx(found.parts_ns[13, DATA_WAIT], abs=50_000)


def test_extras_are_named_after_the_function_that_only_some_steps_call() -> None:
    training = Training()
    for number in range(40):
        training.step()
        if number % 10 == 4:
            training.run("save_checkpoint", us=300)
        if number % 20 == 9:
            training.run("Trainer.push_metrics", us=200)
        if number % 2:
            training.run("tiny", us=1)  # too cheap for a class of its own
        training.more()
    found = steps_of(training.stream())
    assert_true(found, training)
    assert found.classes[4] == "train+checkpoint"
    assert found.classes[9] == "train+push_metrics"
    assert found.classes[5] == "train"


@pytest.mark.parametrize("first", ["validation", "checkpoint"])
def test_two_extras_are_named_in_the_order_in_which_they_run(first: str) -> None:
    training = Training()
    for number in range(30):
        training.step()
        if number % 10 == 9 and first == "checkpoint":
            training.run("save_checkpoint", us=300)
        if number % 5 == 4:
            validating(training, SINGLE_WAIT, function="validate")
        if number % 10 == 9 and first == "validation":
            training.run("save_checkpoint", us=300)
        training.more()
    classes = steps_of(training.stream()).classes
    second = {"validation": "checkpoint", "checkpoint": "validation"}[first]
    assert [classes[number] for number in (3, 4, 9)] == ["train", "train+validation", f"train+{first}+{second}"]


def test_what_only_the_first_step_calls_is_start_up_and_no_class() -> None:
    training = Training()
    for number in range(20):
        training.step()
        if number == 0:
            training.run("import_plugins", us=900)
            training.more()
    assert set(steps_of(training.stream()).classes) == {"train"}


def test_without_a_loader_a_step_begins_after_the_update() -> None:
    training = Training()
    training.run("aten::empty", "aten::uniform_")
    for number in range(10):
        update(training)
        if number == 0:
            training.truth.append((2 * 10_200, training.now_ns))
        else:
            training.truth.append((training.truth[-1][1], training.now_ns))
    assert_true(steps_of(training.stream()), training)


def test_a_closure_that_runs_inside_of_the_optimizer_is_no_optimizer_time() -> None:
    program = Program()
    for _ in range(10):
        program.run(WORKERS_WAIT)
        with program.inside("Optimizer.step#LBFGS.step"):
            for _ in range(5):
                program.run(ZERO)
                program.run(*FORWARD_NAMES, us=100)
                program.run(*BACKWARD_NAMES, us=100)
                program.run("aten::add_", "aten::mul_", us=20)
    found = steps_of(program.stream())
    assert len(found) == 10
    assert found.parts_ns[5, BACKWARD] == 5 * 4 * 100_200
    assert found.parts_ns[5, FORWARD] == 5 * 4 * 100_200
    # The way into the optimizer, 100 ns, is its own, too.
    assert found.parts_ns[5, OPTIMIZER] == 100 + 5 * (10_200 + 2 * 20_200)


def test_ranges_that_a_user_puts_around_a_step_hide_nothing() -> None:
    training = Training()
    for _ in range(10):
        with training.inside("##whole::step##"):
            training.step()
    parts = steps_of(training.stream()).parts_ns[5]
    assert parts[BACKWARD] == 4 * 150_200
    assert parts[OPTIMIZER] > 0


def test_a_backward_pass_in_another_thread_fills_the_pause_of_this_one() -> None:
    training, backward = Training(), []
    for _ in range(10):
        begin = training.now_ns
        training.run(WORKERS_WAIT)
        training.run(*FORWARD_NAMES, us=100)
        backward += [(training.now_ns + 50_000 * k, training.now_ns + 50_000 * k + 40_000) for k in range(10)]
        training.pause(500)
        training.run(STEP)
        training.truth.append((begin, training.now_ns))
    found = steps_of(replace(training.stream(), backward_ns=np.array(backward)))
    assert_true(found, training)
    assert found.parts_ns[3, BACKWARD] == 490_000


def test_inference_is_cut_at_the_loader() -> None:
    program = Program()
    starts = []
    for number in range(20):
        starts.append(program.now_ns)
        if number == 10:
            program.run(WORKERS_WAIT, us=5)  # the end of the data, asked in vain
        program.run(WORKERS_WAIT)
        program.run(*FORWARD_NAMES)
    program.run(WORKERS_WAIT, us=5)
    found = steps_of(program.stream())
    assert found.start_ns.tolist() == starts
    assert set(found.classes) == {"inference"}


def test_without_a_backward_pass_all_operators_are_forward() -> None:
    program = Program()
    for _ in range(20):
        program.run(*FORWARD_NAMES, us=100)
        program.pause(2000)
    parts = steps_of(program.stream()).parts_ns[3]
    assert (parts[FORWARD], parts[REST]) == (4 * 100_200, 2_000_000)


def test_steps_of_a_profiler_win() -> None:
    program, starts = Program(), []
    for number in range(6):
        starts.append(program.now_ns)
        with program.inside(f"ProfilerStep#{number}"):
            program.run(WORKERS_WAIT)
            update(program)
            update(program)
    found = steps_of(program.stream())
    assert found.start_ns.tolist() == starts
    assert found.start_ns[-1] + found.duration_ns[-1] == program.now_ns


def test_a_hint_ends_a_step() -> None:
    program, ends = Program(), []
    program.run("load")
    with program.inside("main"):
        for _ in range(6):
            program.run("work", "work", "talk")
            program.run("strobe.step", us=0)
            ends.append(program.now_ns)
    found = steps_of(program.stream())
    assert (found.start_ns + found.duration_ns).tolist() == ends
    assert found.start_ns[0] == 10_200 + 100
    assert found.anchored


@pytest.mark.parametrize("send", ["MPI_Send", "send"])
def test_a_loop_without_a_framework_is_found_by_its_structure(send: str) -> None:
    program, starts = Program(), []
    program.run("read_input", "set_up", us=500)
    with program.inside("main"):
        for _ in range(50):
            starts.append(program.now_ns)
            program.run("exchange_halo", "compute", us=200)
            for _ in range(3):
                program.run(send, "unpack")
            program.run("norm")
        program.run("write_output", us=500)
    found = steps_of(program.stream())
    assert found.start_ns.tolist() == starts
    assert found.start_ns[-1] + found.duration_ns[-1] == program.now_ns - 500_300
    assert set(found.classes) == {"step"}
    assert (found.parts_ns[:, REST] == found.duration_ns).all()
    assert not found.anchored
    assert found.confidence in ("medium", "low")


def test_a_function_is_told_apart_by_its_caller() -> None:
    program, starts = Program(), []
    with program.inside("main"):
        for _ in range(30):
            starts.append(program.now_ns)
            program.run("apply")
            for _ in range(3):
                with program.inside("inner"):
                    program.run("apply")
    assert steps_of(program.stream()).start_ns.tolist() == starts


def test_a_loop_of_a_fixed_number_of_inner_iterations_is_the_step() -> None:
    program, starts = Program(), []
    for _ in range(20):
        starts.append(program.now_ns)
        program.run("begin", "prepare")
        for _ in range(4):
            program.run("a", "b", "c", "d", "e")
        program.run("end")
    found = steps_of(program.stream())
    assert found.start_ns.tolist() == starts
    assert found.confidence == "low"


def test_noise_has_no_steps() -> None:
    program = Program()
    program.run(*(f"function_{number}" for number in np.random.default_rng(3).integers(0, 40, 400)))
    assert len(steps_of(program.stream())) == 0


def test_what_does_not_repeat_has_no_steps() -> None:
    program = Program()
    program.run(*(f"phase_{number}" for number in range(30)))
    found = steps_of(program.stream())
    assert len(found) == 0
    assert found.confidence == "none"


def test_a_step_that_was_cut_off_is_partial() -> None:
    training = Training()
    for _ in range(10):
        training.step()
    training.run(WORKERS_WAIT)
    training.run(*FORWARD_NAMES, us=100)
    found = steps_of(training.stream())
    assert found.classes == ("train",) * 10 + ("partial",)
    assert found.complete.tolist() == [True] * 10 + [False]
    assert not found.steady[10]


def test_a_step_whose_beginning_was_not_recorded_is_partial() -> None:
    training = Training()
    training.run(*BACKWARD_NAMES, STEP)
    for _ in range(10):
        training.step()
    found = steps_of(training.stream())
    assert found.classes == ("partial",) + ("train",) * 10


@pytest.mark.parametrize("slow", [17, 40])
def test_a_stall_is_an_outlier_with_data_wait_as_its_cause(slow: int) -> None:
    training = Training()
    for number in range(60):
        training.step(wait_us=2000 if number == slow else 50 + number % 7)
    found = steps_of(training.stream())
    assert np.flatnonzero(found.outlier).tolist() == [slow]
    assert found.cause[slow] == "data_wait"
    assert set(found.cause) == {"", "data_wait"}


@pytest.mark.parametrize("spread_us", [20, 1200])
def test_neither_small_nor_usual_differences_are_outliers(spread_us: float) -> None:
    training = Training()
    noise = np.random.default_rng(0).uniform(0, spread_us, 60)
    for number in range(60):
        training.step(wait_us=120 if number == 30 else 50)
        training.pause(noise[number])
        training.more()
    assert not steps_of(training.stream()).outlier.any()


def test_a_stall_is_found_where_noise_in_another_part_hides_it() -> None:
    training, stalled = Training(), 33
    noise = np.random.default_rng(0).exponential(900, 60)
    for number in range(60):
        training.step(wait_us=2000 if number == stalled else 50)
        training.pause(noise[number])
        training.more()
    found = steps_of(training.stream())
    assert found.duration_ns[stalled] < found.duration_ns.max() * 1.2
    assert found.cause[stalled] == "data_wait"
    assert found.outlier[stalled]


def test_a_slow_first_step_is_warm_up_and_no_outlier() -> None:
    training = Training()
    for number in range(40):
        training.step(wait_us=9000 if number < 2 else 50)
    found = steps_of(training.stream())
    assert np.flatnonzero(found.warm_up).tolist() == [0, 1]
    assert not found.outlier.any()
    assert not found.steady[0]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_whatever_a_training_does_the_parts_add_up_and_steps_follow_each_other(data: st.DataObject) -> None:
    training = Training()
    extras = ["validate", "aten::item", "save", WORKERS_WAIT, "aten::add", ZERO, "##range"]
    for _ in range(data.draw(st.integers(1, 15))):
        training.run(*data.draw(st.lists(st.sampled_from(extras), max_size=4)))
        training.step(ask_twice=data.draw(st.booleans()), wait_us=data.draw(st.integers(1, 3000)))
    found = steps_of(training.stream())
    # Updates that differ in a rhythm, by chance, are one step together, as those of a GAN are.
    turns = re.match(r"(\d+) updates of .* in turn make a step", found.reason)
    updates = int(turns[1]) if turns else 1
    assert len(training.truth) - updates <= updates * int(found.complete.sum()) <= len(training.truth)
    assert (found.parts_ns.sum(axis=1) == found.duration_ns).all()
    assert (found.parts_ns >= 0).all()
    assert (found.start_ns[1:] >= (found.start_ns + found.duration_ns)[:-1]).all()


ANYTHING = [
    "aten::a",
    WORKERS_WAIT,
    SINGLE_WAIT,
    *BACKWARD_NAMES[:2],
    STEP,
    ZERO,
    "f",
    "validate",
    "strobe.step",
    "##r",
]
Calls = st.recursive(
    st.tuples(st.sampled_from(ANYTHING), st.just([])),
    lambda inner: st.tuples(st.sampled_from(ANYTHING), st.lists(inner, max_size=3)),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@example(
    [("aten::a", [])], [("aten::a", [(SINGLE_WAIT, [(WORKERS_WAIT, [])]), (WORKERS_WAIT, [])]), (WORKERS_WAIT, [])], 1
)
@given(st.lists(Calls, min_size=1, max_size=4), st.lists(Calls, max_size=3), st.integers(1, 8))
def test_no_program_is_too_strange(body: list[object], epilogue: list[object], iterations: int) -> None:
    program = Program()

    def run(calls: list[tuple[str, list[object]]]) -> None:
        for name, inner in calls:
            with program.inside(name):
                program.pause(len(name))
                run(inner)  # type: ignore[arg-type]

    for _ in range(iterations):
        run(body)  # type: ignore[arg-type]
    run(epilogue)  # type: ignore[arg-type]
    found = steps_of(program.stream())
    ends = found.start_ns + found.duration_ns
    assert (found.parts_ns.sum(axis=1) == found.duration_ns).all()
    assert (found.parts_ns >= 0).all()
    assert (ends[:-1] <= found.start_ns[1:]).all()
    assert len(found.classes) == len(found.cause) == len(found)


def test_the_sample_of_a_real_training_has_the_steps_it_wrote_down() -> None:
    stream, truth = sample()
    found = steps_of(stream)
    assert found.classes == tuple(step["kind"] for step in truth)
    begins, ends = (np.array([step[key] for step in truth]) for key in ("start_us", "end_us"))
    assert np.abs(found.start_ns / 1000 - begins).max() < 10
    assert abs((found.start_ns[-1] + found.duration_ns[-1]) / 1000 - ends[-1]) < 50
    stalled = [number for number, step in enumerate(truth) if step["stalled"]]
    assert stalled == [18, 43]
    assert {number for number in np.flatnonzero(found.outlier) if found.cause[number] == "data_wait"} >= set(stalled)
    waited = np.array([step["wait_us"] for step in truth])
    plain = [number for number, step in enumerate(truth) if step["kind"] == "train"]
    assert (
        np.abs(found.parts_ns[plain, DATA_WAIT] / 1000 - waited[plain]).max() < 500
    )  # next() also frees the last batch


def test_the_sample_has_the_same_steps_without_its_python_functions() -> None:
    stream, truth = sample()
    found = steps_of(only_torch(stream))
    begins = np.array([step["start_us"] for step in truth])
    assert len(found) == len(truth)
    assert np.abs(found.start_ns / 1000 - begins)[1:].max() < 500  # the first also starts the workers
    validated = ["validation" in str(step["kind"]) for step in truth]
    assert ["validation" in name for name in found.classes] == validated


def test_the_sample_has_the_same_number_of_steps_without_any_anchor() -> None:
    stream, truth = sample()
    found = steps_of(without(stream, "Optimizer.", "DataLoader"))
    assert not found.anchored
    assert abs(len(found) - len(truth)) <= 1


def test_a_recursion_is_no_loop() -> None:
    program = Program()

    def descend(depth: int) -> None:
        with program.inside("visit"):
            program.pause(us=3)
            if depth:
                with program.inside("child of visit"):
                    descend(depth - 1)

    with program.inside("main"):
        descend(300)
    assert len(steps_of(program.stream())) == 0


def test_loops_of_workers_are_no_steps_of_the_program() -> None:
    worker = [span(name, 3 * at + k, 3 * at + k + 1) for at in range(300) for k, name in enumerate(("read", "decode"))]
    found = find_steps(make_trace({"main": train_steps(30)}, {"worker": worker}))
    assert [(each.process, len(each)) for each in found.processes] == [(0, 30)]
    alone = find_steps(make_trace({"worker": worker}))
    assert [len(each) for each in alone.processes] == [300]
    assert alone.reason.startswith("medium: no framework marks steps here")


def test_ranks_that_train_side_by_side_have_steps_each() -> None:
    found = find_steps(make_trace({"main": train_steps(30)}, {"main": train_steps(30)}))
    assert [each.process for each in found.processes] == [0, 1]


def test_ranks_of_one_program_have_the_steps_that_each_has_alone() -> None:
    """Neighbours with the same functions are searched together; the fourth calls another function."""
    ranks = [
        train_steps(40, stalls={7: 30 * MS}),
        train_steps(40, forward_ns=6 * MS, stalls={3: 40 * MS, 20: 50 * MS}),
        train_steps(41, backward_ns=7 * MS),
        train_steps(40, extras={11: ("save", 5 * MS), 31: ("save", 6 * MS)}),
        train_steps(40, python_ns=2 * MS),
    ]
    together = find_steps(make_trace(*({"main": rank} for rank in ranks)))
    alone = [find_steps(make_trace({"main": rank})).processes[0] for rank in ranks]
    assert [len(each) for each in alone] == [40, 40, 41, 40, 40]
    assert [int(each.outlier.sum()) for each in alone] == [1, 2, 0, 0, 0]
    for number, (found, own) in enumerate(zip(together.processes, alone, strict=True)):
        np.testing.assert_equal(asdict(found), asdict(replace(own, process=number)))


def test_a_trace_finds_its_steps_once() -> None:
    trace = make_trace({"main": train_steps(5)})
    assert find_steps(trace) is find_steps(trace)


def test_the_table_of_steps_holds_what_was_found() -> None:
    trace = make_trace({"main": train_steps(30, stalls={7: 40_000_000})})
    table, found = trace.ask("steps"), find_steps(trace).processes[0]
    rows = table.to_arrow().to_pylist()
    assert [row["duration_ns"] for row in rows] == found.duration_ns.tolist()
    assert all(row["duration_ns"] == sum(row[f"{part}_ns"] for part in PARTS) for row in rows)
    assert [(row["step"], row["cause"]) for row in rows if row["outlier"]] == [(7, "data_wait")]


def test_a_trace_without_a_loop_says_so_instead_of_listing_steps() -> None:
    table = make_trace({"main": [span(f"phase_{number}", number, number + 1) for number in range(9)]}).ask("steps")
    assert len(table) == 0
    assert table.note.startswith("no steps found: no loop stands out")


@pytest.mark.parametrize("batches", [0, 1, 5])
def test_what_follows_an_update_belongs_to_it_until_the_next_batch_is_made(batches: int) -> None:
    """No loader: a batch is a slice. The loss is logged after each update; every tenth time the model is evaluated."""
    us, now = 1000, 0
    spans, begun, evaluated = [], [], {}

    def add(name: str, duration_us: int, **kind: str) -> None:
        nonlocal now
        spans.append(span(name, now, now + duration_us * us, **kind))
        now += duration_us * us

    for _ in range(3):
        add("aten::randn", 400)
    for step in range(60):
        begun.append(now)
        add("aten::slice", 50)
        add("aten::conv2d", 2000)
        add("autograd::engine::evaluate_function: ConvolutionBackward0", 3000)
        add("Optimizer.step#SGD.step", 500, paradigm="torch", role="range")
        spans.append(span("log", now, now + 4000 * us, span("aten::item", now + 100 * us, now + 3900 * us)))
        now += 4000 * us
        if step % 10 == 9 and batches:
            before = now
            for _ in range(batches):
                add("aten::slice", 50)
                add("aten::conv2d", 2000)
            evaluated[step] = now - before
    (found,) = find_steps(make_trace({"main": spans})).processes
    assert found.start_ns.tolist() == begun
    for step in range(59):
        # What `log` does after its operator may count to what follows.
        assert found.parts_ns[step, VALIDATION] == pytest.approx(evaluated.get(step, 0), abs=100 * us)
        assert found.parts_ns[step, FORWARD] == 2050 * us
        assert found.classes[step] == ("train+validation" if step in evaluated else "train")
    assert not found.outlier[:59].any()


@pytest.mark.parametrize(("begins", "classes"), [(range(12), {"train"}), (range(0, 60, 5), {"train", "train+log"})])
def test_a_function_that_was_throttled_makes_no_class(begins: range, classes: set[str]) -> None:
    """It is in all steps up to some, and in none thereafter."""
    trace = make_trace({"main": train_steps(60, extras=dict.fromkeys(begins, ("log", 2_000_000)))})
    (found,) = find_steps(trace).processes
    assert set(found.classes) - {"partial"} == classes
