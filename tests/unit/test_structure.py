"""Structure: the nest of loops of hand-made programs, which level is the step, how sure that is, the folded graph."""

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from strobe.cli.main import main
from strobe.errors import UsageError
from strobe.present.drawn_structure import drawn
from strobe.steps.cells import Cells
from strobe.steps.finding.loop_steps import LoopSteps, joined_steps
from strobe.steps.finding.offline_search import steps_of
from strobe.steps.finding.requested_steps import Asked
from strobe.steps.finding.step_classes import Extras
from strobe.steps.loop_choice.agreement import first_numbers, usual_count
from strobe.steps.loop_choice.events import events_of
from strobe.steps.loops.flow_graph import build_graph
from strobe.steps.loops.graph_and_expression import draw_recorded
from strobe.steps.loops.loop_tree import TreeLevel, add_recorded
from strobe.steps.loops.structure import Structure, opened_graph, structure_of
from strobe.steps.process_steps import Loop, Recorded
from strobe.steps.steps import find_steps
from strobe.steps.thread_spans import Stream, read_streams
from tests.unit.folding import ALL, NONE, FoldedProcess, iterations_of
from tests.unit.hand_made import FETCH, HandMadeProcess, make_trace, span, train_steps
from tests.unit.streams import BACKWARD, FORWARD, SINGLE_WAIT, STEP, WORKERS_WAIT, ZERO, Program, sample, update


def layers(program: Program, count: int) -> None:
    for _ in range(count):
        program.run("aten::layer_norm", "aten::linear", "aten::softmax", "aten::matmul", "aten::gelu", us=20)


def by_marker(found: Structure, marker: str) -> dict[str, object]:
    levels = json.loads(found.to_json())["levels"]
    return next(level for level in levels if level["marker"] == marker)


def kernels(*names: str) -> Stream:
    """Kernels in the order in which they were launched, one every 10 us."""
    known = {name: number for number, name in enumerate(dict.fromkeys(names))}
    region = np.array([known[name] for name in names])
    starts = np.arange(len(names)) * 10_000
    nothing = np.full(len(names), -1)
    paths = np.arange(len(known))
    return Stream(
        start_ns=starts,
        duration_ns=np.full(len(names), 9000),
        region=region,
        call_path=region,
        parent=nothing,
        names=list(known),
        paradigms=["cuda"] * len(known),
        path_parent=np.full(len(known), -1),
        path_region=paths,
    )


# The nest


def test_layers_of_a_forward_pass_are_a_loop_inside_of_the_step() -> None:
    program = Program()
    for _ in range(20):
        program.run(WORKERS_WAIT, ZERO, "aten::embedding")
        layers(program, 12)
        program.run("aten::cross_entropy_loss", *BACKWARD, STEP, us=30)
    found = structure_of(program.stream())
    assert found.step is not None
    assert (found.step.count, found.step.marker) == (20, STEP)
    inner = by_marker(found, "aten::layer_norm")
    assert inner["trips"] == [12, 12, 12]
    assert inner["parent"] == found.levels.index(found.step)
    assert inner["count"] == 20 * 12
    assert inner["time_ns"] == 20 * 12 * 5 * 20_200


@pytest.mark.parametrize("depth", [12, 24, 36])
def test_the_layers_of_a_single_forward_pass_are_its_loop(depth: int) -> None:
    program = Program()
    program.run("aten::embedding", "aten::arange", "aten::add")
    layers(program, depth)
    program.run("aten::argmax", "aten::item")
    found = structure_of(program.stream())
    assert [level.count for level in found.levels if level.parent < 0] == [depth]
    assert found.confidence != "high"


def test_loops_too_weak_for_a_step_are_shown_all_the_same() -> None:
    program = Program()
    program.run(*(f"aten::prepare_{number}" for number in range(60)))
    layers(program, 6)
    program.run(*(f"aten::decode_{number}" for number in range(60)))
    found = structure_of(program.stream())
    assert (found.step, found.confidence) == (None, "none")
    assert [level.count for level in found.levels] == [6]
    assert drawn(found).text().startswith("no step: no loop stands out")


