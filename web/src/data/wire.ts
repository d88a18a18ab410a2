// Data from the wire is unknown until a decoder has looked at it. A decoder returns what it promises, or throws a WireError that says where.
import { type Table, Type, tableFromIPC } from "@uwdata/flechette";

/** The answer does not have the form that this page expects: usually a page and a server of different versions. */
export class WireError extends Error {}

export type Decoder<T> = (value: unknown, path: string) => T;

function fail(path: string, wanted: string, value: unknown): never {
  throw new WireError(`${path || "answer"}: expected ${wanted}, got ${value === null ? "null" : typeof value}`);
}

export const text: Decoder<string> = (value, path) => (typeof value === "string" ? value : fail(path, "text", value));
export const flag: Decoder<boolean> = (value, path) =>
  typeof value === "boolean" ? value : fail(path, "a flag", value);
export const number: Decoder<number> = (value, path) =>
  typeof value === "number" && Number.isFinite(value) ? value : fail(path, "a number", value);

/** `null` or absent becomes `undefined`. */
export const maybe =
  <T>(inner: Decoder<T>): Decoder<T | undefined> =>
  (value, path) =>
    value === null || value === undefined ? undefined : inner(value, path);

export const list =
  <T>(item: Decoder<T>): Decoder<T[]> =>
  (value, path) =>
    Array.isArray(value) ? value.map((v, i) => item(v, `${path}[${i}]`)) : fail(path, "a list", value);

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Values of one kind by name, whatever the names. */
export const record =
  <T>(item: Decoder<T>): Decoder<Readonly<Record<string, T>>> =>
  (value, path) =>
    isRecord(value)
      ? Object.fromEntries(Object.entries(value).map(([name, one]) => [name, item(one, `${path}.${name}`)]))
      : fail(path, "an object", value);

/** The fields of an object; fields that are not named are ignored, so that a server may add some. */
export const object =
  <Fields extends Record<string, Decoder<unknown>>>(
    fields: Fields,
  ): Decoder<{ readonly [K in keyof Fields]: ReturnType<Fields[K]> }> =>
  (value, path) => {
    if (!isRecord(value)) return fail(path, "an object", value);
    const entries = Object.entries(fields).map(([name, decode]) => [name, decode(value[name], `${path}.${name}`)]);
    // Object.fromEntries loses the keys' types; every field was just decoded by its own decoder.
    return Object.fromEntries(entries);
  };

/** A column of a table, as far as its schema tells. */
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

/** An Arrow table whose columns are fetched by name and type. */
export class ArrowTable {
  private readonly table: Table;

  constructor(bytes: Uint8Array) {
    this.table = tableFromIPC(bytes, { useBigInt: false });
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

  /** Numbers, one per row; null becomes NaN. Integers of 64 bits are exact up to 2^53. */
  numbers(name: string): Float64Array {
    const column = this.column(name);
    const out = new Float64Array(this.rows);
    for (let i = 0; i < this.rows; i++) {
      const value: unknown = column.at(i);
      out[i] =
        typeof value === "number"
          ? value
          : value === null || value === undefined
            ? Number.NaN
            : fail(name, "numbers", value);
    }
    return out;
  }

  /** Texts, one per row; null becomes "". */
  texts(name: string): string[] {
    const column = this.column(name);
    return Array.from({ length: this.rows }, (_, i) => {
      const value: unknown = column.at(i);
      return typeof value === "string"
        ? value
        : value === null || value === undefined
          ? ""
          : fail(name, "texts", value);
    });
  }

  /** Flags, one per row; null becomes false. */
  flags(name: string): boolean[] {
    const column = this.column(name);
    return Array.from({ length: this.rows }, (_, i) => column.at(i) === true);
  }

  private column(name: string): { at(index: number): unknown } {
    if (!this.has(name)) throw new WireError(`the table has no column '${name}'`);
    return this.table.getChild(name);
  }
}
