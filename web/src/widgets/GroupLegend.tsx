// What the colours of the timeline mean.
import { css, GROUP_TITLES, GROUPS, groupColor } from "../base/color";
import { useSession } from "../data/session";

export function GroupLegend() {
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
        <kbd>W</kbd>
        <kbd>S</kbd> zoom <kbd>A</kbd>
        <kbd>D</kbd> pan <kbd>0</kbd> whole run <kbd>/</kbd> search <kbd>?</kbd> all keys
      </li>
    </ul>
  );
}
