import { describe, expect, test } from "vitest";
import { formatState, INITIAL, parseState, type State, TRAIL_LIMIT } from "./address";

const full: State = {
  page: "timeline",
  window: { startNs: 1_000, endNs: 2_000_000 },
  trail: [undefined, { startNs: 0, endNs: 5_000_000 }],
  open: [0, 3],
  measured: [1],
  rows: {
    preset: "radar",
    sort: "value",
    sortAt: 123_456,
    filter: "rank:3-7 -stream & =",
    folds: "all",
    flipped: ["p3", "n0"],
    pinned: ["l5", "m3.bytes/s"],
    fit: true,
    measure: "region.aten::mm ~ &",
    location: 4,
  },
  selection: { location: 3, startNs: 123_456_789_012_345, depth: 7 },
  gap: { location: 2, startNs: 77 },
  critical: 1_234,
  messages: true,
  notes: true,
  drawer: {
    tab: "processes",
    tallPx: 333,
    lasting: { startNs: 10, endNs: 10 },
    by: "region",
    clusters: 4,
    sort: "time",
  },
  range: { startNs: 5, endNs: 9 },
  find: "aten::conv2d & more=?",
  step: 412,
  region: "autograd::engine::evaluate_function: AddmmBackward0",
  level: "Optimizer.step#SGD.step",
  stack: { metric: "gap", sort: "duration", widths: "time", folded: ["0_12", "30_41"] },
  flow: true,
  steps: { classes: ["train", "train+validation"], outliers: true, detailed: true },
  profile: { form: "sandwich", measure: "gpu", part: "class.train-1", place: "p3" },
  frame: "p12.5",
  tables: {
    operators: { by: "type", sort: "avg_ns", down: true, find: "conv & =", inside: "add backward", all: true },
    kernels: { by: "stream", sort: "", down: false, find: "", inside: "", all: false },
  },
  row: "1x2y3z-k9",
  process: 2,
  analysis: { name: "what_if", options: { change: "a & b = c", by: "rank" } },
  query: "select name, count(*) from spans where name like 'a%' group by 1 -- & more",
};

describe("the state in the address", () => {
  test("comes back as it was written", () => expect(parseState(formatState(full))).toEqual(full));
  test("is the initial one when the hash is empty", () => expect(parseState("")).toEqual(INITIAL));
  test("distinguishes 'nothing opened' from 'not chosen'", () => {
    expect(parseState(formatState({ ...full, open: [] })).open).toEqual([]);
    expect(parseState("#page=timeline").open).toBeUndefined();
  });
  test.each([
    "#time=9-3",
    "#time=a-b",
    "#span=1",
    "#open=x",
    "#trail=zz~8-1",
    "#%%%",
    "#step=x",

    "#stack=a-b-c",
    "#profile=a-b-c",
    "#gap=5",
    "#drawer=x-y",
    "#lasting=9-3",
    "#lasting=-1",
    "#bars=a-b-99",
    "#preset=x&sort=value&fold=some~&pin=~5&fit=yes&measure=heat&location=-3",
    "#sort=value-x",
  ])("survives nonsense: %s", (hash) => expect(parseState(hash)).toEqual(INITIAL));
  test("keeps the trail short by forgetting the outermost windows", () => {
    const trail = Array.from({ length: 40 }, (_, i) => ({ startNs: i, endNs: 1_000 }));
    const back = parseState(formatState({ ...full, trail })).trail;
    expect(back).toHaveLength(TRAIL_LIMIT);
    expect(back.at(-1)).toEqual(trail.at(-1));
  });
});
