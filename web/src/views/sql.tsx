// Page: any question in SQL. Tables and their columns at the left, the query above its answer; both in the address.
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { useSession } from "../data/session";
import { fetchQuery } from "../data/tables/analysisTable";
import type { TableFacts } from "../data/wire/wire.generated";
import type { View } from "../state/view";
import { Button, Select } from "../widgets/controls";
import { Await, AwaitWithRun } from "../widgets/Loading";
import { AnswerTable } from "../widgets/tables/AnswerTable";
import { useRested } from "../widgets/useAnswer";

const EXAMPLES: Readonly<Record<string, string>> = {
  "most time by name":
    "select name, sum(self_ns) as self_ns, sum(count)::bigint as calls\nfrom totals\ngroup by name\norder by self_ns desc\nlimit 50",
  "longest spans": "select name, thread, start_ns, duration_ns, step\nfrom spans\norder by duration_ns desc\nlimit 100",
  "slowest steps":
    "select process, step, class, start_ns, duration_ns\nfrom steps\norder by duration_ns desc\nlimit 20",
  "threads and streams": "select process, name, kind, span_count\nfrom locations\norder by span_count desc",
  "kernels by operator": "select operator, sum(total_ns)::bigint as total_ns\nfrom kernels\ngroup by operator",
};

function SqlPage() {
  const session = useSession();
  const text = useRef<HTMLTextAreaElement>(null);
  const { query } = session.state.value;
  // A query that is asked again is another question.
  const asked = useSignal(0);
  const cancelled = useSignal(false);
  const found = useRested(
    query && !cancelled.value ? `${asked.value} ${query}` : "",
    (signal) => fetchQuery(session.api, query, signal),
    { restMs: 0, forget: true },
  );
  const run = (next: string): void => {
    cancelled.value = false;
    asked.value++;
    session.update({ query: next.trim(), row: "" }, "push");
  };
  const insert = (word: string): void => {
    const field = text.current;
    if (!field) return;
    field.setRangeText(word, field.selectionStart, field.selectionEnd, "end");
    field.focus();
  };
  return (
    <div class="analyses">
      <nav class="picker scrolls" aria-label="Tables">
        <h2>Tables</h2>
        <Await of={session.catalogue.value} what="Listing the tables">
          {({ tables }) => (
            <>
              <TableList tables={tables.filter(({ analysis }) => !analysis)} onInsert={insert} />
              <h2>Answers of analyses</h2>
              <TableList tables={tables.filter(({ analysis }) => analysis)} onInsert={insert} />
            </>
          )}
        </Await>
      </nav>
      <section class="analysis vertical" aria-label="Query">
        <div class="query">
          <textarea
            key={query}
            ref={text}
            aria-label="SQL"
            rows={6}
            spellcheck={false}
            placeholder="select name, sum(self_ns) from totals group by name"
            onKeyDown={(event) => {
              event.stopPropagation();
              if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
              event.preventDefault();
              run(event.currentTarget.value);
            }}
          >
            {query}
          </textarea>
          <div class="row wraps">
            <Button class="primary" onClick={() => run(text.current?.value ?? "")}>
              Run <kbd>Ctrl + Enter</kbd>
            </Button>
            {found.waiting.value && query && !cancelled.value && (
              <Button
                onClick={() => {
                  cancelled.value = true;
                }}
              >
                Cancel
              </Button>
            )}
            <Select
              words="Examples"
              choices={["", ...Object.keys(EXAMPLES)]}
              value={Object.keys(EXAMPLES).find((name) => EXAMPLES[name] === query) ?? ""}
              titleOf={(name) => name || "–"}
              onChoose={(name) => run(EXAMPLES[name] ?? "")}
            />
            <span class="weak fine">Read-only. Times are in nanoseconds. A query may take 30 s.</span>
          </div>
        </div>
        <div class="fill">
          {cancelled.value ? (
            <p class="empty">Cancelled.</p>
          ) : found.failure.value ? (
            <p class="empty" role="alert">
              {found.failure.value}
            </p>
          ) : found.value.value ? (
            <Answer query={query} table={found.value.value} />
          ) : (
            <p class={query ? "empty late" : "empty"}>{query ? "Asking …" : "Write a query, or choose an example."}</p>
          )}
        </div>
      </section>
    </div>
  );
}

function Answer({ query, table }: { query: string; table: Awaited<ReturnType<typeof fetchQuery>> }) {
  const answer = { status: "ready", value: table } as const;
  return (
    <AwaitWithRun of={answer} what="Asking">
      {(run, value) => (
        <AnswerTable run={run} table={value} name="sql" label="Answer" options={{ query }} route="sql" />
      )}
    </AwaitWithRun>
  );
}

function TableList({ tables, onInsert }: { tables: readonly TableFacts[]; onInsert: (word: string) => void }) {
  return (
    <>
      {tables.map(({ name, columns }) => (
        <details key={name} class="fine">
          <summary>{name}</summary>
          <ul>
            <li>
              <Button class="link" onClick={() => onInsert(name)}>
                insert {name}
              </Button>
            </li>
            {columns.map((column) => (
              <li key={column.name}>
                <Button class="link" title={column.meaning} onClick={() => onInsert(column.name)}>
                  {column.name}
                </Button>{" "}
                <span class="weak">{column.unit || column.type}</span>
              </li>
            ))}
          </ul>
        </details>
      ))}
    </>
  );
}

export const view: View = { name: "sql", title: "SQL", place: 21, component: SqlPage, chosen: ["row"] };
