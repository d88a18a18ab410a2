// A bar for each step: its height is how long it took, its colour its class; outliers carry a triangle too.

import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { CHROME, classColor, css, outlierColor, type Theme, textOn } from "../../base/color";
import { formatDuration, type TimeRange } from "../../base/time";
import type { Step } from "../../data/runSteps";
import { useSession } from "../../data/session";
import type { ClassFacts } from "../../data/wire/wire.generated";
import { useDrawing, useSize } from "../useSize";
import {
  type Bar,
  type BarTexts,
  barAt,
  barPlace,
  bars,
  barTexts,
  drawChosen,
  drawOutlier,
  scaleTop,
  stepsIn,
  stretchOf,
} from "./stripBars";

const MARK_HEIGHT = 8;
/** Of what is written above bars. */
const TEXT_HEIGHT = 12;
const FONT = "10.5px system-ui, sans-serif";

type Props = {
  readonly steps: readonly Step[];
  /** What the page shows: those steps are framed. */
  readonly window: TimeRange | undefined;
  readonly height: number;
  /** The chosen step, by its number. */
  readonly chosen?: number | undefined;
  /** The user chose one step, or dragged over several. */
  readonly onSteps: (stretch: TimeRange) => void;
};

type Picture = {
  readonly width: number;
  readonly height: number;
  readonly theme: Theme;
  readonly hovered: number | undefined;
  readonly framed: readonly [number, number] | undefined;
  /** The bar of the chosen step. */
  readonly marked: number;
  readonly texts: readonly BarTexts[] | undefined;
};

function draw(
  context: CanvasRenderingContext2D,
  all: readonly Bar[],
  { width, height, theme, hovered, framed, marked, texts }: Picture,
): void {
  const wide = width / Math.max(1, all.length);
  const tallest = height - headOf(texts) - 1;
  const [inset, broad] = barPlace(wide, all.length);
  context.font = FONT;
  context.textAlign = "center";
  all.forEach((bar, i) => {
    const tall = Math.max(2, bar.tall * tallest);
    const { outlier, classRank } = bar.shown;
    const left = i * wide;
    const color = outlier ? outlierColor(theme) : classColor(classRank, theme);
    context.fillStyle = css(color);
    context.globalAlpha = hovered === undefined || hovered === i ? 1 : 0.75;
    context.fillRect(left + inset, height - tall, broad, tall);
    const text = texts?.[i];
    if (text) {
      const beside = outlier ? MARK_HEIGHT + 1 : 3;
      context.fillStyle = textOn(color);
      if (tall > TEXT_HEIGHT + 4) context.fillText(text.step, left + wide / 2, height - 4, broad);
      context.fillStyle = CHROME[theme].textWeak;
      context.fillText(text.value, left + wide / 2, height - tall - beside);
      context.fillStyle = css(color);
    }
    if (!outlier) return;
    context.globalAlpha = 1;
    drawOutlier(context, left + wide / 2, height - tall - MARK_HEIGHT + 1);
    // A gap near the top: the bar is taller than the strip.
    if (bar.cut) context.clearRect(left - 0.5, height - tall + 5, wide + 1, 2);
  });
  context.globalAlpha = 1;
  if (marked >= 0) drawChosen(context, marked * wide, wide, height, theme);
  if (framed) {
    const [from, to] = framed;
    context.fillStyle = CHROME[theme].accentFill;
    context.fillRect(from * wide, 0, Math.max(2, (to - from) * wide), height);
    context.strokeStyle = CHROME[theme].accent;
    context.strokeRect(from * wide + 0.5, 0.5, Math.max(2, (to - from) * wide) - 1, height - 1);
  }
}

const headOf = (texts: unknown): number => MARK_HEIGHT + (texts ? TEXT_HEIGHT : 0);

