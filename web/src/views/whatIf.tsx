// What would a step take if something in it took another time? A field for changes, the answer, and its interval.
import { asSentence } from "../base/names";
import { fetchAnalysis } from "../data/analysisTable";
import { useSession } from "../data/session";
import type { View } from "../state/view";
import { TableSearch } from "../widgets/controls";
import { Table } from "../widgets/tables/Table";
import { useTableView } from "../widgets/tables/TablePage";
import { orderOf, shownColumns } from "../widgets/tables/tableRows";
import { useRested } from "../widgets/useAnswer";

const NAME = "what_if";
const ignored = (): void => undefined;

function WhatIfPage() {
  const session = useSession();
  const [view, onView] = useTableView(NAME);
  const change = view.inside;
  const { value, failure, waiting } = useRested(`change: ${change}`, () =>
    fetchAnalysis(session.api, NAME, change ? { change } : {}),
  );
  const table = failure.value ? undefined : value.value;
  return (
    <div class="steps vertical">
      <div class="filters row wraps" role="toolbar" aria-label="What changes">
        <TableSearch
          label="What changes"
          placeholder="gemm*=0.5, no-sync, workers=4"
          value={change}
          onInput={(inside) => onView({ ...view, inside })}
        />
        <span class="weak">{waiting.value ? "Replaying …" : table?.about}</span>
      </div>
      {failure.value && (
        <p class="empty" role="alert">
          {failure.value}
        </p>
      )}
      {table && !table.rows && <p class="empty">{asSentence(table.note)}</p>}
      {table && table.rows > 0 && (
        <Table
          label="What if"
          table={table}
          columns={shownColumns(table, true)}
          order={orderOf(table, { ...view, inside: "" })}
          view={view}
          chosen=""
          onView={onView}
          onChoose={ignored}
          onOpen={ignored}
        />
      )}
    </div>
  );
}

export const view: View = { name: NAME, title: "What if", place: 11, component: WhatIfPage };
