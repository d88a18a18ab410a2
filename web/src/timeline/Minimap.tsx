// The whole run above the tracks: what main threads do, its steps, and the window, which is moved by dragging.

import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { CHROME, css, outlierColor, type Theme } from "../base/color";
import { plural } from "../base/quantity";
import { formatDuration, length, sameRange, type TimeRange } from "../base/time";
import { toNs, toPx } from "../base/viewport";
import { contextOf } from "../base/visibleText";
import type { Step } from "../data/runSteps";
import { levelFor, tilesIn } from "../data/tiles/cells";
import { rasterStore } from "../data/tiles/rasters";
import { Button } from "../widgets/controls";
import { drawOutlier } from "../widgets/steps/stripBars";
import { fitCanvas, useDrawing, useSize } from "../widgets/useSize";
import { drawSteps } from "./drawing/drawHeader";
import { Labels } from "./drawing/labels";
import type { TimelineModel } from "./model/timelineModel";
import { Mappings, transfer } from "./pixels/pixelMapping";
import { RasterPainter, stackGround } from "./pixels/rasterPainter";
import { draggedWindow, type Grip, gripAt } from "./pointing/minimapDrag";
import { mainLocations } from "./rows/processTree";
import { familiesOf, placedRasters, sourceOf } from "./rows/rasterSources";

/** Sizes in CSS pixels. */
const SHARES = 24;
const STEPS = 6;
const HEIGHT = SHARES + STEPS;
const REACH = 5;
/** More main threads than these are sampled evenly: the picture is a mean. */
const MOST_MEMBERS = 256;

export function Minimap({ model }: { model: TimelineModel }) {
  const { run, session } = model;
  const canvas = useRef<HTMLCanvasElement>(null);
  const { width } = useSize(canvas).value;
  const picture = useMemo(() => document.createElement("canvas"), []);
  const theme = session.theme.value;
  const shares = useShares(model, width);
  const steps = model.steps.value;
  const worst = session.stepsAbout.value?.worst;
  const shown = model.time.shown.value;
  const whole = sameRange(shown, run.bounds);
  // While the window moves, only its frame is drawn anew.
  useMemo(() => drawRun(picture, { shares, steps, bounds: run.bounds, width, theme }), [shares, steps, width, theme]);
  useDrawing(canvas, { width, height: HEIGHT }, (context) => {
    context.drawImage(picture, 0, 0, width, HEIGHT);
    if (!whole) drawFrame(context, shown, run.bounds, width, theme);
    if (!worst) return;
    context.fillStyle = css(outlierColor(theme));
    drawOutlier(context, toPx(worst.start_ns + worst.duration_ns / 2, run.bounds, width), SHARES - 7);
  });
  const pressed = useRef<{ readonly grip: Grip; readonly before: TimeRange; readonly from: number } | undefined>(
    undefined,
  );
  const at = (event: PointerEvent): number => toNs(event.offsetX, run.bounds, width);
  const drag = (to: number): void => {
    const { grip, before, from } = pressed.current ?? {};
    if (grip && before && from !== undefined) model.time.move(draggedWindow(grip, before, from, to, run.bounds));
  };
  return (
    <div class="minimap flex fixed surface">
      <div class="minimap-name fixed">
        <Button class="quiet" aria-pressed={whole} onClick={() => model.time.whole()} title="Show the whole run (0)">
          whole run
        </Button>
      </div>
      <canvas
        ref={canvas}
        class="fill"
        style={{ height: `${HEIGHT}px` }}
        role="img"
        aria-label={`The whole run, ${formatDuration(length(run.bounds))}: ${
          whole ? "all of it" : `${formatDuration(length(shown))} from ${formatDuration(shown.startNs)}`
        } on the screen, ${plural(session.stepsAbout.value?.count ?? 0, "step")}${worst ? `, the worst is step ${worst.step}` : ""}`}
        title="The whole run, mean of main threads. Drag the frame or its edges"
        onPointerDown={(event) => {
          const before = model.time.shown.peek();
          const grip = gripAt(at(event), before, run.bounds, (REACH * length(run.bounds)) / Math.max(1, width));
          pressed.current = { grip, before, from: at(event) };
          event.currentTarget.setPointerCapture(event.pointerId);
          if (grip === "move") drag(at(event));
        }}
        onPointerMove={(event) => drag(at(event))}
        onPointerUp={() => (pressed.current = undefined)}
        onPointerCancel={() => (pressed.current = undefined)}
      />
    </div>
  );
}

