// The flat profile of a stretch of time: sorted, searched, and a region of it chosen for all pages.
import { useMemo } from "preact/hooks";
import { formatCount, shownOf } from "../../base/quantity";
import type { TimeRange } from "../../base/time";
import { useSession } from "../../data/session";
import { type AnalysisTable, columnOf } from "../../data/tables/analysisTable";
import { fetchFlatProfile, PROFILE_BY, type ProfileBy, profileBy } from "../../data/windowFacts";
import { Button, Select, TableSearch } from "../controls";
import { SaveTable } from "../tables/SaveTable";
import { Table } from "../tables/Table";
import { useTableView } from "../tables/TablePage";
import { orderOf, rowKey } from "../tables/tableRows";
import { useRested } from "../useAnswer";

/** Its name among the views of tables in the address. */
export const PROFILE_TABLE = "stretch";
/** Rows by these are regions. */
const NAMES: ReadonlySet<ProfileBy> = new Set(["name", "caller"] as const);

type Props = { readonly range: TimeRange; readonly onDurations: () => void };

export function FlatProfile({ range, onDurations }: Props) {
  const session = useSession();
  const [view, change] = useTableView(PROFILE_TABLE);
  const by = profileBy(view.by);
  const { value, failure, waiting } = useRested(`${range.startNs}-${range.endNs}-${by}`, (signal) =>
    fetchFlatProfile(session.api, range, by, signal),
  );
  if (failure.value)
    return (
      <p class="empty">
        {failure.value}
        {by !== "name" && <Button onClick={() => change({ ...view, by: "" })}>by name</Button>}
      </p>
    );
  if (!value.value) return <p class="empty">Summing up …</p>;
  return <Profile table={value.value} range={range} old={waiting.value} onDurations={onDurations} />;
}

type ProfileProps = Props & { readonly table: AnalysisTable; readonly old: boolean };

function Profile({ table, range, old, onDurations }: ProfileProps) {
  const session = useSession();
  const [view, change] = useTableView(PROFILE_TABLE);
  const by = profileBy(view.by);
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
        <Select
          words="by"
          choices={PROFILE_BY}
          value={by}
          title="What rows are"
          titleOf={(one) => one}
          onChoose={(one) => change({ ...view, by: one === "name" ? "" : one, find: "" })}
        />
        <TableSearch
          label="Search the profile"
          placeholder="Search names"
          value={view.find}
          onInput={(find) => change({ ...view, find })}
        />
        <span class="weak ellipsis">
          {shownOf(order.length, table.rows, by)}
          {table.total > table.rows && ` (the longest of ${formatCount(table.total)})`} · {table.about}
          {old && " · summing up …"}
        </span>
        <span class="spacer" />
        <SaveTable name="profile" range={range} table={table} order={order} />
      </div>
      <Table
        label="Flat profile"
        table={table}
        columns={table.columns.filter(({ name }) => name !== "group" || by === "name")}
        order={order}
        view={view}
        chosen={chosen}
        onView={change}
        onChoose={(row) => {
          if (NAMES.has(by)) session.update({ region: nameOf(row) });
        }}
        onOpen={(row) => {
          if (!NAMES.has(by)) return;
          session.update({ region: nameOf(row) });
          onDurations();
        }}
      />
    </>
  );
}
