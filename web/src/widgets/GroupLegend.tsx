// What the colours of regions mean, and the keys that one needs first.
import type { ComponentChildren } from "preact";
import { css, GROUP_TITLES, GROUPS, groupColor } from "../base/color";
import { useSession } from "../data/session";

/** `children`: the keys of the page; else those of the timeline. */
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
        {children ?? (
          <>
            <kbd>W</kbd>
            <kbd>S</kbd> zoom <kbd>A</kbd>
            <kbd>D</kbd> pan <kbd>0</kbd> whole run <kbd>/</kbd> search
          </>
        )}{" "}
        <kbd>?</kbd> all keys
      </li>
    </ul>
  );
}
