"""Requests made from the server's own description: sound ones are answered within their bounds, wrong ones refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import hypothesis
import pytest

from strobe.api.trace import Trace
from strobe.model.option import Option
from strobe.server.http.app import Application
from strobe.server.http.trace_library import Source
from strobe.server.routing import routes
from strobe.server.routing.endpoints import Endpoint, highest
from strobe.server.trace_context import TraceContext
from strobe.trace.trace_cache import cached_on_trace
from tests.deep.kineto import kernel, operator, profile
from tests.deep.test_behind_rows import launched
from tests.unit.test_server import TOKEN, Page

MOST_OF_HTTPX = 60_000
ENDPOINTS = {endpoint.name: endpoint for endpoint in routes.endpoints()}


def served(trace: Trace) -> Page:
    return Page(Application([Source(trace.path, lambda: trace)], token=TOKEN))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """Three operators launch kernels, on two streams."""
    events = [operator("aten::mm", 0, 10), operator("aten::add", 20, 10), operator("aten::mm", 40, 10)]
    events += launched("gemm", 2, 5, 1) + launched("gemm", 22, 7, 2, stream=8) + [kernel("lonely", 300, 5)]
    return served(profile(tmp_path_factory.mktemp("requests"), *events))


def check(page: Page, endpoint: Endpoint, query: str) -> int:
    """Ask; an answer is of a kind and size that were told, a refusal is a sentence. Return the status."""
    answer = page.get(f"{endpoint.name}?{query}")
    if answer.status_code == 200:
        assert answer.headers["content-type"] in endpoint.media
        assert len(answer.content) <= endpoint.most_bytes
    else:
        assert answer.status_code in (400, 414, 422), (query, answer.text)
        assert set(answer.json()) == {"error", "do"}
        assert answer.json()["error"]
        assert "Traceback" not in answer.text
    return answer.status_code


@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_no_request_that_anybody_thinks_of_breaks_the_server(page: Page, mode: str) -> None:
    schemathesis = pytest.importorskip("schemathesis", reason="needs schemathesis (./dev unit installs it)")
    requests = pytest.importorskip("requests")
    schema = schemathesis.openapi.from_dict(page.get("openapi.json").json())
    statuses: list[int] = []
    for found in schema.get_all_operations():
        operation = found.ok()
        if mode == "negative" and not ENDPOINTS[operation.path.removeprefix("/")].parameters:
            continue

        def ask(case: Any) -> None:
            asked = case.as_transport_kwargs(base_url="http://localhost")
            url = requests.Request("GET", asked["url"], params=asked["params"]).prepare().path_url
            if len(url) > MOST_OF_HTTPX:
                return
            statuses.append(check(page, ENDPOINTS[case.path.removeprefix("/")], url.partition("?")[2]))

        strategy = operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode))
        settings = hypothesis.settings(
            max_examples=2,
            derandomize=True,
            database=None,
            deadline=None,
            phases=[hypothesis.Phase.generate],
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        settings(hypothesis.given(strategy)(ask))()
    # Most of what is described as sound is answered, most of what is not is refused: else the descriptions say little.
    answered = sum(status == 200 for status in statuses) / len(statuses)
    assert answered > 0.5 if mode == "positive" else answered < 0.2


def at_its_bounds(parameter: Option, facts: TraceContext) -> list[str | None]:
    """Values of a parameter with which an answer is as large as it gets; None: without it."""
    if parameter.choices:
        return list(parameter.choices)
    if parameter.items:
        count = highest(parameter, facts) + 1
        return [",".join(str(i % count) for i in range(parameter.items)) if count else None]
    whole = {"start_ns": 0, "end_ns": facts.bounds[1], "tile": 0, "after_ns": 0, "at_ns": 1, "time_ns": 1}
    if parameter.name in whole:
        return [str(whole[parameter.name])]
    if parameter.name == "level" and parameter.kind == "whole":  # a tile that holds all, and one that holds few spans
        return [str(facts.bounds[1].bit_length() - 10), "4"]
    if parameter.name in ("width", "bins", "rows", "limit", "points", "most"):
        return [str(min(parameter.most, 10_000))]
    return [str(parameter.least)] if parameter.required and parameter.kind == "whole" else [None]


def largest(endpoint: Endpoint, facts: TraceContext) -> Iterator[str]:
    """Queries with all parameters at a bound; of those with several, each once."""
    values = {each.name: at_its_bounds(each, facts) for each in endpoint.parameters}
    first = {name: several[0] for name, several in values.items()}
    for one in [first, *({**first, name: each} for name, several in values.items() for each in several[1:])]:
        yield urlencode({name: value for name, value in one.items() if value is not None})


@cached_on_trace
def page_of(trace: Any) -> Page:
    return served(trace)


@pytest.mark.parametrize("name", [name for name in ENDPOINTS if name != "behind"])
def test_no_answer_is_larger_than_its_bound_on_a_real_run(public: Any, name: str) -> None:
    trace = public("kineto/v100_train_rank1of2.json.gz")
    page = page_of(trace)
    facts = page.app.library.opened(page.app.library.names[0])
    for query in largest(ENDPOINTS[name], facts):
        check(page, ENDPOINTS[name], query)
