// Cells of the iteration stack to pixels: one line of RGBA for each row, by table look-up.
import { absentColor, pack, relativeColor, type Theme } from "../base/color";
import { ABSENT, USUAL } from "../data/iterationStack";

/** The colour of every byte. */
export function cellColors(theme: Theme): Uint32Array {
  const table = new Uint32Array(256);
  for (let byte = 1; byte < 256; byte++) table[byte] = pack(relativeColor((byte - USUAL) / 127, theme));
  table[ABSENT] = pack(absentColor(theme));
  return table;
}

/** For every pixel of a width the columns, [from, to), that lie on it: at least one. */
export function columnsOfPixels(edges: Float64Array, widthPx: number): Uint32Array {
  const scale = widthPx / Math.max(1e-9, edges.at(-1) ?? 0);
  const spans = new Uint32Array(widthPx * 2);
  const last = edges.length - 2;
  let column = 0;
  for (let px = 0; px < widthPx; px++) {
    while (column < last && (edges[column + 1] ?? 0) * scale <= px) column++;
    let end = column + 1;
    while (end <= last && (edges[end] ?? 0) * scale < px + 1 - 1e-9) end++;
    spans[2 * px] = column;
    spans[2 * px + 1] = end;
  }
  return spans;
}

/** Of bytes that share a pixel the one farthest from the usual; absent only if all are. */
export function farthest(cells: Uint8Array, from: number, to: number): number {
  let best = ABSENT;
  let distance = -1;
  for (let i = from; i < to; i++) {
    const byte = cells[i] ?? ABSENT;
    const far = byte === ABSENT ? -1 : Math.abs(byte - USUAL);
    if (far > distance) {
      best = byte;
      distance = far;
    }
  }
  return best;
}

/** Paints rows of cells into `out`, which holds rows x widthPx pixels. */
export function paintCells(
  out: Uint32Array,
  cells: Uint8Array,
  rows: number,
  columns: number,
  pixels: Uint32Array,
  colors: Uint32Array,
): void {
  const widthPx = pixels.length / 2;
  for (let row = 0; row < rows; row++) {
    const begin = row * columns;
    for (let px = 0; px < widthPx; px++) {
      const [from, to] = [pixels[2 * px] ?? 0, pixels[2 * px + 1] ?? 0];
      const byte = to - from === 1 ? (cells[begin + from] ?? ABSENT) : farthest(cells, begin + from, begin + to);
      out[row * widthPx + px] = colors[byte] ?? 0;
    }
  }
}
