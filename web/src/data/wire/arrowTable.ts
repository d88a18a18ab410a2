// Tables as Arrow: any column by its name, or, of a route, all columns as their description has them.
import { type Column, type Table, Type, tableFromIPC } from "@uwdata/flechette";
import { fail, WireError } from "./decoders";

/** A column of a table, from its schema. */
export type ArrowField = {
  readonly name: string;
  readonly kind: "whole" | "real" | "text" | "flag" | "other";
  readonly metadata: (key: string) => string;
};

const KINDS: ReadonlyMap<number, ArrowField["kind"]> = new Map([
  [Type.Int, "whole"],
  [Type.Float, "real"],
  [Type.Utf8, "text"],
  [Type.Bool, "flag"],
]);

/** Cells of a part of a column. Where each byte is a character, one decoding serves all: of each takes 1 µs. */
function textAt(part: Column<unknown>["data"][number]): (row: number) => unknown {
  const { values, offsets, nullCount } = part;
  if (!nullCount && offsets instanceof Int32Array && values instanceof Uint8Array) {
    const text = new TextDecoder().decode(values);
    if (text.length === values.length) return (row) => text.slice(offsets[row], offsets[row + 1]);
  }
  return (row) => part.at(row);
}

/** An Arrow table whose columns are fetched by name and type. */
export class ArrowTable {
  private readonly table: Table;

  constructor(bytes: Uint8Array) {
    this.table = tableFromIPC(bytes, { useBigInt: true });
  }

  get rows(): number {
    return this.table.numRows;
  }

  /** A value of the schema's own metadata. */
  metadata(name: string): string | undefined {
    return this.table.schema.metadata?.get(name) ?? undefined;
  }

  /** What the columns are, in their order. */
  get fields(): readonly ArrowField[] {
    return this.table.schema.fields.map(({ name, type, metadata }) => ({
      name,
      kind: KINDS.get(type.typeId) ?? "other",
      metadata: (key) => metadata?.get(key) ?? "",
    }));
  }

  has(name: string): boolean {
    return this.table.names.includes(name);
  }

  /** Numbers, one per row; null becomes NaN. Integers of 64 bits are exact up to 2^53, and rounded above. */
  numbers(name: string): Float64Array {
    const column = this.column(name);
    const out = new Float64Array(this.rows);
    for (let i = 0; i < this.rows; i++) {
      const value = column.at(i) ?? Number.NaN;
      out[i] = typeof value === "number" || typeof value === "bigint" ? Number(value) : fail(name, "numbers", value);
    }
    return out;
  }

  /** Texts, one per row; null becomes "". */
  texts(name: string): string[] {
    return this.column(name).data.flatMap((batch) => {
      const at = textAt(batch);
      return Array.from({ length: batch.length }, (_, i) => {
        const value = at(i) ?? "";
        return typeof value === "string" ? value : fail(name, "texts", value);
      });
    });
  }

  /** Flags, one per row; null becomes false. */
  flags(name: string): boolean[] {
    const column = this.column(name);
    return Array.from({ length: this.rows }, (_, i) => column.at(i) === true);
  }

  /** All rows, as objects of the columns that are described. */
  rowsAs<Columns extends TableColumns>(description: Columns): RowOf<Columns>[] {
    if (!this.rows) return [];
    const columns = Object.entries(description).map(([name, kind]) => {
      const cells = this.read(name, kind);
      const cell = (row: number) => (kind === "number?" && Number.isNaN(cells[row]) ? undefined : cells[row]);
      return [camel(name), cell] as const;
    });
    // Keys that are made lose their types; every column was just read as its description has it.
    return Array.from({ length: this.rows }, (_, row) => {
      const one: Record<string, unknown> = {};
      for (const [name, cell] of columns) one[name] = cell(row);
      return one;
    }) as RowOf<Columns>[];
  }

  protected read(name: string, kind: ColumnKind): Float64Array | readonly (string | boolean)[] {
    if (kind === "flag") return this.flags(name);
    if (kind === "number" || kind === "number?") return this.numbers(name);
    const texts = this.texts(name);
    if (kind === "text") return texts;
    const unknown = texts.find((text) => !kind.includes(text));
    if (unknown !== undefined) throw new WireError(`${name}: '${unknown}' is not one of ${kind.join(", ")}`);
    return texts;
  }

  private column(name: string): Column<unknown> {
    if (!this.has(name)) throw new WireError(`the table has no column '${name}'`);
    return this.table.getChild(name);
  }
}

/** How a column is read: `number?` may be missing; a list holds the only texts that there are. */
type ColumnKind = "number" | "number?" | "text" | "flag" | readonly string[];
type TableColumns = Readonly<Record<string, ColumnKind>>;

type Camel<Name> = Name extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : Name;
type Cell<Kind> = Kind extends "number"
  ? number
  : Kind extends "number?"
    ? number | undefined
    : Kind extends "flag"
      ? boolean
      : Kind extends readonly (infer Text)[]
        ? Text
        : string;
type Cells<Kind> = Kind extends "number" | "number?" ? Float64Array : readonly Cell<Kind>[];

/** A row, its columns in camel case: `startNs` for `start_ns`. */
export type RowOf<Columns extends TableColumns> = {
  readonly [Name in keyof Columns as Camel<Name & string>]: Cell<Columns[Name]>;
};
type ColumnsOf<Columns extends TableColumns> = {
  readonly [Name in keyof Columns as Camel<Name & string>]: Cells<Columns[Name]>;
};

const camel = (name: string): string => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

/** A table that a route answers with. */
export class RouteTable<Columns extends TableColumns> extends ArrowTable {
  constructor(
    bytes: Uint8Array,
    private readonly description: Columns,
  ) {
    super(bytes);
  }

  /** A number of the schema's metadata, 0 where it is not there. */
  number(name: string): number {
    return Number(this.metadata(name) ?? 0);
  }

  /** All columns, by name. */
  columns(): ColumnsOf<Columns> {
    const read = Object.entries(this.description).map(([name, kind]) => [camel(name), this.read(name, kind)]);
    return Object.fromEntries(read); // As above.
  }

  /** All rows, as objects. */
  rowsOf(): RowOf<Columns>[] {
    return this.rowsAs(this.description);
  }
}
