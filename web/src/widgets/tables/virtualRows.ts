// Of a long list only the rows on the screen exist: which those are, and how the chosen one is kept in sight.
import { useSignal } from "@preact/signals";
import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";

export const ROW_HEIGHT = 26;
/** Rows beyond the edges of the screen that are there already while scrolling. */
const MORE_ROWS = 8;

/** What is on the screen: rows [first, last), and how many fit. */
export type Rows = { readonly first: number; readonly last: number; readonly page: number };

/** Follows an element that scrolls over `count` rows below a head, and brings row `at` (none: below 0) into sight. */
export function useRows(
  count: number,
  at: number,
): { readonly scroller: RefObject<HTMLDivElement | null>; readonly rows: Rows } {
  const scroller = useRef<HTMLDivElement>(null);
  const view = useSignal({ top: 0, height: 600 });
  useEffect(() => {
    const element = scroller.current;
    if (!element) return undefined;
    const changed = (): void => {
      view.value = { top: element.scrollTop, height: element.clientHeight };
    };
    const observer = new ResizeObserver(changed);
    observer.observe(element);
    element.addEventListener("scroll", changed, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", changed);
    };
  }, [view]);
  useEffect(() => {
    const element = scroller.current;
    if (!element || at < 0) return;
    const top = at * ROW_HEIGHT;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + ROW_HEIGHT * 2 > element.scrollTop + element.clientHeight)
      element.scrollTop = top + ROW_HEIGHT * 3 - element.clientHeight;
  }, [at]);
  const { top, height } = view.value;
  return {
    scroller,
    rows: {
      first: Math.max(0, Math.floor(top / ROW_HEIGHT) - MORE_ROWS),
      last: Math.min(count, Math.ceil((top + height) / ROW_HEIGHT) + MORE_ROWS),
      page: Math.max(1, Math.floor(height / ROW_HEIGHT) - 2),
    },
  };
}
