// The painted cells of a pane, from frame to frame. While the window moves, painting every line anew would take longer than a frame:
// each frame paints as many lines as its time holds and stretches the others from the frame before; at rest all are soon painted.
import { length, type TimeRange } from "../base/time";
import type { Painter, PlacedRow } from "./painter";

/** How long a frame paints lines that could wait, in ms, and how many it paints however long that takes. */
const BUDGET_MS = 5;
const LEAST_LINES = 48;
/** The clock is read once for so many lines. */
const CLOCKED = 8;
/** Where less than this part of a picture is known from the one before, stretching it saves nothing. */
const WORTH = 0.25;

/** What a line shows. `key`: the same in every picture. `marked`: its marks are painted among its cells. */
export type LineOf = { readonly key: number; readonly placed: readonly PlacedRow[]; readonly marked: boolean };

/** A line as it was painted: `exact` where that was for this window, and for what is known by now. */
type Line = { readonly of: LineOf; exact: boolean };

/** Of each pixel of a picture the pixel of the one before that showed the same moment: known in [from, to) only. */
type Stretch = { readonly source: Uint16Array; readonly from: number; readonly to: number };

/** Whether two lines are painted alike. */
const alike = (a: LineOf, b: LineOf): boolean =>
  a.marked === b.marked &&
  (a.placed === b.placed ||
    (a.placed.length === b.placed.length &&
      a.placed.every(({ key, row }, i) => {
        const other = b.placed[i];
        return other?.row === row && other.key.level === key.level && other.key.tile === key.tile;
      })));

export class Lines {
  /** Pixels of all lines, one after the other. */
  pixels = new Uint32Array(0);
  /** Room for the next picture, which is made from this one. */
  private spare = new Uint32Array(0);
  private lines: Line[] = [];
  private painter: Painter | undefined;
  private window: TimeRange = { startNs: 0, endNs: 0 };
  private widthPx = 0;
  /** The line that is painted next. */
  private cursor = 0;

  constructor(private readonly clock: () => number = () => performance.now()) {}

  /** Whether every line shows what it should to the pixel. */
  get exact(): boolean {
    return this.lines.every((line) => line.exact);
  }

  /** Makes the picture of `rows`, as exact as its time allows. Returns whether a pixel may have changed. */
  update(painter: Painter, window: TimeRange, widthPx: number, rows: readonly LineOf[]): boolean {
    if (painter !== this.painter || widthPx !== this.widthPx) this.lines = [];
    const before = this.lines;
    const moved = window.startNs !== this.window.startNs || window.endNs !== this.window.endNs;
    const inPlace =
      !moved && rows.length === before.length && rows.every((row, i) => row.key === (before[i] as Line).of.key);
    const stretch = moved && before.length ? this.stretchTo(window, widthPx) : undefined;
    Object.assign(this, { painter, window, widthPx });

    const known = new Map(inPlace ? [] : before.map(({ of }, i) => [of.key, i] as const));
    const from = rows.map((row, i) => (inPlace ? i : (known.get(row.key) ?? -1)));
    this.lines = rows.map((of, i) => {
      const old = before[from[i] as number];
      return { of, exact: !moved && old !== undefined && old.exact && alike(old.of, of) };
    });
    if (inPlace && this.exact) return false;
    const old = this.pixels;
    if (!inPlace) {
      this.pixels = this.spare.length === rows.length * widthPx ? this.spare : new Uint32Array(rows.length * widthPx);
      this.spare = old;
    }
    const painted = this.paintSome();
    if (inPlace) return true;
    for (const [i, line] of this.lines.entries()) {
      if (painted.has(i)) continue;
      const at = from[i] as number;
      const source = at < 0 ? undefined : old.subarray(at * widthPx, (at + 1) * widthPx);
      if (source && !moved) this.out(i).set(source);
      else if (source && stretch && stretch.to - stretch.from > WORTH * widthPx)
        this.stretchLine(line.of, this.out(i), source, stretch);
      else this.paintLine(i);
    }
    return true;
  }

  /** Paints lines that are not exact, in turn, for as long as a frame has time for it. */
  private paintSome(): ReadonlySet<number> {
    const painted = new Set<number>();
    const begun = this.clock();
    const count = this.lines.length;
    const first = this.cursor % Math.max(1, count);
    for (let n = 0; n < count; n++) {
      const i = (first + n) % count;
      if ((this.lines[i] as Line).exact) continue;
      this.paintLine(i);
      painted.add(i);
      this.cursor = i + 1;
      if (painted.size >= LEAST_LINES && painted.size % CLOCKED === 0 && this.clock() - begun > BUDGET_MS) break;
    }
    return painted;
  }

  private out(line: number): Uint32Array {
    return this.pixels.subarray(line * this.widthPx, (line + 1) * this.widthPx);
  }

  private paintLine(i: number): void {
    const line = this.lines[i] as Line;
    const out = this.out(i);
    out.fill(0);
    const painter = this.painter as Painter;
    painter.paint(out, this.window, line.of.placed);
    if (line.of.marked) painter.paintMarks(out, this.window, line.of.placed);
    line.exact = true;
  }

  /** Where each pixel of the next window was in this one. */
  private stretchTo(window: TimeRange, widthPx: number): Stretch {
    const source = new Uint16Array(widthPx);
    const step = length(window) / length(this.window);
    const offset = ((window.startNs - this.window.startNs) / length(this.window)) * widthPx;
    let from = widthPx;
    let to = 0;
    for (let px = 0; px < widthPx; px++) {
      const at = Math.floor(offset + (px + 0.5) * step);
      if (at < 0 || at >= widthPx) continue;
      source[px] = at;
      from = Math.min(from, px);
      to = px + 1;
    }
    return { source, from: Math.min(from, to), to };
  }

  /** What was on the screen keeps its pixels; what comes into sight at its edges is painted. */
  private stretchLine(of: LineOf, out: Uint32Array, old: Uint32Array, { source, from, to }: Stretch): void {
    for (let px = from; px < to; px++) out[px] = old[source[px] as number] as number;
    const painter = this.painter as Painter;
    for (const [first, end] of [
      [0, from],
      [to, out.length],
    ] as const) {
      if (first === end) continue;
      out.fill(0, first, end);
      painter.paint(out, this.window, of.placed, first, end);
    }
  }
}
