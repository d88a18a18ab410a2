// The painted rows of a pane, from frame to frame. While the window moves, painting every row anew would take longer than a frame:
// each frame paints as many rows as its time holds and stretches the others from the frame before; at rest all are soon painted.
import { length, type TimeRange } from "../../base/time";

/** How long a frame paints rows that could wait, in ms, and how many it paints however long that takes. */
const BUDGET_MS = 5;
const LEAST_ROWS = 24;
/** Where less than this part of a picture is known from the one before, stretching it saves nothing. */
const WORTH = 0.25;

/** A row of `tall` lines of pixels. */
export type PaintedRow = {
  /** The same in every picture. */
  readonly key: string | number;
  readonly tall: number;
  /** What it is painted from: while that is the same, one by one, its pixels of a window are. */
  readonly from: readonly unknown[];
  /** Paints pixels [begin, end) of each of its lines, which are transparent. */
  readonly paint: (out: Uint32Array, begin: number, end: number) => void;
};

/** A row as it was painted, from line `at` on: `exact` where that was for this window, and from what there is by now. */
type Placed = { readonly of: PaintedRow; readonly at: number; exact: boolean };

/** Of each pixel of a picture the pixel of the one before that showed the same moment: known in [from, to) only. */
type Stretch = { readonly source: Uint16Array; readonly from: number; readonly to: number };

const alike = (a: PaintedRow, b: PaintedRow): boolean =>
  a.tall === b.tall &&
  (a.from === b.from || (a.from.length === b.from.length && a.from.every((one, i) => one === b.from[i])));

export class Lines {
  /** Pixels of all rows, line after line. */
  pixels = new Uint32Array(0);
  /** Room for the next picture, which is made from this one. */
  private spare = new Uint32Array(0);
  private rows: Placed[] = [];
  private painter: unknown;
  private window: TimeRange = { startNs: 0, endNs: 0 };
  private widthPx = 0;
  /** The row that is painted next. */
  private cursor = 0;

  constructor(private readonly clock: () => number = () => performance.now()) {}

  /** Whether every row shows what it should to the pixel. */
  get exact(): boolean {
    return this.rows.every((row) => row.exact);
  }

  /** Forgets all rows: there are none on the screen. */
  clear(): void {
    this.rows = [];
  }

  /** Makes the picture of `wanted`, as exact as its time allows; with another painter all anew. Returns whether a pixel may have changed. */
  update(painter: unknown, window: TimeRange, widthPx: number, wanted: readonly PaintedRow[]): boolean {
    if (painter !== this.painter || widthPx !== this.widthPx) this.rows = [];
    const before = this.rows;
    const moved = window.startNs !== this.window.startNs || window.endNs !== this.window.endNs;
    const inPlace =
      !moved &&
      wanted.length === before.length &&
      wanted.every(({ key, tall }, i) => key === before[i]?.of.key && tall === before[i]?.of.tall);
    const stretch = moved && before.length ? this.stretchTo(window, widthPx) : undefined;
    Object.assign(this, { painter, window, widthPx });

    const known = new Map(inPlace ? [] : before.map((row) => [row.of.key, row] as const));
    const olds = wanted.map((row, i) => (inPlace ? before[i] : known.get(row.key)));
    let lines = 0;
    this.rows = wanted.map((of, i) => {
      const at = lines;
      lines += of.tall;
      const old = olds[i];
      return { of, at, exact: !moved && old !== undefined && old.exact && alike(old.of, of) };
    });
    if (inPlace && this.exact) return false;
    const pixels = this.pixels;
    if (!inPlace) {
      this.pixels = this.spare.length === lines * widthPx ? this.spare : new Uint32Array(lines * widthPx);
      this.spare = pixels;
    }
    const painted = this.paintSome();
    if (inPlace) return true;
    for (const [i, row] of this.rows.entries()) {
      if (painted.has(i)) continue;
      const old = olds[i];
      const source = old?.of.tall === row.of.tall ? linesOf(pixels, old, widthPx) : undefined;
      if (source && !moved) this.out(row).set(source);
      else if (source && stretch && stretch.to - stretch.from > WORTH * widthPx) this.stretchRow(row, source, stretch);
      else this.paintRow(row);
    }
    return true;
  }

  /** Paints rows that are not exact, in turn, for as long as a frame has time for it. */
  private paintSome(): ReadonlySet<number> {
    const painted = new Set<number>();
    const begun = this.clock();
    const count = this.rows.length;
    const first = this.cursor % Math.max(1, count);
    for (let n = 0; n < count; n++) {
      const i = (first + n) % count;
      const row = this.rows[i] as Placed;
      if (row.exact) continue;
      this.paintRow(row);
      painted.add(i);
      this.cursor = i + 1;
      if (painted.size >= LEAST_ROWS && this.clock() - begun > BUDGET_MS) break;
    }
    return painted;
  }

  private out(row: Placed): Uint32Array {
    return linesOf(this.pixels, row, this.widthPx);
  }

  private paintRow(row: Placed): void {
    const out = this.out(row);
    out.fill(0);
    row.of.paint(out, 0, this.widthPx);
    row.exact = true;
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
  private stretchRow(row: Placed, old: Uint32Array, { source, from, to }: Stretch): void {
    const out = this.out(row);
    const { widthPx } = this;
    for (let line = 0; line < out.length; line += widthPx) {
      for (let px = from; px < to; px++) out[line + px] = old[line + (source[px] as number)] as number;
      out.fill(0, line, line + from);
      out.fill(0, line + to, line + widthPx);
    }
    if (from > 0) row.of.paint(out, 0, from);
    if (to < widthPx) row.of.paint(out, to, widthPx);
  }
}

const linesOf = (pixels: Uint32Array, { at, of }: Placed, widthPx: number): Uint32Array =>
  pixels.subarray(at * widthPx, (at + of.tall) * widthPx);
