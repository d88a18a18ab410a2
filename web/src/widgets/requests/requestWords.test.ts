import { expect, test } from "vitest";
import type { SpentTime } from "../../data/wire/wire.generated";
import { partWords, slowParts } from "./requestWords";

const part = (kind: string, ns: number, name = "", cause = ""): SpentTime => ({
  kind,
  function: name,
  cause,
  slow_requests: 1,
  total_ns: ns,
  times: 1,
  share: ns / 100,
});

test("words name who ran, who waited, and who was in the way", () => {
  expect(partWords(part("loop", 1, "dump (a.py:3)", "GET /all"))).toBe("the event loop runs dump (a.py:3) of GET /all");
  expect(partWords(part("loop", 1))).toBe("the event loop runs others");
  expect(partWords(part("start", 1, "", "garbage collector"))).toBe(
    "the event loop runs garbage collector before its code begins",
  );
  expect(partWords(part("thread pool", 1, "get (a.py:1)", "resize"))).toBe(
    "waits for a free thread in get (a.py:1), behind resize",
  );
  expect(partWords(part("running", 1, "dump (a.py:3)", "GET /all"))).toBe(
    "its own code runs on the event loop: dump (a.py:3)",
  );
  expect(partWords(part("running", 1, "visit (a.py:3)", "garbage collector"))).toBe(
    "the garbage collector runs on the event loop in visit (a.py:3)",
  );
  expect(partWords(part("lock", 1, "get (a.py:1)", "GET /all"))).toBe(
    "waits for a lock in get (a.py:1), until GET /all releases it",
  );
  expect(partWords(part("a new kind", 1))).toBe("a new kind");
});

test("parts of one colour differ, and what no part names is the rest", () => {
  const parts = [part("loop", 50, "a"), part("start", 20, "b"), part("short", 10)];
  const found = slowParts({ route: "", requests: 2, least_ns: 9, total_ns: 100, parts, rest_ns: 20 }, "dark");
  expect(found.map(({ ns }) => ns)).toEqual([50, 20, 10, 20]);
  expect(found.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1);
  expect(found[0]?.color).not.toEqual(found[1]?.color);
  expect(found.slice(2).map(({ color }) => color)).toEqual([undefined, undefined]);
});
