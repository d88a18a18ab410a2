import { tableFromArrays, tableToIPC } from "@uwdata/flechette";
import { expect, test } from "vitest";
import type { LocationKind } from "../base/kinds.generated";
import { countLocations, fetchRun, type Location } from "./run";
import { createApi } from "./wire/api";

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

const META = {
  name: "run",
  program: "",
  command: [],
  host: "",
  python: "",
  ended: "",
  started_unix_ns: 0,
  start_ns: 0,
};
const SIZES = {
  running: false,
  end_ns: 0,
  span_count: 0,
  folded_count: 0,
  folded_processes: [],
  sampled: [],
  flight_recorder: false,
  size_bytes: 0,
  tile_cells: 1,
  lost: [],
};

/** The run that the page reads from a server that has processes with these names and command lines. */
function runOf(name: string[], argv: string[]) {
  const number = name.map((_, i) => i);
  const rows = { process: number, pid: number, parent_pid: number, main: number.map((i) => i === 0), rank: number };
  const tables: Readonly<Record<string, Record<string, unknown[]>>> = {
    processes: { ...rows, host: name.map(() => "a"), name, argv },
    locations: {
      location: [7],
      process: [0],
      name: ["main"],
      kind: ["thread"],
      thread_id: [1],
      span_count: [2],
      device: [null],
    },
  };
  const api = createApi(new URL("http://here/"), async (address) => {
    const table = tables[String(address).split("/").at(-1) ?? ""];
    if (!table) return Response.json({ ...META, ...SIZES });
    return new Response(Uint8Array.from(tableToIPC(tableFromArrays(table), { format: "stream" }) ?? []));
  });
  return fetchRun(api);
}

test("a process is called what the program calls it, else by its command without Python, options and folders", async () => {
  const commands = ["/opt/bin/python3.11 -u src/train.py --lr 1", "./lulesh -s 30", "python -c pass", "", "solver"];
  const { processes, locations } = await runOf(["", "", "", "", "rank 7"], commands);
  expect(processes.map(({ title }) => title)).toEqual(["train.py --lr 1", "lulesh -s 30", "pass", "", "rank 7"]);
  expect(processes[1]).toMatchObject({ process: 1, pid: 1, parentPid: 1, main: false, host: "a", rank: 1 });
  const thread = {
    location: 7,
    process: 0,
    name: "main",
    kind: "thread",
    threadId: 1,
    spanCount: 2,
    device: undefined,
  };
  expect(locations).toEqual([thread]);
});
