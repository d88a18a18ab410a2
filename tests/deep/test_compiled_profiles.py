"""Kernels of compiled code in profiles of PyTorch: their region, fx graph and file, or why these are not known."""

import pytest

from tests.deep.kineto import call, event, kernel, operator, profile
from tests.deep.test_behind_rows import behind, served


def test_kernels_of_a_compiled_region_have_its_number_their_graph_and_their_file(tmp_path):
    launcher = operator("triton_poi_fused_add_3", 10, 20, External_id=2)
    launcher["args"]["kernel_file"] = "/tmp/x/cab.py"
    trace = profile(
        tmp_path,
        operator("Torch-Compiled Region: 2/1", 0, 100, External_id=1),
        event("user_annotation", "## Call CompiledFxGraph fabc ##", 5, 90, 100, 1),
        launcher,
        call(15, 5, correlation=7),
        call(40, 5, correlation=8),
        call(200, 5, correlation=9),
        call(210, 5, correlation=10),
        kernel("triton_poi_fused_add_3", 500, 140, correlation=7, External_id=2),
        kernel("gemm", 700, 50, correlation=8),
        kernel("triton_red_fused_sum_0", 800, 30, correlation=9),
        kernel("gemm of eager code", 900, 30, correlation=10),
    )
    answer = trace.ask("compile", by="kernel")
    assert [(r["kernel"], r["region"], r["graph"], r["file"], r["total_ns"]) for r in answer.to_pylist()] == [
        ("triton_poi_fused_add_3", "2/1", "fabc", "/tmp/x/cab.py", 140_000),
        ("gemm", "2/1", "fabc", "", 50_000),
        ("triton_red_fused_sum_0", "", "", "", 30_000),
    ]
    assert "67 % of 3 calls" in answer.note
    assert "the others: 1 (nothing recorded shows the compiled region that launched it)" in answer.note


def test_regions_of_a_profile_have_their_recompiles_and_no_graph_breaks(tmp_path):
    regions = [operator(f"Torch-Compiled Region: 0/{number}", 100 * i, 50) for i, number in enumerate((0, 0, 3, 3, 3))]
    trace = profile(tmp_path, *regions, operator("_compile.compile_inner (dynamo_timed)", 600, 40))
    (row,) = trace.ask("compile", by="function").to_pylist()
    assert (row["function"], row["calls"], row["total_ns"]) == ("region 0", 5, 250_000)
    assert (row["graphs"], row["recompiles"], row["graph_breaks"], row["compile_ns"]) == (2, 3, None, None)
    (phase,) = trace.ask("compile", by="phase").to_pylist()
    assert (phase["phase"], phase["calls"], phase["self_ns"]) == ("_compile.compile_inner", 1, 40_000)
    answer = trace.ask("compile", by="compilation")
    assert (len(answer), answer.note) == (0, "no compilation was recorded (profiles of PyTorch have none)")


def launcher(name, start_us, number, dims, types, **more):
    """An operator that launches the kernel of its name, as Inductor's do, with the call and the kernel of 10 us."""
    made = operator(name, start_us, 10, External_id=number, Input_Dims=dims, Input_type=types, **more)
    made["args"]["kernel_file"] = f"/tmp/{name}.py"
    return [
        made,
        call(start_us + 2, 4, correlation=number),
        kernel(name, start_us + 500, 10, correlation=number, External_id=number),
    ]


def test_a_kernel_of_triton_has_the_bytes_of_its_tensors_where_those_of_all_its_calls_are_known(tmp_path):
    half, scalar = "c10::BFloat16", "Scalar"
    trace = profile(
        tmp_path,
        operator("Torch-Compiled Region: 0/0", 0, 200, External_id=1),
        # 8 x 4 halves, 4 floats, and one half for all rows of the third: 64 + 16 + 8 bytes, twice as long ones later.
        *launcher(
            "triton_poi_fused_add_0", 0, 2, [[8, 4], [4], [8, 4], []], [half, "float", half, scalar],
            Input_Strides=[[4, 1], [1], [0, 1], []],
        ),
        *launcher("triton_poi_fused_add_0", 20, 3, [[16, 4], [4], []], [half, "float", scalar]),
        *launcher("triton_poi_fused_mul_1", 40, 4, [[8]], [half]),
        *launcher("triton_poi_fused_mul_1", 60, 5, [[8]], ["a type of the future"]),
        *launcher("triton_poi_fused_sin_2", 80, 6, [[3, 3]], ["long int"]),
        kernel("triton_poi_fused_sin_2", 700, 10),  # nothing of this call is known
    )  # fmt: skip
    rows = {(row["kernel"], row["region"]): row for row in trace.ask("compile", by="kernel").to_pylist()}
    assert {key: (row["calls"], row["size_bytes"]) for key, row in rows.items()} == {
        ("triton_poi_fused_add_0", "0/0"): (2, 64 + 16 + 8 + 128 + 16),
        ("triton_poi_fused_mul_1", "0/0"): (2, None),
        ("triton_poi_fused_sin_2", "0/0"): (1, 72),
        ("triton_poi_fused_sin_2", ""): (1, None),
    }
    assert {key: row["share"] for key, row in rows.items()} == {
        key: pytest.approx(row["calls"] / 6) for key, row in rows.items()
    }


def test_a_row_of_a_kernel_leads_to_its_spans_in_that_region_and_no_others(tmp_path):
    trace = profile(
        tmp_path,
        operator("Torch-Compiled Region: 0/0", 0, 100, External_id=1),
        call(10, 5, correlation=7),
        operator("Torch-Compiled Region: 0/1", 200, 100, External_id=2),
        call(210, 5, correlation=8),
        call(400, 5, correlation=9),
        kernel("gemm", 500, 20, correlation=7),
        kernel("gemm", 600, 30, correlation=8),
        kernel("gemm", 700, 40, correlation=9),
    )
    page = served(trace)
    rows = trace.ask("compile", by="kernel").to_pylist()
    assert {row["region"] for row in rows} == {"0/0", "0/1"}
    cells = [{name: row[name] or "" for name in ("kernel", "region", "graph", "file", "line")} for row in rows]
    assert [behind(page, **each) for each in cells] == [
        (1, 30, [(600, 30), (600, 30)]),
        (1, 20, [(500, 20), (500, 20)]),
    ]


@pytest.mark.parametrize(
    ("events", "is_there"),
    [
        ([operator("aten::mm", 0, 10)], False),
        ([operator("Torch-Compiled Region: 0/0", 0, 10)], True),
        ([operator("_compile.compile_inner (dynamo_timed)", 0, 10)], True),
        ([call(0, 5, correlation=1), kernel("triton_red_fused_sum_0", 10, 5, correlation=1)], True),
    ],
)
def test_compiled_code_is_missing_where_nothing_shows_any(tmp_path, events, is_there):
    missing = profile(tmp_path, *events).missing(("compiled",))
    assert missing == ("" if is_there else "no code that torch.compile made in this trace")
