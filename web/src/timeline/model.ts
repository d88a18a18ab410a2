// The timeline's state while it is on the screen, and every way to move through it. What lasts goes into the address; what a gesture
// is just doing stays here.
import { computed, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { DRAWER_TABS } from "../base/drawerView";
import { ROWS_VIEW, type RowsView } from "../base/rowsView";
import type { SpanKey } from "../base/state";
import { length, sameRange, type TimeRange } from "../base/time";
import { trailAfter } from "../base/trail";
import { levelFor, type TileKey, tilesIn } from "../data/cells";
import { type RasterStore, rasterStore } from "../data/rasters";
import { fetchStepNear, type Run, type Series, type Step, type StepKind } from "../data/run";
import type { Session } from "../data/session";
import { fetchNeighbour, fetchSpan, keyOf, type Place, type SpanDetail, type Way } from "../data/spans";
import { TileStore } from "../data/tiles";
import type { Tools } from "./draw";
import { standsFor } from "./drawLinks";
import { familiesOf } from "./families";
import type { Hit } from "./hit";
import type { Idle } from "./idle";
import { Linked } from "./linked";
import { RowData } from "./rowData";
import { type Ask, layoutRows, openByDefault, pinnedRows, type Row, totalHeight, visibleRows } from "./rows";
import { around, clamp, pan, zoom } from "./viewport";

/** A gesture that rests this long becomes part of the address. */
const SETTLE_MS = 220;
/** What the radar shows unless something else is chosen: where ranks wait for each other is what one looks for first. */
const USUAL_MEASURE = "group.communication";

export type Size = { readonly width: number; readonly height: number };

/** A part of the page that shows rows and scrolls by itself. */
export type Pane = {
  readonly rows: ReadonlySignal<readonly Row[]>;
  readonly scrollTop: Signal<number>;
  readonly height: ReadonlySignal<number>;
};
/** The pinned rows take at most this part of the height. */
const MOST_PINNED = 0.4;

export class TimelineModel {
  /** The window during a gesture, before it is in the address. */
  private readonly live = signal<TimeRange | undefined>(undefined);
  private settle: ReturnType<typeof setTimeout> | undefined;
  readonly window: ReadonlySignal<TimeRange>;
  /** Whether a gesture is under way: then what was fetched for the window before may do for a while. */
  readonly moving: ReadonlySignal<boolean> = computed(() => this.live.value !== undefined);
  /** Size of the area of tracks below the pinned ones, in CSS pixels. */
  readonly size: Signal<Size> = signal({ width: 0, height: 0 });
  /** Pointer over a pane, in CSS pixels from its corner. */
  readonly pointer = signal<{ readonly x: number; readonly y: number; readonly pane: Pane } | undefined>(undefined);
  /** What lies under the pointer, as of the last picture. */
  readonly hit = signal<Hit | undefined>(undefined);
  /** The empty place under the pointer, where nothing runs there. */
  readonly idle = signal<Idle | undefined>(undefined);
  /** The stretch being dragged. */
  readonly dragging = signal<TimeRange | undefined>(undefined);
  /** Steps and metrics come later than the tracks, which do not wait for them. */
  readonly steps: Signal<readonly Step[]> = signal([]);
  readonly series: Signal<readonly Series[]> = signal([]);
  /** Why there are no steps, once that is known. */
  readonly stepsNote = signal("");
  /** Counts the tiles that came. */
  readonly version = signal(0);
  /** Whether the cells on the screen are painted to the pixel: while the window moves, most are stretched from the frame before. */
  readonly painted = signal(false);
  /** Whether there is something to see: what costs the server more may be asked from then on. */
  readonly pictured = computed(() => this.version.value > 0);
  readonly selected = signal<SpanDetail | undefined>(undefined);
  /** Links of the selected span, and the selected idle gap. */
  readonly linked = new Linked(this);
  /** A location whose row is to be scrolled into view. */
  readonly toRow = signal<number | undefined>(undefined);
  /** The box of ruler and tracks, and what draws them; once they are on the screen. */
  picture: { readonly box: HTMLElement; readonly tools: () => Tools } | undefined;
  /** Whether the menu of what can be saved is open. */
  readonly saving = signal(false);
  /** Height of both panes together, in CSS pixels. */
  readonly roomPx = signal(0);
  private readonly depths = signal<ReadonlyMap<number, number>>(new Map());
  readonly open: ReadonlySignal<readonly number[]>;
  /** How the rows are looked at. */
  readonly view: ReadonlySignal<RowsView>;
  /** All that the rows depend on. */
  readonly ask: ReadonlySignal<Ask>;
  readonly rows: ReadonlySignal<readonly Row[]>;
  /** The rows that stay at the top, and all of them below. */
  readonly pinned: Pane;
  readonly main: Pane;
  /** What rows show beside their cells. */
  readonly data = new RowData(this);
  /** The row that the keys mean. */
  readonly focused = signal<string | undefined>(undefined);
  /** The row whose name is to have the keyboard once it is there. */
  readonly takeFocus = signal<string | undefined>(undefined);
  readonly tiles: ReadonlySignal<readonly TileKey[]>;
  readonly store: TileStore;
  readonly rasters: RasterStore;
  /** What is measured on the radar, and what rows are sorted by. */
  readonly measure: ReadonlySignal<string>;
  /** The measure where rows are drawn as a radar. */
  readonly radar: ReadonlySignal<string | undefined>;
  /** Counts what was asked to be selected: an answer that comes after the next wish is not wanted any more. */
  private wish = 0;
  private walking: Promise<void> = Promise.resolve();
  constructor(
    readonly session: Session,
    readonly run: Run,
    private readonly pixelRatio: number,
    /** Locations that are open whatever the address says: for a page that shows one of them. */
    private readonly alwaysOpen?: readonly number[],
  ) {
    const { state } = session;
    this.window = computed(() => clamp(this.live.value ?? state.value.window ?? run.bounds, run.bounds));
    const defaultOpen = openByDefault(run);
    this.open = computed(() => alwaysOpen ?? state.value.open ?? defaultOpen);
    this.view = computed(() => (alwaysOpen ? ROWS_VIEW : state.value.rows));
    this.measure = computed(() => {
      const { region } = state.value;
      return this.view.value.measure || (region ? `region.${region}` : USUAL_MEASURE);
    });
    this.radar = computed(() => (this.view.value.preset === "radar" ? this.measure.value : undefined));
    const heightPx = computed(() => this.size.value.height);
    this.ask = computed(() => ({
      run,
      series: this.series.value,
      open: this.open.value,
      measured: state.value.measured,
      depths: this.depths.value,
      view: this.view.value,
      heightPx: heightPx.value,
      measure: this.measure.value,
      amounts: this.data.amounts.value,
      places: this.data.places.value,
      stepped: session.stepsAbout.value?.processes ?? [],
    }));
    this.rows = computed(() => layoutRows(this.ask.value));
    this.main = { rows: this.rows, scrollTop: signal(0), height: heightPx };
    const pinned = computed(() => pinnedRows(this.ask.value));
    /** Of the pane below and the pinned one together. */
    const share = computed(() => Math.round(this.roomPx.value * MOST_PINNED));
    const pinnedPx = computed(() => Math.min(totalHeight(pinned.value), share.value));
    this.pinned = { rows: pinned, scrollTop: signal(0), height: pinnedPx };
    let known: readonly TileKey[] = [];
    this.tiles = computed(() => {
      const widthPx = Math.max(1, this.size.value.width * this.pixelRatio);
      const tiles = tilesIn(this.window.value, levelFor(this.window.value, widthPx), run.meta.tile_cells);
      // The same list while it says the same: what is looked up for it stays.
      const same =
        tiles.length === known.length &&
        tiles.every(({ level, tile }, i) => level === known[i]?.level && tile === known[i]?.tile);
      known = same ? known : tiles;
      return known;
    });
    const changed = (): void => {
      this.painted.value = false;
      this.version.value++;
    };
    const say = (sentence: string): void => session.say(sentence);
    this.store = new TileStore(session.api, run.meta.tile_cells, changed, say);
    this.rasters = rasterStore(session.api, run.meta.tile_cells, changed, say);
  }

  /** Whether something on the screen is still being fetched. */
  get waiting(): boolean {
    return this.store.waiting || this.rasters.waiting || this.data.waiting;
  }

  /** Stops everything that is under way. */
  close(): void {
    clearTimeout(this.settle);
    this.wish++;
    this.store.close();
    this.rasters.close();
    this.data.close();
  }

  /** The loop level whose iterations are the steps. */
  private get level(): string {
    return this.session.state.peek().level;
  }

  /** The rows of a pane that are on the screen. */
  visible(pane: Pane): Row[] {
    return visibleRows(pane.rows.value, pane.scrollTop.value, pane.height.value);
  }

  /** Fetches what the screen shows and lacks. */
  fetchVisible(): void {
    if (this.size.value.width === 0) return;
    const rows = [...this.visible(this.pinned), ...this.visible(this.main)];
    const radar = this.radar.value;
    const flat = new Set<number>();
    const nested = new Set<number>();
    for (const row of rows) {
      if (row.kind !== "location" || radar) continue;
      // An open location needs its cells for what is marked in them.
      flat.add(row.location.location);
      if (row.open) nested.add(row.location.location);
    }
    this.store.want({ tiles: this.tiles.value, flat: [...flat], nested: [...nested] });
    this.rasters.want(familiesOf(rows, this.data.places.value, radar), this.tiles.value);
    this.data.fetch(rows);
  }

  /** Notes how deep a location was seen to be; its row only ever grows, so that nothing jumps while panning. */
  sawDepth(location: number, depths: number): void {
    if (depths > (this.depths.value.get(location) ?? 0))
      this.depths.value = new Map([...this.depths.value, [location, depths]]);
  }

  // Rows

  /** Changes how the rows are looked at. */
  changeRows(change: Partial<RowsView>, how: "push" | "replace" = "replace"): void {
    this.session.update({ rows: { ...this.session.state.peek().rows, ...change } }, how);
  }

  /** Folds or unfolds a host or a process. */
  flip(key: string): void {
    const { flipped } = this.view.peek();
    this.changeRows({ flipped: flipped.includes(key) ? flipped.filter((k) => k !== key) : [...flipped, key] });
  }

  /** Keeps a row in the pane at the top, or lets it go. */
  pin(key: string): void {
    const { pinned } = this.view.peek();
    this.changeRows({ pinned: pinned.includes(key) ? pinned.filter((k) => k !== key) : [...pinned, key] });
  }

  // Moving

  /** Zooms by a factor around a moment, as part of a gesture. */
  zoomBy(factor: number, anchorNs: number): void {
    this.move(zoom(this.window.value, factor, anchorNs, this.run.bounds));
  }

  /** Pans by a part of the screen, as part of a gesture. */
  panBy(screens: number): void {
    this.move(pan(this.window.value, screens, this.run.bounds));
  }

  /** Goes to a window at once; where it is a zoom in, the present one becomes a crumb. */
  goTo(window: TimeRange): void {
    this.commit(clamp(window, this.run.bounds), "push");
  }

  /** Shows the whole run. */
  whole(): void {
    this.endGesture();
    this.session.update({ window: undefined, trail: [] }, "push");
  }

  /** Undoes the last zoom in. */
  back(): void {
    this.endGesture();
    const { trail } = this.session.state.value;
    this.session.update({ window: trail.at(-1), trail: trail.slice(0, -1) }, "push");
  }

  /** Returns to a crumb of the trail. */
  backTo(crumb: number): void {
    this.endGesture();
    const { trail } = this.session.state.value;
    this.session.update({ window: trail[crumb], trail: trail.slice(0, crumb) }, "push");
  }

  /** Goes to the step before, after, or to the next outlier, keeping the length of the window where that makes sense. */
  async goToStep(kind: StepKind): Promise<void> {
    const window = this.window.value;
    const middle = window.startNs + length(window) / 2;
    const asked = fetchStepNear(this.session.api, middle, kind, this.level);
    const answer = await this.session.ask(asked.then((step) => ({ step })));
    if (!answer) return;
    const found = answer.step;
    if (!found) {
      this.session.say(
        this.steps.value.length ? `No ${kind === "outlier" ? "outlier" : "step"} further on` : "No steps were found",
      );
      return;
    }
    this.showStep({ startNs: found.start_ns, endNs: found.start_ns + found.duration_ns });
    this.session.say(`step ${found.step} (${found.class}${found.outlier ? ", outlier" : ""})`);
  }

  /** Shows a step so that it fills the screen, with the step marked as the chosen stretch. */
  showStep(step: TimeRange): void {
    this.goTo(around(step, this.run.bounds));
  }

  private move(window: TimeRange): void {
    this.live.value = window;
    clearTimeout(this.settle);
    this.settle = setTimeout(() => this.commit(window, "replace"), SETTLE_MS);
  }

  private endGesture(): void {
    clearTimeout(this.settle);
    this.live.value = undefined;
  }

  private commit(window: TimeRange, how: "push" | "replace"): void {
    this.endGesture();
    const { state } = this.session;
    const asChosen = sameRange(window, this.run.bounds) ? undefined : window;
    const trail = trailAfter(state.value.trail, state.value.window, asChosen, this.run.bounds);
    this.session.update({ window: asChosen, trail }, how);
  }

  // Choosing

  /** Selects the span that fills most of a place; undefined clears. */
  async select(place: Place | undefined): Promise<void> {
    if (!place) {
      this.deselect();
      this.session.update({ selection: undefined, gap: undefined });
      return;
    }
    const wish = ++this.wish;
    const found = await this.session.ask(fetchSpan(this.session.api, place, this.level));
    if (wish !== this.wish) return;
    this.choose(found);
  }

  private choose(found: SpanDetail | undefined): void {
    this.selected.value = found;
    this.session.update({ selection: found && keyOf(found), gap: undefined });
  }

  /** Shows no span as selected, also none that is still being fetched. */
  deselect(): void {
    this.wish++;
    this.selected.value = undefined;
  }

  /** Selects the neighbour of the selected span, or, where none is selected, the widest span of the first thread. */
  walk(way: Way): Promise<void> {
    // A key that is pressed before the answer to the one before has come means what lies beside that answer.
    const wish = this.wish;
    this.walking = this.walking.then(() => (wish === this.wish ? this.walkOn(way, wish) : undefined));
    return this.walking;
  }

  private async walkOn(way: Way, wish: number): Promise<void> {
    const from = this.selected.value;
    const first = this.rows.value.find((row) => row.kind === "location");
    const place = first?.kind === "location" && {
      location: first.location.location,
      range: this.window.value,
      depth: 0,
    };
    const asked = from
      ? fetchNeighbour(this.session.api, keyOf(from), way, this.level)
      : place && fetchSpan(this.session.api, place, this.level);
    const found = asked && (await this.session.ask(asked));
    if (!found || wish !== this.wish) return;
    this.choose(found);
    this.bringIntoView({ startNs: found.start_ns, endNs: found.start_ns + found.duration_ns });
  }

  /** Pans so that a stretch is seen. */
  bringIntoView(span: TimeRange): void {
    const window = this.window.value;
    if (span.startNs < window.endNs && span.endNs > window.startNs) return;
    const by = (span.startNs + span.endNs) / 2 - (window.startNs + window.endNs) / 2;
    this.move(clamp({ startNs: window.startNs + by, endNs: window.endNs + by }, this.run.bounds));
  }

  /** Fetches the facts about the span that the address names. */
  async restore(key: SpanKey): Promise<void> {
    const known = this.selected.value;
    if (known && known.location === key.location && known.start_ns === key.startNs && known.depth === key.depth) return;
    const range = { startNs: key.startNs, endNs: key.startNs + 1 };
    const place = { location: key.location, range, depth: key.depth };
    const wish = ++this.wish;
    const found = await this.session.ask(fetchSpan(this.session.api, place, this.level));
    if (wish === this.wish) this.selected.value = found;
  }

  /** Scrolls so that the row of a location is seen, and unfolds what hides it. */
  bringRowIntoView(location: number): void {
    const shown = (): boolean =>
      this.rows.peek().some((row) => row.kind === "location" && !row.stands && row.location.location === location);
    if (!shown()) {
      const process = this.run.locations.find((one) => one.location === location)?.process;
      const folded = this.rows.peek().find((row) => row.kind === "location" && row.stands?.process.process === process);
      if (folded) this.flip(folded.key);
    }
    this.toRow.value = undefined;
    this.toRow.value = location;
  }

  /** Whether a row stands for a location among others. */
  stands(row: Row, location: number): boolean {
    const process = this.run.locations[location]?.process;
    return standsFor(row, location, process, (place) => this.data.places.value[place]?.locations ?? []);
  }

  /** Opens the drawer where it was left, or closes it. */
  toggleDrawer(): void {
    const { drawer } = this.session.state.peek();
    this.session.update({ drawer: { ...drawer, tab: drawer.tab ? "" : "profile" } });
  }

  /** Opens the next page of the drawer. */
  nextDrawerTab(): void {
    const { drawer } = this.session.state.peek();
    const at = drawer.tab ? DRAWER_TABS.indexOf(drawer.tab) + 1 : 0;
    this.session.update({ drawer: { ...drawer, tab: DRAWER_TABS[at % DRAWER_TABS.length] ?? "profile" } });
  }

  /** Zooms to the chosen stretch, else to the selected span or gap. */
  focus(): void {
    const { range } = this.session.state.value;
    const span = this.selected.value;
    const gap = this.linked.gap.value;
    if (range) {
      this.goTo(range);
      this.session.update({ range: undefined });
    } else if (span)
      this.goTo(around({ startNs: span.start_ns, endNs: span.start_ns + span.duration_ns }, this.run.bounds, 0.25));
    else if (gap) this.goTo(around({ startNs: gap.start_ns, endNs: gap.end_ns }, this.run.bounds, 0.25));
  }

  /** Opens or closes the nesting of a location. */
  toggle(location: number): void {
    if (this.alwaysOpen) return;
    const open = this.open.value;
    const next = open.includes(location) ? open.filter((l) => l !== location) : [...open, location];
    this.session.update({ open: next.sort((a, b) => a - b) });
  }

  /** Shows all metrics of a process, or only the usual ones. */
  toggleMetrics(process: number): void {
    const { measured } = this.session.state.value;
    const next = measured.includes(process) ? measured.filter((p) => p !== process) : [...measured, process];
    this.session.update({ measured: next.sort((a, b) => a - b) });
  }
}
