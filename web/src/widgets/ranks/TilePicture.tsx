// Waits of ranks for each other, or by state, as tiles: walked by the pointer or by keys, and each leads to its longest wait.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { css, pack, radarColor } from "../../base/color";
import { formatDuration } from "../../base/time";
import type { Wait } from "../../data/rankWaits";
import { useSession } from "../../data/session";
import { Scale } from "../figures";
import { longestOf, sideOfRanks, sumsByState, tilesOf, titleOf, total } from "./waitSums";

type Place = readonly [column: number, row: number];
const STEPS = new Map<string, Place>([["ArrowLeft", [-1, 0]], ["ArrowRight", [1, 0]], ["ArrowUp", [0, -1]], ["ArrowDown", [0, 1]]]); // biome-ignore format: a line
const SHARES = Array.from({ length: 17 }, (_, i) => i / 16);
/** How strong a sum is drawn: by its root, so that much shorter ones differ from none, too. */
const strength = (share: number): number => (share ? 0.08 + 0.92 * Math.sqrt(share) : 0);

type Props = {
  readonly ranks: readonly number[];
  readonly waits: readonly Wait[];
  /** What the rows are; undefined: ranks that wait, and the columns are those that are waited for. */
  readonly states?: readonly string[];
  readonly onChoose: (wait: Wait) => void;
};

export function TilePicture({ ranks, waits, states, onChoose }: Props) {
  const { count: columns, placeOf, nameOf } = useMemo(() => sideOfRanks(ranks), [ranks]);
  const rows = states?.length ?? columns;
  const tiles = useMemo(
    () =>
      tilesOf(waits, columns, ({ rank, awaitedRank, state }) =>
        states ? [placeOf(rank), states.indexOf(state)] : [placeOf(awaitedRank), placeOf(rank)],
      ),
    [waits, columns, placeOf, states],
  );
  const theme = useSession().theme.value;
  const canvas = useRef<HTMLCanvasElement>(null);
  const cursor = useSignal<Place | undefined>(undefined);
  const most = useMemo(() => [...tiles.values()].reduce((ns, own) => Math.max(ns, total(own)), 0), [tiles]);
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context) return;
    const image = context.createImageData(columns, rows);
    const pixels = new Uint32Array(image.data.buffer).fill(pack(radarColor(0, theme)));
    for (const [at, own] of tiles) pixels[at] = pack(radarColor(strength(total(own) / most), theme));
    context.putImageData(image, 0, 0);
    performance.mark("rank-tiles");
  }, [tiles, theme]);

  const move = (column: number, row: number): void => {
    const [right, bottom] = [columns - 1, rows - 1];
    cursor.value = [Math.min(right, Math.max(0, column)), Math.min(bottom, Math.max(0, row))];
  };
  const point = ({ offsetX, offsetY }: PointerEvent): void => {
    const { clientWidth, clientHeight } = canvas.current ?? { clientWidth: 1, clientHeight: 1 };
    move(Math.floor((offsetX / clientWidth) * columns), Math.floor((offsetY / clientHeight) * rows));
  };
  const [column, row] = cursor.value ?? [-1, -1];
  const own = tiles.get(row * columns + column) ?? [];
  const open = (): void => {
    if (own.length) onChoose(longestOf(own));
  };
  const press = (event: KeyboardEvent): void => {
    const step = STEPS.get(event.key);
    if (step) move(column + step[0], row + step[1]);
    else if (event.key === "Enter") open();
    else return;
    event.preventDefault();
  };
  const [x, y] = [(100 * column) / columns, (100 * row) / rows];
  const cell = { left: `${x}%`, top: `${y}%`, width: `${100 / columns}%`, height: `${100 / rows}%` };
  const tooltip = {
    ...(x > 50 ? { right: `${101 - x}%` } : { left: `${x + 100 / columns + 1}%` }),
    ...(y > 50 ? { bottom: `calc(${100 - y}% + 4px)` } : { top: `calc(${y + 100 / rows}% + 4px)` }),
  };
  const stops = SHARES.map((share) => css(radarColor(strength(share), theme)));
  return (
    <div class={states ? "rank-tiles cells" : "rank-tiles pairs cells"}>
      {states ? (
        <ol class="fine">
          {states.map((state) => (
            <li key={state}>{titleOf(state)}</li>
          ))}
        </ol>
      ) : (
        <Scale of={[ranks[0], "waiting rank", ranks.at(-1)]} />
      )}
      <div
        class="anchor"
        role="application"
        aria-label={`Waits of ${ranks.length} ranks ${states ? "by state" : "for each other"}`}
        tabindex={0}
        onPointerMove={point}
        onPointerLeave={() => (cursor.value = undefined)}
        onBlur={() => (cursor.value = undefined)}
        onClick={open}
        onKeyDown={press}
      >
        <canvas ref={canvas} width={columns} height={rows} />
        {cursor.value && (
          <>
            <span class="tile-cursor" style={cell} />
            <div class="tooltip" style={tooltip} role="tooltip" aria-live="polite">
              <b>
                {states
                  ? `${nameOf(column)}, ${titleOf(states[row] ?? "")}`
                  : `${nameOf(row)} waited for ${nameOf(column)}`}
                : {formatDuration(total(own))}
              </b>
              {sumsByState(own).map(({ state, ns, longest }) => (
                <div key={state}>
                  {titleOf(state)}: {formatDuration(ns)}, longest {formatDuration(longest.maxNs)}
                </div>
              ))}
            </div>
          </>
        )}
      </div>
      <Scale of={[ranks[0], states ? "rank" : "awaited rank", ranks.at(-1)]} />
      <p class="row weak finer">
        no wait
        <span class="scale-bar fixed" style={{ background: `linear-gradient(90deg, ${stops})` }} aria-hidden="true" />
        {formatDuration(most)}
      </p>
    </div>
  );
}
