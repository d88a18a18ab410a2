import { expect, test } from "vitest";
import { countLocations, type LocationKind } from "./run";

const locations = (...kinds: LocationKind[]) => kinds.map((kind) => ({ kind }));

test("streams of GPUs and tasks are not counted as threads", () => {
  expect(countLocations(locations("thread", "stream", "thread", "stream", "stream"))).toBe("2 threads, 3 streams");
  expect(countLocations(locations("stream"))).toBe("1 stream");
  expect(countLocations(locations("task", "thread", "task"))).toBe("1 thread, 2 tasks");
  expect(countLocations([])).toBe("0 threads");
});
