// What ran in a chosen stretch, by any column of its spans: how often, for how long, and how long each lasted.
import { isGroup } from "../../base/color";
import { formatCount } from "../../base/quantity";
import { formatDuration, type TimeRange } from "../../base/time";
import { useSession } from "../../data/session";
import { numberIn, textIn } from "../../data/tables/analysisTable";
import { fetchFlatProfile, PROFILE_BY, profileBy } from "../../data/windowFacts";
import { Select } from "../controls";
import { PROFILE_TABLE } from "../drawer/FlatProfile";
import { UsageRow } from "../figures";
import { useTableView } from "../tables/TablePage";
import { useRested } from "../useAnswer";

/** Rows beyond these are in the table below the tracks. */
const MOST = 12;

export function Pivot({ range, onName }: { range: TimeRange; onName: (name: string) => void }) {
  const session = useSession();
  const [view, change] = useTableView(PROFILE_TABLE);
  const by = profileBy(view.by);
  const { value, failure } = useRested(`${range.startNs}-${range.endNs}-${by}`, (signal) =>
    fetchFlatProfile(session.api, range, by, signal),
  );
  const table = value.value;
  const rows = Array.from({ length: Math.min(MOST, table?.rows ?? 0) }, (_, row) => row);
  return (
    <section class="rows gap-6" aria-label="Spans of the stretch">
      <div class="row gap-6">
        <h3>Spans</h3>
        <Select
          words="by"
          choices={PROFILE_BY}
          value={by}
          titleOf={(one) => one}
          onChoose={(one) => change({ ...view, by: one === "name" ? "" : one })}
        />
      </div>
      {failure.value && <p class="empty">{failure.value}</p>}
      {table && (
        <ul class="usage rows gap-4 fine">
          {rows.map((row) => {
            const name = textIn(table, "name", row);
            const group = textIn(table, "group", row);
            const number = (column: string): number => numberIn(table, column, row) ?? 0;
            const lasted = (column: string): string => formatDuration(number(column));
            return (
              <UsageRow
                key={name}
                title={name}
                group={isGroup(group) ? group : "other"}
                name={
                  <>
                    {name}
                    {numberIn(table, "average_ns", row) !== undefined && (
                      <span class="weak finer durations">
                        {formatCount(number("executions"))} × {lasted("shortest_ns")} · {lasted("average_ns")} ·{" "}
                        {lasted("longest_ns")}
                      </span>
                    )}
                  </>
                }
                amount={lasted("exclusive_ns")}
                button={by === "name" ? { onClick: () => onName(name) } : undefined}
              />
            );
          })}
        </ul>
      )}
      <p class="weak finer">
        Exclusive time of all threads and streams; below it how many begin here, and the shortest, mean and longest of
        their durations.{table && table.rows > MOST && ` ${formatCount(table.rows - MOST)} more are in the table (L).`}
      </p>
    </section>
  );
}
