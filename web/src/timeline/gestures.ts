// Pointer, wheel and keys over the tracks, turned into calls of the model.
import type { TimeRange } from "../base/time";
import type { Pane, TimelineModel } from "./model";
import { ROW_KEYS, rowKey } from "./rowKeys";
import { toNs } from "./viewport";

/** A press that moves less than this is a click, in CSS pixels. */
const CLICK_REACH = 4;
/** A pixel of the wheel zooms by this power of e. */
const WHEEL_ZOOM = 0.0022;
/** A held key doubles or halves the window in about this time, and pans one screen in as much. */
const KEY_SECONDS = 0.45;

export type Handlers = {
  readonly click: (x: number, y: number) => void;
  readonly doubleClick: (x: number, y: number) => void;
};

/** Listens on a pane of tracks for wheel, drag, click. Returns how to stop. */
export function attachPointer(element: HTMLElement, model: TimelineModel, pane: Pane, handlers: Handlers): () => void {
  const stop = new AbortController();
  const { signal } = stop;
  let pressed: { readonly x: number; readonly panning: boolean; last: number } | undefined;
  const xOf = (event: MouseEvent): number => event.clientX - element.getBoundingClientRect().left;
  const nsAt = (x: number): number => toNs(x, model.window.value, model.size.value.width);
  const stretch = (from: number, to: number): TimeRange => {
    const { width } = model.size.value;
    const [a, b] = [from, to].map((x) => Math.round(nsAt(Math.min(width, Math.max(0, x))))).sort((p, q) => p - q);
    return { startNs: a ?? 0, endNs: Math.max(b ?? 0, (a ?? 0) + 1) };
  };
  element.addEventListener(
    "wheel",
    (event) => {
      const wide = model.size.value.width;
      const pixels = (event.deltaMode === 1 ? 16 : 1) * (event.deltaY || event.deltaX);
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        model.zoomBy(Math.exp(Math.max(-300, Math.min(300, pixels)) * WHEEL_ZOOM), nsAt(xOf(event)));
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        model.panBy((event.deltaX || pixels) / wide);
      }
    },
    { passive: false, signal },
  );
  element.addEventListener(
    "pointerdown",
    (event) => {
      if (event.button > 1) return;
      const x = xOf(event);
      pressed = { x, panning: event.button === 1, last: x };
      element.setPointerCapture(event.pointerId);
      if (event.button === 1) event.preventDefault();
    },
    { signal },
  );
  element.addEventListener(
    "pointermove",
    (event) => {
      const x = xOf(event);
      model.pointer.value = { x, y: event.clientY - element.getBoundingClientRect().top, pane };
      if (!pressed) return;
      if (pressed.panning) model.panBy((pressed.last - x) / model.size.value.width);
      else if (Math.abs(x - pressed.x) >= CLICK_REACH || model.dragging.value)
        model.dragging.value = stretch(pressed.x, x);
      pressed.last = x;
    },
    { signal },
  );
  const release = (event: PointerEvent): void => {
    const was = pressed;
    pressed = undefined;
    const dragged = model.dragging.value;
    model.dragging.value = undefined;
    if (dragged) model.session.update({ range: dragged });
    else if (was && !was.panning && event.type === "pointerup")
      handlers.click(xOf(event), event.clientY - element.getBoundingClientRect().top);
  };
  element.addEventListener("pointerup", release, { signal });
  element.addEventListener("pointercancel", release, { signal });
  element.addEventListener(
    "pointerleave",
    () => {
      model.pointer.value = undefined;
    },
    { signal },
  );
  element.addEventListener(
    "dblclick",
    (event) => handlers.doubleClick(xOf(event), event.clientY - element.getBoundingClientRect().top),
    { signal },
  );
  return () => stop.abort();
}

type Motion = { readonly zoom: number; readonly pan: number };

