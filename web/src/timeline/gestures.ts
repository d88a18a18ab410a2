// Pointer, wheel and keys over the tracks, turned into calls of the model.

import { FIELDS, listeners, within } from "../base/events";
import type { TimeRange } from "../base/time";
import { toNs } from "../base/viewport";
import { chordOf, ROW_ACTIONS, TIMELINE_ACTIONS } from "../state/keyTable";
import type { TimelineModel } from "./model/timelineModel";
import type { Pane } from "./model/trackRows";
import { beginNote, toggleNotes } from "./notes/noting";
import { meantRow, rowActions } from "./rowActions";

/** A press that moves less than this is a click, in CSS pixels. */
const CLICK_REACH = 4;
/** A pixel of the wheel zooms by this power of e. */
const WHEEL_ZOOM = 0.0022;
/** A held key doubles or halves the window in about this time, and pans one screen in as much. */
const KEY_SECONDS = 0.45;

type Handlers = {
  readonly click: (x: number, y: number) => void;
  readonly doubleClick: (x: number, y: number) => void;
};

/** Listens on a pane of tracks for wheel, drag, click. Returns how to stop. */
export function attachPointer(element: HTMLElement, model: TimelineModel, pane: Pane, handlers: Handlers): () => void {
  const { on, stop } = listeners(element);
  let pressed: { readonly x: number; readonly panning: boolean; last: number } | undefined;
  const xOf = (event: MouseEvent): number => event.clientX - element.getBoundingClientRect().left;
  const nsAt = (x: number): number => toNs(x, model.time.shown.value, model.size.value.width);
  const stretch = (from: number, to: number): TimeRange => {
    const { width } = model.size.value;
    const [a, b] = [from, to].map((x) => Math.round(nsAt(Math.min(width, Math.max(0, x))))).sort((p, q) => p - q);
    return { startNs: a ?? 0, endNs: Math.max(b ?? 0, (a ?? 0) + 1) };
  };
  on("wheel", (event) => {
    const wide = model.size.value.width;
    const pixels = (event.deltaMode === 1 ? 16 : 1) * (event.deltaY || event.deltaX);
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      model.time.zoomBy(Math.exp(Math.max(-300, Math.min(300, pixels)) * WHEEL_ZOOM), nsAt(xOf(event)));
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      model.time.panBy((event.deltaX || pixels) / wide);
    }
  });
  on("pointerdown", (event) => {
    if (event.button > 1) return;
    const x = xOf(event);
    pressed = { x, panning: event.button === 1, last: x };
    element.setPointerCapture(event.pointerId);
    if (event.button === 1) event.preventDefault();
  });
  on("pointermove", (event) => {
    const x = xOf(event);
    model.pointer.at.value = { x, y: event.clientY - element.getBoundingClientRect().top, pane };
    if (!pressed) return;
    if (pressed.panning) model.time.panBy((pressed.last - x) / model.size.value.width);
    else if (Math.abs(x - pressed.x) >= CLICK_REACH || model.pointer.dragging.value)
      model.pointer.dragging.value = stretch(pressed.x, x);
    pressed.last = x;
  });
  const release = (event: PointerEvent): void => {
    const was = pressed;
    pressed = undefined;
    const dragged = model.pointer.dragging.value;
    model.pointer.dragging.value = undefined;
    if (dragged) model.session.update({ range: dragged });
    else if (was && !was.panning && event.type === "pointerup")
      handlers.click(xOf(event), event.clientY - element.getBoundingClientRect().top);
  };
  on("pointerup", release);
  on("pointercancel", release);
  on("pointerleave", () => (model.pointer.at.value = undefined));
  on("dblclick", (event) => handlers.doubleClick(xOf(event), event.clientY - element.getBoundingClientRect().top));
  return stop;
}

type Motion = { readonly zoom: number; readonly pan: number };

/** Actions of state/keys.json that last as long as their key is held. */
export const MOTIONS: Readonly<Record<string, Motion>> = {
  zoomIn: { zoom: -1, pan: 0 },
  zoomOut: { zoom: 1, pan: 0 },
  panLeft: { zoom: 0, pan: -1 },
  panRight: { zoom: 0, pan: 1 },
};

