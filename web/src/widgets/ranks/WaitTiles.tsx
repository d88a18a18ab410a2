// Waits of ranks for each other, or by state, as tiles: each leads to its longest wait.
import { useMemo } from "preact/hooks";
import { formatDuration } from "../../base/time";
import type { Wait } from "../../data/rankWaits";
import { Scale } from "../figures";
import { TilePicture } from "./TilePicture";
import { longestOf, sideOfRanks, sumsByState, tilesOf, titleOf, total } from "./waitSums";

type Props = {
  readonly ranks: readonly number[];
  readonly waits: readonly Wait[];
  /** What the rows are; undefined: ranks that wait, and the columns are those that are waited for. */
  readonly states?: readonly string[];
  readonly onChoose: (wait: Wait) => void;
};

export function WaitTiles({ ranks, waits, states, onChoose }: Props) {
  const { count: columns, placeOf, nameOf } = useMemo(() => sideOfRanks(ranks), [ranks]);
  const rows = states?.length ?? columns;
  const tiles = useMemo(
    () =>
      tilesOf(waits, columns, ({ rank, awaitedRank, state }) =>
        states ? [placeOf(rank), states.indexOf(state)] : [placeOf(awaitedRank), placeOf(rank)],
      ),
    [waits, columns, placeOf, states],
  );
  const valuesNs = useMemo(() => {
    const values = new Float64Array(columns * rows);
    for (const [at, own] of tiles) values[at] = total(own);
    return values;
  }, [tiles, rows]);
  const of = (column: number, row: number): readonly Wait[] => tiles.get(row * columns + column) ?? [];
  return (
    <TilePicture
      class={states ? "" : "pairs"}
      label={`Waits of ${ranks.length} ranks ${states ? "by state" : "for each other"}`}
      {...{ columns, rows, values: valuesNs }}
      left={
        states ? (
          <ol class="fine">
            {states.map((state) => (
              <li key={state}>{titleOf(state)}</li>
            ))}
          </ol>
        ) : (
          <Scale of={[ranks[0], "waiting rank", ranks.at(-1)]} />
        )
      }
      below={[ranks[0], states ? "rank" : "awaited rank", ranks.at(-1)]}
      none="no wait"
      tooltipOf={(column, row) => (
        <>
          <b>
            {states
              ? `${nameOf(column)}, ${titleOf(states[row] ?? "")}`
              : `${nameOf(row)} waited for ${nameOf(column)}`}
            : {formatDuration(total(of(column, row)))}
          </b>
          {sumsByState(of(column, row)).map(({ state, ns, longest }) => (
            <div key={state}>
              {titleOf(state)}: {formatDuration(ns)}, longest {formatDuration(longest.maxNs)}
            </div>
          ))}
        </>
      )}
      onOpen={(column, row) => {
        if (of(column, row).length) onChoose(longestOf(of(column, row)));
      }}
    />
  );
}
