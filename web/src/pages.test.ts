import { expect, test } from "vitest";
import { type Page, pageOfPress, pagesOf, type View } from "./state/view";

const view = (name: string, place?: number): View => ({
  name,
  title: name,
  component: () => null,
  ...(place !== undefined && { place }),
});
const pages = pagesOf([view("z"), view("b"), ...Array.from({ length: 9 }, (_, i) => view(`page ${i + 1}`, i + 1))]);
const press = (code: string, shiftKey = false, key = ""): Page | undefined =>
  pageOfPress(pages, { code, shiftKey, key });

test("pages come by their places, then by their names", () =>
  expect(pages.map(({ name }) => name).slice(7)).toEqual(["page 8", "page 9", "b", "z"]));

test("no two pages share a key, and each key opens its page", () => {
  expect(new Set(pages.map(({ key }) => key)).size).toBe(pages.length);
  for (const page of pages) {
    const digit = page.key.replace("Shift + ", "");
    expect(press(`Digit${digit}`, page.key.startsWith("Shift"))?.name).toBe(page.name);
  }
});

test("digits of a number pad, and digits that need Shift, open pages too", () => {
  expect(press("Numpad3")?.name).toBe("page 3");
  expect(press("Digit3", true, "3")?.name).toBe("page 3");
  expect(press("Digit3", true, "#")).toBeUndefined();
  expect(press("KeyA")).toBeUndefined();
});

test("the views that there are have places of their own", () => {
  const views = Object.values(import.meta.glob<View>("./views/*.tsx", { eager: true, import: "view" }));
  const places = views.flatMap(({ place }) => place ?? []);
  expect(new Set(places).size).toBe(places.length);
  expect(new Set(pagesOf(views).map(({ key }) => key)).size).toBe(views.length);
});
