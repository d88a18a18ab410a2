// A button that saves a table as it is shown.
import { csvText, fileName } from "../../base/csv";
import { csvFile, saveFile } from "../../base/download";
import type { TimeRange } from "../../base/time";
import { useSession } from "../../data/session";
import type { AnalysisTable } from "../../data/tables/analysisTable";
import { Button } from "../controls";

type Props = {
  /** What it is called in the name of the file. */
  readonly name: string;
  readonly range: TimeRange;
  readonly table: AnalysisTable;
  readonly order: readonly number[];
};

export function SaveTable({ name, range, table, order }: Props) {
  const rows = () => [
    table.columns.map((column) => column.name),
    ...order.map((row) => table.columns.map((column) => column.values[row])),
  ];
  return <SaveRows name={name} range={range} rows={rows} />;
}

type RowsProps = {
  readonly name: string;
  readonly range: TimeRange;
  /** The table with its heading, made when it is wanted. */
  readonly rows: () => readonly (readonly (string | number | boolean | undefined)[])[];
};

export function SaveRows({ name, range, rows }: RowsProps) {
  const session = useSession();
  const run = session.run.value;
  const trace = run.status === "ready" ? run.value.meta.name : "";
  const save = (): void => saveFile(fileName(trace, name, range, "csv"), csvFile(csvText(rows())));
  return (
    <Button class="quiet" onClick={save} title="Save this table as CSV">
      CSV
    </Button>
  );
}
