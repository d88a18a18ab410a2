// Data from the wire is unknown until a decoder has looked at it. A decoder returns what it promises, or throws a WireError that names the place.

/** The answer does not have the form that this page expects: usually a page and a server of different versions. */
export class WireError extends Error {}

type Decoder<T> = (value: unknown, path: string) => T;

export function fail(path: string, wanted: string, value: unknown): never {
  throw new WireError(`${path || "answer"}: expected ${wanted}, got ${value === null ? "null" : typeof value}`);
}

export const text: Decoder<string> = (value, path) => (typeof value === "string" ? value : fail(path, "text", value));
export const flag: Decoder<boolean> = (value, path) =>
  typeof value === "boolean" ? value : fail(path, "a flag", value);
export const number: Decoder<number> = (value, path) =>
  typeof value === "number" && Number.isFinite(value) ? value : fail(path, "a number", value);

/** One of some texts. */
export const choice =
  <T extends string>(choices: readonly T[]): Decoder<T> =>
  (value, path) =>
    choices.find((one) => one === value) ?? fail(path, `one of ${choices.join(", ")}`, value);

/** What is absent, as an older version left it out, has a value of its own. */
export const orElse =
  <T>(inner: Decoder<T>, value: T): Decoder<T> =>
  (given, path) =>
    given === null || given === undefined ? value : inner(given, path);

/** `null` or absent becomes `undefined`. */
export const maybe = <T>(inner: Decoder<T>): Decoder<T | undefined> => orElse<T | undefined>(inner, undefined);

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
