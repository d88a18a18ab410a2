// The rooms of the page: a folder imports itself and those before it in ORDER that it is allowed. No import goes round, types included.
// No folder holds more modules than one sees at once, and no two modules share a name.
import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { expect, test } from "vitest";

/** Folders of the first level with what they may import beside themselves, from the bottom up. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  base: [],
  state: ["base"],
  data: ["base", "state"],
  widgets: ["base", "state", "data"],
  timeline: ["base", "state", "data", "widgets"],
  structure: ["base", "state", "data", "widgets"],
  profile: ["base", "state", "data", "timeline", "widgets"],
  views: ["base", "state", "data", "timeline", "widgets", "structure", "profile"],
};
/** Folders inside of one, from the bottom up: each imports those before it. What lies beside them imports all. */
const INSIDE: Readonly<Record<string, readonly string[]>> = {
  data: ["data/wire", "data/tiles"],
  timeline: [
    "timeline/rows",
    "timeline/pixels",
    "timeline/drawing",
    "timeline/pointing",
    "timeline/model",
    "timeline/notes",
  ],
};
const MOST_MODULES = 20; // pages fill one folder
const root = import.meta.dirname;

const sources = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((f) => /\.tsx?$/.test(f));
const modules = sources.filter((f) => !f.includes(".test."));
const stem = (file: string): string => file.replace(/(\.test)?\.tsx?$/, "");
const imports = (file: string): string[] =>
  [...readFileSync(join(root, file), "utf8").matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]*)"/g)].map(([, target = ""]) =>
    relative(root, resolve(root, file, "..", target)),
  );
const top = (file: string): string => file.split("/")[0] ?? "";

/** Whether a module of a folder may import one of another folder. */
function allowed(from: string, to: string): boolean {
  if (top(from) !== top(to)) return (MAY_IMPORT[top(from)] ?? []).includes(top(to));
  const order = INSIDE[top(from)] ?? [];
  return !order.includes(from) || (order.includes(to) && order.indexOf(to) <= order.indexOf(from));
}

test.each(sources.filter((f) => f.includes("/")))("%s imports only what lies below it", (file) => {
  expect(Object.keys(MAY_IMPORT), "a new folder needs its place in the order").toContain(top(file));
  for (const target of imports(file)) {
    if (target === stem(file)) continue; // a test and what it tests
    expect(allowed(dirname(file), dirname(target)), `${file} -> ${target}`).toBe(true);
    if (top(file) === "views") expect(target, "a view does not know another view").not.toMatch(/^views\//);
  }
});

test("no import goes round", () => {
  const next = new Map(modules.map((file) => [stem(file), imports(file)]));
  const done = new Set<string>();
  const walk = (at: string, path: readonly string[]): void => {
    expect(path, [...path, at].join(" -> ")).not.toContain(at);
    if (done.has(at)) return;
    for (const target of next.get(at) ?? []) walk(target, [...path, at]);
    done.add(at);
  };
  for (const file of next.keys()) walk(file, []);
});

test("no folder is too full", () => {
  const counts = new Map<string, number>();
  for (const file of modules) counts.set(dirname(file), (counts.get(dirname(file)) ?? 0) + 1);
  expect([...counts].filter(([, count]) => count > MOST_MODULES)).toEqual([]);
});

test("no two modules share a name", () => {
  const names = modules.map((file) => basename(stem(file)).toLowerCase());
  expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
});

test("the sources are found", () => expect(modules.length).toBeGreaterThan(100));

test("a canvas is drawn on by what writes visible text only", () => {
  const own = modules.filter((file) => readFileSync(join(root, file), "utf8").includes(".getContext("));
  expect(own).toEqual([join("base", "visibleText.ts")]);
});
