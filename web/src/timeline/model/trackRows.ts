// The rows of the timeline on the screen: which there are, which are pinned, which has the keyboard; and how they are folded and opened.

import { computed, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import type { Series } from "../../data/readings";
import type { Run } from "../../data/run";
import type { Session } from "../../data/session";
import type { RowPlace } from "../../data/wire/wire.generated";
import { ROWS_VIEW, type RowsView } from "../../state/rowsState";
import { standsFor } from "../drawing/drawLinks";
import {
  type Ask,
  type KnownOrder,
  layoutRows,
  openByDefault,
  pinnedRows,
  type Row,
  totalHeight,
  visibleRows,
} from "../rows/rowLayout";

/** What the radar shows unless something else is chosen: where ranks wait for each other is what one looks for first. */
const USUAL_MEASURE = "group.communication";
/** The pinned rows take at most this part of the height. */
const MOST_PINNED = 0.4;

/** A part of the page that shows rows and scrolls by itself. */
export type Pane = {
  readonly rows: ReadonlySignal<readonly Row[]>;
  readonly scrollTop: Signal<number>;
  readonly height: ReadonlySignal<number>;
};

export class TrackRows {
  /** Height of both panes together, in CSS pixels. */
  readonly roomPx = signal(0);
  /** Metrics come later than the tracks, which do not wait for them. */
  readonly series: Signal<readonly Series[]> = signal([]);
  /** What has the same part in every process, once a view needs it. */
  readonly places = signal<readonly RowPlace[]>([]);
  /** Which rows are main threads, of backward passes, of the system; once that has come. */
  readonly order = signal<KnownOrder | undefined>(undefined);
  /** What rows are sorted by, by location. */
  readonly amounts = signal<ReadonlyMap<number, number>>(new Map());
  /** How the rows are looked at. */
  readonly view: ReadonlySignal<RowsView>;
  /** All that the rows depend on. */
  readonly ask: ReadonlySignal<Ask>;
  readonly all: ReadonlySignal<readonly Row[]>;
  /** The rows that stay at the top, and all of them below. */
  readonly pinned: Pane;
  readonly main: Pane;
  /** The row that the keys mean. */
  readonly focused = signal<string | undefined>(undefined);
  /** The row whose name is to have the keyboard once it is there. */
  readonly takeFocus = signal<string | undefined>(undefined);
  /** A location whose row is to be scrolled into view. */
  readonly toRow = signal<number | undefined>(undefined);
  /** What is measured on the radar, and what rows are sorted by. */
  readonly measure: ReadonlySignal<string>;
  /** The measure where rows are drawn as a radar. */
  readonly radar: ReadonlySignal<string | undefined>;
  private readonly open: ReadonlySignal<readonly number[]>;
  private readonly depths = signal<ReadonlyMap<number, number>>(new Map());

  /** `alwaysOpen`: locations that are open whatever the address holds, for a page that shows one of them. */
  constructor(
    private readonly session: Session,
    private readonly run: Run,
    heightPx: ReadonlySignal<number>,
    private readonly alwaysOpen?: readonly number[],
  ) {
    const { state } = session;
    const defaultOpen = openByDefault(run);
    this.open = computed(() => alwaysOpen ?? state.value.open ?? defaultOpen);
    this.view = computed(() => (alwaysOpen ? ROWS_VIEW : state.value.rows));
    this.measure = computed(() => {
      const { region } = state.value;
      return this.view.value.measure || (region ? `region.${region}` : USUAL_MEASURE);
    });
    this.radar = computed(() => (this.view.value.preset === "radar" ? this.measure.value : undefined));
    this.ask = computed(() => ({
      run,
      series: this.series.value,
      open: this.open.value,
      measured: state.value.measured,
      depths: this.depths.value,
      view: this.view.value,
      heightPx: heightPx.value,
      measure: this.measure.value,
      amounts: this.amounts.value,
      places: this.places.value,
      order: this.order.value,
      stepped: session.stepsAbout.value?.processes ?? [],
    }));
    this.all = computed(() => layoutRows(this.ask.value));
    this.main = { rows: this.all, scrollTop: signal(0), height: heightPx };
    const pinned = computed(() => pinnedRows(this.ask.value));
    const pinnedPx = computed(() => Math.min(totalHeight(pinned.value), Math.round(this.roomPx.value * MOST_PINNED)));
    this.pinned = { rows: pinned, scrollTop: signal(0), height: pinnedPx };
  }

  /** The rows of a pane that are on the screen. */
  visible(pane: Pane): Row[] {
    return visibleRows(pane.rows.value, pane.scrollTop.value, pane.height.value);
  }

  /** The rows of both panes that are on the screen. */
  onScreen(): Row[] {
    return [...this.visible(this.pinned), ...this.visible(this.main)];
  }

  /** Changes how the rows are looked at. */
  change(change: Partial<RowsView>, how: "push" | "replace" = "replace"): void {
    this.session.update({ rows: { ...this.session.state.peek().rows, ...change } }, how);
  }

  /** Folds or unfolds a host or a process. */
  flip(key: string): void {
    this.change({ flipped: toggled(this.view.peek().flipped, key) });
  }

  /** Keeps a row in the pane at the top, or lets it go. */
  pin(key: string): void {
    this.change({ pinned: toggled(this.view.peek().pinned, key) });
  }

  /** Opens or closes the nesting of a location. */
  toggle(location: number): void {
    if (this.alwaysOpen) return;
    this.session.update({ open: toggled(this.open.value, location).sort((a, b) => a - b) });
  }

  /** Shows all metrics of a process, or only the usual ones. */
  toggleMetrics(process: number): void {
    this.session.update({ measured: toggled(this.session.state.value.measured, process).sort((a, b) => a - b) });
  }

  /** Notes how deep a location was seen to be; its row only ever grows, so that nothing jumps while panning. */
  sawDepth(location: number, depths: number): void {
    if (depths > (this.depths.value.get(location) ?? 0))
      this.depths.value = new Map([...this.depths.value, [location, depths]]);
  }

  /** Scrolls so that the row of a location is seen, and unfolds what hides it. */
  bringIntoView(location: number): void {
    const rows = this.all.peek().filter((row) => row.kind === "location");
    if (!rows.some((row) => !row.stands && row.location.location === location)) {
      const process = this.run.locations.find((one) => one.location === location)?.process;
      const folded = rows.find((row) => row.stands?.process.process === process);
      const hiding = this.all
        .peek()
        .find((row) => (row.kind === "gpu" || row.kind === "system") && row.folded && row.members.includes(location));
      if (folded) this.flip(folded.key);
      else if (hiding) this.flip(hiding.key);
    }
    this.toRow.value = undefined;
    this.toRow.value = location;
  }

  /** Whether a row stands for a location among others. */
  stands(row: Row, location: number): boolean {
    const process = this.run.locations[location]?.process;
    return standsFor(row, location, process, (place) => this.places.value[place]?.locations ?? []);
  }
}

const toggled = <T>(all: readonly T[], one: T): T[] =>
  all.includes(one) ? all.filter((each) => each !== one) : [...all, one];