def test_loops_around_the_step_and_their_time() -> None:
    program = Program()
    program.run("load")
    begin = program.now_ns
    for _ in range(6):
        program.run("aten::randperm", "aten::empty", "aten::shuffle")
        for _ in range(10):
            program.run(WORKERS_WAIT)
            update(program)
        program.run("aten::argmax", "aten::eq")
    found = structure_of(program.stream())
    epoch = by_marker(found, "aten::randperm")
    assert found.step is not None
    assert (found.step.count, epoch["count"], epoch["parent"]) == (60, 6, -1)
    assert found.step.trips == (10, 10, 10)
    assert epoch["first_ns"] == begin
    assert epoch["last_ns"] == program.now_ns
    assert epoch["time_ns"] == program.now_ns - begin
    assert epoch["share"] == pytest.approx((program.now_ns - begin) / program.now_ns)


def test_parents_come_first_and_hold_their_children() -> None:
    found = structure_of(sample()[0])
    for number, level in enumerate(found.levels):
        assert level.parent < number
        assert level.time_ns == int((level.ends_ns - level.begins_ns).sum())
        assert level.count == len(level.begins_ns)
        if level.parent >= 0:
            around = found.levels[level.parent]
            assert level.time_ns <= around.time_ns
            assert around.first_ns <= level.first_ns <= level.last_ns <= around.last_ns
            assert level.trips is not None
            assert level.trips[0] <= level.trips[1] <= level.trips[2]


# Which level is the step, and how sure that is


def test_two_sequences_that_agree_with_an_anchor_make_high_confidence() -> None:
    stream, truth = sample()
    found = structure_of(stream)
    assert (found.confidence, found.streams) == ("high", ("calls", "operators"))
    alone = structure_of(stream, kind="operators")
    assert (alone.confidence, alone.streams) == ("medium", ("operators",))
    assert abs(len(truth) - structure_of(stream, kind="calls").step.count) <= 1  # type: ignore[union-attr]


def test_calls_that_repeat_otherwise_keep_an_anchor_from_high_confidence() -> None:
    program = Program()
    for _ in range(30):
        with program.inside("collect"):
            for _ in range(4):
                program.run("play", "reward")
        for _ in range(5):
            with program.inside("learn"):
                update(program)
    found = steps_of(program.stream())
    assert len(found) == 150
    assert found.confidence == "medium"


def test_profiler_steps_are_checked_against_the_structure() -> None:
    program = Program()
    for number in range(6):
        with program.inside(f"ProfilerStep#{number}"):
            for _ in range(3):
                program.run(WORKERS_WAIT)
                update(program)
    found = steps_of(program.stream())
    assert len(found) == 6
    assert found.confidence == "medium"
    assert "where 6 are marked" in found.reason


def test_micro_batches_and_one_update_are_one_step_even_without_anchors() -> None:
    program, starts = Program(), []
    for _ in range(30):
        starts.append(program.now_ns)
        for _ in range(4):
            program.run("aten::stack", *FORWARD, *BACKWARD)
        program.run(*["aten::lerp_", "aten::addcmul_", "aten::sqrt", "aten::addcdiv_"] * 3)
    found = steps_of(program.stream())
    assert len(found) == 30
    inside = np.diff(np.searchsorted(found.start_ns, starts))
    assert (inside == 1).all()
    assert found.confidence == "low"


def test_batches_and_a_validation_after_some_are_steps_of_one_batch() -> None:
    program = Program()
    for number in range(40):
        program.run("aten::stack", *FORWARD, *BACKWARD, "aten::lerp_", "aten::sqrt")
        if number % 4 == 3:
            program.run(*FORWARD * 4)
    assert len(steps_of(program.stream())) == 40


def test_a_request_is_the_step_and_not_its_tokens() -> None:
    program, starts = Program(), []
    lengths = np.random.default_rng(1).integers(5, 40, 30)
    with program.inside("main"):
        for length in lengths.tolist():
            program.run("make_prompt")
            starts.append(program.now_ns)
            with program.inside("generate"):
                for _ in range(length):
                    with program.inside("Model.forward"):
                        program.run("Block.forward", "Block.forward")
                    program.run("pick")
    found = structure_of(program.stream())
    assert found.step is not None
    assert found.step.count == 30
    assert by_marker(found, "Model.forward")["trips"] == [lengths.min(), np.median(lengths), lengths.max()]
    assert (np.diff(np.searchsorted(steps_of(program.stream()).start_ns, starts)) == 1).all()