/** Physical keys, so that they lie the same on every keyboard. */
const MOTIONS: Readonly<Record<string, Motion>> = {
  KeyW: { zoom: -1, pan: 0 },
  KeyS: { zoom: 1, pan: 0 },
  KeyA: { zoom: 0, pan: -1 },
  KeyD: { zoom: 0, pan: 1 },
  ArrowLeft: { zoom: 0, pan: -1 },
  ArrowRight: { zoom: 0, pan: 1 },
};

/** True while the user writes into a field. */
const typing = (event: KeyboardEvent): boolean =>
  event.target instanceof HTMLElement &&
  event.target.closest("input, textarea, select, dialog, [role=listbox]") !== null;

/** Listens for keys while the timeline is shown. Held motion keys move smoothly, or in steps where less motion is wished. */
export function attachKeys(page: Window, model: TimelineModel): () => void {
  const stop = new AbortController();
  const { signal } = stop;
  const held = new Map<string, Motion>();
  const calm = page.matchMedia("(prefers-reduced-motion: reduce)").matches;
  let frame = 0;
  let last = 0;
  const apply = (motion: Motion, amount: number): void => {
    const { window, pointer, size } = model;
    const at = pointer.value?.x ?? size.value.width / 2;
    if (motion.zoom) model.zoomBy(2 ** (motion.zoom * amount), toNs(at, window.value, size.value.width));
    if (motion.pan) model.panBy(motion.pan * amount);
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
  const actions: Readonly<Record<string, () => void>> = {
    Digit0: () => model.whole(),
    Numpad0: () => model.whole(),
    Home: () => model.whole(),
    Backspace: () => model.back(),
    Enter: () => model.focus(),
    KeyF: () => model.focus(),
    BracketLeft: () => void model.goToStep("previous"),
    BracketRight: () => void model.goToStep("next"),
    KeyN: () => void model.goToStep("outlier"),
    KeyC: () => model.toggleCritical(),
    Comma: () => void model.walk("previous"),
    Period: () => void model.walk("next"),
    ArrowUp: () => void model.walk("parent"),
    ArrowDown: () => void model.walk("child"),
  };
  page.addEventListener(
    "keydown",
    (event) => {
      if (typing(event) || event.ctrlKey || event.metaKey || event.altKey) return;
      if (rowKey(event, model)) return;
      const onButton = event.target instanceof HTMLElement && event.target.closest("button, a, [role=slider]") !== null;
      if (onButton && (event.code === "Enter" || event.code.startsWith("Arrow"))) return;
      const motion = MOTIONS[event.code];
      if (motion) {
        event.preventDefault();
        if (!held.has(event.code)) press(event.code, motion);
        return;
      }
      const action = actions[event.code];
      const walking = event.code === "ArrowUp" || event.code === "ArrowDown";
      // Without a selected span these two scroll, as everywhere.
      if (!action || event.repeat || (walking && !model.selected.value)) return;
      event.preventDefault();
      action();
    },
    { signal },
  );
  page.addEventListener("keyup", (event) => held.delete(event.code), { signal });
  page.addEventListener("blur", () => held.clear(), { signal });
  return () => {
    stop.abort();
    held.clear();
    page.cancelAnimationFrame(frame);
  };
}

/** The keys of the timeline, for the legend. */
export const TIMELINE_KEYS: readonly (readonly [string, string])[] = [
  ["W  S", "zoom in, zoom out"],
  ["A  D", "pan left, right"],
  ["Ctrl + wheel", "zoom at the pointer"],
  ["Shift + wheel", "pan"],
  ["drag", "choose a stretch"],
  ["Enter  F", "zoom to the stretch, or to the selected span"],
  ["double click", "zoom to a span"],
  ["0", "whole run"],
  ["Backspace", "undo the last zoom"],
  ["[  ]", "previous, next step"],
  ["N", "next outlier"],
  ["C", "show or hide the critical path of the step in the middle, or of the selected span"],
  [",  .", "select the previous, next span of the row"],
  ["↑  ↓", "select the span around, the first inside"],
  ...ROW_KEYS,
  ["Esc", "clear the stretch and the span, then the region that stands out"],
];
