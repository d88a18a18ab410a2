// The window of time that is shown, and every way to move it. Where a gesture ends goes into the address; on the way it stays here.
import { computed, type ReadonlySignal, signal } from "@preact/signals";
import type { TimeRange } from "../../base/time";
import { around, clamp, pan, zoom } from "../../base/viewport";
import type { Session } from "../../data/session";
import type { State } from "../../state/address";
import { trailAfter } from "../../state/zoomTrail";

/** A gesture that rests this long becomes part of the address. */
const SETTLE_MS = 220;

export class TimeWindow {
  /** The window during a gesture, before it is in the address. */
  private readonly live = signal<TimeRange | undefined>(undefined);
  private settle: ReturnType<typeof setTimeout> | undefined;
  readonly shown: ReadonlySignal<TimeRange>;
  /** The window at rest: what the address has, else `opening`, else the whole run. */
  readonly rested: ReadonlySignal<TimeRange>;
  /** Windows that lead to it: see State.trail. */
  readonly trail: ReadonlySignal<State["trail"]>;
  /** Whether a gesture is under way: then what was fetched for the window before may do for a while. */
  readonly moving: ReadonlySignal<boolean> = computed(() => this.live.value !== undefined);

  /** `opening`: what is shown while the address has no window. */
  constructor(
    private readonly session: Session,
    private readonly bounds: TimeRange,
    opening: ReadonlySignal<TimeRange | undefined>,
  ) {
    this.rested = computed(() => session.state.value.window ?? opening.value ?? bounds);
    this.shown = computed(() => clamp(this.live.value ?? this.rested.value, bounds));
    this.trail = computed(() => {
      const { window, trail } = session.state.value;
      return !window && opening.value ? [undefined] : trail;
    });
  }

  /** Ends a gesture that has not settled where it is. */
  close(): void {
    if (this.live.value) this.commit(this.live.value, "replace");
  }

  /** Zooms by a factor around a moment, as part of a gesture. */
  zoomBy(factor: number, anchorNs: number): void {
    this.move(zoom(this.shown.value, factor, anchorNs, this.bounds));
  }

  /** Pans by a part of the screen, as part of a gesture. */
  panBy(screens: number): void {
    this.move(pan(this.shown.value, screens, this.bounds));
  }

  /** Pans so that a stretch is seen. */
  bringIntoView(span: TimeRange): void {
    const window = this.shown.value;
    if (span.startNs < window.endNs && span.endNs > window.startNs) return;
    const by = (span.startNs + span.endNs) / 2 - (window.startNs + window.endNs) / 2;
    this.move(clamp({ startNs: window.startNs + by, endNs: window.endNs + by }, this.bounds));
  }

  /** Goes to a window as part of a gesture: it is in the address once that rests. */
  move(window: TimeRange): void {
    this.live.value = window;
    clearTimeout(this.settle);
    this.settle = setTimeout(() => this.commit(window, "replace"), SETTLE_MS);
  }

  /** Goes to a window at once; where it is a zoom in, the present one becomes a crumb. */
  goTo(window: TimeRange): void {
    this.commit(clamp(window, this.bounds), "push");
  }

  /** Goes to a window around a stretch of time, with some room on both sides. */
  goAround(range: TimeRange, room?: number): void {
    this.goTo(around(range, this.bounds, room));
  }

  /** Shows the whole run. */
  whole(): void {
    this.endGesture();
    this.session.update({ window: this.bounds, trail: [] }, "push");
  }

  /** Undoes the last zoom in. */
  back(): void {
    this.backTo(this.trail.value.length - 1);
  }

  /** Returns to a crumb of the trail; without one, to the whole run. */
  backTo(crumb: number): void {
    this.endGesture();
    const trail = this.trail.value;
    this.session.update({ window: trail[crumb] ?? this.bounds, trail: trail.slice(0, Math.max(0, crumb)) }, "push");
  }

  private endGesture(): void {
    clearTimeout(this.settle);
    this.live.value = undefined;
  }

  private commit(window: TimeRange, how: "push" | "replace"): void {
    this.endGesture();
    const trail = trailAfter(this.trail.value, this.rested.value, window, this.bounds);
    this.session.update({ window, trail }, how);
  }
}
