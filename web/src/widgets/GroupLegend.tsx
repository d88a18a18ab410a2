// What the colours of regions mean, and the keys that one needs first.

import type { ComponentChildren } from "preact";
import { GROUP_TITLES } from "../base/color";
import { GROUPS } from "../base/kinds.generated";
import { Swatch } from "./figures";

/** What a mark means; native/kernels/pyramid/exceptional.h has it in full. */
export const MARKS =
  "Something ran, or nothing did, for at least 16 times the median of its kind in this row, and far longer than all but a few. Marks stay however far one zooms out.";

type Props = {
  /** The keys of the page. */
  readonly children?: ComponentChildren;
  /** Whether the picture has marks. */
  readonly marks?: boolean;
};

export function GroupLegend({ children, marks }: Props) {
  return (
    <ul class="group-legend row weak finer gap-14" aria-label="Colours">
      {GROUPS.map((group) => (
        <li key={group} class="row fixed gap-5">
          <Swatch group={group} />
          {GROUP_TITLES[group]}
        </li>
      ))}
      {marks && (
        <li class="row fixed gap-5" title={MARKS}>
          ▼ rare and long
        </li>
      )}
      <li class="spacer" />
      <li class="hints-line row gap-5">
        {children} <kbd>?</kbd> all keys
      </li>
    </ul>
  );
}
