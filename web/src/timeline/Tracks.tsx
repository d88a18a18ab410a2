// The tracks on the screen: gutter with names, ruler, one canvas for all rows, tooltip.
import { effect, useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { css, GROUP_TITLES, groupColor } from "../base/color";
import { formatQuantity } from "../base/quantity";
import { formatDuration, length } from "../base/time";
import { drawTracks, type Scene } from "./draw";
import { attachKeys, attachPointer } from "./gestures";
import { drawHeader, RULER_HEIGHT, STEPS_HEIGHT } from "./header";
import { type Ground, type Hit, hitTest, rowAt } from "./hit";
import { Inks } from "./ink";
import { LABEL_FONT, Labels } from "./label";
import { readingAt, seriesColor } from "./metrics";
import type { TimelineModel } from "./model";
import { Painter } from "./painter";
import { type Row, totalHeight, visibleRows } from "./rows";
import { toNs } from "./viewport";

const ground = (model: TimelineModel): Ground => ({
  window: model.window.value,
  width: model.size.value.width,
  rows: model.visible(),
  scrollTop: model.scrollTop.value,
  tiles: model.tiles.value,
  tileCells: model.run.meta.tile_cells,
  store: model.store,
});

function scene(model: TimelineModel, hit: Hit | undefined): Scene {
  const { state } = model.session;
  const span = model.selected.value;
  return {
    ...ground(model),
    height: model.size.value.height,
    pixelRatio: devicePixelRatio,
    steps: model.steps.value,
    foldedProcesses: model.run.meta.folded_processes,
    chosenStep: state.value.step,
    readings: model.readings.value,
    selection: span && {
      location: span.location,
      startNs: span.start_ns,
      depth: span.depth,
      durationNs: span.duration_ns,
    },
    critical: model.critical.value,
    hovered: hit?.exact ? hit : undefined,
    range: model.dragging.value ?? state.value.range,
    pointerX: model.pointer.value?.x,
  };
}

const fitCanvas = (canvas: HTMLCanvasElement, width: number, height: number): void => {
  const [w, h] = [Math.round(width * devicePixelRatio), Math.round(height * devicePixelRatio)];
  if (canvas.width !== w) canvas.width = w;
  if (canvas.height !== h) canvas.height = h;
};

/** Draws after every change of anything the picture depends on, at most once a frame. */
function usePicture(
  model: TimelineModel,
  tracks: { current: HTMLCanvasElement | null },
  header: { current: HTMLCanvasElement | null },
) {
  const hit = useSignal<Hit | undefined>(undefined);
  const tools = useMemo(() => ({ scratch: new OffscreenCanvas(1, 1) }), []);
  useEffect(() => {
    const context = tracks.current?.getContext("2d");
    const headerContext = header.current?.getContext("2d");
    if (!context || !headerContext || !tracks.current || !header.current) return undefined;
    const [canvas, headerCanvas] = [tracks.current, header.current];
    context.font = LABEL_FONT;
    const labels = new Labels((text) => context.measureText(text).width);
    let painter: Painter | undefined;
    let inks = new Inks(model.session.theme.peek());
    let frame = 0;
    const draw = (): void => {
      frame = 0;
      const theme = model.session.theme.value;
      const { region } = model.session.state.value;
      if (painter?.theme !== theme || painter.chosen !== region) {
        painter = new Painter(theme, model.run.meta.tile_cells, region);
        inks = new Inks(theme, region);
      }
      const { pointer } = model;
      hit.value =
        pointer.value && !model.dragging.value ? hitTest(ground(model), pointer.value.x, pointer.value.y) : undefined;
      const now = scene(model, hit.value);
      fitCanvas(canvas, now.width, now.height);
      fitCanvas(headerCanvas, now.width, RULER_HEIGHT + STEPS_HEIGHT);
      for (const [location, depths] of drawTracks(context, now, {
        theme,
        painter,
        inks,
        labels,
        scratch: tools.scratch,
      }))
        model.sawDepth(location, depths);
      drawHeader(headerContext, { ...now, stepsNote: model.stepsNote.value }, labels, theme);
      // Tests and curious people measure from here: the first picture that lacks nothing.
      if (
        now.width > 0 &&
        model.version.value > 0 &&
        !model.store.waiting &&
        !performance.getEntriesByName("first-picture").length
      )
        performance.mark("first-picture");
    };
    const dispose = effect(() => {
      model.fetchVisible();
      // Whatever the picture depends on is read here, so that its change asks for a new one.
      void [
        scene(model, undefined),
        model.version.value,
        model.stepsNote.value,
        model.session.theme.value,
        model.session.state.value.region,
      ];
      if (!frame) frame = requestAnimationFrame(draw);
    });
    return () => {
      dispose();
      cancelAnimationFrame(frame);
    };
  }, [model]);
  return hit;
}

export function Tracks({ model }: { model: TimelineModel }) {
  const scroller = useRef<HTMLDivElement>(null);
  const area = useRef<HTMLDivElement>(null);
  const tracks = useRef<HTMLCanvasElement>(null);
  const header = useRef<HTMLCanvasElement>(null);
  const hit = usePicture(model, tracks, header);

  useEffect(() => {
    const [box, pane, canvas] = [scroller.current, area.current, tracks.current];
    if (!box || !pane || !canvas) return undefined;
    const measure = (): void => {
      const size = { width: pane.clientWidth, height: box.clientHeight };
      const known = model.size.peek();
      if (size.width !== known.width || size.height !== known.height) model.size.value = size;
    };
    const observer = new ResizeObserver(measure);
    observer.observe(box);
    observer.observe(pane);
    measure();
    const onScroll = (): void => {
      model.scrollTop.value = box.scrollTop;
    };
    box.addEventListener("scroll", onScroll, { passive: true });
    // On the canvas, which stays in place while the rows scroll: positions are those on the screen.
    const detachPointer = attachPointer(canvas, model, {
      click: (x, y) => void model.select(hitTest(ground(model), x, y)?.place),
      doubleClick: (x, y) => {
        const place = hitTest(ground(model), x, y)?.place;
        if (place) void model.select(place).then(() => model.focus());
      },
    });
    const detachKeys = attachKeys(window, model);
    return () => {
      observer.disconnect();
      box.removeEventListener("scroll", onScroll);
      detachPointer();
      detachKeys();
      model.close();
    };
  }, [model]);

  const chosen = useComputed(() => model.session.state.value.selection);
  useSignalEffect(() => {
    const selection = chosen.value;
    if (selection) void model.restore(selection);
    else model.deselect();
  });

  const height = totalHeight(model.rows.value);
  return (
    <div class="tracks">
      <div class="tracks-head">
        <div class="gutter-head">
          <span>time</span>
          <span>steps</span>
        </div>
        <canvas
          ref={header}
          class="ruler"
          style={{ width: `${model.size.value.width}px`, height: `${RULER_HEIGHT + STEPS_HEIGHT}px` }}
          role="img"
          aria-label="Time ruler and steps"
        />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling area must be reachable by keyboard (WCAG 2.1.1). */}
      <section class="tracks-body" ref={scroller} tabIndex={0} aria-label="Tracks: threads over time">
        <div class="tracks-content" style={{ height: `${height}px` }}>
          <div class="gutter">
            {nearbyRows(model).map((row) => (
              <GutterRow key={row.key} row={row} model={model} />
            ))}
          </div>
          <div class="tracks-area" ref={area}>
            <canvas ref={tracks} class="tracks-canvas" role="img" aria-label={summary(model)} />
          </div>
        </div>
      </section>
      <Tooltip model={model} hit={hit.value} />
    </div>
  );
}

