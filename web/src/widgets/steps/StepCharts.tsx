// All steps at once: what each was made of, and how long each class takes.

import { useSignal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import { CHROME, classColor, css, outlierColor, PART_TITLES, partColor } from "../../base/color";
import { formatCount, plural } from "../../base/quantity";
import { PIECES } from "../../base/stepPieces";
import { formatDuration } from "../../base/time";
import type { Step } from "../../data/runSteps";
import { useSession } from "../../data/session";
import { Here, PartList, Scale } from "../figures";
import { useDrawing, useSize } from "../useSize";
import { binsOf, histogramOf, partsOf } from "./stepLists";
import { drawChosen, drawOutlier, scaleTop } from "./stripBars";

type Props = {
  readonly steps: readonly Step[];
  readonly chosen: number | undefined;
  readonly onChoose: (step: Step) => void;
};

const CHART_HEIGHT = 148;
const AXIS_WIDTH = 58;
const MARK_HEIGHT = 9;
/** One bar for so many pixels at least. */
const NARROWEST = 2;

/** Stacked parts of every step, in order of time. */
export function BreakdownChart({ steps, chosen, onChoose }: Props) {
  const theme = useSession().theme.value;
  const canvas = useRef<HTMLCanvasElement>(null);
  const { width } = useSize(canvas).value;
  const hovered = useSignal<number | undefined>(undefined);
  const area = Math.max(1, width - AXIS_WIDTH);
  const bins = useMemo(() => binsOf(steps, Math.floor(area / NARROWEST)), [steps, area]);
  const top = useMemo(() => scaleTop(steps), [steps]);

  useDrawing(canvas, { width, height: CHART_HEIGHT }, (context) => {
    const chrome = CHROME[theme];
    const tallest = CHART_HEIGHT - MARK_HEIGHT;
    const wide = area / Math.max(1, bins.length);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (const share of [0, 0.5, 1]) {
      const y = CHART_HEIGHT - share * tallest;
      context.fillStyle = chrome.grid;
      context.fillRect(AXIS_WIDTH, Math.min(CHART_HEIGHT - 1, y), area, 1);
      context.fillStyle = chrome.textWeak;
      context.fillText(
        share ? formatDuration(share * top) : "0",
        AXIS_WIDTH - 6,
        Math.max(12, Math.min(CHART_HEIGHT - 6, y)),
      );
    }
    bins.forEach((bin, i) => {
      const left = AXIS_WIDTH + i * wide;
      const broad = Math.max(1, wide - (wide > 4 ? 1 : 0));
      let floor = CHART_HEIGHT;
      context.globalAlpha = hovered.value === undefined || hovered.value === i ? 1 : 0.8;
      for (const { phase, ns } of partsOf(bin.parts)) {
        const tall = Math.min(floor - MARK_HEIGHT, (ns / top) * tallest);
        context.fillStyle = css(partColor(phase, theme));
        context.fillRect(left, floor - tall, broad, tall);
        floor -= tall;
      }
      context.globalAlpha = 1;
      const { outlier } = bin;
      if (outlier) {
        const y = Math.max(0, CHART_HEIGHT - Math.min(1, outlier.durationNs / top) * tallest - MARK_HEIGHT + 1);
        context.fillStyle = css(outlierColor(theme));
        drawOutlier(context, left + wide / 2, y);
      }
      if (chosen !== undefined && steps.slice(bin.from, bin.to).some((step) => step.step === chosen))
        drawChosen(context, left, wide, CHART_HEIGHT, theme);
    });
  });
  const at = (event: MouseEvent): number | undefined => {
    const bin = Math.floor(((event.offsetX - AXIS_WIDTH) / area) * bins.length);
    return bin >= 0 && bin < bins.length ? bin : undefined;
  };
  const bin = hovered.value === undefined ? undefined : bins[hovered.value];
  const shown = bin && (bin.outlier ?? steps[bin.from]);
  return (
    <figure class="step-chart">
      <figcaption class="wraps">
        <h2>What every step was made of</h2>
        <PartList
          parts={PIECES.filter((phase) => steps.some((step) => step.parts[phase] > 0)).map((phase) => ({
            name: phase,
            title: PART_TITLES[phase],
            color: partColor(phase, theme),
          }))}
        />
      </figcaption>
      <div class="anchor">
        <canvas
          ref={canvas}
          style={{ height: `${CHART_HEIGHT}px` }}
          role="img"
          aria-label={`Breakdown of ${plural(steps.length, "step")}: ${means(steps)}`}
          onPointerMove={(event) => (hovered.value = at(event))}
          onPointerLeave={() => (hovered.value = undefined)}
          onClick={(event) => {
            const found = bins[at(event) ?? -1];
            const step = found && (found.outlier ?? steps[found.from]);
            if (step) onChoose(step);
          }}
        />
        {bin && shown && (
          <div
            class="tooltip"
            role="tooltip"
            style={(hovered.value ?? 0) > bins.length / 2 ? { left: 0, top: "100%" } : { right: 0, top: "100%" }}
          >
            <div class="tooltip-name row bold">
              {bin.to - bin.from > 1 && !bin.outlier
                ? `steps ${steps[bin.from]?.step}–${steps[bin.to - 1]?.step}, mean`
                : `step ${shown.step} · ${formatDuration(shown.durationNs)}`}
            </div>
            {partsOf(bin.outlier ? bin.outlier.parts : bin.parts).map(({ phase, ns }) => (
              <div key={phase} class="tooltip-metric cells">
                <i style={{ background: css(partColor(phase, theme)) }} />
                <span>{PART_TITLES[phase]}</span>
                <span class="number">{formatDuration(ns)}</span>
              </div>
            ))}
          </div>
        )}
      </div>
    </figure>
  );
}

function means(steps: readonly Step[]): string {
  const whole = binsOf(steps, 1)[0];
  if (!whole) return "";
  return partsOf(whole.parts)
    .map(({ phase, ns }) => `${PART_TITLES[phase]} ${formatDuration(ns)}`)
    .join(", ");
}

const BARS = 56;

/** How many steps last how long, by class; where the chosen step lies among them. */
export function DurationHistogram({ steps, chosen }: Pick<Props, "steps" | "chosen">) {
  const theme = useSession().theme.value;
  const found = useMemo(() => histogramOf(steps, BARS), [steps]);
  const { classes, most, lowNs, highNs } = found;
  const step = steps.find((one) => one.step === chosen);
  const place = (ns: number): number => (100 * Math.log(ns / lowNs)) / (Math.log(highNs / lowNs) || 1);
  const sum = (counts: readonly number[]): number => counts.reduce((a, b) => a + b, 0);
  const text = classes.map(({ name, counts }) => `${plural(sum(counts), "step")} of ${name}`).join(", ");
  return (
    <figure class="step-chart">
      <figcaption class="wraps">
        <h2>How long steps take</h2>
        <span class="weak finer">logarithmic; heights are square roots</span>
      </figcaption>
      <svg viewBox="0 0 100 40" preserveAspectRatio="none" role="img" aria-label={`Histogram of durations: ${text}`}>
        {Array.from({ length: BARS }, (_, i) => {
          const total = classes.reduce((sum, one) => sum + (one.counts[i] ?? 0), 0);
          const tall = total ? Math.max(1.4, 38 * Math.sqrt(total / most)) : 0;
          let floor = 40;
          return classes.map((one) => {
            const share = ((one.counts[i] ?? 0) / Math.max(1, total)) * tall;
            floor -= share;
            return share > 0 ? (
              <rect
                key={`${i}-${one.rank}`}
                x={(i * 100) / BARS}
                y={floor}
                width={(100 / BARS) * 0.86}
                height={share}
                fill={css(classColor(one.rank, theme))}
              />
            ) : null;
          });
        })}
        {step && <Here at={place(step.durationNs)} tall={40} />}
      </svg>
      <Scale of={[lowNs, Math.sqrt(lowNs * highNs), highNs].map(formatDuration)} />
      <p class="weak finer">fullest bar: {formatCount(most)}</p>
    </figure>
  );
}
