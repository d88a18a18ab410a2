// What a picture of the tracks is made from, in parts: each function that draws takes the parts that it needs. Sizes are CSS pixels.

import type { Theme } from "../../base/color";
import type { TimeRange } from "../../base/time";
import type { Readings } from "../../data/readings";
import type { CriticalPath, Step } from "../../data/runSteps";
import type { TileKey } from "../../data/tiles/cells";
import type { TileStore } from "../../data/tiles/locationTiles";
import type { RasterStore } from "../../data/tiles/rasters";
import type { Link, LostStretch, MessageLines, Note, RowPlace, SpanEnd } from "../../data/wire/wire.generated";
import type { SpanKey } from "../../state/address";
import type { Painter, PlacedRow } from "../pixels/cellPainter";
import { Lines } from "../pixels/paintedLines";
import type { RasterPainter } from "../pixels/rasterPainter";
import { HEIGHTS, type LocationRow, type Row } from "../rows/rowLayout";
import type { Labels } from "./labels";
import type { Inks } from "./spanColors";

/** Where a pane's pixels lie in time and rows: `rows` are those on the screen. */
export type Ground = {
  readonly window: TimeRange;
  readonly width: number;
  readonly height: number;
  readonly scrollTop: number;
  readonly rows: readonly Row[];
};

/** What rows are painted from. */
export type CellSource = {
  readonly tiles: readonly TileKey[];
  readonly tileCells: number;
  readonly store: TileStore;
  readonly rasters: RasterStore;
  readonly places: readonly RowPlace[];
  /** What the radar shows; undefined where rows are not a radar. */
  readonly radar: string | undefined;
};

/** Steps and readings, which rows show beside cells. */
export type RowContent = {
  readonly steps: readonly Step[];
  /** Steps by process, of the processes whose rows show them. */
  readonly stepsOf: ReadonlyMap<number, readonly Step[]>;
  readonly foldedProcesses: readonly number[];
  readonly readings: ReadonlyMap<number, Readings>;
  readonly losses: Losses;
};

/** The stretches in which spans are lost, and which rows they are in. */
export type Losses = { readonly lost: readonly LostStretch[]; readonly stands: Stands };

export type ShownGap = {
  readonly location: number;
  readonly range: TimeRange;
  readonly selected: boolean;
  readonly cause: string;
};

/** What stands out: chosen, pointed at, or linked with it. */
export type Highlights = {
  readonly chosenStep: number | undefined;
  readonly selection: (SpanKey & { readonly durationNs: number }) | undefined;
  readonly hovered: { readonly location: number; readonly depth: number; readonly range: TimeRange } | undefined;
  readonly critical: CriticalPath | undefined;
  /** Messages between ranks, and all rows, among which their ends are. */
  readonly messages:
    | { readonly lines: MessageLines; readonly rows: readonly Row[]; readonly stands: Stands }
    | undefined;
  /** The links of the selected span, and all rows, among which their other ends are. */
  readonly linked:
    | {
        readonly span: LinkedSpan;
        readonly links: readonly Link[];
        readonly rows: readonly Row[];
        readonly stands: Stands;
      }
    | undefined;
  /** The idle gaps that are framed: the selected one, and the one under the pointer. */
  readonly gaps: readonly ShownGap[];
  readonly notes: readonly Note[];
  readonly range: TimeRange | undefined;
  readonly pointerX: number | undefined;
};

export type Scene = Ground &
  CellSource &
  RowContent &
  Highlights & {
    readonly pixelRatio: number;
    /** Number of answers so far. */
    readonly version: number;
    readonly kept: Kept;
  };

export type LinkedSpan = Pick<SpanEnd, "location" | "start_ns" | "duration_ns" | "depth">;

/** Whether a row stands for a location among others: a folded process, a row of many ranks. */
export type Stands = (row: Row, location: number) => boolean;

/** The rows of a pane as they were painted last, and the rows of cells that they were looked up from. */
export type Kept = {
  readonly cells: Shown;
  readonly rasters: Shown;
  /** Room for the nesting of a location. */
  readonly nested: OffscreenCanvas;
  placed: Placed;
};

/** Painted rows, and a canvas that shows them. */
type Shown = { readonly canvas: OffscreenCanvas; readonly lines: Lines };

/** Rows of cells by location: they are the same until tiles or version change. */
type Placed = {
  readonly tiles: readonly TileKey[];
  readonly version: number;
  readonly of: Map<number, PlacedLine>;
};
/** A row's cells, and all that its pixels depend on, one by one. */
export type PlacedLine = { readonly placed: readonly PlacedRow[]; readonly from: readonly unknown[] };

/** Room for the cells of a pane. */
export const newKept = (): Kept => ({
  cells: { canvas: new OffscreenCanvas(1, 1), lines: new Lines() },
  rasters: { canvas: new OffscreenCanvas(1, 1), lines: new Lines() },
  nested: new OffscreenCanvas(1, 1),
  placed: { tiles: [], version: -1, of: new Map() },
});

/** What drawing keeps between pictures. */
export type Tools = {
  readonly theme: Theme;
  readonly painter: Painter;
  readonly inks: Inks;
  readonly labels: Labels;
  readonly rasters: RasterPainter;
};

export type Box = { readonly left: number; readonly top: number; readonly width: number; readonly height: number };
export type Band = Pick<Box, "top" | "height">;

/** Rows that are not so tall have no line below them, and no room around them. */
export const LINED = 6;
const FLAT_PADDING = 3;
const NESTED_PADDING = 2;

/** Top of a depth's bar inside its row. */
export const depthTop = (depth: number): number => NESTED_PADDING + depth * HEIGHTS.depth;

const flatPadding = ({ height }: Row): number => (height >= 18 ? FLAT_PADDING : height >= LINED ? 1 : 0);

/** Where a span of a depth lies in the row of its location, from the row's top. */
export const bandOf = (row: Row & LocationRow, depth: number): Band =>
  row.open
    ? { top: depthTop(depth), height: HEIGHTS.depth - 1 }
    : { top: flatPadding(row), height: row.height - 2 * flatPadding(row) - (row.height >= LINED ? 1 : 0) };

/** The rows of cells of a location in the wanted tiles; coarser ones stand in for those that have not come. */
export function placedRows({ tiles, store }: Pick<CellSource, "tiles" | "store">, location: number): PlacedRow[] {
  return tiles.flatMap((key) => {
    const found = store.row(location, key);
    return found ? [{ key: found.key, row: found.row }] : [];
  });
}
