import { expect, test } from "vitest";
import type { Note } from "../../data/wire/wire.generated";
import { flagsOf, noteAt } from "./drawNotes";

const note = (start_ns: number, end_ns = start_ns): Note => ({
  key: `${start_ns}`.padStart(12, "0"),
  start_ns,
  end_ns,
  text: "here",
  location: undefined,
  depth: undefined,
  span: "",
  changed_unix_ns: 0,
});
const window = { startNs: 1000, endNs: 2000 };

test("a flag stands where its note begins; of what began before, at the edge", () => {
  const notes = [note(0, 500), note(0, 1500), note(1500), note(2500)];
  expect(flagsOf(notes, window, 100).map(({ note: { start_ns }, x }) => [start_ns, x])).toEqual([
    [0, 0],
    [1500, 50],
  ]);
});

test("a press on a flag means its note, of two the one in front, beside them none", () => {
  const notes = [note(1500), note(1505)];
  expect(noteAt(notes, 52, window, 100)).toBe(notes[1]);
  expect(noteAt([note(1500)], 70, window, 100)).toBeUndefined();
});
