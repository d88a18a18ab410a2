// The pages of the application, and the keys that open them. A file in views/ that exports `view` is a page, by being there.
import type { ComponentType } from "preact";
import type { State } from "./address";

export type View = {
  /** Its name in the address. */
  readonly name: string;
  readonly title: string;
  /** Its place among the pages. Those without one come after all others, by their names. */
  readonly place?: number;
  readonly component: ComponentType;
  /** The analysis whose answer it shows: without what that needs, the page is empty. */
  readonly analysis?: string;
  /** Runs with fewer ranks do not show it among the pages. */
  readonly fewestRanks?: number;
  /** Whether runs without that analysis do not show it among the pages: it is of a kind of program. */
  readonly onlyWithData?: true;
  /** What the user chooses on it, which Escape takes back. */
  readonly chosen?: readonly (keyof State)[];
};

export type Page = View & { readonly key: string };

const DIGITS = 9;

/** The pages in their order. The first nine have the digits as keys, the next nine the digits with Shift: no page chooses its key. */
export const pagesOf = (views: readonly View[]): Page[] =>
  [...views]
    .sort((a, b) => (a.place ?? Number.MAX_VALUE) - (b.place ?? Number.MAX_VALUE) || a.name.localeCompare(b.name))
    .map((view, i) => ({ ...view, key: i < DIGITS ? `${i + 1}` : i < 2 * DIGITS ? `Shift + ${i + 1 - DIGITS}` : "" }));

export function pageOfPress(
  pages: readonly Page[],
  { code, key, shiftKey }: Pick<KeyboardEvent, "code" | "key" | "shiftKey">,
): Page | undefined {
  // A place on the keyboard, as for all keys here: where digits need Shift, the place without it is meant, too.
  const [, digit] = /^(?:Digit|Numpad)([1-9])$/.exec(code) ?? [];
  if (!digit) return undefined;
  const withShift = shiftKey ? pages.find((page) => page.key === `Shift + ${digit}`) : undefined;
  return withShift ?? (!shiftKey || key === digit ? pages.find((page) => page.key === digit) : undefined);
}
