// Rows of tiles of any kind: those that were fetched, and those under way. What is not wanted any more is withdrawn.
import { Lru } from "../../base/lru";
import type { Api, Parameters } from "../wire/api";
import { coarser, type TileKey } from "./cells";
import { UnderWay } from "./pendingRequests";

/** Rows of one kind that are wanted, and how they are asked for. */
export type Family = {
  readonly name: string;
  readonly question: string;
  readonly members: readonly number[];
  /** Which members may come with one answer. */
  readonly chunks: (members: readonly number[]) => number[][];
  readonly parameters: (members: readonly number[]) => Parameters;
};

/** So many neighbours at a time as one answer holds. */
export function inChunks(members: readonly number[], atOnce: number): number[][] {
  const chunks: number[][] = [];
  for (let i = 0; i < members.length; i += atOnce) chunks.push(members.slice(i, i + atOnce));
  return chunks;
}

const sameMembers = (a: Family, b: Family | undefined): boolean =>
  a.name === b?.name && a.members.length === b.members.length && a.members.every((one, i) => one === b.members[i]);

/** Fetches rows and remembers those that were wanted last. */
export class RowStore<Row> {
  private readonly known: Lru<Row>;
  private readonly underWay: UnderWay;
  /** What was wanted last; nothing once an answer has come or could not. */
  private last: { readonly families: readonly Family[]; readonly tiles: readonly TileKey[] } | undefined;

  /** `changed` is called when something has come, `failed` with a sentence when it could not; `decode` gives an answer's rows from top to bottom. */
  constructor(
    private readonly api: Api,
    private readonly decode: (response: Response) => Promise<readonly Row[]>,
    private readonly kept: number,
    changed: () => void,
    failed: (sentence: string) => void,
  ) {
    this.known = new Lru(kept);
    this.underWay = new UnderWay(() => {
      this.last = undefined;
      changed();
    }, failed);
  }

  /** Fetches what is missing, and withdraws the requests for what is not wanted any more. */
  want(families: readonly Family[], tiles: readonly TileKey[]): void {
    // Asked in every frame of a gesture, mostly for the same.
    const { last } = this;
    if (
      last?.tiles === tiles &&
      last.families.length === families.length &&
      families.every((family, i) => sameMembers(family, last.families[i]))
    )
      return;
    this.last = { families, tiles };
    // A large screen wants more rows than are kept otherwise: with less room, what came would drive out what came before, for ever.
    const all = families.reduce((sum, { members }) => sum + members.length, 0) * tiles.length;
    this.known.limit = Math.max(this.kept, all);
    this.underWay.want(() => {
      for (const family of families)
        for (const key of tiles) {
          const missing = family.members.filter(
            (member) => this.known.get(nameOf(family.name, member, key)) === undefined,
          );
          for (const some of family.chunks(missing))
            this.underWay.start(`${family.name}/${key.level}/${key.tile}/${some.join()}`, (signal) =>
              this.fetch(family, some, key, signal),
            );
        }
    });
  }

  /** A row's tile, or the nearest coarser one that is there. */
  get(family: string, member: number, key: TileKey): { readonly key: TileKey; readonly row: Row } | undefined {
    // What is wanted was touched when it was wanted; thousands of rows are looked up for a picture.
    for (const at of coarser(key)) {
      const row = this.known.peek(nameOf(family, member, at));
      if (row !== undefined) return { key: at, row };
    }
    return undefined;
  }

  /** True while something wanted has not come yet. */
  get waiting(): boolean {
    return this.underWay.waiting;
  }

  /** Withdraws everything. */
  close(): void {
    this.underWay.close();
  }

  private async fetch(family: Family, members: readonly number[], key: TileKey, signal: AbortSignal): Promise<void> {
    const parameters = { ...family.parameters(members), level: key.level, tile: key.tile };
    const rows = await this.decode(await this.api.ask(family.question, parameters, signal));
    // Nobody hears of what was withdrawn while it was decoded: what is drawn from would change behind the picture's back.
    signal.throwIfAborted();
    members.forEach((member, i) => {
      const row = rows[i];
      if (row !== undefined) this.known.set(nameOf(family.name, member, key), row);
    });
  }
}

const nameOf = (family: string, member: number, { level, tile }: TileKey): string =>
  `${family}/${member}/${level}/${tile}`;
