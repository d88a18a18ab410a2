"""Which kernels communicate: by their arguments, by what launched them, by the rules of the user. Computed by hand."""

import pytest

import strobe
from strobe.errors import UsageError
from tests.deep.kineto import US, call, event, kernel, operator, profile


def communicating(trace):
    """Return by kernel what it does, and what the GPU's time went into."""
    rows = trace.kernels().to_arrow().to_pylist()
    (sums,) = trace.overlap().to_arrow().to_pylist()
    assert sums["communication_ns"] == sum(r["total_ns"] for r in rows if r["kind"] == "communication")
    return {row["name"]: row["kind"] for row in rows}


def test_a_collective_among_the_arguments_of_a_kernel_is_evidence_for_all_of_its_name(tmp_path):
    trace = profile(
        tmp_path,
        operator("aten::mm", 0, 5),
        kernel("ring_step", 10, 5, Collective_name="allreduce", Group_size=8),
        kernel("ring_step", 20, 5),
        kernel("tile", 30, 5, dtype="Float"),
    )
    assert communicating(trace) == {"ring_step": "communication", "tile": "computation"}
    assert trace.overlap().to_arrow().column("communication_ns").to_pylist() == [10 * US]


@pytest.mark.parametrize("around", ["c10d::allreduce_", "record_param_comms", "nccl:all_reduce"])
def test_what_a_collective_launches_communicates_unless_an_operator_is_between(tmp_path, around):
    trace = profile(
        tmp_path,
        operator(around, 0, 100),
        call(10, 2, correlation=1),
        operator("aten::copy_", 20, 10),
        call(22, 2, correlation=2),
        call(50, 2, correlation=3),
        call(150, 2, correlation=4),
        kernel("ring_step", 200, 5, correlation=1),
        kernel("elementwise", 210, 5, correlation=2),
        # Once within, once outside: it is no evidence.
        kernel("both", 220, 5, correlation=3),
        kernel("both", 230, 5, correlation=4),
    )
    expected = {"ring_step": "communication", "elementwise": "computation", "both": "computation"}
    assert communicating(trace) == expected
    assert trace.overlap().to_arrow().column("communication_ns").to_pylist() == [5 * US]


def test_what_a_function_of_torch_distributed_launches_communicates(tmp_path):
    function = "torch/distributed/distributed_c10d.py(3012): all_gather_into_tensor"
    trace = profile(
        tmp_path,
        event("python_function", function, 0, 40, 100, 1, Python_id=1),
        call(10, 2, correlation=1),
        event("python_function", "train.py(7): main", 100, 40, 100, 1, Python_id=2),
        call(110, 2, correlation=2),
        kernel("gather", 200, 5, correlation=1),
        kernel("tile", 210, 5, correlation=2),
    )
    assert communicating(trace) == {"gather": "communication", "tile": "computation"}


def test_the_rules_of_the_user_come_before_names_and_evidence(tmp_path, monkeypatch):
    (tmp_path / "traces").mkdir()
    trace = profile(
        tmp_path / "traces",
        kernel("halo_exchange_7", 0, 5),
        kernel("nccl_free_gemm", 10, 5),
        kernel("tile", 20, 5, Collective_name="allreduce"),
    )
    before = {"halo_exchange_7": "computation", "nccl_free_gemm": "communication", "tile": "communication"}
    assert communicating(trace) == before
    rules = tmp_path / "rules.toml"
    rules.write_text('[kernels]\ncompute = ["^nccl_free", "^tile$"]\ncommunication = ["HALO", "tile"]\n')
    monkeypatch.setenv("STROBE_RULES", str(rules))
    again = strobe.open(trace.path)
    after = {"halo_exchange_7": "communication", "nccl_free_gemm": "computation", "tile": "computation"}
    assert communicating(again) == after
    groups = dict(again.sql("select name, \"group\" from regions where role = 'kernel'").to_arrow().to_pandas().values)
    assert groups["halo_exchange_7"] == "communication"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[kernels", "not valid TOML"),
        ("kernels = 1", "no table"),
        ('[kernels]\nwaiting = ["x"]', "'waiting' is not a group of kernels: communication or compute"),
        ('[kernels]\ncompute = "x"', "compute is not a list of texts"),
        ('[kernels]\ncompute = ["("]', "is not a regular expression"),
        (None, "cannot be read"),
    ],
)
def test_rules_that_are_none_are_refused_with_a_sentence(tmp_path, monkeypatch, text, sentence):
    (tmp_path / "traces").mkdir()
    trace = profile(tmp_path / "traces", kernel("tile", 0, 5))
    rules = tmp_path / "rules.toml"
    if text is not None:
        rules.write_text(text)
    monkeypatch.setenv("STROBE_RULES", str(rules))
    with pytest.raises(UsageError, match=sentence):
        strobe.open(trace.path).regions  # noqa: B018


def test_how_much_nothing_tells_about_is_told(tmp_path):
    trace = profile(
        tmp_path,
        kernel("kernel", 0, 10),
        kernel("0x7f3a12345678", 20, 10),
        kernel("void kernel(float*)", 40, 10),
        kernel("void cutlass::device_kernel<cutlass::gemm::Gemm<128>>()", 60, 30),
        kernel("gemm", 100, 40),
    )
    assert "30 % of the time of GPU work is in kernels with meaningless names" in trace.overlap().note
    (tmp_path / "named").mkdir()
    assert not profile(tmp_path / "named", kernel("gemm", 0, 10)).overlap().note
