"""FLOPs from shapes: computed by hand, and as PyTorch counts them while it runs."""

import json

import pytest

from strobe.gpu.nvidia.peaks import Peak, peak
from strobe.operators.flops import attention, convolution, is_product, matrices, parsed, product


def flop(name, shapes, values=()):
    found = product(f"aten::{name}", parsed(json.dumps(shapes), json.dumps(list(values))))
    return found and found.flop


def test_products_of_matrices():
    found = matrices((512, 64), (64, 512))
    assert (found.batch, found.m, found.n, found.k, found.flop) == (1, 512, 512, 64, 33_554_432)
    assert found.elements == 512 * 64 + 64 * 512 + 512 * 512
    # One right matrix for a stack is one product of all rows; two stacks are multiplied pair by pair, or broadcast.
    stack = matrices((4, 7, 5), (5, 3))
    assert (stack.batch, stack.m, stack.flop) == (1, 28, 2 * 4 * 7 * 5 * 3)
    assert matrices((2, 1, 7, 5), (4, 5, 3)).batch == 8
    assert flop("addmm", [[3], [2, 5], [5, 3], [], []]) == flop("linear", [[2, 5], [3, 5], [3]]) == 60
    assert flop("baddbmm", [[4, 2, 3], [4, 2, 5], [4, 5, 3], [], []]) == flop("bmm", [[4, 2, 5], [4, 5, 3]]) == 240
    assert flop("matmul", [[5], [5]]) == 10


