// Colours ready for the canvas. A region's colour takes a microsecond to compute, and a picture asks for thousands of them.

import { css, dimmed, regionColor, type Theme, textOn } from "../../base/color";
import type { Group } from "../../base/kinds.generated";

/** The fill of a span, and what is read well on it. */
export type Ink = { readonly fill: string; readonly text: string };

/** More names than this are forgotten at once: a run has few thousand. */
const MOST = 20_000;

/** Remembers the inks of one theme by group and name. */
export class Inks {
  private readonly known = new Map<Group, Map<string, Ink>>();
  private count = 0;

  /** Where a region is chosen, by its name, the others are dimmed. */
  constructor(
    readonly theme: Theme,
    readonly chosen = "",
  ) {}

  get(group: Group, name: string): Ink {
    const found = this.known.get(group)?.get(name);
    if (found) return found;
    if (this.count++ > MOST) {
      this.known.clear();
      this.count = 0;
    }
    const dim = this.chosen !== "" && this.chosen !== name;
    const color = dimmed(regionColor(group, name, this.theme), dim, this.theme);
    const ink = { fill: css(color), text: textOn(color) };
    const names = this.known.get(group) ?? new Map<string, Ink>();
    this.known.set(group, names.set(name, ink));
    return ink;
  }
}
