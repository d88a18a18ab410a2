// One pane of tracks: rows with their names, one canvas for all of them, scrolled by itself.

import { effect, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { causeTitle } from "../base/idleCauses";
import { contextOf } from "../base/visibleText";
import { fitCanvas } from "../widgets/useSize";
import { rowOfLocation } from "./drawing/drawLinks";
import { drawTracks } from "./drawing/drawTracks";
import { type CellSource, type Ground, type Kept, type Losses, newKept, type Scene, type Tools } from "./drawing/scene";
import { Gutter } from "./Gutter";
import { attachPointer } from "./gestures";
import type { TimelineModel } from "./model/timelineModel";
import type { Pane as PaneModel } from "./model/trackRows";
import { type Hit, hitTest, rowAt } from "./pointing/hitTest";
import { type Idle, idleAt } from "./pointing/idleAt";
import { totalHeight } from "./rows/rowLayout";

const PATIENCE_MS = 1000;

/** Where a pane's pixels lie in time and rows, and what its rows are painted from. */
export const groundOf = (model: TimelineModel, pane: PaneModel): Ground & CellSource => ({
  window: model.time.shown.value,
  width: model.size.value.width,
  rows: model.rows.visible(pane),
  scrollTop: pane.scrollTop.value,
  tiles: model.tiles.value,
  tileCells: model.run.meta.tile_cells,
  store: model.store,
  rasters: model.rasters,
  places: model.rows.places.value,
  radar: model.rows.radar.value,
  height: pane.height.value,
});

/** The stretches in which spans are lost, and which rows they are in. */
export const lossesOf = (model: TimelineModel): Losses => ({
  lost: model.run.meta.lost,
  stands: (row, location) => model.rows.stands(row, location),
});

/** All that a picture of a pane shows. */
export function sceneOf(model: TimelineModel, pane: PaneModel, hit: Hit | undefined, kept: Kept, idle?: Idle): Scene {
  const { state } = model.session;
  const span = model.selection.span.value;
  const { links, gap } = model.selection;
  const chosen = gap.value;
  const lines = model.data.messages.value;
  const range = chosen && { startNs: chosen.start_ns, endNs: chosen.end_ns };
  return {
    ...groundOf(model, pane),
    pixelRatio: devicePixelRatio,
    steps: model.steps.value,
    stepsOf: model.data.stepsOf.value,
    foldedProcesses: model.run.meta.folded_processes,
    losses: lossesOf(model),
    chosenStep: state.value.step,
    readings: model.data.readings.value,
    selection: span && {
      location: span.location,
      startNs: span.start_ns,
      depth: span.depth,
      durationNs: span.duration_ns,
    },
    critical: model.data.critical.value,
    messages: lines && { lines, rows: pane.rows.value, stands: (row, location) => model.rows.stands(row, location) },
    linked: span &&
      links.value && {
        span,
        links: links.value.links,
        rows: pane.rows.value,
        stands: (row, location) => model.rows.stands(row, location),
      },
    gaps: [
      ...(idle ? [{ ...idle, selected: false, cause: "" }] : []),
      ...(chosen && range
        ? [{ location: chosen.location, range, selected: true, cause: causeTitle(chosen.cause?.main) }]
        : []),
    ],
    notes: model.session.notes.list.value,
    hovered: hit?.exact ? hit : undefined,
    range: model.pointer.dragging.value ?? state.value.range,
    pointerX: model.pointer.at.value?.x,
    version: model.version.value,
    kept,
  };
}

/** Selects the span under a point, or else the idle gap. */
async function selectAt(model: TimelineModel, pane: PaneModel, x: number, y: number): Promise<void> {
  const ground = groundOf(model, pane);
  const place = hitTest(ground, x, y)?.place;
  const idle = place ? undefined : idleAt(ground, x, y);
  if (idle) await model.selection.selectGapAt({ location: idle.location, startNs: idle.at });
  else await model.selection.select(place);
}

type Props = {
  readonly model: TimelineModel;
  readonly pane: PaneModel;
  /** What drawing keeps between pictures, for the theme and the region of now. */
  readonly toolsFor: () => Tools;
  /** Names of the pane and its picture, for those who do not see it. */
  readonly name: string;
  readonly picture: string;
  readonly canvasClass: string;
};

export function Pane({ model, pane, toolsFor, name, picture, canvasClass }: Props) {
  const scroller = useRef<HTMLElement>(null);
  const area = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const isMain = pane === model.rows.main;
  // Whether there is a picture, perhaps of a model of this run when it was shorter.
  const drawn = useRef(false);

  useEffect(() => {
    const [surface, context] = [canvas.current, contextOf(canvas.current)];
    if (!surface || !context) return undefined;
    const kept = newKept();
    const begun = performance.now();
    let whole = false;
    let frame = 0;
    const draw = (): void => {
      frame = 0;
      const at = model.pointer.at.value;
      const here = at?.pane === pane && !model.pointer.dragging.value ? at : undefined;
      const hit = here && hitTest(groundOf(model, pane), here.x, here.y);
      const idle = here && !hit && !model.store.waiting ? idleAt(groundOf(model, pane), here.x, here.y) : undefined;
      if (here || (!at && (model.pointer.hit.peek() || model.pointer.idle.peek()))) {
        model.pointer.hit.value = hit;
        model.pointer.idle.value = idle;
      }
      // The picture of a run that grows stays until the next one is whole, unless that takes long or the window moves.
      const early = !whole && performance.now() < begun + PATIENCE_MS && !model.time.moving.value;
      if (drawn.current && early && model.waiting) return;
      whole = true;
      drawn.current = model.version.value > 0;
      const scene = sceneOf(model, pane, hit, kept, idle);
      fitCanvas(surface, scene.width, scene.height);
      for (const [location, depths] of drawTracks(context, scene, toolsFor())) model.rows.sawDepth(location, depths);
      const exact = kept.cells.lines.exact && kept.rasters.lines.exact;
      if (isMain) model.painted.value = exact;
      // What this frame had no time for, the next one paints.
      if (!exact && !frame) frame = requestAnimationFrame(draw);
    };
    // Draws after every change of anything the picture depends on, at most once a frame.
    const dispose = effect(() => {
      void [sceneOf(model, pane, undefined, kept), model.session.theme.value, model.session.state.value.region];
      if (!frame) frame = requestAnimationFrame(draw);
    });
    return () => {
      dispose();
      cancelAnimationFrame(frame);
    };
  }, [model, pane, isMain, toolsFor]);

  useEffect(() => {
    if (!canvas.current) return undefined;
    // On the canvas, which stays in place while the rows scroll: positions are those on the screen.
    return attachPointer(canvas.current, model, pane, {
      click: (x, y) => {
        const row = rowAt(groundOf(model, pane), y);
        // A row of many ranks holds no span to select: it opens into the next finer ones.
        if (row?.kind === "ranks" || row?.kind === "system") model.rows.flip(row.key);
        else void selectAt(model, pane, x, y);
      },
      doubleClick: (x, y) => void selectAt(model, pane, x, y).then(() => model.focus()),
    });
  }, [model, pane]);

  useEffect(() => {
    const [box, surface] = [scroller.current, area.current];
    if (!isMain || !box || !surface) return undefined;
    const measure = (): void => {
      const size = { width: surface.clientWidth, height: box.clientHeight };
      const known = model.size.peek();
      if (size.width !== known.width || size.height !== known.height) model.size.value = size;
    };
    const observer = new ResizeObserver(measure);
    observer.observe(box);
    observer.observe(surface);
    measure();
    return () => observer.disconnect();
  }, [model, isMain]);

  // The row of what was jumped to must be seen.
  useSignalEffect(() => {
    const location = model.rows.toRow.value;
    const box = scroller.current;
    if (!isMain || location === undefined || !box) return;
    const row = rowOfLocation(pane.rows.peek(), location, (one, at) => model.rows.stands(one, at));
    if (!row) return;
    const tall = Math.min(row.height, box.clientHeight);
    if (row.top < box.scrollTop || row.top + tall > box.scrollTop + box.clientHeight)
      box.scrollTop = row.top - (box.clientHeight - tall) / 2;
  });

  // The row that the keys moved to must be seen.
  useSignalEffect(() => {
    const key = model.rows.focused.value;
    const row = isMain && key !== undefined ? pane.rows.peek().find((one) => one.key === key) : undefined;
    const box = scroller.current;
    if (!row || !box) return;
    if (row.top < box.scrollTop) box.scrollTop = row.top;
    else if (row.top + Math.min(row.height, box.clientHeight) > box.scrollTop + box.clientHeight)
      box.scrollTop = row.top + Math.min(row.height, box.clientHeight) - box.clientHeight;
  });

  const height = totalHeight(pane.rows.value);
  return (
    <section
      class={isMain ? "tracks-body fill" : "tracks-body fill pinned"}
      ref={scroller}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling area must be reachable by keyboard (WCAG 2.1.1).
      tabIndex={0}
      aria-label={name}
      onScroll={(event) => (pane.scrollTop.value = event.currentTarget.scrollTop)}
      style={isMain ? {} : { height: `${pane.height.value}px` }}
    >
      <div class="tracks-content flex" style={{ height: `${height}px` }}>
        <Gutter model={model} pane={pane} />
        <div class="fill" ref={area}>
          <canvas
            ref={canvas}
            class={canvasClass}
            role="img"
            aria-label={picture}
            style={{ height: `${pane.height.value}px` }}
          />
        </div>
      </div>
    </section>
  );
}
