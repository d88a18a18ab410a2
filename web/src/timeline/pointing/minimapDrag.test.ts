import { expect, test } from "vitest";
import { draggedWindow, gripAt } from "./minimapDrag";

const run = { startNs: 0, endNs: 100_000 };
const window = { startNs: 20_000, endNs: 40_000 };

test("a press takes an edge of the window, the window, or brings it there; in the whole run it draws one", () => {
  expect(gripAt(20_500, window, run, 1000)).toBe("start");
  expect(gripAt(39_900, window, run, 1000)).toBe("end");
  expect(gripAt(30_000, window, run, 1000)).toBe("move");
  expect(gripAt(80_000, window, run, 1000)).toBe("move");
  expect(gripAt(30_000, run, run, 1000)).toBe("draw");
  expect(gripAt(30_010, { startNs: 30_000, endNs: 30_020 }, run, 1000), "a thin window is moved").toBe("move");
});

test("dragging moves the window, or one of its edges, and stays in the run", () => {
  expect(draggedWindow("move", window, 30_000, 35_000, run)).toEqual({ startNs: 25_000, endNs: 45_000 });
  expect(draggedWindow("move", window, 30_000, 99_000, run)).toEqual({ startNs: 80_000, endNs: 100_000 });
  expect(draggedWindow("move", window, 70_000, 70_000, run), "a press outside").toEqual({
    startNs: 60_000,
    endNs: 80_000,
  });
  expect(draggedWindow("start", window, 20_000, 10_000, run)).toEqual({ startNs: 10_000, endNs: 40_000 });
  expect(draggedWindow("end", window, 40_000, 10_000, run), "over the other edge").toEqual({
    startNs: 10_000,
    endNs: 20_000,
  });
  expect(draggedWindow("draw", run, 60_000, 50_000, run)).toEqual({ startNs: 50_000, endNs: 60_000 });
});
