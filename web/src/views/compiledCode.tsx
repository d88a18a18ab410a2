// What torch.compile compiled: what compiling cost and why, and what the code that it made costs, by kernel and line.
import { useMemo } from "preact/hooks";
import { asSentence } from "../base/names";
import { fetchCompilations } from "../data/compilations";
import type { Run } from "../data/run";
import { load, useSession } from "../data/session";
import { type AnalysisTable, columnOf } from "../data/tables/analysisTable";
import type { View } from "../state/view";
import { CompileCost } from "../widgets/compiled/CompileCost";
import { Await } from "../widgets/Loading";
import { AnalysisPage } from "../widgets/tables/AnalysisPage";
import { useTableView } from "../widgets/tables/TablePage";

const ANALYSIS = "compile";
const CELLS = ["kernel", "region", "graph", "file", "line", "source_line"] as const;
const ALSO = ["shapes"] as const;

function CompiledCodePage() {
  const session = useSession();
  const [view, change] = useTableView(ANALYSIS);
  const compilations = useMemo(() => load(() => fetchCompilations(session.api)), [session]);
  return (
    <Await of={compilations.value} what="Looking for compilations">
      {(of) => {
        const above = (run: Run, table: AnalysisTable) => {
          const note = table.rows > 0 && OF_KERNELS.some((name) => columnOf(table, name)) && table.note;
          if (!of.rows.length && !note) return undefined;
          return (
            <>
              {of.rows.length > 0 && (
                <section class="compile-cost surface rows gap-6 scrolls fixed" aria-label="What compiling cost">
                  <CompileCost run={run} of={of} onAll={() => change({ ...view, by: "compilation" })} />
                </section>
              )}
              {note && <p class="table-note weak fine">{asSentence(note)}</p>}
            </>
          );
        };
        return (
          <AnalysisPage name={ANALYSIS} label="Compiled code" first="kernel" cells={CELLS} also={ALSO} above={above} />
        );
      }}
    </Await>
  );
}

/** Columns of rows whose note is about kernels; that of the others is about compilations. */
const OF_KERNELS = ["kernel", "source_line"] as const;

export const view: View = {
  name: "torch_compile",
  title: "Compiled code",
  component: CompiledCodePage,
  chosen: ["row"],
  analysis: ANALYSIS,
  onlyWithData: true,
};
