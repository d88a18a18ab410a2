// The tiles that were fetched, and those under way. Says what is wanted now; what is not wanted any more is withdrawn.
import { Lru } from "../base/lru";
import { type Api, ARROW_TYPE } from "./api";
import { type CellRow, coarser, decodeCells, type TileKey } from "./cells";
import { decodeSpans, type Spans } from "./spans";
import { UnderWay } from "./underWay";
import { ArrowTable } from "./wire";

/** A tile of a location with its nesting: its spans while they are few, else a row of cells for each depth. */
export type StackTile =
  | { readonly kind: "spans"; readonly spans: Spans }
  | { readonly kind: "cells"; readonly depths: readonly CellRow[] };

/** What is on the screen: tiles, the locations drawn as one row, and those drawn with their nesting. */
export type Wanted = {
  readonly tiles: readonly TileKey[];
  readonly flat: readonly number[];
  readonly nested: readonly number[];
};

const KEPT_ROWS = 6000;
const KEPT_STACKS = 400;
const LOCATIONS_AT_ONCE = 512;

/** Fetches tiles and remembers them; `changed` is called when a new one has come, `failed` with a sentence when one could not. */
export class TileStore {
  private readonly rows = new Lru<CellRow>(KEPT_ROWS);
  private readonly stacks = new Lru<StackTile>(KEPT_STACKS);
  private readonly underWay: UnderWay;

  constructor(
    private readonly api: Api,
    private readonly tileCells: number,
    changed: () => void,
    failed: (sentence: string) => void,
  ) {
    this.underWay = new UnderWay(changed, failed);
  }

  /** Fetches what is missing, and withdraws the requests for what is not wanted any more. */
  want({ tiles, flat, nested }: Wanted): void {
    this.underWay.want(() => {
      for (const key of tiles) {
        const missing = flat.filter((location) => this.rows.get(name(location, key)) === undefined);
        for (let i = 0; i < missing.length; i += LOCATIONS_AT_ONCE) {
          const some = missing.slice(i, i + LOCATIONS_AT_ONCE);
          this.underWay.start(`cells/${key.level}/${key.tile}/${some.join()}`, (signal) =>
            this.fetchRows(key, some, signal),
          );
        }
        for (const location of nested)
          if (this.stacks.get(name(location, key)) === undefined)
            this.underWay.start(`stack/${name(location, key)}`, (signal) => this.fetchStack(key, location, signal));
      }
    });
  }

  /** True while something wanted has not come yet. */
  get waiting(): boolean {
    return this.underWay.waiting;
  }

  /** A location's row in a tile, or in the nearest coarser tile that is there. */
  row(location: number, key: TileKey): { readonly key: TileKey; readonly row: CellRow } | undefined {
    // What is wanted was touched when it was wanted; thousands of rows are looked up for every picture.
    for (const at of coarser(key)) {
      const row = this.rows.peek(name(location, at));
      if (row) return { key: at, row };
    }
    return undefined;
  }

  /** A location's nesting in a tile, or in the nearest coarser tile that is there. */
  stack(location: number, key: TileKey): { readonly key: TileKey; readonly stack: StackTile } | undefined {
    for (const at of coarser(key)) {
      const stack = this.stacks.peek(name(location, at));
      if (stack) return { key: at, stack };
    }
    return undefined;
  }

  /** Withdraws everything. */
  close(): void {
    this.underWay.close();
  }

  private async fetchRows(key: TileKey, locations: readonly number[], signal: AbortSignal): Promise<void> {
    const parameters = { locations: locations.join(), level: key.level, tile: key.tile };
    const response = await this.api.ask("cells", parameters, signal);
    const rows = decodeCells(await response.arrayBuffer(), this.tileCells);
    locations.forEach((location, i) => {
      const row = rows[i];
      if (row) this.rows.set(name(location, key), row);
    });
  }

  private async fetchStack(key: TileKey, location: number, signal: AbortSignal): Promise<void> {
    const response = await this.api.ask("stack", { location, level: key.level, tile: key.tile }, signal);
    const body = await response.arrayBuffer();
    const asSpans = response.headers.get("content-type")?.startsWith(ARROW_TYPE);
    this.stacks.set(
      name(location, key),
      asSpans
        ? { kind: "spans", spans: decodeSpans(new ArrowTable(new Uint8Array(body))) }
        : { kind: "cells", depths: decodeCells(body, this.tileCells) },
    );
  }
}

const name = (location: number, { level, tile }: TileKey): string => `${location}/${level}/${tile}`;
