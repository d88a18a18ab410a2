// Draws the time ruler and the row of steps above the tracks.

import { CHROME, classColor, css, outlierColor, type Theme, textOn } from "../../base/color";
import { formatDuration, formatMoment, length, type TimeRange, ticks } from "../../base/time";
import { toPx } from "../../base/viewport";
import type { Step } from "../../data/runSteps";
import type { Note } from "../../data/wire/wire.generated";
import { foldedStretches, hatch } from "./drawFolded";
import { drawFlags } from "./drawNotes";
import { LABEL_FONT, type Labels, labelLeft } from "./labels";
import type { Pen } from "./svgSurface";

/** Heights in CSS pixels. */
export const RULER_HEIGHT = 26;
export const STEPS_HEIGHT = 20;

type HeaderScene = {
  readonly width: number;
  readonly pixelRatio: number;
  readonly window: TimeRange;
  readonly steps: readonly Step[];
  readonly chosenStep: number | undefined;
  readonly notes: readonly Note[];
  /** Shown in place of the steps where there are none. */
  readonly stepsNote: string;
  readonly pointerX: number | undefined;
  readonly range: TimeRange | undefined;
};

/** Draws ruler and steps. */
export function drawHeader(context: Pen, scene: HeaderScene, labels: Labels, theme: Theme): void {
  const { width, pixelRatio, window, steps, pointerX, range } = scene;
  const chrome = CHROME[theme];
  context.setTransform(pixelRatio, 0, 0, pixelRatio, 0, 0);
  context.clearRect(0, 0, width, RULER_HEIGHT + STEPS_HEIGHT);
  context.font = LABEL_FONT;
  context.textBaseline = "middle";
  const { stepNs, major, minor } = ticks(window, width);
  context.fillStyle = chrome.gridStrong;
  for (const at of minor) context.fillRect(Math.round(toPx(at, window, width)), RULER_HEIGHT - 5, 1, 5);
  for (const at of major) {
    const x = Math.round(toPx(at, window, width));
    context.fillStyle = chrome.textWeak;
    context.fillRect(x, RULER_HEIGHT - 10, 1, 10);
    context.fillText(formatMoment(at, stepNs), x + 4, RULER_HEIGHT / 2 - 2);
  }
  drawSteps(context, scene, { top: RULER_HEIGHT, tall: STEPS_HEIGHT - 3 }, labels, theme);
  drawChosen(context, scene, theme);
  if (scene.stepsNote && !steps.length) {
    context.fillStyle = chrome.textWeak;
    context.fillText(scene.stepsNote, 6, RULER_HEIGHT + STEPS_HEIGHT / 2 - 1);
  }
  if (range) {
    const [left, right] = [toPx(range.startNs, window, width), toPx(range.endNs, window, width)];
    context.fillStyle = chrome.accentFill;
    context.fillRect(left, 0, right - left, RULER_HEIGHT + STEPS_HEIGHT);
    tag(
      context,
      formatDuration(length(range)),
      (Math.max(left, 0) + Math.min(right, width)) / 2,
      width,
      chrome.accent,
      theme,
    );
  }
  drawFlags(context, scene, RULER_HEIGHT + STEPS_HEIGHT, theme);
  if (!range && pointerX !== undefined) {
    const at = window.startNs + (pointerX / width) * length(window);
    tag(context, formatMoment(at, length(window) / width), pointerX, width, chrome.text, theme);
  }
}

/** A line under the step that is chosen on another page. */
function drawChosen(context: Pen, scene: HeaderScene, theme: Theme): void {
  const { steps, chosenStep, window, width } = scene;
  const step = chosenStep === undefined ? undefined : steps.find((one) => one.step === chosenStep);
  if (!step) return;
  const left = toPx(step.startNs, window, width);
  const right = toPx(step.startNs + step.durationNs, window, width);
  context.fillStyle = CHROME[theme].accent;
  context.fillRect(left, RULER_HEIGHT + STEPS_HEIGHT - 3, Math.max(3, right - left), 3);
}

/** A small filled label on the ruler. */
function tag(context: Pen, text: string, x: number, width: number, color: string, theme: Theme): void {
  const wide = context.measureText(text).width + 10;
  const left = Math.min(Math.max(x - wide / 2, 0), width - wide);
  context.fillStyle = color;
  context.beginPath();
  context.roundRect(left, 3, wide, 16, 3);
  context.fill();
  context.fillStyle = css(CHROME[theme].background);
  context.fillText(text, left + 5, 11.5);
}

/** Draws steps as a row: coloured by class, named where there is room, outliers with a sign, hatched where they hold no spans. */
export function drawSteps(
  context: Pen,
  { steps, window, width }: Pick<HeaderScene, "steps" | "window" | "width">,
  { top, tall }: { readonly top: number; readonly tall: number },
  labels: Labels,
  theme: Theme,
): void {
  context.font = LABEL_FONT;
  context.textBaseline = "middle";
  let paintedTo = -1;
  for (const step of steps) {
    const left = toPx(step.startNs, window, width);
    const right = toPx(step.startNs + step.durationNs, window, width);
    if (right < 0 || left > width) continue;
    // Where a pixel holds several steps, an outlier among them is what must be seen.
    if (right < paintedTo && !step.outlier) continue;
    const color = step.outlier ? outlierColor(theme) : classColor(step.classRank, theme);
    const wide = Math.max(1, Math.min(right, width + 2) - Math.max(left, -2));
    context.fillStyle = css(color);
    context.fillRect(Math.max(left, -2), top, wide > 4 ? wide - 1 : wide, tall);
    paintedTo = Math.max(left, -2) + wide;
    const name = `${step.outlier ? "▲ " : ""}step ${step.step}`;
    const full = `${name}  ${formatDuration(step.durationNs)}${step.cause ? `  ${step.cause.replaceAll("_", " ")}` : ""}`;
    const room = Math.min(right, width) - Math.max(left, 0);
    const text = labels.fit(full, room) === full ? full : labels.fit(name, room);
    if (text) {
      context.fillStyle = textOn(color);
      context.fillText(text, labelLeft(left), top + tall / 2 + 0.5);
    }
  }
  for (const stretch of foldedStretches(steps, window)) {
    const left = Math.max(0, toPx(stretch.startNs, window, width));
    const wide = Math.min(width, toPx(stretch.endNs, window, width)) - left;
    hatch(context, { left, top, width: wide, height: tall }, css(CHROME[theme].background));
  }
}
