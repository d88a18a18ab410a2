import { expect, test } from "vitest";
import { addressOf, nameIn, rootOf } from "./runList";

test("the way from a run to the others is the same behind any proxy", () => {
  const alone = "http://h:1/user/me/proxy/8888/TOKEN/#page=steps";
  const one = "http://h:1/user/me/proxy/8888/TOKEN/t/a%20b/#page=steps";
  for (const address of [alone, one]) expect(rootOf(address).href).toBe("http://h:1/user/me/proxy/8888/TOKEN/");
  expect(nameIn(alone)).toBeUndefined();
  expect(nameIn(one)).toBe("a b");
  expect(addressOf(rootOf(one), "ä & b").href).toBe("http://h:1/user/me/proxy/8888/TOKEN/t/%C3%A4%20%26%20b/");
});
