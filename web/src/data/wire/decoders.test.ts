import { tableFromArrays, tableToIPC, utf8 } from "@uwdata/flechette";
import { describe, expect, test } from "vitest";
import { ArrowTable } from "./arrowTable";
import { list, maybe, number, object, text, WireError } from "./decoders";

describe("decoders", () => {
  const decode = object({ name: text, size: number, tags: list(text), note: maybe(text) });
  test("give what they promise and ignore what they do not know", () =>
    expect(decode({ name: "a", size: 1, tags: ["x"], note: null, more: 1 }, "answer")).toEqual({
      name: "a",
      size: 1,
      tags: ["x"],
      note: undefined,
    }));
  test.each([
    [{ name: 5, size: 1, tags: [] }, "answer.name: expected text, got number"],
    [{ name: "a", size: null, tags: [] }, "answer.size: expected a number, got null"],
    [{ name: "a", size: 1, tags: ["x", 2] }, "answer.tags[1]: expected text, got number"],
    [[], "answer: expected an object, got object"],
  ])("refuse %j and name the place", (value, sentence) => expect(() => decode(value, "answer")).toThrow(sentence));
});

describe("an Arrow table", () => {
  const bytes = tableToIPC(
    tableFromArrays({
      big: [2 ** 52 + 1, undefined],
      huge: [879904895758363866n, -1n],
      name: ["a", undefined],
      yes: [true, false],
    }),
    { format: "stream" },
  );
  const table = new ArrowTable(bytes ?? new Uint8Array());
  test("gives columns by name and type", () => {
    expect(table.rows).toBe(2);
    expect([...table.numbers("big")]).toEqual([2 ** 52 + 1, Number.NaN]);
    expect([...table.numbers("huge")]).toEqual([879904895758363900, -1]); // the number of a thread of XLA
    expect(table.texts("name")).toEqual(["a", ""]);
    expect(table.flags("yes")).toEqual([true, false]);
  });
  test.each([[["plain", "", "text"]], [["π", "a", "", "naïve 😀"]], [["a", null, "b"]]])(
    "gives the texts %j",
    (texts) => {
      const sent = tableToIPC(tableFromArrays({ name: texts }, { types: { name: utf8() } }), { format: "stream" });
      expect(new ArrowTable(sent ?? new Uint8Array()).texts("name")).toEqual(texts.map((text) => text ?? ""));
    },
  );
  test("names a column that is missing or holds something else", () => {
    expect(() => table.numbers("gone")).toThrow(WireError);
    expect(() => table.numbers("name")).toThrow("name: expected numbers, got string");
  });
});
