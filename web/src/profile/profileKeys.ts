// The keys of the page Profile.

import { FIELDS, listeners, within } from "../base/events";
import type { Step } from "./flameLayout";

type ProfileKeys = {
  readonly walk: (step: Step) => void;
  readonly reset: () => void;
  readonly nextForm: () => void;
  readonly nextMeasure: () => void;
  readonly search: () => void;
};

/** Listens for the page's keys; `walking`: also for those that lead from one call path to the next. Returns how to stop. */
export function attachProfileKeys(page: Window, keys: ProfileKeys, walking: boolean): () => void {
  const { on, stop } = listeners(page);
  const always: Readonly<Record<string, () => void>> = { KeyV: keys.nextForm, KeyM: keys.nextMeasure };
  const inFlames: Readonly<Record<string, () => void>> = {
    ArrowUp: () => keys.walk("up"),
    ArrowDown: () => keys.walk("down"),
    ArrowLeft: () => keys.walk("left"),
    ArrowRight: () => keys.walk("right"),
    Backspace: () => keys.walk("up"),
    Home: keys.reset,
    Digit0: keys.reset,
    Numpad0: keys.reset,
  };
  on("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.code === "KeyF" && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      keys.search();
      return;
    }
    if (within(event, FIELDS) || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const action = always[event.code] ?? (walking ? inFlames[event.code] : undefined);
    if (!action) return;
    event.preventDefault();
    action();
  });
  return stop;
}
