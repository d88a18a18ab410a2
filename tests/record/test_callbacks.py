"""Callbacks of Lightning, transformers and Keras in the real packages: which steps are recorded, and the training as it
is without them. Each program trains twice with the same seed, plainly and with StopAtStep(2, 4), and says what came
out; its own functions count the batches that they saw as a metric."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

import strobe
from tests.record.workshop import Outcome, Workshop, spans_of

pytestmark = pytest.mark.torch

LIGHTNING = """
    import json, logging, sys, warnings
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    import torch
    import PACKAGE as pl
    from PACKAGE.plugins.environments import LightningEnvironment
    from torch.utils.data import DataLoader, TensorDataset
    import strobe
    from strobe.integrations.lightning import StopAtStep, StrobeCallback

    class Net(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def training_step(self, batch, index):
            strobe.counter("batch", index)
            return self.layer(batch[0]).square().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    class Log(pl.loggers.logger.DummyLogger):
        seen = {}

        def log_metrics(self, metrics, step=None):
            self.seen.update(metrics)

    def train(*callbacks, log=False):
        pl.seed_everything(1)
        net = Net()
        data = DataLoader(TensorDataset(torch.randn(16, 4)), batch_size=2)
        trainer = pl.Trainer(
            max_epochs=1, accelerator="cpu", logger=Log() if log else False, enable_checkpointing=False,
            enable_progress_bar=False, enable_model_summary=False, callbacks=list(callbacks),
            plugins=[LightningEnvironment()],  # it would look for MPI, which mpi4py fails without
        )
        trainer.fit(net, data)
        return net.layer.weight.tolist()

    plain = train()
    callback = StopAtStep(2, 4, "steps.strobe")
    with_callback = train(callback)
    if sys.argv[1:] == ["all"]:
        train(StrobeCallback("all.strobe"), log=True)
    print(json.dumps([plain, with_callback, callback.trace_path, sorted(Log.seen)]))
"""
TRANSFORMERS = """
    import json, tempfile, warnings
    warnings.filterwarnings("ignore")
    import torch
    from accelerate import Accelerator
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
    import strobe
    from strobe.integrations.accelerate import ProfileKwargs
    from strobe.integrations.transformers import StopAtStep

    class Net(BertForSequenceClassification):
        def training_step(self, batch):
            strobe.counter("batch", batch)

        def forward(self, input_ids, labels):
            self.training_step(self.seen)
            self.seen += 1
            return super().forward(input_ids, labels=labels)

    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 16

        def __getitem__(self, at):
            return {"input_ids": torch.arange(4) + at, "labels": at % 2}

    def train(*callbacks):
        torch.manual_seed(1)
        net = Net(BertConfig(
            vocab_size=30, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8,
            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        ))
        net.seen = 0
        with tempfile.TemporaryDirectory() as folder:
            arguments = TrainingArguments(
                folder, num_train_epochs=1, per_device_train_batch_size=2, save_strategy="no", report_to=[],
                use_cpu=True, disable_tqdm=True, dataloader_pin_memory=False, logging_strategy="no",
            )
            trainer = Trainer(net, arguments, train_dataset=Data(), callbacks=list(callbacks))
            loss = trainer.train().training_loss
        return loss

    callback = StopAtStep(2, 4, "steps.strobe")
    plain, with_callback = train(), train(callback)
    # Accelerate is there anyway: its profiler, with ours behind it.
    with Accelerator().profile(ProfileKwargs(activities=["cpu"], output_trace_dir="accelerate")) as prof:
        torch.ones(3).sin()
    profiled = {event.key: event.count for event in prof.key_averages()}
    print(json.dumps([plain, with_callback, callback.trace_path, [profiled["aten::sin"], type(prof).__module__]]))
"""
KERAS = """
    import json, os
    os.environ["KERAS_BACKEND"] = "torch"
    import keras
    import numpy as np
    import strobe
    from strobe.integrations.keras import StopAtStep

    class Net(keras.Model):
        def __init__(self):
            super().__init__()
            self.layer = keras.layers.Dense(1)

        def training_step(self, batch):
            strobe.counter("batch", batch)

        def call(self, x):
            if self.built and x.shape[0] == 2 and x.device.type == "cpu":
                self.training_step(self.seen)
                self.seen += 1
            return self.layer(x)

    def train(*callbacks):
        keras.utils.set_random_seed(1)
        net = Net()
        net.build((2, 4))
        net.seen = 0
        net.compile(optimizer="sgd", loss="mse")
        x = np.random.default_rng(1).normal(size=(16, 4)).astype("float32")
        net.fit(x, x[:, :1], batch_size=2, epochs=1, verbose=0, callbacks=list(callbacks))
        return net.layer.kernel.numpy().tolist()

    callback = StopAtStep(2, 4, "steps.strobe")
    print(json.dumps([train(), train(callback), callback.trace_path, []]))
"""
PROGRAMS = {
    "pytorch_lightning": LIGHTNING.replace("PACKAGE", "pytorch_lightning"),
    "transformers": TRANSFORMERS,
}


def need(package: str) -> None:
    for each in ("torch", package):
        if find_spec(each) is None:
            pytest.skip(f"{each} is not installed")


def steps_and_batches(trace: Path) -> tuple[int, list[float]]:
    with strobe.open(trace) as opened:
        batches = opened.sql("select value from metrics where metric = 'batch' order by time_ns").column("value")
        return len(opened.steps()), list(batches)


@pytest.mark.parametrize("package", PROGRAMS)
def test_steps_two_to_four_are_recorded_and_the_training_is_the_same(package: str, tmp_path: Path) -> None:
    need(package)
    workshop = Workshop(tmp_path)
    workshop.write("training.py", PROGRAMS[package])
    done = workshop.plain("training.py", *(["all"] if package == "pytorch_lightning" else []))
    assert done.returncode == 0, done.stderr
    plain, with_callback, path, more = json.loads(done.stdout.splitlines()[-1])
    assert plain == with_callback
    trace = tmp_path / "steps.strobe"
    assert Path(path).resolve() == trace
    assert steps_and_batches(trace) == (3, [2, 3, 4])
    assert spans_of(trace, "training_step") == 3
    # PyTorch was imported long before: its operators are there all the same, backward included.
    names = strobe.open(trace).operators(step="all").column("name")
    assert {"aten::addmm", "autograd::engine::evaluate_function: AddmmBackward0"} <= set(names)
    if package == "pytorch_lightning":
        assert more == ["strobe/data_wait_pct", "strobe/step_ms"]
        assert steps_and_batches(tmp_path / "all.strobe") == (8, list(range(8)))
    else:
        assert more == [1, "strobe.compat.torch"]
        assert len(list((tmp_path / "accelerate").iterdir())) == 1


def test_under_strobe_run_the_steps_are_in_that_trace(workshop: Workshop) -> None:
    need("keras")
    workshop.write("training.py", KERAS)
    done: Outcome = workshop.recorded("training.py")
    assert done.returncode == 0, done.stderr
    assert not (workshop.folder / "steps.strobe").exists()
    plain, with_callback, path, _ = json.loads(done.stdout)
    assert (plain, path) == (with_callback, None)
    # The first training is there as a whole, of the second one the window: its steps are what the program says.
    assert steps_and_batches(done.trace) == (3, [*range(8), 2, 3, 4])


def test_a_missing_package_is_one_sentence(workshop: Workshop) -> None:
    workshop.write("keras/__init__.py", "raise ModuleNotFoundError(\"No module named 'keras'\", name='keras')")
    workshop.write("program.py", "import strobe.integrations.keras")
    last = workshop.plain("program.py").stderr.splitlines()[-1]
    assert last == "ImportError: this callback needs Keras, which is not installed: pip install keras"
