// What would a step take if something in it took another time? A field for changes, the answer, and its interval.
import { asSentence } from "../base/names";
import { formatDuration } from "../base/time";
import { useSession } from "../data/session";
import { type AnalysisTable, fetchAnalysis, numberIn, textIn } from "../data/tables/analysisTable";
import type { View } from "../state/view";
import { Button, TableSearch } from "../widgets/controls";
import { Table } from "../widgets/tables/Table";
import { useTableView } from "../widgets/tables/TablePage";
import { orderOf, shownColumns } from "../widgets/tables/tableRows";
import { useRested } from "../widgets/useAnswer";

const NAME = "what_if";
const ignored = (): void => undefined;
/** What can be typed, and what it means. */
const EXAMPLES: readonly (readonly [change: string, meaning: string])[] = [
  ["aten::conv2d=0.5", "a function, operator, module or kernel of this name takes half of its time; * is any text"],
  ["host=0.5", "so does a kind of time: host, data, launch, queue, computation, communication, copy, sync"],
  ["gemm*=0.4..0.6", "a factor that is not sure is a range"],
  ["no-launch", "work of GPUs needs no launch of its own, as in a CUDA graph"],
  ["no-sync", "no call waits for the GPU"],
  ["no-straggler", "each rank takes what the median of the ranks takes"],
  ["workers=4", "so many processes of the data loader"],
  ["ranks=2x", "twice the ranks, each with the work of one now"],
];

function WhatIfPage() {
  const session = useSession();
  const [view, onView] = useTableView(NAME);
  const change = view.inside;
  const { value, failure, waiting } = useRested(`change: ${change}`, () =>
    fetchAnalysis(session.api, NAME, change ? { change } : { by: "change" }),
  );
  const table = failure.value ? undefined : value.value;
  return (
    <div class="steps vertical">
      <div class="filters what-if row wraps" role="toolbar" aria-label="What changes">
        <TableSearch
          label="What changes"
          placeholder="gemm*=0.5, no-sync, workers=4"
          value={change}
          onInput={(inside) => onView({ ...view, inside })}
        />
        <span class="weak">{waiting.value ? "Replaying …" : table?.about}</span>
      </div>
      {!change && table && table.rows > 0 && (
        <Proposals of={table} onChoose={(inside) => onView({ ...view, inside })} />
      )}
      {failure.value && (
        <p class="empty" role="alert">
          {failure.value}
        </p>
      )}
      {table && !table.rows && <p class="empty">{asSentence(table.note)}</p>}
      {change && table && table.rows > 0 && (
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
      {!change && <Syntax />}
    </div>
  );
}

/** Changes that may gain something in the steps of this run, the best first. */
function Proposals({ of, onChoose }: { of: AnalysisTable; onChoose: (change: string) => void }) {
  const changes = Array.from({ length: of.rows }, (_, row) => textIn(of, "change", row));
  const time = (name: string, row: number): string => formatDuration(numberIn(of, name, row) ?? 0);
  return (
    <section class="changes rows gap-6" aria-labelledby="proposals-title">
      <h2 id="proposals-title">What may gain something in these steps</h2>
      <ul class="rows gap-6">
        {changes.map((change, row) => (
          <li key={change} class="row gap-12">
            <Button class="chip row" onClick={() => onChoose(change)}>
              {change}
            </Button>
            <span class="weak">
              {time("gain_low_ns", row)} to {time("gain_high_ns", row)} of {time("replayed_ns", row)}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

const Syntax = () => (
  <section class="changes rows gap-6" aria-labelledby="changes-title">
    <h2 id="changes-title">What can be typed</h2>
    <ul class="rows gap-6">
      {EXAMPLES.map(([change, meaning]) => (
        <li key={change} class="row gap-12">
          <code>{change}</code>
          <span class="weak">{meaning}</span>
        </li>
      ))}
    </ul>
    <p class="weak">Several with commas between them. The answer is an interval: how far the replay can be trusted.</p>
  </section>
);

export const view: View = { name: NAME, title: "What if", place: 11, component: WhatIfPage };
