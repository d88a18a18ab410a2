// The answer to any question as a page: search, the table, files, and facts about the chosen row with a way to its time.
import type { ComponentChildren } from "preact";
import { asSentence } from "../../base/names";
import type { Run } from "../../data/run";
import { useSession } from "../../data/session";
import { type AnalysisTable, fileAddress, stretchOf } from "../../data/tables/analysisTable";
import type { Parameters } from "../../data/wire/api";
import { Button } from "../controls";
import { showRange } from "../showOnTimeline";
import { RowFacts } from "./RowFacts";
import { chosenRow, TablePage } from "./TablePage";

type Props = {
  readonly run: Run;
  readonly table: AnalysisTable;
  /** Its name among the tables in the address, and of its files. */
  readonly name: string;
  readonly label: string;
  /** What the files are asked with, and by which route: by default that of the analysis. */
  readonly options: Parameters;
  readonly route?: string;
  readonly tools?: ComponentChildren;
};

export function AnswerTable({ run, table, name, label, options, route, tools }: Props) {
  const session = useSession();
  const show = (row: number): void => {
    const stretch = stretchOf(table, row);
    if (stretch) showRange(session, stretch, { range: stretch });
  };
  const files = (["csv", "json"] as const).map((form) => (
    <a key={form} href={fileAddress(name, options, form, route)} download={`${name}.${form}`}>
      {form.toUpperCase()}
    </a>
  ));
  return (
    <TablePage
      name={name}
      label={label}
      table={table}
      toolsLabel="What the table shows"
      tools={tools}
      links={files}
      none={asSentence(table.note || "no rows")}
      above={table.note && table.rows > 0 && <p class="table-note weak fine">{asSentence(table.note)}</p>}
      side={(row) =>
        row < 0 ? undefined : (
          <>
            {stretchOf(table, row) && (
              <div class="buttons">
                <Button onClick={() => show(row)}>
                  Show on the timeline <kbd>Enter</kbd>
                </Button>
              </div>
            )}
            <RowFacts
              run={run}
              table={table}
              row={row}
              cells={[]}
              inside={undefined}
              onClose={() => session.update({ row: "" })}
            />
          </>
        )
      }
      onChoose={(row) => session.update(chosenRow(table, row))}
      onOpen={show}
    />
  );
}
