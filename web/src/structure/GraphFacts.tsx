// The flow graph in numbers: its size beside that of the events, and from which step on it is stable.
import { useMemo } from "preact/hooks";
import { formatCount, plural } from "../base/quantity";
import { load, useSession } from "../data/session";
import { type AnalysisTable, fetchAnalysis, numberIn } from "../data/tables/analysisTable";
import { Button } from "../widgets/controls";

const NAME = "flow_graph";

export function GraphFacts({ process }: { process: number }) {
  const session = useSession();
  const found = useMemo(() => load(() => fetchAnalysis(session.api, NAME)), [session]);
  const row =
    found.value.status === "ready"
      ? { table: found.value.value, at: rowOfProcess(found.value.value, process) }
      : undefined;
  if (!row || row.at < 0) return null;
  const value = (column: string): number | undefined => numberIn(row.table, column, row.at);
  const [compression = 0, stable] = [value("compression"), value("stable_from")];
  const words = [
    plural(value("events") ?? 0, "event"),
    plural(value("nodes") ?? 0, "node"),
    plural(value("edges") ?? 0, "edge"),
    compression > 1 && `${compression.toFixed(1)} × smaller than the sequence`,
    stable !== undefined && `no new node from step ${formatCount(stable)} on`,
  ].filter(Boolean);
  return (
    <Button
      class="link fine"
      title="How the graph grows from step to step"
      onClick={() => session.update({ page: "analyses", analysis: { name: NAME, options: { by: "step" } } }, "push")}
    >
      {words.join(" · ")}
    </Button>
  );
}

const rowOfProcess = (table: AnalysisTable, process: number): number =>
  Array.from({ length: table.rows }, (_, row) => row).findIndex((row) => numberIn(table, "process", row) === process);