def test_what_is_done_every_so_often_is_no_step() -> None:
    program = Program()
    with program.inside("main"):
        for number in range(200):
            program.run("sweep", us=100)
            if number % 10 == 0:
                program.run("residual", us=80)
    found = steps_of(program.stream())
    assert abs(len(found) - 200) <= 1
    assert found.confidence == "low"


@pytest.mark.parametrize(("every", "first"), [(5, 4), (10, 9), (10, 0), (4, 0)])
def test_statistics_taken_every_so_often_are_no_step(every: int, first: int) -> None:
    program, starts = Program(), []
    with program.inside("main"):
        for number in range(120):
            starts.append(program.now_ns)
            with program.inside("sweep"):
                program.run("half_sweep", "half_sweep", us=50)
            if number % every == first:
                with program.inside("measure"):
                    program.run("energy", "magnetisation", us=20)
    found = steps_of(program.stream())
    assert (np.diff(np.searchsorted(found.start_ns, starts)) == 1).all()


def test_a_function_that_opens_and_ends_a_step_is_no_loop() -> None:
    program, starts = Program(), []
    with program.inside("main"):
        for number in range(100):
            starts.append(program.now_ns)
            if number % 10 == 0:
                program.run("build", us=30)
            program.run("kick", "drift", us=20)
            program.run("forces", us=300)
            program.run("kick", us=20)
    found = steps_of(program.stream())
    assert (np.diff(np.searchsorted(found.start_ns, starts)) == 1).mean() >= 0.9


def test_the_other_choice_is_told() -> None:
    program = Program()
    with program.inside("main"):
        for _ in range(30):
            program.run("draw", "flip", "draw", "flip", "draw", "flip", "draw", "flip", "draw", "flip", "energy")
    found = steps_of(program.stream())
    assert len(found) == 150
    assert found.confidence == "low"
    assert "every 5: energy, the other choice" in found.reason


@pytest.mark.parametrize("sweeps", [4, 10])
@pytest.mark.parametrize("where", ["both ends", "own function", "most of the time"])
def test_inner_sweeps_of_a_fixed_number_are_no_steps(where: str, sweeps: int) -> None:
    program, starts = Program(), []
    with program.inside("main"):
        for _ in range(60):
            starts.append(program.now_ns)
            if where != "most of the time":
                program.run("coefficient")
            with program.inside("relax") if where == "own function" else nullcontext():
                program.run(*["sweep"] * sweeps)
            if where == "both ends":
                program.run("defect")
            if where == "most of the time":
                program.run("assemble", us=100 * sweeps)
    found = steps_of(program.stream())
    assert (np.diff(np.searchsorted(found.start_ns, starts)) == 1).all()


def test_two_loops_of_the_same_length_inside_of_each_other() -> None:
    program = Program()
    for _ in range(12):
        program.run("prepare", "begin")
        for _ in range(12):
            program.run("a", "b", "c")
        program.run("end", "report")
    found = structure_of(program.stream())
    counts = sorted(level.count for level in found.levels)
    assert counts == [12, 144]
    assert found.confidence == "low"


@pytest.mark.parametrize("steps", [3, 6, 40])
def test_kernels_alone_tell_the_steps(steps: int) -> None:
    forward = [f"gemm_{number}" for number in range(20)] + ["relu"] * 4
    backward = [f"dgrad_{number % 7}" for number in range(30)]
    found = structure_of(kernels(*(["copy", *forward, *backward, *["multi_tensor_apply"] * 5] * steps)))
    assert found.stream == "kernels"
    assert found.step is not None
    assert found.step.count == steps


def test_two_iterations_of_much_are_two_steps() -> None:
    names = [f"kernel_{number}" for number in range(60)]
    found = structure_of(kernels(*names, *names))
    assert found.step is not None
    assert found.step.count == 2
    assert found.confidence == "low"


# Phases


def test_of_loops_one_after_the_other_the_main_one_takes_most_time() -> None:
    program = Program()
    with program.inside("main"):
        for _ in range(40):
            program.run("exchange", "assemble", "solve", us=100)
        program.run("repartition", us=3000)
        for _ in range(60):
            program.run("relax", "restrict", "prolong", us=100)
    found = steps_of(program.stream())
    assert np.bincount(found.loop).tolist() == [60]
    assert [level.count for level in structure_of(program.stream()).levels if level.is_step] == [60]


