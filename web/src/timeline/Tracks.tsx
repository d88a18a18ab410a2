// The tracks on the screen: ruler and steps, the pinned rows, all rows, tooltip.

import { effect, useComputed, useSignalEffect } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { plural } from "../base/quantity";
import { formatDuration, length } from "../base/time";
import { contextOf, visible } from "../base/visibleText";
import { countLocations } from "../data/run";
import type { Note } from "../data/wire/wire.generated";
import { fitCanvas } from "../widgets/useSize";
import { drawHeader, RULER_HEIGHT, STEPS_HEIGHT } from "./drawing/drawHeader";
import { noteAt } from "./drawing/drawNotes";
import { LABEL_FONT, Labels } from "./drawing/labels";
import { newKept, type Tools } from "./drawing/scene";
import { Inks } from "./drawing/spanColors";
import { attachKeys } from "./gestures";
import type { TimelineModel } from "./model/timelineModel";
import { Pane, sceneOf } from "./Pane";
import { Painter } from "./pixels/cellPainter";
import { Mappings } from "./pixels/pixelMapping";
import { RasterPainter } from "./pixels/rasterPainter";
import { Tooltip } from "./Tooltip";

/** What drawing keeps between pictures, made anew for another theme or another region that stands out. */
function drawingTools(model: TimelineModel): () => Tools {
  const mappings = new Mappings(model.run.meta.tile_cells);
  const measuring = contextOf(new OffscreenCanvas(1, 1));
  if (measuring) measuring.font = LABEL_FONT;
  const labels = new Labels((text) => measuring?.measureText(text).width ?? 0);
  let made: Tools | undefined;
  return () => {
    const theme = model.session.theme.peek();
    const { region } = model.session.state.peek();
    if (made?.theme !== theme || made.painter.chosen !== region)
      made = {
        theme,
        painter: new Painter(theme, mappings, region),
        rasters: new RasterPainter(theme, mappings),
        inks: new Inks(theme, region),
        labels,
      };
    return made;
  };
}

/** Draws ruler and steps after every change of anything that they depend on, at most once a frame. */
function useHeader(model: TimelineModel, header: { current: HTMLCanvasElement | null }, toolsFor: () => Tools) {
  useEffect(() => {
    const [canvas, context] = [header.current, contextOf(header.current)];
    if (!canvas || !context) return undefined;
    const kept = newKept();
    let frame = 0;
    const draw = (): void => {
      frame = 0;
      const scene = { ...sceneOf(model, model.rows.main, undefined, kept), stepsNote: model.stepsNote.value };
      fitCanvas(canvas, scene.width, RULER_HEIGHT + STEPS_HEIGHT);
      const { labels, theme } = toolsFor();
      drawHeader(context, scene, labels, theme);
      // Tests and curious people measure from here: the first picture that lacks nothing.
      if (
        scene.width > 0 &&
        model.version.value > 0 &&
        !model.waiting &&
        model.painted.value &&
        !performance.getEntriesByName("first-picture").length
      )
        performance.mark("first-picture");
    };
    const dispose = effect(() => {
      model.fetchVisible();
      void [sceneOf(model, model.rows.main, undefined, kept), model.stepsNote.value, model.session.theme.value];
      void model.painted.value;
      if (!frame) frame = requestAnimationFrame(draw);
    });
    return () => {
      dispose();
      cancelAnimationFrame(frame);
    };
  }, [model, header, toolsFor]);
}

export function Tracks({ model }: { model: TimelineModel }) {
  const box = useRef<HTMLDivElement>(null);
  const header = useRef<HTMLCanvasElement>(null);
  const toolsFor = useMemo(() => drawingTools(model), [model]);
  useHeader(model, header, toolsFor);

  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const measure = (): void => {
      model.rows.roomPx.value = Math.max(0, element.clientHeight - RULER_HEIGHT - STEPS_HEIGHT);
    };
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    model.picture = { box: element, tools: toolsFor };
    const detachKeys = attachKeys(window, model);
    return () => {
      observer.disconnect();
      detachKeys();
      model.picture = undefined;
      model.close();
    };
  }, [model, toolsFor]);

  const noteUnder = (event: MouseEvent): Note | undefined =>
    noteAt(model.session.notes.list.peek(), event.offsetX, model.time.shown.peek(), model.size.peek().width);

  const chosen = useComputed(() => model.session.state.value.selection);
  useSignalEffect(() => {
    const selection = chosen.value;
    if (selection) void model.selection.restore(selection);
    else model.selection.deselect();
  });
  useSignalEffect(() => model.selection.followLinks(model.selection.span.value));
  const chosenGap = useComputed(() => model.session.state.value.gap);
  useSignalEffect(() => {
    const key = chosenGap.value;
    if (key) void model.selection.restoreGap(key);
    else model.selection.gap.value = undefined;
  });

  return (
    <div class="anchor vertical fill" ref={box}>
      <div class="tracks-head flex fixed surface">
        <div class="gutter-head fixed weak">
          <span>time</span>
          <span>steps</span>
        </div>
        <canvas
          ref={header}
          class="fixed"
          style={{ width: `${model.size.value.width}px`, height: `${RULER_HEIGHT + STEPS_HEIGHT}px` }}
          role="img"
          aria-label="Time ruler and steps"
          onClick={(event) => (model.draft.value = noteUnder(event))}
          onMouseMove={(event) => {
            const note = noteUnder(event);
            event.currentTarget.title = visible(note?.text ?? "");
            event.currentTarget.style.cursor = note ? "pointer" : "";
          }}
        />
      </div>
      {model.rows.pinned.rows.value.length > 0 && (
        <Pane
          model={model}
          pane={model.rows.pinned}
          toolsFor={toolsFor}
          name="Pinned rows"
          picture={`${model.rows.pinned.rows.value.length} pinned rows`}
          canvasClass="pinned-canvas"
        />
      )}
      <Pane
        model={model}
        pane={model.rows.main}
        toolsFor={toolsFor}
        name="Tracks: threads over time"
        picture={summary(model)}
        canvasClass="tracks-canvas"
      />
      <Tooltip model={model} />
    </div>
  );
}

export function summary(model: TimelineModel): string {
  const { run, steps } = model;
  const critical = model.data.critical;
  const lines = model.data.messages.value;
  const messages = lines ? `, ${plural(lines.sent_ns.length, "line")} of messages` : "";
  const path = critical.value ? `, ${critical.value.about}` : "";
  const shown = model.time.shown.value;
  const inside = steps.value.filter((s) => s.startNs < shown.endNs && s.startNs + s.durationNs > shown.startNs);
  const outliers = inside.filter((s) => s.outlier).length;
  const locations = countLocations(
    model.rows.all.value.flatMap((row) => (row.kind === "location" ? row.location : [])),
  );
  const folded = inside.filter((s) => s.detail === "none").length;
  const steps_ = steps.value.length
    ? `, ${inside.length} of ${steps.value.length} steps, ${outliers} of them outliers${folded ? `, ${folded} of them statistics only` : ""}`
    : "";
  return `Timeline of ${run.meta.program || run.meta.name}: ${formatDuration(length(shown))} from ${formatDuration(shown.startNs)}, ${locations}${steps_}${path}${messages}`;
}
