// What the colours of regions mean, and the keys that one needs first.
import type { ComponentChildren } from "preact";
import { css, GROUP_TITLES, GROUPS, groupColor } from "../base/color";
import { useSession } from "../data/session";

/** `children`: the keys of the page. */
export function GroupLegend({ children }: { children?: ComponentChildren }) {
  const theme = useSession().theme.value;
  return (
    <ul class="group-legend" aria-label="Colours">
      {GROUPS.map((group) => (
        <li key={group}>
          <i style={{ background: css(groupColor(group, theme)) }} />
          {GROUP_TITLES[group]}
        </li>
      ))}
      <li class="spacer" />
      <li>
        {children} <kbd>?</kbd> all keys
      </li>
    </ul>
  );
}