def test_two_trainings_one_after_the_other_are_two_phases() -> None:
    program = Program()
    for _ in range(20):
        program.run(WORKERS_WAIT)
        update(program)
    program.run("aten::freeze")
    for _ in range(30):
        program.run(WORKERS_WAIT, ZERO, *FORWARD[:3], "aten::l1_loss", *BACKWARD[1:])
        program.run("Optimizer.step#Adam.step")
    found = steps_of(program.stream())
    assert np.bincount(found.loop).tolist() == [20, 30]
    assert (found.parts_ns.sum(axis=1) == found.duration_ns).all()
    assert [loop.name for loop in found.loops] == [STEP, "Optimizer.step#Adam.step"]


def test_a_short_loop_before_the_main_one_is_no_phase() -> None:
    program = Program()
    for _ in range(50):
        program.run("aten::empty", "aten::normal_", us=1)
    for _ in range(40):
        program.run("aten::stack", *FORWARD, *BACKWARD, us=100)
    assert len(steps_of(program.stream()).loops) == 1


# Ranks


def solver(iterations: int, first_ns: int = 0) -> list[object]:
    names = ("MPI_Isend", "MPI_Irecv", "MPI_Waitall", "MPI_Allreduce")
    at = [(first_ns + 1000 * (4 * step + k), name) for step in range(iterations) for k, name in enumerate(names)]
    return [span(name, begin, begin + 900, paradigm="mpi", role="p2p") for begin, name in at]


def test_a_rank_that_counts_otherwise_is_named() -> None:
    ranks = [{"main": solver(100)}, {"main": solver(100)}, {"main": solver(70)}]
    found = find_steps(make_trace(*ranks))  # type: ignore[arg-type]
    assert [len(each) for each in found.processes] == [100, 100, 70]
    assert "most processes have 100 steps, but 70 in process 2" in found.reason


def test_a_rank_takes_the_level_that_the_others_chose() -> None:
    # What rank 2 does every tenth step makes a level of 10 that looks more like a loop than its 100 steps.
    usual = [span(name, 1000 * (2 * step + k), 1000 * (2 * step + k) + 900, paradigm="mpi")
             for step in range(100) for k, name in enumerate(("MPI_Sendrecv", "MPI_Bcast"))]  # fmt: skip
    odd, now = [], 0
    for step in range(100):
        extra = [f"MPI_Gather_{k}" for k in range(14)] if step % 10 == 9 else []
        for name in ("MPI_Sendrecv", *extra):
            odd.append(span(name, now, now + 100, paradigm="mpi"))
            now += 2000 // (1 + len(extra))
    found = find_steps(make_trace({"main": usual}, {"main": usual}, {"main": odd}))
    alone = find_steps(make_trace({"main": odd}))
    assert len(alone.processes[0]) == 10
    assert [len(each) for each in found.processes] == [100, 100, 100]
    assert "but" not in found.reason


def test_ranks_that_see_a_part_of_the_loop_follow_those_that_are_sure() -> None:
    # Two ranks call one thing five times a step, and another one once: that could be done every fifth step as well.
    def rank(*calls: str) -> dict[str, object]:
        begins = enumerate(calls * 40)
        return {"main": [span(name, 1000 * at, 1000 * at + 900, paradigm="mpi") for at, name in begins]}

    part = rank("MPI_Barrier", "MPI_Recv", *["MPI_Barrier"] * 4)
    whole = rank("MPI_Ssend", "MPI_Gather", "MPI_Scan")
    alone = find_steps(make_trace(part)).processes[0]
    assert (len(alone), alone.confidence) == (200, "low")
    found = find_steps(make_trace(part, whole, part, whole))
    assert [len(each) for each in found.processes] == [40, 40, 40, 40]


def test_steps_of_ranks_are_numbered_alike() -> None:
    late = np.arange(1, 50) * 1000 + 30
    assert first_numbers([np.arange(50) * 1000, late]) == [0, 1]
    assert first_numbers([late, np.arange(50) * 1000]) == [1, 0]
    assert first_numbers([np.arange(50) * 1000, np.arange(50) * 1000 + 700]) == [0, 0]


@pytest.mark.parametrize(
    ("counts", "usual"), [([100, 100, 99, 100, 40], 100), ([100, 50], None), ([7], 7), ([5, 5, 90, 90, 90], 90)]
)
def test_most_ranks_decide_how_many_steps_there_are(counts: list[int], usual: int | None) -> None:
    assert usual_count(counts) == usual


