// base < data < timeline, widgets < structure, profile < views: a folder imports itself and what lies below; no view another one, the timeline no widget.
import { readdirSync, readFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { expect, test } from "vitest";

const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  base: ["base"],
  data: ["base", "data"],
  timeline: ["base", "data", "timeline"],
  structure: ["base", "data", "structure", "widgets"],
  profile: ["base", "data", "timeline", "profile", "widgets"],
  widgets: ["base", "data", "widgets"],
  views: ["base", "data", "timeline", "structure", "profile", "widgets"],
};
const root = import.meta.dirname;

const sources = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((f) => /\.tsx?$/.test(f));

const folderOf = (file: string): string => (file.includes("/") ? (file.split("/")[0] ?? "") : "");

test.each(sources.filter((f) => folderOf(f) !== ""))("%s imports only what lies below it", (file) => {
  const text = readFileSync(join(root, file), "utf8");
  const allowed = MAY_IMPORT[folderOf(file)];
  expect(allowed, `a new folder needs its place in the order`).toBeDefined();
  for (const [, target = ""] of text.matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]*)"/g)) {
    const imported = relative(root, resolve(root, file, "..", target));
    // A test imports what it tests.
    if (file === `${imported}.test.ts`) continue;
    if (imported === file.replace(/\.test\.ts$/, "")) continue; // a test and what it tests
    expect(allowed, `${file} -> ${imported}`).toContain(folderOf(imported));
    if (folderOf(file) === "views") expect(imported, "a view does not know another view").not.toMatch(/^views\//);
  }
});

test("the sources are found", () => expect(sources.length).toBeGreaterThan(10));
