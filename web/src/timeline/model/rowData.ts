// What rows show beside their cells, fetched for those on the screen: steps of processes, places, what rows are sorted by, metrics, the
// critical path.

import { type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { formatCount } from "../../base/quantity";
import { length, sameRange, type TimeRange } from "../../base/time";
import { fetchReadings, type Readings } from "../../data/readings";
import type { Run } from "../../data/run";
import { type CriticalPath, fetchCriticalPath, fetchStepsOf, type Step } from "../../data/runSteps";
import type { Session } from "../../data/session";
import type { TileKey } from "../../data/tiles/cells";
import { fetchValues } from "../../data/tiles/rasters";
import { stretchOf } from "../../data/wire/api";
import type { MessageLines } from "../../data/wire/wire.generated";
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
  readonly pictured: ReadonlySignal<boolean>;
};

export class RowData {
  /** Steps by process, of those whose rows were on the screen; they are those of a loop level. */
  readonly stepsOf = signal<ReadonlyMap<number, readonly Step[]>>(new Map());
  private stepsOfLevel = "";
  private readonly stepsAsked = new Set<number>();
  readonly readings = signal<ReadonlyMap<number, Readings>>(new Map());
  private placesAsked = false;
  private orderAsked = false;
  /** What the amounts that rows are sorted by were fetched for. */
  private amountsFor = "";
  private readingsFor: (Fetched & { readonly series: ReadonlySet<number> }) | undefined;
  private readingsUnderWay: AbortController | undefined;
  /** The critical path over the tracks: of the step at a moment, as it was fetched for a window. */
  readonly critical = signal<CriticalPath | undefined>(undefined);
  /** What it was fetched for: a moment of the step. */
  private criticalAt: number | undefined;
  private criticalFor: Fetched | undefined;

  /** Messages between ranks, as far as they are shown as lines. */
  readonly messages = signal<MessageLines | undefined>(undefined);
  private messagesFor: Fetched | undefined;
  /** The sentence about them that was shown last: not again while one zooms. */
  private messagesNote = "";

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
    this.fetchOrder();
    this.fetchAmounts();
    this.fetchSteps(rows);
    this.fetchReadings(rows);
    this.fetchCritical();
    this.fetchMessages();
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

  /** Fetches which rows are what, once there is a picture. */
  private fetchOrder(): void {
    if (this.orderAsked || !this.model.pictured.value) return;
    this.orderAsked = true;
    const { session, rows } = this.model;
    void session.ask(session.api.json("rows/order", {})).then((order) => {
      if (!order) return;
      const { main, backward, system } = order;
      rows.order.value = { main: new Set(main), backward: new Set(backward), system: new Set(system) };
    });
  }

  /** Fetches what the rows are sorted by: for `time` anew whenever the window comes to rest. */
  private fetchAmounts(): void {
    const { sort, sortAt } = this.model.rows.view.value;
    const { region } = this.model.session.state.value;
    const { startNs, endNs } = this.model.time.rested.value;
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
    const { session } = this.model;
    session.update({ critical: session.state.peek().critical === undefined ? Math.round(middle) : undefined });
  }

  /** Shows messages between ranks as lines, or hides them. */
  toggleMessages(): void {
    const { session } = this.model;
    this.messagesNote = "";
    session.update({ messages: !session.state.peek().messages });
  }

  private fetchMessages(): void {
    const wanted = this.wanted();
    const { session } = this.model;
    if (!session.state.value.messages) {
      this.messagesFor = undefined;
      this.messages.value = undefined;
      return;
    }
    if (this.does(this.messagesFor, wanted)) return;
    this.messagesFor = wanted;
    void session.ask(session.api.json("window/message_lines", stretchOf(wanted.range))).then((found) => {
      if (!found || this.messagesFor !== wanted) return;
      this.messages.value = found;
      const note =
        found.count === 0
          ? "No message between ranks is known here"
          : found.sent_ns.length < found.count
            ? `${formatCount(found.count)} messages are here, too many for lines: zoom in`
            : "";
      if (note && note !== this.messagesNote) session.notify(note);
      this.messagesNote = note;
    });
  }

  private fetchCritical(): void {
    // Read in any case: whoever draws hears of the next window, too.
    const wanted = this.wanted();
    const at = this.model.session.state.value.critical;
    if (at !== this.criticalAt) {
      this.criticalAt = at;
      this.criticalFor = undefined;
      this.critical.value = undefined;
    }
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
