// What the rows on the screen need of rasters, and which rasters a row is drawn from.

import type { TileKey } from "../../data/tiles/cells";
import { AT_ONCE, inStretches, type Raster, type RasterStore } from "../../data/tiles/rasters";
import { type Family, inChunks } from "../../data/tiles/rowStore";
import type { RowPlace } from "../../data/wire/wire.generated";
import type { GpuRow, HostRow, LocationRow, RanksRow, Row, SummaryRow } from "./rowLayout";

/** Locations that one answer gives the mean shares of. */
const AVERAGED = 256;

/** A row that is drawn from rasters: its family, the members of it, and what each of them weighs. */
type Source = { readonly family: Omit<Family, "members">; readonly parts: readonly Part[] };
type Part = { readonly member: number; readonly weight: number };

/** The lowest level at which all locations of a place are one row. */
const topLevel = (count: number): number => Math.max(0, Math.ceil(Math.log(Math.max(1, count)) / Math.log(8) - 1e-9));

const ranksFamily = (place: number, rowLevel: number): Omit<Family, "members"> => ({
  name: `ranks/${place}/${rowLevel}`,
  question: "rows/cells",
  chunks: inStretches,
  parameters: (members) => ({ place, row_level: rowLevel, first: members[0] ?? 0, count: members.length }),
});

function someFamily(some: readonly number[]): Source {
  const chunks = inChunks(some, AVERAGED);
  const family = {
    name: `shares/${some.join()}`,
    question: "rows/shares",
    chunks: (members: readonly number[]) => members.map((member) => [member]),
    parameters: ([member = 0]: readonly number[]) => ({ locations: (chunks[member] ?? []).join() }),
  };
  return { family, parts: chunks.map((chunk, member) => ({ member, weight: chunk.length })) };
}

const gpuSource = (streams: readonly number[]): Source => ({
  family: {
    name: `gpu/${streams.join()}`,
    question: "rows/gpu",
    chunks: (members) => members.map((member) => [member]),
    parameters: () => ({ locations: streams.join() }),
  },
  parts: [{ member: 0, weight: 1 }],
});

const heatFamily = (measure: string): Omit<Family, "members"> => ({
  name: `heat/${measure}`,
  question: "rows/heat",
  chunks: (members) => inChunks(members, AT_ONCE),
  parameters: (members) => ({ of: measure, locations: members.join() }),
});

/** Rows that are drawn from rasters. */
export type RasterRow = Row & (SummaryRow | RanksRow | HostRow | LocationRow | GpuRow);

/** What a row is drawn from; undefined where that is not a raster. `radar`: locations are heat. */
export function sourceOf(row: Row, places: readonly RowPlace[], radar: string | undefined): Source | undefined {
  if (row.kind === "ranks")
    return { family: ranksFamily(row.place, row.rowLevel), parts: [{ member: row.number, weight: row.count }] };
  if (row.kind === "summary") {
    if (row.some) return someFamily(row.some);
    const count = places[row.place]?.locations.length ?? 1;
    return { family: ranksFamily(row.place, topLevel(count)), parts: [{ member: 0, weight: count }] };
  }
  // Only shares have a mean over ranks.
  if (row.kind === "host" && row.folded && row.members.length && (!radar || radar.startsWith("group.")))
    return someFamily(row.members);
  if (row.kind === "gpu" && row.members.length && !radar) return gpuSource(row.members);
  if (row.kind === "location" && radar)
    return { family: heatFamily(radar), parts: [{ member: row.location.location, weight: 1 }] };
  return undefined;
}

/** All rasters that rows need. */
export function familiesOf(rows: readonly Row[], places: readonly RowPlace[], radar: string | undefined): Family[] {
  const found = new Map<string, { family: Omit<Family, "members">; members: Set<number> }>();
  for (const row of rows) {
    const source = sourceOf(row, places, radar);
    if (!source) continue;
    const known = found.get(source.family.name) ?? { family: source.family, members: new Set<number>() };
    for (const { member } of source.parts) known.members.add(member);
    found.set(source.family.name, known);
  }
  return [...found.values()].map(({ family, members }) => ({ ...family, members: [...members] }));
}

/** A raster with where it lies, and how much it counts. */
export type PlacedRaster = { readonly key: TileKey; readonly raster: Raster; readonly weight: number };

/** The rasters of a row in the wanted tiles; coarser ones stand in for those that have not come. */
export function placedRasters(source: Source, store: RasterStore, tiles: readonly TileKey[]): PlacedRaster[] {
  return tiles.flatMap((key) =>
    source.parts.flatMap(({ member, weight }) => {
      const found = store.get(source.family.name, member, key);
      return found ? [{ key: found.key, raster: found.row, weight }] : [];
    }),
  );
}