/** What the other keys of state/keys.json do, by the names of their actions. */
export function timelineActions(model: TimelineModel, inRows: () => boolean): Readonly<Record<string, () => void>> {
  const beside = (way: "next" | "previous") => (): void =>
    void (model.selection.gap.peek() ? model.selection.walkGaps(way) : model.selection.walk(way));
  return {
    whole: () => model.time.whole(),
    back: () => model.time.back(),
    focus: () => model.focus(),
    previousStep: () => void model.goToStep("previous"),
    nextStep: () => void model.goToStep("next"),
    nextOutlier: () => void model.goToStep("outlier"),
    worstStep: () => model.goToWorst(),
    messages: () => model.data.toggleMessages(),
    critical: () => model.data.toggleCritical(),
    walkPrevious: beside("previous"),
    walkNext: beside("next"),
    walkParent: () => void model.selection.walk("parent"),
    walkChild: () => void model.selection.walk("child"),
    jump: () => void model.selection.jump(),
    jumpBack: () => void model.selection.jumpBack(),
    longestGap: () => void model.selection.longestGap(locationOf(model, inRows())),
    drawer: () => model.toggleDrawer(),
    drawerTab: () => model.nextDrawerTab(),
    save: () => (model.saving.value = !model.saving.peek()),
    note: () => beginNote(model),
    notes: () => toggleNotes(model),
    hints: () => model.session.toggleHints(),
    ...rowActions(model, inRows),
  };
}

/** The thread or stream that is meant: that of the selection, else of the row under the pointer or of the keys. */
function locationOf(model: TimelineModel, inRows: boolean): number | undefined {
  const row = meantRow(model, inRows);
  if (row?.kind === "location") return row.location.location;
  const chosen = model.selection.gap.peek()?.location ?? model.selection.span.peek()?.location;
  if (chosen !== undefined) return chosen;
  // Nobody points anywhere: the first stream, whose gaps are what people look for.
  const rows = model.rows.visible(model.rows.main).flatMap((one) => (one.kind === "location" ? [one.location] : []));
  return (rows.find((one) => one.kind === "stream") ?? rows[0])?.location;
}

/** Listens for keys while the timeline is shown. Held motion keys move smoothly, or in steps where less motion is wished. */
export function attachKeys(page: Window, model: TimelineModel): () => void {
  const { on, stop } = listeners(page);
  const held = new Map<string, Motion>();
  const calm = page.matchMedia("(prefers-reduced-motion: reduce)").matches;
  let frame = 0;
  let last = 0;
  const apply = (motion: Motion, amount: number): void => {
    const { width } = model.size.value;
    const at = model.pointer.at.value?.x ?? width / 2;
    if (motion.zoom) model.time.zoomBy(2 ** (motion.zoom * amount), toNs(at, model.time.shown.value, width));
    if (motion.pan) model.time.panBy(motion.pan * amount);
  };
  const tick = (now: number): void => {
    const seconds = Math.min(0.05, (now - last) / 1000);
    last = now;
    for (const motion of held.values()) apply(motion, seconds / KEY_SECONDS);
    frame = held.size ? page.requestAnimationFrame(tick) : 0;
  };
  const press = (code: string, motion: Motion): void => {
    // The first push moves at once, so that a short tap is seen.
    apply(motion, calm ? 0.5 : 0.14);
    if (calm) return;
    held.set(code, motion);
    if (frame) return;
    last = page.performance.now();
    frame = page.requestAnimationFrame(tick);
  };
  let inRows = false;
  const actions = timelineActions(model, () => inRows);
  on("keydown", (event) => {
    if (within(event, FIELDS) || event.altKey) return;
    const target = event.target instanceof HTMLElement ? event.target : undefined;
    inRows = target?.closest("[data-row]") != null;
    const chord = chordOf(event);
    const name = (inRows ? ROW_ACTIONS.get(chord) : undefined) ?? TIMELINE_ACTIONS.get(chord);
    const ofRow = inRows && ROW_ACTIONS.has(chord);
    // Buttons, tables and sliders have keys of their own.
    const own = target?.closest("button, a, [role=slider], [role=grid], [role=tab], [role=menu]") != null && !ofRow;
    if (!name || (own && (event.code === "Enter" || /^(Arrow|Home|Page)/.test(event.code)))) return;
    const motion = MOTIONS[name];
    if (motion) {
      event.preventDefault();
      if (!held.has(event.code)) press(event.code, motion);
      return;
    }
    const walking = name === "walkParent" || name === "walkChild";
    // Without a selected span these two scroll, as everywhere.
    if ((event.repeat && !ofRow) || (walking && !model.selection.span.value)) return;
    event.preventDefault();
    actions[name]?.();
  });
  on("keyup", (event) => held.delete(event.code));
  on("blur", () => held.clear());
  return () => {
    stop();
    held.clear();
    page.cancelAnimationFrame(frame);
  };
}