export function StepStrip({ steps, window, height, chosen, onSteps }: Props) {
  const session = useSession();
  const theme = session.theme.value;
  const canvas = useRef<HTMLCanvasElement>(null);
  const { width } = useSize(canvas, steps.length === 0).value;
  const hovered = useSignal<number | undefined>(undefined);
  const pressed = useSignal<number | undefined>(undefined);
  const all = steps.length ? bars(steps, width) : [];
  const topNs = scaleTop(steps);
  const texts = barTexts(all, width / Math.max(1, all.length), topNs);

  useDrawing(canvas, { width, height }, (context) =>
    draw(context, all, { width, height, theme, hovered: hovered.value, framed: framed(), marked, texts }),
  );

  const place = chosen === undefined ? -1 : steps.findIndex((s) => s.step <= chosen && chosen < s.step + s.count);
  const marked = place < 0 ? -1 : all.findIndex((bar) => bar.from <= place && place < bar.to);
  const framed = (): readonly [number, number] | undefined => {
    const [from, to] =
      pressed.value !== undefined && hovered.value !== undefined
        ? [Math.min(pressed.value, hovered.value), Math.max(pressed.value, hovered.value) + 1]
        : barsOf(window ? stepsIn(steps, window) : [0, steps.length]);
    return to - from >= all.length ? undefined : [from, to];
  };
  const barsOf = ([from, to]: readonly [number, number]): readonly [number, number] => {
    const scale = all.length / Math.max(1, steps.length);
    return [Math.floor(from * scale), Math.ceil(to * scale)];
  };
  const at = (event: PointerEvent): number => barAt(event.offsetX, width, all.length);
  const choose = (from: number, to: number): void => {
    const stretch = stretchOf(steps, all[from]?.from ?? 0, all[to]?.to ?? 0);
    if (stretch) onSteps(stretch);
  };

  if (!steps.length) return null;
  const shown = hovered.value === undefined ? undefined : all[hovered.value]?.shown;
  return (
    <div class="step-strip flex">
      <div class="strip-axis fixed weak finer" style={{ paddingTop: `${headOf(texts) - TEXT_HEIGHT / 2}px` }}>
        <span>{formatDuration(topNs)}</span>
        <span>0</span>
      </div>
      <div class="anchor fill">
        <canvas
          ref={canvas}
          style={{ height: `${height}px` }}
          role="img"
          aria-label={stripSummary(steps, session.stepsAbout.value?.classes ?? [])}
          onPointerDown={(event) => {
            pressed.value = at(event);
            event.currentTarget.setPointerCapture(event.pointerId);
          }}
          onPointerMove={(event) => (hovered.value = at(event))}
          onPointerUp={(event) => {
            const [a, b] = [pressed.value ?? at(event), at(event)];
            pressed.value = undefined;
            choose(Math.min(a, b), Math.max(a, b));
          }}
          onPointerCancel={() => (pressed.value = undefined)}
          onPointerLeave={() => (hovered.value = undefined)}
        />
        {shown && (
          <div class="tooltip strip-tooltip" style={tooltipPlace(hovered.value ?? 0, all.length)} role="tooltip">
            <div class="tooltip-name row bold">
              <i
                style={{ background: css(shown.outlier ? outlierColor(theme) : classColor(shown.classRank, theme)) }}
              />
              step {shown.step} · {formatDuration(shown.durationNs)}
            </div>
            <div class="weak">
              {shown.class}
              {shown.outlier && ` · ▲ outlier${shown.cause ? `: ${shown.cause.replaceAll("_", " ")}` : ""}`}
            </div>
          </div>
        )}
      </div>
    </div>
  );
}

const tooltipPlace = (bar: number, count: number): Record<string, string> =>
  bar > count / 2 ? { right: `${100 - (100 * bar) / count}%` } : { left: `${(100 * (bar + 1)) / count}%` };

function stripSummary(steps: readonly Step[], classes: readonly ClassFacts[]): string {
  const counts = classes.map((c) => `${c.count} ${c.name} (median ${formatDuration(c.median_ns)})`);
  const outliers = classes.reduce((sum, c) => sum + c.outliers, 0);
  const some = steps
    .filter((s) => s.outlier)
    .slice(0, 12)
    .map((s) => s.step);
  return `Steps: ${counts.join(", ")}; ${outliers} outliers${some.length ? `: ${some.join(", ")}` : ""}`;
}
