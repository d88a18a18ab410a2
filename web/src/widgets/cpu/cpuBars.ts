// What the bars of the page CPU show: kinds of time of the rows whose kinds add up, and their names.
import type { Group } from "../../base/kinds.generated";
import { type AnalysisTable, numberIn, textIn } from "../../data/tables/analysisTable";

/** Kinds of time from the bottom of a stack, as `strobe cpu` and the recorder's metrics call them. */
export const CPU_KINDS: readonly {
  readonly name: string;
  readonly title: string;
  readonly metric: string;
  /** Its colour; none: idle. */
  readonly group: Group | undefined;
}[] = [
  { name: "user", title: "user", metric: "machine user", group: "host" },
  { name: "system", title: "system", metric: "machine system", group: "compute" },
  { name: "io_wait", title: "I/O wait", metric: "machine I/O wait", group: "data" },
  { name: "waiting", title: "waiting for a core", metric: "", group: "sync" },
  { name: "stolen", title: "stolen", metric: "machine stolen", group: "communication" },
  { name: "idle", title: "idle", metric: "machine idle", group: undefined },
];

export type CpuBar = {
  readonly row: number;
  readonly title: string;
  readonly shares: readonly { readonly kind: string; readonly share: number }[];
};

const LABELS = ["class", "part", "step"] as const;

/** A bar for each row whose kinds add up to the time of its cores: waits of a process are beside that, and left out. */
export function cpuBars(table: AnalysisTable, most: number): CpuBar[] {
  return Array.from({ length: table.rows }, (_, row) => row)
    .filter((row) => textIn(table, "what", row) !== "threads")
    .slice(0, most)
    .map((row) => {
      const what = textIn(table, "what", row);
      const labels = LABELS.map((name) => textIn(table, name, row) || (numberIn(table, name, row)?.toString() ?? ""));
      const kinds = CPU_KINDS.filter(({ name }) => what !== "process" || !["waiting", "io_wait"].includes(name));
      return {
        row,
        title: [what, textIn(table, "name", row), ...labels].filter(Boolean).join(" · "),
        shares: kinds.map(({ name }) => ({ kind: name, share: numberIn(table, `${name}_share`, row) ?? 0 })),
      };
    });
}
