// The flat profile of a stretch of time: sorted, searched, and a region of it chosen for all pages.
import { useMemo } from "preact/hooks";
import { formatCount, shownOf } from "../../base/quantity";
import type { TimeRange } from "../../base/time";
import { type AnalysisTable, columnOf } from "../../data/analysisTable";
import { useSession } from "../../data/session";
import { fetchFlatProfile } from "../../data/windowFacts";
import { TableSearch } from "../controls";
import { SaveTable } from "../tables/SaveTable";
import { Table } from "../tables/Table";
import { useTableView } from "../tables/TablePage";
import { orderOf, rowKey } from "../tables/tableRows";
import { useRested } from "../useAnswer";

/** Its name among the views of tables in the address. */
const NAME = "stretch";

type Props = { readonly range: TimeRange; readonly onDurations: () => void };

export function FlatProfile({ range, onDurations }: Props) {
  const session = useSession();
  const { value, failure, waiting } = useRested(`${range.startNs}-${range.endNs}`, (signal) =>
    fetchFlatProfile(session.api, range, signal),
  );
  if (failure.value) return <p class="empty">{failure.value}</p>;
  if (!value.value) return <p class="empty">Summing up …</p>;
  return <Profile table={value.value} range={range} old={waiting.value} onDurations={onDurations} />;
}

type ProfileProps = Props & { readonly table: AnalysisTable; readonly old: boolean };

function Profile({ table, range, old, onDurations }: ProfileProps) {
  const session = useSession();
  const [view, change] = useTableView(NAME);
  const { region } = session.state.value;
  const order = useMemo(() => orderOf(table, view), [table, view]);
  const names = columnOf(table, "name");
  const nameOf = (row: number): string => (names?.kind === "text" ? (names.values[row] ?? "") : "");
  const chosen = useMemo(() => {
    const row = names?.kind === "text" ? names.values.indexOf(region) : -1;
    return region && row >= 0 ? rowKey(table, row) : "";
  }, [table, names, region]);
  if (!table.rows) return <p class="empty">No span is in this stretch of time.</p>;
  return (
    <>
      <div class="drawer-tools row fixed fine">
        <TableSearch
          label="Search the profile"
          placeholder="Search names"
          value={view.find}
          onInput={(find) => change({ ...view, find })}
        />
        <span class="weak ellipsis">
          {shownOf(order.length, table.rows, "name")}
          {table.total > table.rows && ` (the longest of ${formatCount(table.total)})`} · {table.about}
          {old && " · summing up …"}
        </span>
        <span class="spacer" />
        <SaveTable name="profile" range={range} table={table} order={order} />
      </div>
      <Table
        label="Flat profile"
        table={table}
        columns={table.columns}
        order={order}
        view={view}
        chosen={chosen}
        onView={change}
        onChoose={(row) => session.update({ region: nameOf(row) })}
        onOpen={(row) => {
          session.update({ region: nameOf(row) });
          onDurations();
        }}
      />
    </>
  );
}