# What the user asks for


def nested() -> Stream:
    program = Program()
    with program.inside("main"):
        for _ in range(9):
            program.run("aten::randperm", "aten::empty", "aten::shuffle")
            for _ in range(10):
                program.run(WORKERS_WAIT)
                update(program)
            program.run("validate")
    return program.stream()


@pytest.mark.parametrize(
    ("asked", "steps"),
    [
        (Asked(), 90),
        (Asked("+1"), 9),
        (Asked("aten::randperm"), 9),
        (Asked(at="validate"), 9),
        (Asked(at=FORWARD[0]), 90),
    ],
)
def test_the_user_says_what_a_step_is(asked: Asked, steps: int) -> None:
    stream = nested()
    found, structure = steps_of(stream, asked=asked), structure_of(stream, asked=asked)
    assert len(found) == steps
    assert structure.step is not None
    assert structure.step.count == steps
    if asked:
        assert "the user chose" in found.reason


def test_one_level_down_is_the_loop_inside_of_the_step() -> None:
    program = Program()
    for _ in range(10):
        program.run(WORKERS_WAIT, ZERO)
        layers(program, 8)
        program.run(*BACKWARD, STEP)
    found = structure_of(program.stream(), asked=Asked("-1"))
    assert found.step is not None
    assert found.step.marker == "aten::layer_norm"
    assert found.step.count == 10 * 8


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"step_level": "+7"}, "there is no loop at +7 of the step"),
        ({"step_level": "lunch"}, "no loop 'lunch' in this trace"),
        ({"step_at": "trian_step"}, "no event 'trian_step' in this trace"),
        ({"step_at": "a", "step_level": "b"}, "by its level or by an event, not by both"),
    ],
)
def test_a_step_that_is_not_there_is_one_sentence(asked: dict[str, str], said: str) -> None:
    trace = make_trace({"main": train_steps(30)})
    for ask in (trace.structure, trace.steps):
        with pytest.raises(UsageError) as error:
            ask(**asked)
        assert said in str(error.value)


def test_the_table_of_steps_follows_the_user() -> None:
    trace = make_trace({"main": train_steps(30)})
    assert len(trace.steps()) == 30
    names = trace.regions.column("name")
    assert len(trace.steps(step_at=names[1])) == 30
    assert "the user chose" in trace.steps(step_at=names[1]).about


# The graph


def test_the_graph_counts_what_was_recorded() -> None:
    program = Program()
    program.run("load")
    for _ in range(10):
        program.run("a", "b")
        for _ in range(3):
            program.run("c")
    program.run("save")
    drawn = json.loads(structure_of(program.stream()).to_json())["graph"]
    nodes = {node["name"]: node for node in drawn["nodes"]}
    assert {name: node["count"] for name, node in nodes.items()} == {"load": 1, "a +1": 10, "c": 30, "save": 1}
    assert nodes["a +1"]["members"] == ["a", "b"]
    number = {name: node["id"] for name, node in nodes.items()}
    edges = {(edge["source"], edge["target"]): (edge["count"], edge["back"]) for edge in drawn["edges"]}
    assert edges == {
        (number["load"], number["a +1"]): (1, False),
        (number["a +1"], number["c"]): (10, False),
        (number["c"], number["c"]): (20, True),
        (number["c"], number["a +1"]): (9, True),
        (number["c"], number["save"]): (1, False),
    }
    assert not drawn["overflow"]


def test_the_order_of_the_events_is_told() -> None:
    program = Program()
    program.run("load")
    for _ in range(10):
        program.run("a", "b", "b", "b")
    program.run("save")
    assert structure_of(program.stream()).expression == "SEQ load LOOP(10x) SEQ[ a LOOP(3x) SEQ[b] ] save"


def test_a_loop_that_is_entered_from_two_sides_is_said_to_be_irreducible() -> None:
    program = Program()
    for number in range(20):
        program.run("start" if number % 2 else "resume")
        program.run(*(["charge", "discharge"] * 3 if number % 2 else ["discharge", "charge"] * 3))
        program.run("stop")
    found = json.loads(structure_of(program.stream()).to_json())
    assert any(loop["irreducible"] for loop in found["loops"])


