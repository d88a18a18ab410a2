"""What torch.compile does in a program: as often as TORCH_LOGS counts it, and its kernels by line of the program."""

import re
from collections import Counter

import pytest

import strobe
from tests.deep.test_behind_rows import behind, served
from tests.record.workshop import Workshop

pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.torch

# Six functions, each with a behaviour of its own. The backend does not matter for what is compiled how often.
PROGRAM = """
import torch
def compiled(function):
    return torch.compile(function, dynamic=False, backend="eager")
@compiled
def no_break(x):
    return (x.sin() + 1).relu()
@compiled
def two_breaks(x):
    x = x.sin() + 1
    torch._dynamo.graph_break()
    x = x.relu() * 2
    print("here", end="")
    return x.cos() + 3
@compiled
def by_shape(x):
    return (x.cos() + 1).relu()
@compiled
def by_int(x, n):
    return (x.sin() + n).relu()
SCALE = 1.0
@compiled
def by_global(x):
    return (x.sin() * SCALE).relu()
@compiled
def limit(x):
    return (x.tan() + 1).relu()
for step in range(20):
    x = torch.ones(8, 8)
    no_break(x)
    two_breaks(x)
    by_shape(torch.ones(8 + step // 5, 8))
    by_int(x, step // 7)
    SCALE = 2.0 if step >= 10 else 1.0
    by_global(x)
    limit(torch.ones(8 + step, 8))
"""


def test_recompiles_and_graph_breaks_are_those_that_torch_logs_counts(workshop: Workshop) -> None:
    path = workshop.write("program.py", PROGRAM)
    logged = workshop.plain("program.py", env={"TORCH_LOGS": "graph_breaks,recompiles"})
    recompiled = Counter(re.findall(r"Recompiling function (\w+) in", logged.stderr))
    breaks = Counter(int(line) for line in re.findall(r"Graph break .*in user code at .*:(\d+)", logged.stderr))
    plain, recorded = workshop.plain("program.py"), workshop.recorded("program.py")
    assert (recorded.stdout, recorded.returncode) == (plain.stdout, plain.returncode)
    # Only the warning about the limit, with another time and process number.
    assert len(recorded.stderr.splitlines()) == len(plain.stderr.splitlines())
    with strobe.open(workshop.trace) as trace:
        events = trace.ask("compile", by="event").to_pylist()
        functions = {row["function"]: row for row in trace.ask("compile", by="function").to_pylist()}
        compilations, info_ns = trace.ask("compile", by="compilation").to_pylist(), trace.info.duration_ns
        phases = {row["phase"]: row for row in trace.ask("compile", by="phase").to_pylist()}
    found = Counter(row["function"] for row in events if row["event"] == "recompile")
    assert found == recompiled == {"by_shape": 3, "by_int": 2, "by_global": 1, "limit": 8}
    places = [row["place"] for row in events if row["event"] == "graph_break"]
    assert Counter(int(place.rpartition(":")[2]) for place in places) == breaks
    lines = path.read_text().splitlines()
    assert sorted(lines[line - 1].split("(")[0].strip() for line in breaks) == ["print", "torch._dynamo.graph_break"]
    assert {name: (row["graphs"], row["graph_breaks"]) for name, row in functions.items()} == {
        "no_break": (1, 0),
        "two_breaks": (3, 2),
        "by_shape": (4, 0),
        "by_int": (3, 0),
        "by_global": (2, 0),
        "limit": (8, 0),
    }
    assert "size mismatch at index 0" in functions["limit"]["cause"]
    assert "SCALE" in functions["by_global"]["cause"]
    assert functions["no_break"]["place"].endswith("program.py:5")
    (over,) = (row for row in events if row["event"] == "compile" and row["reason"])
    assert (over["compile_id"].endswith("/8"), over["reason"]) == (True, "Dynamo recompile limit exceeded")
    # Each compilation has its own causes: of by_int, the guards that TORCH_LOGS prints; of two_breaks, lines of breaks.
    assert Counter(row["function"] for row in compilations if row["again"]) == recompiled
    again = [row["causes"] for row in compilations if row["function"] == "by_shape" and row["again"]]
    assert len(again) == 3
    assert all("size mismatch at index 0" in each for each in again)
    of_breaks = [row["causes"] for row in compilations if row["function"] == "two_breaks"]
    assert sorted(int(each) for causes in of_breaks for each in re.findall(r":(\d+)\)", causes)) == sorted(breaks)
    assert not any(row["causes"] for row in compilations if row["function"] == "no_break")
    assert sum(row["run_share"] for row in compilations) * info_ns == pytest.approx(
        sum(row["compile_ns"] for row in functions.values())
    )
    compile_ns = sum(row["compile_ns"] for row in functions.values())
    assert sum(row["self_ns"] for row in phases.values()) == pytest.approx(compile_ns, rel=0.1)


