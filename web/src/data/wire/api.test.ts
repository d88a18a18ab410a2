import { afterEach, expect, test, vi } from "vitest";
import { createApi } from "./api";

afterEach(() => void vi.useRealTimers());

test("asks again while no server answers, and shows that", async () => {
  vi.useFakeTimers();
  const asked: string[] = [];
  const api = createApi(new URL("http://here/"), async (address) => {
    asked.push(String(address));
    if (asked.length < 4) throw new TypeError("Failed to fetch");
    return new Response("{}");
  });
  expect(api.server.lost.value).toBe(false);
  const answer = api.ask("run", { level: "x" });
  await vi.advanceTimersByTimeAsync(0);
  expect(api.server.lost.value).toBe(true);
  await vi.advanceTimersByTimeAsync(499);
  expect(asked).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(500 + 1000 + 2000);
  expect((await answer).ok).toBe(true);
  expect(asked).toEqual(Array(4).fill("http://here/api/run?level=x"));
  expect(api.server.lost.value).toBe(false);
});

test("a request that is withdrawn is not asked again", async () => {
  vi.useFakeTimers();
  const withdrawal = new AbortController();
  const fetcher = vi.fn(async () => {
    throw new TypeError("Failed to fetch");
  });
  const answer = createApi(new URL("http://here/"), fetcher).ask("run", {}, withdrawal.signal);
  const refused = expect(answer).rejects.toThrow(/abort/i);
  await vi.advanceTimersByTimeAsync(100);
  withdrawal.abort();
  await refused;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(fetcher).toHaveBeenCalledTimes(1);
});
