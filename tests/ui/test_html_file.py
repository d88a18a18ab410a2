"""The exported HTML file, opened from the disk."""

from pathlib import Path

from playwright.sync_api import Browser

from tests.unit.hand_made import make_trace, train_steps


def test_it_opens_from_the_disk(browser: Browser, tmp_path: Path) -> None:
    make_trace({"main": train_steps(20)}).export(tmp_path / "a.html")
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    troubles: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("console", lambda message: troubles.append(message.text))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"file://{tmp_path / 'a.html'}")
    canvas = page.locator("#icicle")
    box = canvas.bounding_box()
    assert box is not None
    assert box["height"] > 40
    page.mouse.move(box["x"] + 100, box["y"] + 27)
    assert "20 calls" in page.locator("#details").inner_text()
    first = canvas.evaluate("canvas => canvas.toDataURL()")
    page.mouse.click(box["x"] + 100, box["y"] + 27)
    assert canvas.evaluate("canvas => canvas.toDataURL()") != first
    page.keyboard.press("Escape")
    assert canvas.evaluate("canvas => canvas.toDataURL()") == first
    page.fill("#find", "conv2d")
    assert canvas.evaluate("canvas => canvas.toDataURL()") != first
    assert "One step" in page.locator("pre").inner_text()
    assert page.locator("#steps").count() == 1
    page.screenshot(path=str(tmp_path / "page.png"))
    page.close()
    assert troubles == []
    assert asked == [f"file://{tmp_path / 'a.html'}"]
