// Tiles of single locations: one row of cells, or all that is nested.
import { type Api, ARROW_TYPE, type ColumnsOfRoute } from "../wire/api";
import { RouteTable } from "../wire/arrowTable";
import { TABLES } from "../wire/wire.generated";
import { type CellRow, decodeCells, type TileKey } from "./cells";
import { type Family, inChunks, RowStore } from "./rowStore";

/** Spans of one location, in order of start, column by column. */
export type Spans = ColumnsOfRoute<"stack"> & { readonly count: number };

function spansOf(bytes: Uint8Array): Spans {
  const table = new RouteTable(bytes, TABLES.stack);
  return { ...table.columns(), count: table.rows };
}

/** A tile of a location with its nesting: its spans while they are few, else a row of cells for each depth. */
type StackTile =
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

const CELLS: Omit<Family, "members"> = {
  name: "cells",
  question: "cells",
  chunks: (members) => inChunks(members, LOCATIONS_AT_ONCE),
  parameters: (members) => ({ locations: members.join() }),
};
const STACK: Omit<Family, "members"> = {
  name: "stack",
  question: "stack",
  chunks: (members) => inChunks(members, 1),
  parameters: ([location = 0]) => ({ location }),
};

async function decodeStack(response: Response, tileCells: number): Promise<StackTile> {
  const body = await response.arrayBuffer();
  return response.headers.get("content-type")?.startsWith(ARROW_TYPE)
    ? { kind: "spans", spans: spansOf(new Uint8Array(body)) }
    : { kind: "cells", depths: decodeCells(body, tileCells) };
}

/** Fetches tiles of locations and remembers them; `changed` is called when a new one has come, `failed` with a sentence when one could not. */
export class TileStore {
  private readonly rows: RowStore<CellRow>;
  private readonly stacks: RowStore<StackTile>;

  constructor(api: Api, tileCells: number, changed: () => void, failed: (sentence: string) => void) {
    const cells = async (response: Response) => decodeCells(await response.arrayBuffer(), tileCells);
    const stack = async (response: Response) => [await decodeStack(response, tileCells)];
    this.rows = new RowStore(api, cells, KEPT_ROWS, changed, failed);
    this.stacks = new RowStore(api, stack, KEPT_STACKS, changed, failed);
  }

  /** Fetches what is missing, and withdraws the requests for what is not wanted any more. */
  want({ tiles, flat, nested }: Wanted): void {
    this.rows.want([{ ...CELLS, members: flat }], tiles);
    this.stacks.want([{ ...STACK, members: nested }], tiles);
  }

  /** True while something wanted has not come yet. */
  get waiting(): boolean {
    return this.rows.waiting || this.stacks.waiting;
  }

  /** A location's row in a tile, or in the nearest coarser tile that is there. */
  row(location: number, key: TileKey): { readonly key: TileKey; readonly row: CellRow } | undefined {
    return this.rows.get(CELLS.name, location, key);
  }

  /** A location's nesting in a tile, or in the nearest coarser tile that is there. */
  stack(location: number, key: TileKey): { readonly key: TileKey; readonly stack: StackTile } | undefined {
    const found = this.stacks.get(STACK.name, location, key);
    return found && { key: found.key, stack: found.row };
  }

  /** Withdraws everything. */
  close(): void {
    this.rows.close();
    this.stacks.close();
  }
}
