"""The callbacks and the Profiler for MindSpore, with the real package: 0.8 GB, only `./dev mindspore` has it."""

import json
from importlib.util import find_spec

import pytest

import strobe
from tests.record.workshop import Workshop, spans_of

needs_mindspore = pytest.mark.skipif(find_spec("mindspore") is None, reason="./dev mindspore runs it")

TRAINING = """
    import json
    import mindspore as ms
    import mindspore.dataset as ds
    import numpy as np
    from mindspore import nn
    import strobe

    class Batches(ms.Callback):
        number = 0

        def on_train_step_begin(self, run_context):
            self.number += 1
            strobe.counter("batch", self.number)

    def train(*callbacks):
        ms.set_seed(1)
        ms.set_context(mode=ms.PYNATIVE_MODE)
        net = nn.Dense(4, 1)
        x = np.random.default_rng(1).normal(size=(16, 4)).astype("float32")
        data = ds.NumpySlicesDataset((x, x[:, :1]), ["x", "y"], shuffle=False).batch(2)
        model = ms.train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
        model.train(1, data, callbacks=[*callbacks, Batches()], dataset_sink_mode=False)
        return net.weight.asnumpy().tolist()
"""
CALLBACK = """
    from strobe.integrations.mindspore import StopAtStep

    callback = StopAtStep(3, 5, "steps.strobe")
    print(json.dumps([train(), train(callback)]))
"""
# As MindSpore's documentation has it, but for the line that says where Profiler comes from.
BY_HAND = """
    from strobe.compat.mindspore import Profiler

    class StopAtStep(ms.Callback):
        def __init__(self, start_step, stop_step):
            super(StopAtStep, self).__init__()
            self.start_step = start_step
            self.stop_step = stop_step
            self.profiler = Profiler(start_profile=False, output_path="data")

        def on_train_step_begin(self, run_context):
            cb_params = run_context.original_args()
            step_num = cb_params.cur_step_num
            if step_num == self.start_step:
                self.profiler.start()

        def on_train_step_end(self, run_context):
            cb_params = run_context.original_args()
            step_num = cb_params.cur_step_num
            if step_num == self.stop_step:
                self.profiler.stop()

        def on_train_end(self, run_context):
            self.profiler.analyse()

    print(json.dumps([train(), train(StopAtStep(3, 5))]))
"""


def batches(trace: strobe.Trace) -> list[float]:
    return list(trace.sql("select value from metrics where metric = 'batch' order by time_ns").column("value"))


@needs_mindspore
@pytest.mark.parametrize(("code", "path"), [(CALLBACK, "steps.strobe"), (BY_HAND, "data/training.strobe")])
def test_steps_three_to_five_are_recorded_and_the_training_is_the_same(
    workshop: Workshop, code: str, path: str
) -> None:
    workshop.write("training.py", TRAINING + code)
    done = workshop.plain("training.py")
    assert done.returncode == 0, done.stderr
    plain, with_callback = json.loads(done.stdout.splitlines()[-1])
    assert plain == with_callback
    with strobe.open(workshop.folder / path) as trace:
        assert batches(trace) == [3, 4, 5]
        if code is CALLBACK:
            assert len(trace.steps()) == 3


def test_the_profiler_records_its_windows_in_one_trace(workshop: Workshop) -> None:
    workshop.write(
        "program.py",
        """
        from strobe.compat.mindspore import Profiler

        def work(n):
            return n

        profiler = Profiler(start_profile=False, output_path="data")
        work(0)
        for _ in range(2):
            profiler.start()
            work(1)
            profiler.stop()
            work(2)
        profiler.analyse()
        try:
            profiler.stop()
        except RuntimeError as error:
            print(error)
        try:
            profiler.op_analyse("Conv2D")
        except RuntimeError as error:
            print(error)
        """,
    )
    done = workshop.plain("program.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("The profiler has not started")
    assert "no operator has the name or type 'Conv2D'" in done.stdout
    assert spans_of(workshop.folder / "data" / "program.strobe", "work") == 2


@pytest.mark.torch
def test_op_analyse_answers_for_a_program_of_pytorch(workshop: Workshop) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    workshop.write(
        "program.py",
        """
        import torch
        from strobe.compat.mindspore import Profiler

        profiler = Profiler()
        for _ in range(5):
            torch.nn.functional.conv2d(torch.ones(1, 1, 4, 4), torch.ones(1, 1, 2, 2))
        profiler.analyse()
        print(profiler.op_analyze("Conv2d"))
        """,
    )
    done = workshop.plain("program.py")
    assert done.returncode == 0, done.stderr
    (entry,) = json.loads(done.stdout)["Conv2d"]
    assert (entry["op_side"], entry["op_occurrences"]) == ("cpu", 5)
