// The one table of keys (keys.json): what the keyboard does, the legend, the line of hints, and docs/reference/keys.md come from it.
import table from "./keys.json";

export type KeyLine = {
  /** As it is written, two spaces between keys that do different things. */
  readonly show: string;
  readonly what: string;
  /** For the line below the tracks: keys, a colon, and few words. */
  readonly hint?: string;
};
type KeyGroup = { readonly title: string; readonly keys: readonly KeyLine[] };

/** The groups of the timeline, those of other pages, and what holds on all of them. */
export const TIMELINE_GROUPS: readonly KeyGroup[] = table.timeline;
export const PAGE_GROUPS: readonly KeyGroup[] = table.pages;
export const EVERYWHERE: readonly KeyLine[] = table.everywhere;

type Bound = KeyLine & { readonly codes?: object; readonly inRows?: object };
const BOUND: readonly { readonly keys: readonly Bound[] }[] = table.timeline;
const LINES: readonly Bound[] = BOUND.flatMap((group) => group.keys);
const bindings = (of: (line: Bound) => object): ReadonlyMap<string, string> =>
  new Map(LINES.flatMap((line) => Object.entries(of(line)).map(([chord, action]) => [chord, String(action)])));

/** What a chord does on the timeline, and what it does while the name of a row has the keyboard. */
export const TIMELINE_ACTIONS = bindings((line) => line.codes ?? {});
export const ROW_ACTIONS = bindings((line) => line.inRows ?? {});

/** What has a place in the line below the tracks. */
export const HINTS: readonly KeyLine[] = LINES.flatMap(({ hint = "" }) => {
  const [show, what] = hint.split(": ");
  return show && what ? [{ show, what }] : [];
});

/** A press as the table calls it: "Control+KeyZ", "Shift+KeyJ", "KeyW". Physical keys, so that they lie the same everywhere. */
export const chordOf = (event: Pick<KeyboardEvent, "code" | "ctrlKey" | "metaKey" | "shiftKey">): string =>
  `${event.ctrlKey || event.metaKey ? "Control+" : ""}${event.shiftKey ? "Shift+" : ""}${event.code}`;
