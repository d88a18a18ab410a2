import { signal } from "@preact/signals";
import { describe, expect, test } from "vitest";
import { type Api, ApiError } from "../wire/api";
import { TileStore } from "./locationTiles";

const CELLS = 4;

/** A body of one row per location, all cells of one region; answers come when `release` is called. */
function body(rows: number): ArrayBuffer {
  const text = JSON.stringify({ rows, shares: false, palette: [[1, "work", "host"]] });
  const header = new TextEncoder().encode(`${text}${" ".repeat(8 - (text.length % 8))}`);
  const out = new Uint8Array(8 + header.length + rows * CELLS).fill(1);
  out.set(new TextEncoder().encode("STC1"));
  new DataView(out.buffer).setUint32(4, header.length, true);
  out.set(header, 8);
  return out.buffer;
}

function fakeServer() {
  const asked: string[] = [];
  const waiting: (() => void)[] = [];
  const refuse = (): never => {
    throw new Error("not asked here");
  };
  const api: Api = {
    server: { lost: signal(false), fetch: async () => new Response() },
    note: async () => ({ notes: [], labels: [] }),
    json: refuse,
    table: refuse,
    analysis: refuse,
    ask: (name, parameters, signal) =>
      new Promise((resolve, reject) => {
        asked.push(`${name} ${parameters.locations ?? parameters.location} ${parameters.level}/${parameters.tile}`);
        signal?.addEventListener("abort", () => reject(new DOMException("withdrawn", "AbortError")));
        const rows = name === "cells" ? String(parameters.locations).split(",").length : 2;
        waiting.push(() =>
          resolve(new Response(body(rows), { headers: { "content-type": "application/octet-stream" } })),
        );
      }),
  };
  const release = async (): Promise<void> => {
    for (const answer of waiting.splice(0)) answer();
    await new Promise((resolve) => setTimeout(resolve, 5));
  };
  return { api, asked, release };
}

const wanted = (level: number, tile: number, flat: number[] = [0, 1], nested: number[] = []) => ({
  tiles: [{ level, tile }],
  flat,
  nested,
});

describe("the store of tiles", () => {
  test("asks once for all locations of a tile, and not again for what it has", async () => {
    const server = fakeServer();
    let changes = 0;
    const store = new TileStore(server.api, CELLS, () => changes++, expect.fail);
    store.want(wanted(3, 0));
    store.want(wanted(3, 0));
    expect(server.asked).toEqual(["cells 0,1 3/0"]);
    expect(store.waiting).toBe(true);
    await server.release();
    expect([changes, store.waiting]).toEqual([1, false]);
    store.want(wanted(3, 0, [0, 1, 2]));
    expect(server.asked).toEqual(["cells 0,1 3/0", "cells 2 3/0"]);
  });

  test("draws a coarser tile until the finer one is there", async () => {
    const server = fakeServer();
    const store = new TileStore(server.api, CELLS, () => undefined, expect.fail);
    store.want(wanted(4, 0));
    await server.release();
    store.want(wanted(2, 3));
    expect(store.row(0, { level: 2, tile: 3 })?.key).toEqual({ level: 4, tile: 0 });
    await server.release();
    expect(store.row(0, { level: 2, tile: 3 })?.key).toEqual({ level: 2, tile: 3 });
    expect(store.row(0, { level: 2, tile: 9 })).toBeUndefined();
  });

  test("withdraws what is not wanted any more, silently, and stops waiting for it", async () => {
    const server = fakeServer();
    let changes = 0;
    const store = new TileStore(server.api, CELLS, () => changes++, expect.fail);
    store.want(wanted(3, 0));
    store.want(wanted(3, 7));
    await server.release();
    expect(store.waiting).toBe(false);
    expect(changes).toBe(1);
    expect(store.row(0, { level: 3, tile: 0 })).toBeUndefined();
    expect(store.row(0, { level: 3, tile: 7 })).toBeDefined();
  });

  test("keeps the nesting of a location as a row of cells for each depth", async () => {
    const server = fakeServer();
    const store = new TileStore(server.api, CELLS, () => undefined, expect.fail);
    store.want(wanted(3, 0, [], [5]));
    await server.release();
    const found = store.stack(5, { level: 3, tile: 0 })?.stack;
    expect(found?.kind === "cells" && found.depths.length).toBe(2);
  });

  test("asks again for what could not come, once it is wanted again", async () => {
    const server = fakeServer();
    const refused: string[] = [];
    let down = true;
    const api: Api = {
      ...server.api,
      ask: (...given) => (down ? Promise.reject(new ApiError("no")) : server.api.ask(...given)),
    };
    const store = new TileStore(
      api,
      CELLS,
      () => undefined,
      (sentence) => refused.push(sentence),
    );
    const same = wanted(3, 0);
    store.want(same);
    await server.release();
    expect([refused, store.waiting]).toEqual([["no"], false]);
    down = false;
    store.want(same);
    await server.release();
    expect(store.row(0, { level: 3, tile: 0 })).toBeDefined();
  });
});
