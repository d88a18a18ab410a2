// Waits of each rank by state: stacked bars, or of many ranks tiles; each leads to the longest wait in it.
import { useMemo } from "preact/hooks";
import { css, waitColor } from "../../base/color";
import { formatDuration } from "../../base/time";
import type { Wait } from "../../data/rankWaits";
import { useSession } from "../../data/session";
import { Button } from "../controls";
import { WaitTiles } from "./WaitTiles";
import { PART_OF, sumsByState, titleOf, total } from "./waitSums";

/** More ranks than this are tiles. */
const MOST_BARS = 64;

type Props = {
  readonly ranks: readonly number[];
  readonly waits: readonly Wait[];
  readonly onChoose: (wait: Wait) => void;
};

export function WaitStates(props: Props) {
  const theme = useSession().theme.value;
  const sums = useMemo(() => sumsByState(props.waits), [props.waits]);
  const states = useMemo(() => sums.map(({ state }) => state).filter((state) => !(state in PART_OF)), [sums]);
  const bars = props.ranks.length <= MOST_BARS;
  if (!states.length) return <p class="weak">No rank is known to have waited for another.</p>;
  return (
    <>
      {bars ? <Bars {...props} states={states} /> : <WaitTiles {...props} states={states} />}
      <ul class="classes wraps fine" aria-label="Waits by state">
        {sums.map(({ state, ns, longest }) => (
          <li key={state} class="row">
            {bars && !(state in PART_OF) && <i style={{ background: css(waitColor(state, theme)) }} />}
            {titleOf(state)}
            {PART_OF[state] && ` (part of ${titleOf(PART_OF[state])})`} <b>{formatDuration(ns)}</b>
            <Button class="link" title="Show it on the timeline" onClick={() => props.onChoose(longest)}>
              longest {formatDuration(longest.maxNs)}, rank {longest.rank}
            </Button>
          </li>
        ))}
      </ul>
    </>
  );
}

function Bars({ ranks, waits, states, onChoose }: Props & { readonly states: readonly string[] }) {
  const theme = useSession().theme.value;
  const bars = ranks.map((rank) => ({ rank, own: waits.filter((wait) => wait.rank === rank) }));
  const most = Math.max(...bars.map(({ own }) => total(own)));
  return (
    <figure class="wait-chart" aria-label="Waits of each rank">
      <figcaption class="weak finer">{formatDuration(most)}</figcaption>
      <ol class="flex">
        {bars.map(({ rank, own }) => (
          <li key={rank} class="vertical fill" title={`rank ${rank}: ${formatDuration(total(own))}`}>
            <div class="vertical fill">
              {sumsByState(own)
                .filter(({ state }) => !(state in PART_OF))
                .sort((a, b) => states.indexOf(a.state) - states.indexOf(b.state))
                .map(({ state, ns, longest }) => {
                  const text = `rank ${rank}, ${titleOf(state)}: ${formatDuration(ns)}`;
                  const style = { height: `${(100 * ns) / most}%`, background: css(waitColor(state, theme)) };
                  // The tabulator key does not stop at hundreds of parts: the list below has the longest of each state.
                  const about = { title: text, "aria-label": text, tabIndex: -1 };
                  return <Button key={state} {...about} style={style} onClick={() => onChoose(longest)} />;
                })}
            </div>
            <span class="weak finer">{rank}</span>
          </li>
        ))}
      </ol>
    </figure>
  );
}
