// What rows show beside their cells, fetched for those on the screen: steps of processes, places, what rows are sorted by, metrics, the
// critical path.

import { type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { length, sameRange, type TimeRange } from "../../base/time";
import { fetchReadings, type Readings } from "../../data/readings";
import type { Run } from "../../data/run";
import { type CriticalPath, fetchCriticalPath, fetchStepsOf, type Step } from "../../data/runSteps";
import type { Session } from "../../data/session";
import type { TileKey } from "../../data/tiles/cells";
import { fetchValues } from "../../data/tiles/rasters";
import { fits as fitRows, type Row } from "../rows/rowLayout";
import type { Selection } from "./selection";
import type { TimeWindow } from "./timeWindow";
import type { TrackRows } from "./trackRows";

const METRICS_MARGIN = 0.5;
/** Series whose readings one answer holds. */
const MOST_SERIES = 256;

/** What was fetched: a stretch of time, and how many pixels it was made for. */
type Fetched = { readonly range: TimeRange; readonly widthPx: number };

/** The timeline as far as what it fetches depends on it. */
type Timeline = {
  readonly session: Session;
  readonly run: Run;
  readonly time: TimeWindow;
  readonly rows: TrackRows;
  readonly selection: Selection;
  readonly size: ReadonlySignal<{ readonly width: number }>;
  readonly tiles: ReadonlySignal<readonly TileKey[]>;
  readonly version: Signal<number>;
};

export class RowData {
  /** Steps by process, of those whose rows were on the screen; they are those of a loop level. */
  readonly stepsOf = signal<ReadonlyMap<number, readonly Step[]>>(new Map());
  private stepsOfLevel = "";
  private readonly stepsAsked = new Set<number>();
  readonly readings = signal<ReadonlyMap<number, Readings>>(new Map());
  private placesAsked = false;
  /** What the amounts that rows are sorted by were fetched for. */
  private amountsFor = "";
  private readingsFor: (Fetched & { readonly series: ReadonlySet<number> }) | undefined;
  private readingsUnderWay: AbortController | undefined;
  /** The critical path over the tracks: of the step at a moment, as it was fetched for a window. */
  readonly critical = signal<CriticalPath | undefined>(undefined);
  private criticalAt: number | undefined;
  private criticalFor: Fetched | undefined;

  constructor(private readonly model: Timeline) {}

  /** Whether rows on the screen wait for something. */
  get waiting(): boolean {
    return this.placesAsked && !this.model.rows.places.peek().length;
  }

  /** Withdraws what is under way. */
  close(): void {
    this.readingsUnderWay?.abort();
  }

  fetch(rows: readonly Row[]): void {
    this.fetchPlaces();
    this.fetchAmounts();
    this.fetchSteps(rows);
    this.fetchReadings(rows);
    this.fetchCritical();
  }

  /** Fetches the steps of the processes whose rows of steps are on the screen. */
  private fetchSteps(rows: readonly Row[]): void {
    const { level } = this.model.session.state.value;
    if (level !== this.stepsOfLevel) {
      this.stepsOfLevel = level;
      this.stepsAsked.clear();
      this.stepsOf.value = new Map();
    }
    for (const row of rows) {
      if (row.kind !== "steps" || this.stepsAsked.has(row.process)) continue;
      const { process } = row;
      this.stepsAsked.add(process);
      void this.model.session.ask(fetchStepsOf(this.model.session.api, process, level)).then((steps) => {
        if (steps && level === this.stepsOfLevel)
          this.stepsOf.value = new Map([...this.stepsOf.peek(), [process, steps]]);
      });
    }
  }

  /** Fetches the places where rows are made of them. */
  private fetchPlaces(): void {
    const ask = this.model.rows.ask.value;
    const many = fitRows(ask) && this.model.rows.all.value.length > ask.heightPx;
    if (this.placesAsked || !(ask.view.preset === "summary" || many)) return;
    this.placesAsked = true;
    void this.model.session.ask(this.model.session.api.json("rows/places", {})).then((places) => {
      this.model.rows.places.value = places ?? [];
      this.model.version.value++;
    });
  }

  /** Fetches what the rows are sorted by: for `time` anew whenever the window comes to rest. */
  private fetchAmounts(): void {
    const { sort, sortAt } = this.model.rows.view.value;
    const { region, window } = this.model.session.state.value;
    const { startNs, endNs } = window ?? this.model.run.bounds;
    const of = sort === "value" ? this.model.rows.measure.value : `region.${region}`;
    if (sort !== "value" && (sort !== "time" || !region)) return;
    const from = sort === "value" ? (sortAt ?? 0) : startNs;
    const to = sort === "value" ? from + 2 ** (this.model.tiles.value[0]?.level ?? 0) : endNs;
    const wanted = `${of}/${from}/${sort === "value" ? "" : to}`;
    if (wanted === this.amountsFor) return;
    this.amountsFor = wanted;
    void this.model.session
      .ask(fetchValues(this.model.session.api, of, from, Math.max(from + 1, to)))
      .then((amounts) => {
        if (wanted === this.amountsFor) this.model.rows.amounts.value = amounts ?? new Map();
      });
  }

  /** Shows the critical path of the step in the middle of the screen (of the selected span, where there is one), or hides it. */
  toggleCritical(): void {
    const window = this.model.time.shown.peek();
    const middle = this.model.selection.span.peek()?.start_ns ?? (window.startNs + window.endNs) / 2;
    this.criticalAt = this.criticalAt === undefined ? middle : undefined;
    this.criticalFor = undefined;
    this.critical.value = undefined;
    this.fetchCritical();
  }

  private fetchCritical(): void {
    // Read in any case: whoever draws hears of the next window, too.
    const wanted = this.wanted();
    const at = this.criticalAt;
    if (at === undefined || this.does(this.criticalFor, wanted)) return;
    this.criticalFor = wanted;
    const { range, widthPx } = wanted;
    void this.model.session.ask(fetchCriticalPath(this.model.session.api, at, range, widthPx)).then((path) => {
      if (!path || this.criticalFor !== wanted) return;
      if (!this.critical.peek()) this.model.session.notify(path.about);
      this.critical.value = path;
    });
  }

  /** The window with a margin on both sides, so that panning a little waits for nothing. */
  private wanted(): Fetched {
    const window = this.model.time.shown.value;
    const by = length(window) * METRICS_MARGIN;
    const { bounds } = this.model.run;
    const range = {
      startNs: Math.max(bounds.startNs, Math.round(window.startNs - by)),
      endNs: Math.min(bounds.endNs, Math.round(window.endNs + by)),
    };
    return { range, widthPx: Math.round((this.model.size.value.width * length(range)) / length(window)) };
  }

  /** Whether what was fetched will do: at rest only what would be fetched now, so that the picture is that of a page opened anew. */
  private does(known: Fetched | undefined, wanted: Fetched): boolean {
    if (!known) return false;
    if (this.model.time.moving.value) return fits(known.range, this.model.time.shown.value);
    return sameRange(known.range, wanted.range) && known.widthPx === wanted.widthPx;
  }

  private fetchReadings(rows: readonly Row[]): void {
    const wanted = rows
      .flatMap((row) => (row.kind === "metric" ? row.series.map((one) => one.series) : []))
      .slice(0, MOST_SERIES);
    if (!wanted.length) return;
    const fetched = this.wanted();
    const known = this.readingsFor;
    if (known && this.does(known, fetched) && wanted.every((one) => known.series.has(one))) return;
    this.readingsFor = { ...fetched, series: new Set(wanted) };
    this.readingsUnderWay?.abort();
    const controller = new AbortController();
    this.readingsUnderWay = controller;
    fetchReadings(this.model.session.api, wanted, fetched.range, fetched.widthPx, controller.signal).then(
      (readings) => (this.readings.value = readings),
      () => {
        if (!controller.signal.aborted) this.readingsFor = undefined;
      },
    );
  }
}

/** Whether what was fetched for a stretch will do for a window: it holds all of it, fine enough. */
const fits = (known: TimeRange, window: TimeRange): boolean =>
  known.startNs <= window.startNs &&
  known.endNs >= window.endNs &&
  length(known) <= length(window) * (2 + 2 * METRICS_MARGIN);