type Shares = { readonly paint: (out: Uint32Array, tall: number) => void };

/** What the main threads do over the whole run, once the tracks have their first picture. */
function useShares(model: TimelineModel, width: number): Shares | undefined {
  const { run, session } = model;
  const { tile_cells: cells } = run.meta;
  const version = useSignal(0);
  const store = useMemo(() => {
    const changed = (): number => version.value++;
    return rasterStore(session.api, cells, changed, (sentence) => session.notify(sentence));
  }, [session, cells]);
  useEffect(() => () => store.close(), [store]);
  const { tiles, row } = useMemo(() => {
    const members = mainLocations(run);
    const every = Math.ceil(members.length / MOST_MEMBERS);
    const some = members.filter((_, i) => i % every === 0);
    const place = { key: "minimap", top: 0, height: SHARES, level: 0 };
    return {
      tiles: tilesIn(run.bounds, levelFor(run.bounds, width * devicePixelRatio), cells),
      row: { kind: "host", host: "", folded: true, count: some.length, members: some, ...place } as const,
    };
  }, [run, width, cells]);
  const wanted = width > 0 && model.pictured.value;
  useEffect(() => {
    if (wanted) store.want(familiesOf([row], [], undefined), tiles);
  }, [wanted, store, row, tiles]);
  const theme = session.theme.value;
  const painter = useMemo(() => new RasterPainter(theme, new Mappings(cells)), [theme, cells]);
  return useMemo(() => {
    const source = sourceOf(row, [], undefined);
    const placed = source && placedRasters(source, store, tiles);
    return placed?.length ? { paint: (out, tall) => painter.stack(out, tall, run.bounds, placed) } : undefined;
  }, [version.value, painter, row, tiles, store, run]);
}

type RunPicture = {
  readonly shares: Shares | undefined;
  readonly steps: readonly Step[];
  readonly bounds: TimeRange;
  readonly width: number;
  readonly theme: Theme;
};

/** Steps carry no names here. */
const NO_LABELS = new Labels(() => Number.POSITIVE_INFINITY);

function drawRun(picture: HTMLCanvasElement, { shares, steps, bounds, width, theme }: RunPicture): void {
  const context = contextOf(picture);
  const ratio = devicePixelRatio;
  const [widthPx, tall] = [Math.round(width * ratio), Math.round(SHARES * ratio)];
  if (!context || widthPx < 1) return;
  fitCanvas(picture, width, HEIGHT);
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, picture.width, picture.height);
  context.fillStyle = stackGround(theme);
  context.fillRect(0, 0, widthPx, tall);
  if (shares) {
    const pixels = new Uint32Array(widthPx * tall);
    shares.paint(pixels, tall);
    const scratch = new OffscreenCanvas(widthPx, tall);
    transfer(pixels, widthPx, tall, scratch);
    context.drawImage(scratch, 0, 0);
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  drawSteps(context, { steps, window: bounds, width }, { top: SHARES + 1, tall: STEPS - 1 }, NO_LABELS, theme);
}

/** The frame of the window, and a veil over all else. */
function drawFrame(
  context: CanvasRenderingContext2D,
  window: TimeRange,
  bounds: TimeRange,
  width: number,
  theme: Theme,
): void {
  const chrome = CHROME[theme];
  const left = toPx(window.startNs, bounds, width);
  const wide = Math.max(3, toPx(window.endNs, bounds, width) - left);
  context.fillStyle = `rgb(${chrome.background.join(" ")} / 45%)`;
  context.fillRect(0, 0, left, HEIGHT);
  context.fillRect(left + wide, 0, width - left - wide, HEIGHT);
  context.strokeStyle = chrome.accent;
  context.lineWidth = 2;
  context.strokeRect(left, 1, wide, HEIGHT - 2);
}
