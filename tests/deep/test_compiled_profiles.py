"""Kernels of compiled code in profiles of PyTorch: their region, fx graph and file, or why these are not known."""

from tests.deep.kineto import call, event, kernel, operator, profile


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