def test_all_forms_of_the_graph_hold_every_node() -> None:
    found = structure_of(sample()[0])
    content = json.loads(found.to_json())
    count = len(content["nodes"] if "nodes" in content else content["graph"]["nodes"])
    assert count > 10
    edges = content["graph"]["edges"]
    assert all(0 <= edge[end] < count for edge in edges for end in ("source", "target"))
    assert all(-1 <= node["level"] < len(content["levels"]) for node in content["graph"]["nodes"])
    picture = ElementTree.fromstring(drawn(found).to_svg())
    space = {"svg": "http://www.w3.org/2000/svg"}
    assert len(picture.findall(".//svg:rect[@class='node']", space)) == count
    assert len(picture.findall(".//svg:path[@marker-end]", space)) == len(edges)
    dot = drawn(found).to_dot()
    assert dot.count(" -> ") == len(edges)
    assert sum(
        line.strip().startswith("n") and "[label=" in line and "->" not in line for line in dot.splitlines()
    ) == (count)


def test_names_cannot_break_the_forms_of_the_graph() -> None:
    program = Program()
    for _ in range(5):
        program.run('<b>"quoted"\\ & </svg>', "ä\nb")
    found = structure_of(program.stream())
    ElementTree.fromstring(drawn(found).to_svg())
    assert '\\"quoted\\"\\\\' in drawn(found).to_dot()


def test_a_graph_that_was_recorded_is_taken_for_a_run_that_kept_few_steps() -> None:
    trace = make_trace({"main": train_steps(30)})
    regions = trace.regions.to_arrow().to_pylist()
    order = [1, 2, 1, 2, 1, 2]
    payload = build_graph(np.array(order), np.arange(6) * 1000, np.full(6, 900)).native.encode()
    trace.readers[0].graph = lambda location: {  # type: ignore[attr-defined]
        "payload": payload,
        "region": np.array([0, 2, 3]),  # as the process numbers them, from 1
        "caller": np.array([0, 0, 2]),
    }
    (stream,) = dict(read_streams(trace)).values()
    levels = structure_of(stream).levels
    drawn = draw_recorded(trace, 0, stream, levels)
    assert drawn is not None
    graph, text = drawn
    assert any(levels[node.level].is_step for node in graph.nodes if node.level >= 0), "the page draws what steps do"
    first, second = regions[1]["name"], f"{regions[2]['name']} < {regions[1]['name']}"
    assert [node.members for node in graph.nodes] == [(first, second)]
    assert text == f"SEQ LOOP(3x) SEQ[{first} {second}]"


# Programs in which there is little to find


def test_a_run_without_a_loop_has_no_levels() -> None:
    program = Program()
    program.run(*(f"phase_{number}" for number in range(30)))
    found = structure_of(program.stream())
    assert (found.levels, found.confidence, found.step) == ((), "none", None)
    assert drawn(found).text().startswith("no loops: no loop stands out")
    assert len(found.graph.nodes) == 1


def test_one_iteration_is_no_loop() -> None:
    program = Program()
    program.run(WORKERS_WAIT, ZERO, *FORWARD, *BACKWARD)
    assert structure_of(program.stream()).levels == ()
    program.run(STEP)
    assert len(steps_of(program.stream())) == 1  # an update is a step


def test_an_endless_call_has_no_loop() -> None:
    program = Program()
    with program.inside("wait_forever"):
        program.pause(1e6)
    found = structure_of(program.stream())
    assert (found.levels, found.confidence) == ((), "none")


def test_a_recursion_is_no_level() -> None:
    program = Program()

    def descend(depth: int) -> None:
        with program.inside("visit"):
            program.pause(us=3)
            if depth:
                descend(depth - 1)

    with program.inside("main"):
        descend(200)
    assert structure_of(program.stream()).levels == ()


def test_a_hundred_thousand_kinds_of_events_are_not_a_loop_and_fit_on_a_page() -> None:
    count = 100_000
    one = kernels("a", "b")
    starts = np.arange(count) * 1000
    stream = replace(
        one,
        start_ns=starts,
        duration_ns=np.full(count, 900),
        region=np.arange(count),
        call_path=np.arange(count),
        parent=np.full(count, -1),
        names=[f"kernel_{number}" for number in range(count)],
        paradigms=["cuda"] * count,
        path_parent=np.full(count, -1),
        path_region=np.arange(count),
    )
    found = structure_of(stream)
    assert found.levels == ()
    assert found.graph.overflow
    assert len(found.to_json()) < 100_000
    assert len(steps_of(stream)) == 0


