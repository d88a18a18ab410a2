import { describe, expect, test } from "vitest";
import { chordOf, HINTS, ROW_ACTIONS, TIMELINE_ACTIONS, TIMELINE_GROUPS } from "../state/keyTable";
import { MOTIONS, timelineActions } from "./gestures";
import { rowActions } from "./rowActions";

/** Actions are only looked up here, never called. */
const NO_MODEL = {} as Parameters<typeof timelineActions>[0];

describe("the one table of keys", () => {
  const done = new Set([...Object.keys(timelineActions(NO_MODEL, () => false)), ...Object.keys(MOTIONS)]);
  const bound = new Set([...TIMELINE_ACTIONS.values(), ...ROW_ACTIONS.values()]);
  test("binds keys only to what there is", () => expect([...bound].filter((name) => !done.has(name))).toEqual([]));
  test("leaves nothing without a key", () => expect([...done].filter((name) => !bound.has(name))).toEqual([]));
  test("has the rows' actions among the others", () =>
    expect(Object.keys(rowActions(NO_MODEL, () => false)).filter((name) => !done.has(name))).toEqual([]));
  test("binds no chord twice", () => {
    const chords = TIMELINE_GROUPS.flatMap((group) => group.keys).flatMap((line) =>
      "codes" in line && typeof line.codes === "object" && line.codes ? Object.keys(line.codes) : [],
    );
    expect(chords.length).toBe(new Set(chords).size);
    expect(TIMELINE_ACTIONS.size).toBe(chords.length);
  });
  test("shows below the tracks how one zooms out", () =>
    expect(HINTS.find((line) => line.show === "W  S")?.what).toBe("zoom in, out"));
});

test.each([
  [{ code: "KeyZ", ctrlKey: true, metaKey: false, shiftKey: false }, "Control+KeyZ"],
  [{ code: "KeyZ", ctrlKey: false, metaKey: true, shiftKey: false }, "Control+KeyZ"],
  [{ code: "KeyJ", ctrlKey: false, metaKey: false, shiftKey: true }, "Shift+KeyJ"],
  [{ code: "KeyW", ctrlKey: false, metaKey: false, shiftKey: false }, "KeyW"],
])("%j is %s", (event, chord) => expect(chordOf(event)).toBe(chord));