def test_convolutions():
    # 3x3 over 9x9 in steps of 2 with a border of 1: 5x5 positions, 2 images, 6 output and 4 input channels
    options = ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "1"]
    assert flop("conv2d", [[2, 4, 9, 9], [6, 4, 3, 3], [], [], [], [], []], options) == 2 * 2 * 25 * 6 * 4 * 9
    # In two groups each output channel meets half the input channels.
    found = product("aten::conv2d", parsed("[[2,4,9,9],[6,2,3,3],[],[],[],[],[]]", json.dumps([*options[:6], "2"])))
    assert (found.batch, found.m, found.n, found.k) == (2, 50, 3, 18)
    assert found.flop == 2 * 2 * 25 * 6 * 2 * 9
    assert found.elements == 2 * 4 * 81 + 6 * 2 * 9 + 2 * 6 * 25
    # cuDNN's operator has the border before the step.
    cudnn = ["", "", "[1, 1]", "[2, 2]", "[1, 1]", "1", "False", "False", "True"]
    assert flop("cudnn_convolution", [[2, 4, 9, 9], [6, 4, 3, 3], [], [], [], [], [], [], []], cudnn) == 21600
    # Of the gradient both parts take as much as the convolution itself; the mask says which are computed.
    shapes = [[2, 6, 5, 5], [2, 4, 9, 9], [6, 4, 3, 3], [], [], [], [], [], [], [], []]
    for mask, times in (("[True, True, False]", 2), ("[False, True, True]", 1), ("[False, False, True]", None)):
        values = ["", "", "", "[0]", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1", mask]
        assert flop("convolution_backward", shapes, values) == (times and times * 21600)
    assert convolution((2, 4, 9, 9), (4, 3, 3, 3), (2, 6, 17, 17), transposed=True).flop == 2 * 2 * 81 * 4 * 3 * 9


def test_what_shapes_do_not_say_is_unknown():
    assert flop("conv2d", [[2, 4, 9, 9], [6, 4, 3, 3], [], [], [], [], []]) is None
    assert flop("mm", [[2, 3], [4, 5]]) is None
    assert flop("mm", []) is None
    assert flop("convolution_backward", [[2, 6, 5, 5], [2, 4, 9, 9], [6, 4, 3, 3]]) is None
    assert not is_product("aten::add")
    assert not is_product("mm")
    # The output of a convolution whose step was not recorded is that of the same one elsewhere, if it is the only one.
    conv, inputs = ((2, 4, 9, 9), (6, 4, 3, 3), (2, 6, 5, 5)), parsed("[[2,4,9,9],[6,4,3,3],[],[],[],[],[]]", None)
    assert product("aten::conv2d", inputs, [conv]).flop == 21600
    assert product("aten::conv2d", inputs, [conv, (*conv[:2], (2, 6, 9, 9))]) is None


def test_attention():
    q, few = (2, 8, 16, 32), (2, 2, 10, 32)
    assert attention(q, (2, 8, 10, 32), (2, 8, 10, 32)).flop == 2 * 2 * 8 * 16 * 10 * 64
    assert attention(q, few, few).flop == 2 * 2 * 8 * 16 * 10 * 64
    assert attention(q, few, few, backward=True).flop == 5 * 2 * 2 * 8 * 16 * 10 * 32
    # Here the tokens come before the heads; where sequences are put after each other, lengths are not known.
    flash = [[2, 16, 8, 32], [2, 10, 8, 32], [2, 10, 8, 32], [], [], [], []]
    assert flop("_flash_attention_forward", flash) == 2 * 2 * 8 * 16 * 10 * 64
    assert flop("_flash_attention_forward", [[32, 8, 32], [20, 8, 32], [20, 8, 32], [3], [3]]) is None


# Stated in NVIDIA's data sheets: V100 SXM2, A100 40 GB, H100 SXM; dense, in TFLOP/s.
@pytest.mark.parametrize(
    ("name", "processors", "capability", "stated"),
    [
        ("Tesla V100-SXM2-16GB", 80, (7, 0), {"float64": 7.8, "float32": 15.7, "float16": 125, "bfloat16": None}),
        ("Tesla T4", 40, (7, 5), {"float32": 8.1, "float16": 65, "int8": 130}),
        ("NVIDIA A100-SXM4-40GB", 108, (8, 0),
         {"float64": 19.5, "float32": 19.5, "tf32": 156, "bfloat16": 312, "int8": 624}),
        ("NVIDIA A10", 72, (8, 6), {"float32": 31.2, "tf32": 62.5, "float16": 125, "int8": 250}),
        ("NVIDIA H100 80GB HBM3", 132, (9, 0),
         {"float64": 67, "float32": 67, "tf32": 494.5, "bfloat16": 989.4, "float8": 1979}),
        ("Quadro of nobody", 80, (7, 0), {"float32": None}),
    ],
)  # fmt: skip
def test_peaks_are_those_of_the_data_sheets(name, processors, capability, stated):
    properties = {"name": name, "numSms": processors, "computeMajor": capability[0], "computeMinor": capability[1]}
    for dtype, tflops in stated.items():
        gflops = peak(properties, dtype).gflops
        assert gflops == (None if tflops is None else pytest.approx(tflops * 1e3, rel=0.01)), dtype


def test_what_a_gpu_says_of_itself_counts_before_its_data_sheet():
    made = {"computeMajor": 9, "computeMinor": 0, "numSms": 100, "memoryBandwidthKbPerS": 2_500_000_000}
    unheard = {**made, "name": "unheard of", "coreClockKhz": 2_000_000}
    assert peak(unheard, "float32") == Peak(100 * 2000 * 256 / 1000, 2500)
    assert peak(unheard, "bfloat16") == Peak(100 * 2000 * 4096 / 1000, 2500)
    assert peak(unheard, "complex64") == Peak(None, 2500)
    # Tensor cores of an H100 run at 1830 MHz, says its data sheet alone; a slower card is slower there, too.
    for clock_khz, tensor_mhz in ((1_980_000, 1830), (1_500_000, 1500)):
        h100 = {**made, "name": "NVIDIA H100 80GB HBM3", "coreClockKhz": clock_khz}
        assert peak(h100, "float32").gflops == pytest.approx(100 * clock_khz / 1e6 * 256)
        assert peak(h100, "bfloat16").gflops == pytest.approx(100 * tensor_mhz / 1e3 * 4096)
    assert peak({**unheard, "coreClockKhz": 0, "memoryBandwidthKbPerS": 0}, "float32") == Peak()
    # B200: 148 multiprocessors, tensor cores at 1860 MHz: 2.25 PFLOP/s.
    b200 = {"name": "NVIDIA B200", "computeMajor": 10, "computeMinor": 0, "numSms": 148, "coreClockKhz": 1_860_000}
    assert peak(b200, "float16").gflops == pytest.approx(2.25e6, rel=0.005)


@pytest.mark.torch
def test_pytorch_counts_the_same(tmp_path):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    counter = pytest.importorskip("torch.utils.flop_counter")
    functional, random = torch.nn.functional, torch.randn
    grad = {"requires_grad": True}
    programs = {
        "mm": lambda: random(3, 5) @ random(5, 4),
        "linear": lambda: functional.linear(random(3, 4, 5), random(6, 5), random(6)),
        "matmul": lambda: random(2, 3, 4, 5) @ random(3, 5, 6),
        "baddbmm": lambda: torch.baddbmm(random(2, 3, 4), random(2, 3, 5), random(2, 5, 4)),
        "conv1d": lambda: functional.conv1d(random(2, 4, 9), random(6, 4, 3), dilation=2),
        "conv2d": lambda: functional.conv2d(random(2, 4, 9, 9), random(6, 2, 3, 3), stride=2, padding=1, groups=2),
        "same": lambda: functional.conv2d(random(2, 4, 9, 9), random(6, 4, 3, 3), padding="same"),
        "transposed": lambda: functional.conv_transpose2d(random(2, 4, 9, 9), random(4, 3, 3, 3), stride=2, groups=2),
        "gradient": lambda: functional.conv2d(random(2, 4, 9, 9, **grad), random(6, 4, 3, 3, **grad)).sum().backward(),
        "of the weight": lambda: functional.conv2d(random(2, 4, 9, 9), random(6, 4, 3, 3, **grad)).sum().backward(),
        "transposed gradient": lambda: (
            functional.conv_transpose2d(random(2, 4, 9, 9, **grad), random(4, 6, 3, 3, **grad), stride=2)
            .sum()
            .backward()
        ),
    }
    activities = [torch.profiler.ProfilerActivity.CPU]
    for name, program in programs.items():
        with counter.FlopCounterMode(display=False) as counted:
            program()
        with torch.profiler.profile(activities=activities, record_shapes=True) as profiler:
            program()
        path = tmp_path / "profile.json"
        profiler.export_chrome_trace(str(path))
        total, reach = 0, -1.0
        # By hand: the outermost operators whose work is known.
        events = [e for e in json.loads(path.read_text())["traceEvents"] if e.get("cat") == "cpu_op"]
        for event in sorted(events, key=lambda e: (float(e["ts"]), -float(e["dur"]))):
            args = event["args"]
            dims, values = (json.dumps(args.get(key, [])) for key in ("Input Dims", "Concrete Inputs"))
            found = product(event["name"], parsed(dims, values))
            if found and float(event["ts"]) >= reach:
                total, reach = total + found.flop, float(event["ts"]) + float(event["dur"])
        assert total == counted.get_total_flops() > 0, name