def test_an_empty_thread_has_an_empty_structure() -> None:
    program = Program()
    program.run("a")
    empty = program.stream().part(0, 0)
    found = structure_of(empty)
    assert (found.levels, found.confidence) == ((), "none")
    ElementTree.fromstring(drawn(found).to_svg())


def test_a_sequence_that_was_not_recorded_is_one_sentence() -> None:
    with pytest.raises(UsageError, match="recorded no mpi"):
        structure_of(sample()[0], kind="mpi")
    with pytest.raises(UsageError, match="no sequence of events 'lunch'"):
        make_trace({"main": train_steps(3)}).structure(stream="lunch")
    with pytest.raises(UsageError, match="process 7 recorded no spans"):
        make_trace({"main": train_steps(3)}).structure(7)


def test_the_table_lists_the_same_loops() -> None:
    trace = make_trace({"main": train_steps(30)})
    rows = trace.ask("structure").to_arrow().to_pylist()
    found = trace.structure()
    assert [row["count"] for row in rows] == [level.count for level in found.levels]
    assert [row["step"] for row in rows] == [level.is_step for level in found.levels]
    assert trace.sql("select sum(count) as n from structure where step").column("n") == [30]


ANYTHING = ["aten::a", "aten::b", WORKERS_WAIT, BACKWARD[0], STEP, ZERO, "f", "g", "MPI_Send", "strobe.step"]
Calls = st.recursive(
    st.tuples(st.sampled_from(ANYTHING), st.just([])),
    lambda inner: st.tuples(st.sampled_from(ANYTHING), st.lists(inner, max_size=3)),
    max_leaves=10,
)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.lists(Calls, min_size=1, max_size=4), st.integers(1, 9)), min_size=1, max_size=3))
@example([([(ZERO, [])], 2), ([("aten::a", [(ZERO, [])])], 1)])  # the last step takes no time
def test_whatever_a_program_does_its_tree_is_a_tree(phases: list[tuple[list[object], int]]) -> None:
    program = Program()

    def run(calls: list[tuple[str, list[object]]]) -> None:
        for name, inner in calls:
            with program.inside(name):
                program.pause(len(name))
                run(inner)  # type: ignore[arg-type]

    for body, iterations in phases:
        for _ in range(iterations):
            run(body)  # type: ignore[arg-type]
    found = structure_of(program.stream())
    for number, level in enumerate(found.levels):
        assert -1 <= level.parent < number
        assert level.count == len(level.begins_ns)
        assert (level.ends_ns >= level.begins_ns).all()
        assert 0 <= level.share <= 1
    ElementTree.fromstring(drawn(found).to_svg())
    json.loads(found.to_json())
    steps = steps_of(program.stream())
    if found.confidence != "none":
        assert sum(level.count for level in found.levels if level.is_step) == len(steps)


