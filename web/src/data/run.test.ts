import { expect, test } from "vitest";
import type { LocationKind } from "../base/kinds.generated";
import { countLocations, type Location } from "./run";

const locations = (...kinds: LocationKind[]): Location[] =>
  kinds.map((kind, location) => ({ location, process: 0, name: "", kind, threadId: 1 + location, spanCount: 1 }));

test("streams of GPUs and tasks are not counted as threads", () => {
  expect(countLocations(locations("thread", "stream", "thread", "stream", "stream"))).toBe("2 threads, 3 streams");
  expect(countLocations(locations("stream"))).toBe("1 stream");
  expect(countLocations(locations("task", "thread", "task"))).toBe("1 thread, 2 tasks");
  expect(countLocations([])).toBe("0 threads");
});

test("a stream whose work overlaps is one stream, and those of other GPUs are others", () => {
  const stream = (device: number, process = 0): Location => ({
    location: 3,
    process,
    name: "stream 7",
    kind: "stream",
    device,
    threadId: 7,
    spanCount: 1,
  });
  expect(countLocations([stream(0), stream(0)])).toBe("1 stream");
  expect(countLocations([stream(0), stream(1), stream(0, 1)])).toBe("3 streams");
});
