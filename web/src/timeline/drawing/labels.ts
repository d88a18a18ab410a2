import type { Group } from "../../base/kinds.generated";
// Names on spans: as much of a name as fits, and nothing where nothing readable would.

/** Spans narrower than this carry no label, in CSS pixels. */
export const NARROWEST_LABEL = 26;
const PADDING = 4;

export const LABEL_FONT = '11px system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';

/** Fits texts into widths, with one measurement per distinct text. */
export class Labels {
  private readonly widths = new Map<string, number>();

  constructor(private readonly measure: (text: string) => number) {}

  /** The text, a beginning of it with an ellipsis, or undefined. */
  fit(text: string, widthPx: number): string | undefined {
    const room = widthPx - 2 * PADDING;
    if (widthPx < NARROWEST_LABEL) return undefined;
    const full = this.width(text);
    if (full <= room) return text;
    // Letters differ in width, so the estimate by share is a little short rather than too long.
    const letters = Math.floor((text.length * (room - this.width("…"))) / full - 0.5);
    return letters >= 2 ? `${text.slice(0, letters)}…` : undefined;
  }

  private width(text: string): number {
    const known = this.widths.get(text);
    if (known !== undefined) return known;
    // A run has few thousand names; should a trace have more, starting again is cheaper than remembering all.
    if (this.widths.size > 20_000) this.widths.clear();
    const width = this.measure(text);
    this.widths.set(text, width);
    return width;
  }
}

/** Left end of a label on a span that may begin left of the screen. */
export const labelLeft = (leftPx: number): number => Math.max(leftPx, 0) + PADDING;

/** A stretch of a row that may carry a name, in CSS pixels. `exact`: a span; otherwise a stretch of cells of one region. */
export type Named = {
  readonly left: number;
  readonly right: number;
  readonly name: string;
  readonly group: Group;
  readonly exact: boolean;
};

/** Where the picture of a row changes from cells to spans, both know the name of what reaches over: it is written once. */
export function joinNames(row: readonly Named[]): Named[] {
  const joined: Named[] = [];
  for (const one of [...row].sort((a, b) => a.left - b.left)) {
    const before = joined.at(-1);
    const continues = before && before.name === one.name && before.exact !== one.exact && one.left <= before.right + 2;
    if (continues) joined[joined.length - 1] = { ...before, right: Math.max(before.right, one.right) };
    else joined.push(one);
  }
  return joined;
}
