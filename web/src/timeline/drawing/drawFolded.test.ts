import { expect, test } from "vitest";
import type { Detail } from "../../base/kinds.generated";
import { byPiece, type Step } from "../../data/runSteps";

import type { Row } from "../rows/rowLayout";
import { foldedRows, foldedStretches } from "./drawFolded";

const step = (number: number, detail: Detail): Step => ({
  process: 0,
  step: number,
  startNs: number * 100,
  durationNs: 99,
  class: "train",
  classRank: 0,
  outlier: false,
  cause: "",
  count: 1,
  parts: { ...byPiece(() => 0), rest: 99 },
  detail,
  loop: 0,
  warmUp: false,
});

test("neighbouring steps without spans are one stretch, and steps with spans part them", () => {
  const steps = (["all", "none", "none", "part", "none", "all", "none"] as const).map((d, i) => step(i, d));
  expect(foldedStretches(steps, { startNs: 0, endNs: 10_000 })).toEqual([
    { startNs: 100, endNs: 299 },
    { startNs: 400, endNs: 499 },
    { startNs: 600, endNs: 699 },
  ]);
  expect(foldedStretches(steps, { startNs: 300, endNs: 550 })).toEqual([{ startNs: 400, endNs: 499 }]);
});

test("only threads of processes that folded anything hold nothing there", () => {
  const thread = (number: number, process: number): Row => ({
    kind: "location",
    location: { location: number, process, name: "", kind: "thread", threadId: number, spanCount: 1 },
    open: false,
    depths: 0,
    level: 1,
    key: `location-${number}`,
    top: 0,
    height: 20,
  });
  const rows = [thread(0, 0), thread(1, 1), thread(2, 2)];
  expect(foldedRows(rows, [0, 2]).map((row) => row.key)).toEqual(["location-0", "location-2"]);
});
