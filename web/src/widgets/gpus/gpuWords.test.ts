import { expect, test } from "vitest";
import { columnOf } from "../../data/tables/analysisTable";
import type { Gpu, Ladder } from "../../data/tables/gpuTables";
import { shownColumns } from "../tables/tableRows";
import {
  byHost,
  gpuFacts,
  gpuTitle,
  lossesSentence,
  lossSentence,
  meanLadder,
  rungsOf,
  severalProcesses,
  spreadSentence,
  tableOf,
} from "./gpuWords";

const ladder = (some: Partial<Ladder> = {}): Ladder => ({
  durationNs: 100,
  busy: 0.8,
  filled: 0.6,
  warps: 0.2,
  roofline: undefined,
  rooflineKnown: undefined,
  lost: "warps",
  kernels: 2,
  ...some,
});

const gpu = (some: Partial<Gpu> = {}): Gpu => ({
  process: 0,
  rank: undefined,
  number: 0,
  host: "",
  name: "NVIDIA A100",
  uuid: "",
  capability: "8.0",
  multiprocessors: 108,
  memory_bytes: 80e9,
  mig: false,
  properties: [],
  readings: undefined,
  by_uuid: false,
  throttled: [],
  ladder: ladder(),
  split: undefined,
  measured: undefined,
  ...some,
});

const losses = (one: Ladder) => rungsOf(one).map(({ key, lost, worst }) => [key, Number(lost.toFixed(6)), worst]);

test("what is lost is the difference from rung to rung, and one of them is the worst", () => {
  expect(losses(ladder())).toEqual([
    ["busy", 0.2, false],
    ["filled", 0.2, false],
    ["warps", 0.4, true],
  ]);
});

test("the roofline is a rung only where the server knows it, and no part of the warps", () => {
  expect(losses(ladder({ roofline: 0.15, lost: "SMs" }))).toEqual([
    ["busy", 0.2, false],
    ["filled", 0.2, true],
    ["warps", 0.4, false],
    ["roofline", 0, false],
  ]);
});

test("below a rung that nobody knows nothing is lost, and the next known one counts from the last known", () => {
  const rungs = rungsOf(ladder({ filled: undefined, warps: 0.5, lost: "idle" }));
  expect(rungs.map(({ share, lost }) => [share, Number(lost.toFixed(6))])).toEqual([
    [0.8, 0.2],
    [undefined, 0],
    [0.5, 0.3],
  ]);
});

test("a sentence has where most is lost and what to do, or why it idles", () => {
  expect(lossSentence(ladder())).toBe(
    "Most is lost to warps that are not there: 40 % of the GPU. Use fewer registers, less shared memory, or other block sizes.",
  );
  const idle = ladder({ busy: 0.59, filled: 0.58, lost: "idle" });
  expect(lossSentence(idle)).toBe("Most is lost while no kernel runs: 41 % of the GPU. Launch work sooner.");
  const causes = [{ cause: "data", idleNs: 72, share: 0.72, longest: undefined }];
  expect(lossSentence(idle, causes)).toMatch(/41 % of the GPU\. For 72 % of its idle time it waits for data\.$/);
  expect(lossSentence(ladder({ filled: undefined, warps: undefined, lost: "idle" }))).toBe(
    "No kernel runs for 20 % of the time; how full the GPU is otherwise is not in the trace.",
  );
  expect(lossSentence(ladder({ lost: "something new" }))).toBe("Most is lost to something new.");
});

test("GPUs are called by their rank, or by their process, where there are several", () => {
  expect(gpuTitle(gpu({ rank: 3, number: 1 }), false)).toBe("GPU 1");
  expect(gpuTitle(gpu({ rank: 3, number: 1 }), true)).toBe("rank 3, GPU 1");
  expect(gpuTitle(gpu({ process: 4, number: undefined }), true)).toBe("process 4, GPU");
  expect(severalProcesses([gpu(), gpu({ number: 1 }), gpu({ process: undefined })])).toBe(false);
  expect(severalProcesses([gpu(), gpu({ process: 1 })])).toBe(true);
});

test("a GPU that the process counts otherwise than its machine has both numbers", () => {
  expect(gpuFacts(gpu())).toEqual(["compute capability 8.0", "108 SMs", "80.0 GB"]);
  const other = gpu({ readings: { process: 0, device: 5 }, by_uuid: true, mig: true, multiprocessors: 1 });
  expect(gpuFacts(other).slice(1)).toEqual(["1 SM", "80.0 GB", "MIG is on", "the machine’s GPU 5"]);
  expect(gpuFacts({ ...other, readings: { process: 0, device: 0 } })).not.toContain("the machine’s GPU 0");
});

test("the mean of GPUs weighs each with its time, and knows no rung that one of them does not know", () => {
  const two = [ladder({ durationNs: 300 }), ladder({ durationNs: 100, busy: 0.4, filled: 0.2, warps: 0.2 })];
  const mean = meanLadder(two);
  expect(mean?.busy).toBeCloseTo(0.7);
  expect(mean?.filled).toBeCloseTo(0.5);
  expect(mean?.warps).toBeCloseTo(0.2);
  expect(mean?.lost).toBe("idle"); // 0.3, 0.2, 0.3: of equals the first
  expect(meanLadder([ladder(), ladder({ warps: undefined })])?.warps).toBeUndefined();
  expect(meanLadder([])).toBeUndefined();
});

test("many GPUs in two sentences", () => {
  const many = [
    gpu({ rank: 0, ladder: ladder({ busy: 0.5, lost: "idle" }) }),
    gpu({ rank: 1, ladder: ladder({ busy: 0.9 }) }),
    gpu({ rank: 2, ladder: ladder({ busy: 0.7 }) }),
    gpu({ rank: 3, ladder: undefined }),
  ];
  expect(spreadSentence(many, "busy")).toBe("busy: 70 % on average, from 50 % (rank 0, GPU 0) to 90 % (rank 1, GPU 0)");
  expect(spreadSentence(many, "roofline")).toBe("roofline: not known");
  expect(lossesSentence(many)).toBe("Most is lost to warps that are not there: so on 2 of 3 GPUs.");
});

test("GPUs are listed by machine in the order in which they come", () => {
  const there = [gpu({ host: "b" }), gpu({ host: "a" }), gpu({ host: "b", number: 1 })];
  expect(byHost(there).map(([host, own]) => [host, own.map(({ number }) => number)])).toEqual([
    ["b", [0, 1]],
    ["a", [0]],
  ]);
});

test("the table has no column in which nothing stands, and shows those in which GPUs differ", () => {
  const measured = (name: string) => (name === "power_w" ? 400 : undefined);
  const table = tableOf([gpu({ rank: 0, host: "a" }), gpu({ rank: 1, process: 1, host: "b", measured })]);
  expect(columnOf(table, "roofline_share")).toBeUndefined();
  expect(columnOf(table, "temperature_max_c")).toBeUndefined();
  expect(columnOf(table, "power_w")?.values).toEqual(Float64Array.of(Number.NaN, 400));
  // All are of one model; ranks stand for processes.
  expect(shownColumns(table, false).map(({ name }) => name)).toEqual([
    "host",
    "rank",
    "busy_share",
    "filled_share",
    "warps_share",
    "lost",
    "power_w",
  ]);
});
