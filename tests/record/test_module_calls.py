"""Calls of PyTorch's modules: of those that a library made the outermost ones are recorded, by class."""

from __future__ import annotations

import pytest

import strobe
from tests.record.workshop import Workshop

pytestmark = pytest.mark.every_python

# As torch/nn/modules has it, without the rest of PyTorch.
PROGRAM = """
import sysconfig, threading
FOLDER = sysconfig.get_path("purelib") + "/torch/nn/modules/"

def of_library(name, code, **names):
    space = {"__name__": "torch.nn.modules." + name, "__file__": FOLDER + name + ".py", **names}
    exec(compile(code, space["__file__"], "exec"), space)
    return space

Module = of_library("module", '''
class Module:
    def _wrapped_call_impl(self, *args, **kwargs):
        return self._call_impl(*args, **kwargs)
    def _call_impl(self, *args, **kwargs):
        return self.forward(*args, **kwargs)
    __call__ = _wrapped_call_impl
''')["Module"]
library = of_library("container", '''
class Linear(Module):
    def forward(self, x):
        return x + 1
class Sequential(Module):
    def __init__(self, *layers):
        self.layers = layers
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
class Failing(Module):
    def forward(self, x):
        raise ValueError(x)
''', Module=Module)
Linear, Sequential, Failing = library["Linear"], library["Sequential"], library["Failing"]

class Own(Module):
    def __init__(self):
        self.inner = Sequential(Linear(), Linear())
    def forward(self, x):
        return self.inner(x)

model, own = Sequential(Linear(), Sequential(Linear(), Linear())), Own()
for _ in range(3):
    model(1)
for _ in range(2):
    own(1)
for _ in range(4):
    try:
        Sequential(Failing())(1)
    except ValueError:
        pass
Linear()(1)
threads = [threading.Thread(target=model, args=(1,)) for _ in range(5)]
for thread in threads:
    thread.start()
    thread.join()
"""


def test_the_outermost_call_of_each_is_recorded_by_class(workshop: Workshop) -> None:
    workshop.write("program.py", PROGRAM)
    done = workshop.recorded("program.py")
    assert done.returncode == 0, done.stderr
    rows = strobe.open(workshop.trace).sql(
        "select r.name, o.name as around, count(*) as calls from spans s join regions r using (region) "
        "left join spans p on p.location = s.location and p.row = s.parent left join regions o on o.region = p.region "
        "where r.name like 'nn.Module%' or r.name like '%forward' group by 1, 2"
    )
    # Own's forward is a function of the program: it is recorded itself, instead of its call and what it calls.
    assert {(row["name"], row["around"]): row["calls"] for row in rows.to_pylist()} == {
        ("nn.Module: Sequential", "<module>"): 3 + 4,
        ("nn.Module: Sequential", None): 5,
        ("nn.Module: Linear", "<module>"): 1,
        ("Own.forward", "<module>"): 2,
    }