/** The rows on the screen and some around it: thousands of threads must not become thousands of elements. */
const nearbyRows = (model: TimelineModel): Row[] =>
  visibleRows(model.rows.value, model.scrollTop.value - NEARBY, model.size.value.height + 2 * NEARBY);

/** The picture in words. */
export function summary(model: TimelineModel): string {
  const { window, run, steps, critical } = model;
  const path = critical.value ? `, ${critical.value.about}` : "";
  const shown = window.value;
  const inside = steps.value.filter((s) => s.startNs < shown.endNs && s.startNs + s.durationNs > shown.startNs);
  const outliers = inside.filter((s) => s.outlier).length;
  const locations = model.rows.value.filter((row) => row.kind === "location").length;
  const folded = inside.filter((s) => s.detail === "none").length;
  const steps_ = steps.value.length
    ? `, ${inside.length} of ${steps.value.length} steps, ${outliers} of them outliers${folded ? `, ${folded} of them statistics only` : ""}`
    : "";
  return `Timeline of ${run.meta.program || run.meta.name}: ${formatDuration(length(shown))} from ${formatDuration(shown.startNs)}, ${locations} threads${steps_}${path}`;
}

function GutterRow({ row, model }: { row: Row; model: TimelineModel }) {
  const style = { top: `${row.top}px`, height: `${row.height}px` };
  if (row.kind === "process")
    return (
      <div class="gutter-row gutter-process" style={style} title={row.title}>
        <strong>{row.title}</strong> <span class="weak">{row.process.pid}</span>
        {row.canHide && (
          <button
            type="button"
            class="quiet more"
            title={row.hidden ? `Show ${row.hidden} more metrics` : "Show fewer metrics"}
            onClick={() => model.toggleMetrics(row.process.process)}
          >
            {row.hidden ? `+${row.hidden}` : "−"}
          </button>
        )}
      </div>
    );
  if (row.kind === "metric")
    return (
      <div class="gutter-row gutter-metric" style={style}>
        <span>{row.title}</span>
        <span class="weak legend">
          {row.series.map((series, i) => (
            <span key={series.series} title={series.metric}>
              <i style={{ background: css(seriesColor(i, model.session.theme.value)) }} />
              {shortMetric(series.metric)}
            </span>
          ))}
        </span>
      </div>
    );
  const { location } = row;
  return (
    <button
      type="button"
      class="gutter-row gutter-location"
      style={style}
      aria-expanded={row.open}
      title={`${location.name}, thread ${location.threadId}, ${location.spanCount} spans`}
      onClick={() => model.toggle(location.location)}
    >
      <span class="chevron" aria-hidden="true">
        {row.open ? "▾" : "▸"}
      </span>
      <span class="gutter-name">{location.name || `thread ${location.threadId}`}</span>
    </button>
  );
}

