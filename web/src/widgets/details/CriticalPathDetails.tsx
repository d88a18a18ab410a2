// What the critical path of a step consists of, most time first, and how much longer the rest could take.
import { formatShare, shownOf } from "../../base/quantity";
import { formatDuration } from "../../base/time";
import type { CriticalPath } from "../../data/runSteps";
import { useSession } from "../../data/session";
import { type AnalysisTable, fetchAnalysis, numberIn, textIn } from "../../data/tables/analysisTable";
import { Button, Close } from "../controls";
import { useRested } from "../useAnswer";

type Props = {
  readonly path: CriticalPath;
  readonly onName: (name: string) => void;
  readonly onClose: () => void;
};

/** Rows of each list; the command `strobe critical-path` has all. */
const MOST = 14;
/** Work beside the path that takes less than this part of it is not listed. */
const LEAST_BESIDE = 0.01;

export function CriticalPathDetails({ path, onName, onClose }: Props) {
  const session = useSession();
  const { step } = path;
  const { value, failure } = useRested(step ?? "", () =>
    fetchAnalysis(session.api, "critical_path", { by: "location", step: step ?? "" }),
  );
  return (
    <section class="span-details rows gap-12" aria-label="Critical path">
      <header>
        <h2>{path.about}</h2>
        <Close label="Hide the path" title="Hide it (C)" onClick={onClose} />
      </header>
      {failure.value && <p class="empty">{failure.value}</p>}
      {step !== undefined && !value.value && !failure.value && <p class="empty">Walking back through the step …</p>}
      {value.value && <Lists table={value.value} onName={onName} />}
    </section>
  );
}

function Lists({ table, onName }: { table: AnalysisTable; onName: (name: string) => void }) {
  const number = (column: string, row: number): number => numberIn(table, column, row) ?? 0;
  const rows = Array.from({ length: table.rows }, (_, row) => row);
  const on = rows.filter((row) => number("time_ns", row) > 0);
  const length = on.reduce((sum, row) => sum + number("time_ns", row), 0);
  const beside = rows
    .filter((row) => number("time_ns", row) === 0 && number("own_ns", row) >= LEAST_BESIDE * length)
    .sort((a, b) => number("slack_ns", a) - number("slack_ns", b));
  const line = (row: number, amount: string, aside: string) => {
    const path = textIn(table, "call_path", row);
    const [name = ""] = path.split(" < ");
    return (
      <li key={row} class="cells" title={path.replaceAll(" < ", "\n< ")}>
        {name ? (
          <Button class="plain ellipsis" onClick={() => onName(name)}>
            {name}
          </Button>
        ) : (
          <span>waits ({textIn(table, "kind", row)})</span>
        )}
        <span class="number">{amount}</span>
        <span class="weak finer">
          {[textIn(table, "location", row), textIn(table, "kind", row)].filter(Boolean).join(" · ")}
        </span>
        <span class="number weak">{aside}</span>
      </li>
    );
  };
  return (
    <>
      <section class="rows gap-6" aria-label="On the path">
        <h3>On the path: {shownOf(Math.min(MOST, on.length), on.length, "part")}</h3>
        <ol class="path-parts rows gap-6 fine">
          {on
            .slice(0, MOST)
            .map((row) =>
              line(row, formatDuration(number("time_ns", row)), formatShare(number("time_ns", row) / length)),
            )}
        </ol>
        <p class="weak finer">Only making one of these faster makes the step faster.</p>
      </section>
      {beside.length > 0 && (
        <section class="rows gap-6" aria-label="Beside the path">
          <h3>Beside the path: least slack first</h3>
          <ol class="path-parts rows gap-6 fine">
            {beside.slice(0, MOST).map((row) => line(row, formatDuration(number("slack_ns", row)), "slack"))}
          </ol>
          <p class="weak finer">Slack: how much longer it could take before the step ends later.</p>
        </section>
      )}
    </>
  );
}
