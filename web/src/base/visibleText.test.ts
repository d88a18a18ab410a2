import { h, options } from "preact";
import { afterEach, describe, expect, test } from "vitest";
import { showVisibleText, visible } from "./visibleText";

const EVIL = "a\x1b]0;t\x07\u202eb\u200b";
const SEEN = "a\\u{1b}]0;t\\u{7}\\u{202e}b\\u{200b}";

describe("visible text", () => {
  const before = options.vnode;
  afterEach(() => {
    if (before) options.vnode = before;
    else delete options.vnode;
  });
  test("shows what cannot be seen, and keeps what can", () => {
    expect(visible("größer → 日本 🙂")).toBe("größer → 日本 🙂");
    expect(visible(EVIL)).toBe(SEEN);
    expect(visible("two\nlines\tand a tab")).toBe("two\nlines\tand a tab");
  });
  test("is what tooltips of elements are made of, but not what is typed or sent", () => {
    showVisibleText();
    const node = h("input", { title: EVIL, "aria-label": EVIL, value: EVIL });
    expect(node.props).toMatchObject({ title: SEEN, "aria-label": SEEN, value: EVIL });
    const component = h(() => null, { title: EVIL } as object);
    expect(component.props).toMatchObject({ title: EVIL }); // what it makes of it is an element in the end
  });
});