/** "cpu main thread" under the heading CPU is "main". */
const shortMetric = (name: string): string =>
  name
    .replace(/^cpu /, "")
    .replace(/ threads?$/, "")
    .replace(/ (memory|switches)$/, "");

/** Rows this far beyond the screen have their names ready, in CSS pixels. */
const NEARBY = 800;
const TOOLTIP_GAP = 14;
/** --gutter of style/base.css, in CSS pixels. */
const GUTTER_WIDTH = 208;

function Tooltip({ model, hit }: { model: TimelineModel; hit: Hit | undefined }) {
  const pointer = model.pointer.value;
  const row = pointer && rowAt(ground(model), pointer.y);
  if (!pointer || model.dragging.value || (!hit && row?.kind !== "metric")) return null;
  const theme = model.session.theme.value;
  const gutterPx = GUTTER_WIDTH;
  const right = pointer.x > model.size.value.width * 0.62;
  const style = {
    top: `${pointer.y + RULER_HEIGHT + STEPS_HEIGHT + TOOLTIP_GAP}px`,
    ...(right
      ? { right: `${model.size.value.width - pointer.x + TOOLTIP_GAP}px` }
      : { left: `${gutterPx + pointer.x + TOOLTIP_GAP}px` }),
  };
  if (hit)
    return (
      <div class="tooltip" style={style} role="tooltip">
        <div class="tooltip-name">
          <i style={{ background: css(groupColor(hit.group, theme)) }} />
          {hit.name}
        </div>
        <div class="weak">
          {hit.exact ? formatDuration(length(hit.range)) : `mostly this for ${formatDuration(length(hit.range))}`} ·{" "}
          {GROUP_TITLES[hit.group].toLowerCase()}
        </div>
      </div>
    );
  if (row?.kind !== "metric") return null;
  const at = toNs(pointer.x, model.window.value, model.size.value.width);
  return (
    <div class="tooltip" style={style} role="tooltip">
      {row.series.map((series, i) => {
        const value = readingAt(model.readings.value.get(series.series), at);
        return (
          <div key={series.series} class="tooltip-metric">
            <i style={{ background: css(seriesColor(i, theme)) }} />
            <span>{series.metric}</span>
            <b>{value === undefined ? "–" : formatQuantity(value, row.unit)}</b>
          </div>
        );
      })}
    </div>
  );
}
