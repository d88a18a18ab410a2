"""What a tool is: its name, its parameters, and the function that answers it with text."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from strobe.agents.runs import Runs
from strobe.errors import StrobeError, UsageError
from strobe.model.cancellation import CancelledWorkError
from strobe.model.option import Option
from strobe.server.routing.endpoints import parameter, read_values
from strobe.server.routing.openapi import schema_of

_SHOWN = 60
_log = logging.getLogger(__name__)


class _Answer(Protocol):
    def __call__(self, runs: Runs, **values: Any) -> str: ...


@dataclass(frozen=True)
class Tool:
    """A question that an agent can ask: `answer(runs, **values)` returns text, or raises StrobeError."""

    name: str
    answer: _Answer
    parameters: tuple[Option, ...]

    @property
    def description(self) -> str:
        """What it answers."""
        return " ".join((self.answer.__doc__ or "").split())

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of its arguments."""
        return {
            "type": "object",
            "properties": {each.name: {**_schema(each), "description": each.help} for each in self.parameters},
            "required": [each.name for each in self.parameters if each.required],
            "additionalProperties": False,
        }


TOOLS: dict[str, Tool] = {}


def tool(*parameters: Option) -> Callable[[Callable[..., str]], Callable[..., str]]:
    """Make a tool of the function below, under its name. Its docstring is what the agent reads."""

    def describe(answer: Callable[..., str]) -> Callable[..., str]:
        name = answer.__name__
        TOOLS[name] = Tool(name, answer, parameters)
        return answer

    return describe


def call(runs: Runs, name: str, arguments: Mapping[str, object]) -> Callable[[], tuple[str, bool]]:
    """Return what answers a call: its text, and whether that is an error. An error is a sentence."""
    return partial(_called, runs, name, dict(arguments))


def _called(runs: Runs, name: str, arguments: dict[str, object]) -> tuple[str, bool]:
    try:
        if name not in TOOLS:
            raise UsageError(f"no tool '{name[:_SHOWN]}'", do=f"Tools: {', '.join(TOOLS)}")
        asked = TOOLS[name]
        values = read_values(name, asked.parameters, pairs(arguments), lambda option: option.most)
        return asked.answer(runs, **values), False
    except StrobeError as error:
        return f"{error.what}. {error.do}".strip(), True
    except CancelledWorkError:  # nobody waits for the answer any more, or it took too long: see the queue
        raise
    except MemoryError:
        return "the answer would need more memory than is available: ask for less at once", True
    except Exception as error:  # a bug: stderr has where it happened
        _log.exception("a call of '%s' was not answered", name)
        return f"strobe could not answer ({type(error).__name__}); this is a bug, its stderr has more", True


def pairs(values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield names and values as texts; null counts as left out."""
    for name, value in values.items():
        if value is not None:
            yield name, value if isinstance(value, str) else json.dumps(value)


def mapping(text: str) -> Mapping[str, object]:
    """Read a JSON object. Raises ValueError."""
    value = json.loads(text) if text.lstrip().startswith("{") else None
    if not isinstance(value, dict):
        raise ValueError(f'\'{text[:_SHOWN]}\' is not an object, such as {{"by": "name"}}')
    return value


def _schema(option: Option) -> dict[str, Any]:
    return {"type": "object"} if option.parse is mapping else schema_of(option, option.most)


# Parameters of several tools.
TRACE = parameter(
    "trace", "run to ask, a name of `runs`, or a folder of files that are one run; default: the newest", str, "last"
)
TOP = parameter("top", "rows at most", int, 20, least=1, most=1000)
SKIP = parameter("skip", "leave out so many rows, to read on", int, 0)
