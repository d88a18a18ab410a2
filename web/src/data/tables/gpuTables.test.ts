import { expect, test } from "vitest";
import type { AnalysisTable, Column } from "./analysisTable";
import { idleOf, joinGpus } from "./gpuTables";

type Cells = Readonly<Record<string, readonly (number | string)[]>>;

/** A table as the server answers it; NaN is null. */
function table(cells: Cells): AnalysisTable {
  const columns = Object.entries(cells).map(([name, values]): Column => {
    const about = { name, title: name, unit: "", meaning: "", extra: false };
    return values.every((value) => typeof value === "string")
      ? { ...about, kind: "text", values }
      : { ...about, kind: "number", whole: false, values: Float64Array.from(values, Number) };
  });
  const [first] = columns;
  return { columns, rows: first?.values.length ?? 0, total: 0, question: "", about: "", note: "", options: [] };
}

const known = (process: number | undefined, number: number | undefined, device?: number) => ({
  process,
  rank: undefined,
  number,
  host: "",
  name: "",
  uuid: "",
  capability: "",
  multiprocessors: undefined,
  memory_bytes: undefined,
  mig: false,
  properties: [],
  readings: device === undefined ? undefined : { process: 0, device },
  by_uuid: false,
  throttled: [],
});

const UTILISATION = {
  process: [0, 1, 1],
  device: [0, 0, Number.NaN],
  duration_ns: [100, 200, 300],
  busy_share: [0.5, 0.6, 0.7],
  sms_filled_share: [0.4, Number.NaN, 0.3],
  warps_there_share: [0.2, Number.NaN, 0.1],
  lost: ["idle", "idle", "SMs"],
  kernels: [3, 4, 5],
};
const OVERLAP = {
  process: [0],
  device: [0],
  duration_ns: [100],
  busy_ns: [80],
  idle_ns: [20],
  computation_ns: [50],
  exposed_communication_ns: [20],
};
// The process calls 0 what the machine calls 3.
const DEVICES = { process: [0, 0], device: [0, 3], power_w: [90, 400] };

const joined = (more: Cells = {}) =>
  joinGpus(
    [known(0, 0, 3), known(1, 0), known(1, undefined), known(undefined, 0, 0)],
    table({ ...UTILISATION, ...more }),
    table(OVERLAP),
    table(DEVICES),
  );

test("every GPU has the rows about it, also where its number is not known", () => {
  const [first, second, third, unused] = joined();
  expect(first?.ladder).toMatchObject({ busy: 0.5, filled: 0.4, warps: 0.2, lost: "idle", kernels: 3 });
  expect(second?.ladder).toMatchObject({ busy: 0.6, filled: undefined, warps: undefined });
  expect(third?.ladder).toMatchObject({ busy: 0.7, durationNs: 300 });
  expect(unused?.ladder).toBeUndefined();
  expect([first, second, third, unused].map((one) => one?.measured?.("power_w"))).toEqual([
    400,
    undefined,
    undefined,
    90,
  ]);
  expect(first?.measured?.("no such column")).toBeUndefined();
});

test("its time is divided into parts that add up to 1", () => {
  expect(joined()[0]?.split).toMatchObject({ computation: 0.5, communication: 0.2, idle: 0.2 });
  expect(joined()[0]?.split?.copy).toBeCloseTo(0.1);
  expect(joined()[1]?.split).toBeUndefined();
});

test("the roofline is taken where the server has it", () => {
  expect(joined()[0]?.ladder?.roofline).toBeUndefined();
  const [first] = joined({ roofline_share: [0.15, 0.1, 0.1], roofline_known_share: [0.9, 1, 1] });
  expect(first?.ladder).toMatchObject({ roofline: 0.15, rooflineKnown: 0.9 });
});

test("idle time is found by process and number", () => {
  const cause = { cause: "data", idleNs: 5, share: 1, longest: undefined };
  const idle = new Map([["1/undefined", [cause]]]);
  expect(idleOf(idle, { process: 1, number: undefined })).toEqual([cause]);
  expect(idleOf(idle, { process: 1, number: 0 })).toEqual([]);
});
