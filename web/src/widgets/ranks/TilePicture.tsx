// A picture of tiles, brighter for more: walked by the pointer or by keys, and each can be opened.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { css, pack, radarColor } from "../../base/color";
import { formatDuration } from "../../base/time";
import { contextOf } from "../../base/visibleText";
import { useSession } from "../../data/session";
import { Scale } from "../figures";

type Place = readonly [column: number, row: number];
const STEPS = new Map<string, Place>([["ArrowLeft", [-1, 0]], ["ArrowRight", [1, 0]], ["ArrowUp", [0, -1]], ["ArrowDown", [0, 1]]]); // biome-ignore format: a line
const SHARES = Array.from({ length: 17 }, (_, i) => i / 16);
/** How strong a sum is drawn: by its root, so that much shorter ones differ from none, too. */
const strength = (share: number): number => (share > 0 ? 0.08 + 0.92 * Math.sqrt(share) : 0);

type Props = {
  readonly class: string;
  readonly label: string;
  readonly columns: number;
  readonly rows: number;
  /** By row * columns + column; below 0 and not known are as 0. */
  readonly values: Float64Array;
  /** What is left of the tiles, and below them. */
  readonly left: ComponentChildren;
  readonly below: readonly ComponentChildren[];
  /** What 0 is called, and how any other value is written; undefined: values are ns. */
  readonly none: string;
  readonly amountOf?: (value: number) => string;
  readonly tooltipOf: (column: number, row: number) => ComponentChildren;
  readonly onOpen: (column: number, row: number) => void;
};

export function TilePicture({
  columns,
  rows,
  values,
  left,
  below,
  none,
  amountOf = formatDuration,
  tooltipOf,
  onOpen,
  ...about
}: Props) {
  const theme = useSession().theme.value;
  const canvas = useRef<HTMLCanvasElement>(null);
  const cursor = useSignal<Place | undefined>(undefined);
  const most = values.reduce((most, value) => (value > most ? value : most), 0);
  useEffect(() => {
    const context = contextOf(canvas.current);
    if (!context) return;
    const image = context.createImageData(columns, rows);
    const pixels = new Uint32Array(image.data.buffer);
    for (const [at, value] of values.entries()) pixels[at] = pack(radarColor(strength(value / most), theme));
    context.putImageData(image, 0, 0);
    performance.mark("rank-tiles");
  }, [values, theme]);

  const move = (column: number, row: number): void => {
    const [right, bottom] = [columns - 1, rows - 1];
    cursor.value = [Math.min(right, Math.max(0, column)), Math.min(bottom, Math.max(0, row))];
  };
  const point = ({ offsetX, offsetY }: PointerEvent): void => {
    const { clientWidth, clientHeight } = canvas.current ?? { clientWidth: 1, clientHeight: 1 };
    move(Math.floor((offsetX / clientWidth) * columns), Math.floor((offsetY / clientHeight) * rows));
  };
  const [column, row] = cursor.value ?? [-1, -1];
  const open = (): void => {
    if (cursor.value) onOpen(column, row);
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
    <div class={`rank-tiles cells ${about.class}`}>
      {left}
      <div
        class="anchor"
        role="application"
        aria-label={about.label}
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
              {tooltipOf(column, row)}
            </div>
          </>
        )}
      </div>
      <Scale of={below} />
      <p class="row weak finer">
        {none}
        <span class="scale-bar fixed" style={{ background: `linear-gradient(90deg, ${stops})` }} aria-hidden="true" />
        {amountOf(most)}
      </p>
    </div>
  );
}