@pytest.mark.parametrize(
    ("words", "begins"),
    [
        ([], "step: high confidence, from calls, operators; one step per Optimizer.step#SGD.step"),
        (["--json"], '{"process":0,"stream":"operators","confidence":"high"'),
        (["--dot"], "digraph structure {"),
        (["--csv"], "loop,depth,marker,count"),
        (["--stream", "calls"], "step: "),
        (["--step-at", "aten::lunch"], "strobe: no event"),
    ],
)
def test_the_command_line_prints_the_structure(
    words: list[str], begins: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = make_trace({"main": train_steps(30)})
    monkeypatch.setattr("strobe.api.trace.open_trace", lambda name, **_: trace)
    code = main(["structure", "made.strobe", *words])
    printed = capsys.readouterr()
    assert (printed.out or printed.err).startswith(begins)
    assert code == (2 if begins.startswith("strobe: ") else 0)


def test_the_command_line_draws_the_structure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = make_trace({"main": train_steps(30)})
    monkeypatch.setattr("strobe.api.trace.open_trace", lambda name, **_: trace)
    assert main(["structure", "made.strobe", "--svg", str(tmp_path / "drawn.svg")]) == 0
    ElementTree.fromstring((tmp_path / "drawn.svg").read_text(encoding="utf-8"))


def test_loops_inside_are_found_where_all_kept_steps_were_stalled() -> None:
    """100 steps of 10 ms are recorded, 4 are kept: each waits 100 ms first, then runs 12 layers of 0.1 ms."""
    program = Program()
    begins, ends = [], []
    for _ in range(4):
        begins.append(program.now_ns)
        program.run(SINGLE_WAIT, us=100_000)
        for _ in range(12):
            program.run("aten::linear", us=75)
            program.run("aten::relu", us=25)
        program.run(STEP, us=500)
        ends.append(program.now_ns)
    kept = np.arange(100) < 4
    start = np.concatenate([begins, ends[-1] + 10_000_000 * np.arange(96)]).astype(np.int64)
    end = np.concatenate([ends, start[4:] + 10_000_000]).astype(np.int64)
    stream = program.stream()
    run_ns = int(end[-1])
    tree: list[TreeLevel] = []
    unknown = Recorded.of_none(100)
    steps = LoopSteps(
        Loop("optimizer", STEP, "high", "", 100),
        start,
        end - start,
        Cells(np.stack([end - start] + [np.zeros(100, dtype=np.int64)] * 5, axis=1), {}),
        complete=np.ones(100, dtype=bool),
        extras=Extras.of_none("train", 100),
        recorded=replace(unknown, detail=np.where(kept, ALL, NONE)),
    )
    events, folded = events_of(stream)["operators"], np.zeros(len(stream.path_parent), dtype=np.int64)
    add_recorded(tree, stream, events, joined_steps(0, [steps], ("train",) * 100), [], folded, run_ns)
    step, inner = tree[0], next(level for level in tree if level.parent == 0)
    assert step.count == 100
    assert inner.trips == (12, 12, 12)
    # In each of the 100 steps the layers take 12 times 0.1 ms, and 0.2 us for entering and leaving each operator.
    assert inner.share == pytest.approx(100 * 12 * (100_000 + 2 * 200) / run_ns, rel=0.01)


def nested_training(number: int) -> list[Any]:
    """Steps whose convolution calls another operator, which calls a third."""
    found: list[Any] = []
    for i in range(number):
        at = 20 * i
        inner = span("aten::convolution", at + 4, at + 7, span("aten::mkldnn", at + 5, at + 6, paradigm="torch"))
        found += [
            span(FETCH, at, at + 2),
            span("aten::conv2d", at + 3, at + 8, replace(inner, paradigm="torch"), paradigm="torch"),
            span("aten::relu", at + 9, at + 11, paradigm="torch"),
            span("autograd::engine::evaluate_function: ReluBackward0", at + 12, at + 15, paradigm="torch"),
            span("Optimizer.step#SGD.step", at + 16, at + 19, paradigm="torch"),
        ]
    return found


def opened_names(trace: Any, *opened: str) -> dict[str, int]:
    graph, _ = opened_graph(trace, trace.structure(), opened)
    return {name: node.count for node in graph.nodes for name in node.members}


def test_the_graph_of_operators_shows_the_outermost_and_what_was_opened() -> None:
    trace = make_trace({"main": nested_training(40)})
    outermost = opened_names(trace)
    assert "aten::conv2d" in outermost
    assert not {"aten::convolution", "aten::mkldnn"} & set(outermost)
    assert set(opened_names(trace, "aten::conv2d")) == {*outermost, "aten::convolution"}
    assert set(opened_names(trace, "aten::convolution")) == set(outermost), "what is not shown cannot be opened"
    assert set(opened_names(trace, "aten::conv2d", "aten::convolution")) == {
        *outermost,
        "aten::convolution",
        "aten::mkldnn",
    }
    _, holds = opened_graph(trace, trace.structure(), ())
    assert holds == {"aten::conv2d", "aten::convolution"}


def test_the_graph_of_operators_of_a_folded_trace_is_of_what_is_in_detail() -> None:
    full = HandMadeProcess({"main": nested_training(60)})
    folded = make_trace(FoldedProcess({"main": nested_training(60)}, iterations_of(full, since=12, keep={20, 40})))
    structure = folded.structure()
    assert structure.kept_steps == 14
    assert opened_names(folded)["aten::conv2d"] == 14
    graph, _ = opened_graph(folded, structure, ())
    whole, _ = opened_graph(make_trace(full), make_trace(full).structure(), ())
    took = sum(node.time_ns for node in graph.nodes) / sum(node.time_ns for node in whole.nodes)
    assert took == pytest.approx(14 / 60, rel=0.15), "the time of the other 46 steps is not in it"