def test_every_kernel_of_inductor_is_a_span_with_the_lines_that_it_works_for(workshop: Workshop) -> None:
    path = workshop.write(
        "program.py",
        """
        import torch
        class Layer(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = torch.nn.Parameter(torch.ones(16, 16))
            def forward(self, x):
                x = x @ self.weight  # product
                x = x.sin() + 1  # fused
                return x.cumsum(0).sum()  # reduced
        layer = Layer()
        compiled = torch.compile(layer)
        for _ in range(3):
            compiled(torch.ones(16, 16)).backward()
        print(layer.weight.grad.sum().item())
        """,
    )
    fresh = {"TORCHINDUCTOR_CACHE_DIR": str(workshop.folder / "cache")}
    recorded = workshop.recorded("program.py", env=fresh)
    again = workshop.plain("program.py", env=fresh)
    assert recorded.visible == again.visible
    with strobe.open(workshop.trace) as trace:
        answer = trace.ask("compile", by="kernel")
        kernels = answer.to_pylist()
        lines = {row["source_line"].rpartition(":")[2]: row for row in trace.ask("compile", by="line").to_pylist()}
        spans = trace.sql("select count(*) as n from spans where name like 'cpp_fused%'").to_arrow().to_pylist()
        page = served(trace)
        cells = [{name: row[name] or "" for name in ("kernel", "region", "graph", "file", "line")} for row in kernels]
        spans_behind = [behind(page, **each)[0] for each in cells]
        of_lines = [behind(page, source_line=row["source_line"])[0] for row in lines.values()]
        compilations = trace.ask("compile", by="compilation").to_pylist()
    assert sorted(row["backward"] for row in compilations) == [False, True]  # one graph forward, one backward
    assert spans_behind == [row["calls"] for row in kernels]
    assert of_lines == [row["calls"] for row in lines.values()]
    assert answer.note.startswith("100 %")
    assert {row["reason"] for row in kernels} == {""}
    assert all(row["calls"] == 3 for row in kernels)  # forward and backward graph, each run three times
    generated = [row for row in kernels if row["kernel"].startswith("cpp_fused")]
    assert spans == [{"n": 3 * len(generated)}]
    program = path.read_text().splitlines()
    marked = {program[int(number) - 1].partition("# ")[2] for number in lines}
    assert marked == {"product", "fused", "reduced"}
    products = [row for row in kernels if row["kernel"] == "extern_kernels.mm"]
    assert products
    assert all("product" in program[int(row["source_lines"].rpartition(":")[2]) - 1] for row in products)
    fused = next(row for row in generated if "aten.sin" in row["operators"])
    assert "# fused" in "".join(program[int(each.rpartition(":")[2]) - 1] for each in fused["source_lines"].split(", "))


def test_code_from_the_cache_of_inductor_is_counted_as_without_lines(workshop: Workshop) -> None:
    workshop.write(
        "program.py",
        """
        import torch
        @torch.compile
        def work(x):
            return (x.sin() + 1).relu()
        for _ in range(4):
            work(torch.ones(32, 32))
        """,
    )
    fresh = {"TORCHINDUCTOR_CACHE_DIR": str(workshop.folder / "cache")}
    workshop.plain("program.py", env=fresh)
    workshop.recorded("program.py", env=fresh)
    with strobe.open(workshop.trace) as trace:
        answer = trace.ask("compile", by="kernel")
    (row,) = answer.to_pylist()
    assert (row["calls"], row["source_lines"]) == (4, "")
    assert answer.note.startswith("0 % of 4 calls of kernels are attributed to source lines; the others: 4 (its code")
