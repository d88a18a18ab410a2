import { describe, expect, test } from "vitest";
import { decodeCells, levelFor, tileRange, tilesIn } from "./cells";

function body(header: object, cells: number[]): ArrayBuffer {
  const text = new TextEncoder().encode(JSON.stringify(header));
  const out = new Uint8Array(8 + text.length + cells.length);
  out.set(new TextEncoder().encode("STC1"));
  new DataView(out.buffer).setUint32(4, text.length, true);
  out.set(text, 8);
  out.set(cells, 8 + text.length);
  return out.buffer;
}
const palette = [[7, "aten::mm", "compute"]];

describe("a body of cells", () => {
  test("becomes rows with palette, index and share", () => {
    const [first, second] = decodeCells(body({ rows: 2, shares: true, palette }, [0, 1, 1, 0, 0, 255, 128, 0]), 2);
    expect([...(first?.index ?? [])]).toEqual([0, 1]);
    expect([...(second?.index ?? [])]).toEqual([1, 0]);
    expect([...(second?.share ?? [])]).toEqual([128, 0]);
    expect(second?.palette).toEqual([{ region: 7, name: "aten::mm", group: "compute" }]);
  });
  test("is full where something ran, if the body has no shares", () =>
    expect([...(decodeCells(body({ rows: 1, shares: false, palette }, [1, 0]), 2)[0]?.share ?? [])]).toEqual([255, 0]));
  test("has its marks as stretches of neighbouring cells", () => {
    const two = [...palette, [0xfffffffe, "nothing ran", "other"]];
    const [, second] = decodeCells(
      body(
        { rows: 2, shares: true, marks: true, palette: two },
        [1, 0, 1, 1, 1, 0, 255, 0, 9, 9, 9, 9, 0, 0, 0, 1, 1, 2],
      ),
      3,
    );
    expect(second?.marks.map(({ from, to, entry }) => [from, to, entry.name])).toEqual([
      [0, 2, "aten::mm"],
      [2, 3, "nothing ran"],
    ]);
  });
  test.each([
    ["a foreign body", new ArrayBuffer(16)],
    ["a cut body", body({ rows: 2, shares: true, palette }, [0, 1, 1])],
    ["an unknown group", body({ rows: 1, shares: false, palette: [[7, "x", "colourful"]] }, [1, 0])],
  ])("is refused when it is %s", (_, bytes) => expect(() => decodeCells(bytes, 2)).toThrow(/cells/));
});

describe("levels and tiles", () => {
  test("a pixel holds one to two cells", () => {
    for (const span of [1e3, 1.7e6, 3.3e9, 4e12]) {
      const perPixel = span / 1234 / 2 ** levelFor({ startNs: 0, endNs: span }, 1234);
      expect(perPixel).toBeGreaterThanOrEqual(span < 1234 ? 0 : 1);
      expect(perPixel).toBeLessThan(2);
    }
  });
  test("the tiles of a window cover it, and no tile more", () => {
    const window = { startNs: 5_000, endNs: 9_000 };
    const tiles = tilesIn(window, 1, 1024);
    expect(tiles.map((t) => t.tile)).toEqual([2, 3, 4]);
    expect(tileRange({ level: 1, tile: 2 }, 1024)).toEqual({ startNs: 4096, endNs: 6144 });
    expect(tilesIn({ startNs: 0, endNs: 2048 }, 1, 1024)).toHaveLength(1);
  });
});
