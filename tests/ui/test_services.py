"""The page Services: a service whose slow requests are known, its figures, and the way to the timeline."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

import strobe
from tests.deep.kineto import operator, write
from tests.record.workshop import Workshop
from tests.ui.conftest import view, watched_page
from tests.ui.driving import complaints

# 40 requests that wait for a timer, and four that block the event loop, each with one of the others behind it.
PROGRAM = """
import asyncio, time

def compute_report():
    time.sleep(0.12)

async def answer(reader, writer):
    path = (await reader.readuntil(b"\\r\\n\\r\\n")).split()[1]
    if path == b"/report":
        compute_report()
    else:
        await asyncio.sleep(0.004)
    writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
    await writer.drain()
    writer.close()

async def ask(port, path):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\\r\\nHost: here\\r\\n\\r\\n".encode())
    await reader.read()
    writer.close()

async def main():
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    for number in range(36):
        await ask(port, "/fast")
        if number % 9 == 8:
            await asyncio.gather(ask(port, "/report"), ask(port, "/fast"))
    server.close()

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    workshop = Workshop(tmp_path_factory.mktemp("service"))
    done = workshop.recorded("--trace=+requests", str(workshop.write("service.py", PROGRAM)))
    assert done.returncode == 0, done.stderr
    return workshop


@pytest.fixture(scope="module")
def address(service: Workshop) -> Iterator[str]:
    with view(Path(service.trace)) as address:
        yield f"{address}#page=services"


@pytest.fixture
def services(browser: Browser, address: str) -> Iterator[Page]:
    with watched_page(browser, address) as page:
        page.goto(address)
        expect(page.get_by_role("table", name="Routes")).to_be_visible()
        yield page


def shown(ns: float) -> str:
    """A duration as the page writes it, three digits."""
    value, unit = (ns / 1e6, "ms") if ns >= 999_500 else (ns / 1e3, "µs")
    return f"{value:.{0 if value >= 99.95 else 1 if value >= 9.995 else 2}f} {unit}"


def test_routes_have_the_percentiles_of_their_requests(services: Page, service: Workshop) -> None:
    with strobe.open(service.trace) as trace:
        rows = trace.sql("select route, latency_ns from requests").rows()
    for route in ("GET /fast", "GET /report"):
        latencies = [ns for name, ns in rows if name == route]
        cells = [str(len(latencies)), *(shown(round(at)) for at in np.percentile(latencies, [50, 95, 99, 100]))]
        row = services.get_by_role("table", name="Routes").get_by_role("row").filter(has_text=route)
        texts = row.get_by_role("cell").all_inner_texts()
        assert [texts[1], *texts[4:8]] == cells
    assert [len([1 for name, _ in rows if name == route]) for route in ("GET /fast", "GET /report")] == [40, 4]


def test_slow_requests_have_their_parts_and_lead_to_the_timeline(services: Page) -> None:
    slow = services.get_by_role("region", name="Slow requests: GET /report")
    expect(slow).to_contain_text(re.compile(r"its own code runs on the event loop: compute_report \(service.py:4\)"))
    row = services.get_by_role("table", name="Slowest requests").get_by_role("row").nth(1)
    expect(row).to_contain_text(re.compile("compute_report"))
    row.get_by_role("button").click()
    expect(services).to_have_url(re.compile("page=timeline.*span="))
    expect(services.get_by_role("complementary").first).to_contain_text(re.compile("GET /(report|fast)"))


def test_a_chosen_route_is_what_the_page_is_about(services: Page) -> None:
    picture = services.get_by_role("img", name=re.compile("^Latencies of "))
    expect(picture).to_have_attribute("aria-label", re.compile("of 44 requests"))
    services.get_by_role("button", name="GET /fast").click()
    expect(picture).to_have_attribute("aria-label", re.compile("of 40 requests"))
    slowest = services.get_by_role("table", name="Slowest requests")
    expect(slowest.get_by_role("cell", name="GET /report", exact=True)).to_have_count(0)
    expect(services.get_by_role("table", name="Routes")).to_contain_text("GET /report")
    services.reload()
    expect(picture).to_have_attribute("aria-label", re.compile("of 40 requests"))
    services.get_by_role("button", name="All routes").click()
    expect(picture).to_have_attribute("aria-label", re.compile("of 44 requests"))


def test_a_tile_leads_to_its_time(services: Page) -> None:
    services.get_by_role("application", name=re.compile("^Latencies over time")).press("ArrowRight")
    expect(services.get_by_role("tooltip")).to_contain_text(re.compile(r"\d requests? of .* to "))
    services.get_by_role("application", name=re.compile("^Latencies over time")).press("Enter")
    expect(services).to_have_url(re.compile("page=timeline.*time="))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_accessible(browser: Browser, address: str, scheme: str) -> None:
    assert complaints(browser, address, scheme, ".parted-time") == []


def test_a_run_without_requests_names_the_option(browser: Browser, tmp_path: Path) -> None:
    write(tmp_path / "trace.json", operator("aten::mm", 0, 10))
    with view(tmp_path / "trace.json") as address, watched_page(browser, address) as page:
        page.goto(f"{address}#page=services")
        expect(page.get_by_role("main")).to_contain_text("strobe run --trace +requests")
        tab = page.get_by_role("button", name="Services")
        expect(tab).to_have_attribute("title", re.compile("record them with: strobe run --trace .requests"))
        expect(tab).to_be_in_viewport()


def test_a_program_without_a_service_is_offered_no_page_of_services(browser: Browser, tmp_path: Path) -> None:
    write(tmp_path / "trace.json", operator("aten::mm", 0, 10))
    with view(tmp_path / "trace.json") as address, watched_page(browser, address) as page:
        page.goto(f"{address}#page=steps")
        pages = page.get_by_role("navigation", name="Pages")
        expect(pages.get_by_role("button", name="Kernels")).to_have_class("without-data")  # what there is, is known
        expect(pages.get_by_role("button", name="Services")).to_have_count(0)
        expect(pages.get_by_role("button", name="Serving")).to_have_count(0)
