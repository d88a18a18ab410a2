// The timeline's state while it is on the screen: its window, its rows, what is selected, and what was fetched for the picture.

import { computed, effect, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { length, type TimeRange } from "../../base/time";
import { around } from "../../base/viewport";
import type { Run } from "../../data/run";
import { fetchStepNear, type Step, type StepKind } from "../../data/runSteps";
import type { Session } from "../../data/session";
import { levelFor, type TileKey, tilesIn } from "../../data/tiles/cells";
import { TileStore } from "../../data/tiles/locationTiles";
import { type RasterStore, rasterStore } from "../../data/tiles/rasters";
import type { NoteFields } from "../../data/wire/api";
import { DRAWER_TABS } from "../../state/drawerState";
import type { Tools } from "../drawing/scene";
import type { Hit } from "../pointing/hitTest";
import type { Idle } from "../pointing/idleAt";
import { familiesOf } from "../rows/rasterSources";
import { RowData } from "./rowData";
import { Selection } from "./selection";
import { TimeWindow } from "./timeWindow";
import { type Pane, TrackRows } from "./trackRows";

export type Size = { readonly width: number; readonly height: number };

/** The pointer over a pane, and what lies under it as of the last picture: a span, or an empty place. */
class Pointer {
  /** In CSS pixels from the pane's corner. */
  readonly at = signal<{ readonly x: number; readonly y: number; readonly pane: Pane } | undefined>(undefined);
  readonly hit = signal<Hit | undefined>(undefined);
  readonly idle = signal<Idle | undefined>(undefined);
  readonly dragging = signal<TimeRange | undefined>(undefined);
}

export class TimelineModel {
  /** Size of the area of tracks below the pinned ones, in CSS pixels. */
  readonly size: Signal<Size> = signal({ width: 0, height: 0 });
  readonly time: TimeWindow;
  readonly rows: TrackRows;
  readonly selection: Selection;
  readonly pointer = new Pointer();
  /** Steps come later than the tracks, which do not wait for them. */
  readonly steps: Signal<readonly Step[]> = signal([]);
  /** Why the run has no steps, once that is known. */
  readonly stepsNote = signal("");
  /** Number of tiles that have come. */
  readonly version = signal(0);
  /** Whether the cells on the screen are painted to the pixel: while the window moves, most are stretched from the frame before. */
  readonly painted = signal(false);
  /** Whether there is something to see: what costs the server more may be asked from then on. */
  readonly pictured = computed(() => this.version.value > 0);
  /** The box of ruler and tracks, and what draws them; once they are on the screen. */
  picture: { readonly box: HTMLElement; readonly tools: () => Tools } | undefined;
  /** Whether the menu of what can be saved is open. */
  readonly saving = signal(false);
  /** The note that is being written. */
  readonly draft: Signal<NoteFields | undefined> = signal(undefined);
  /** What rows show beside their cells. */
  readonly data: RowData;
  readonly tiles: ReadonlySignal<readonly TileKey[]>;
  readonly store: TileStore;
  readonly rasters: RasterStore;

  private readonly stopWatching: () => void;

  /** `alwaysOpen`: see TrackRows. */
  constructor(
    readonly session: Session,
    readonly run: Run,
    pixelRatio: number,
    alwaysOpen?: readonly number[],
  ) {
    const heightPx = computed(() => this.size.value.height);
    const opening = computed(() => {
      const typical = alwaysOpen ? [] : (session.stepsAbout.value?.typical ?? []);
      const [first, last] = [typical[0], typical.at(-1)];
      if (!first || !last) return undefined;
      return around({ startNs: first.start_ns, endNs: last.start_ns + last.duration_ns }, run.bounds);
    });
    this.time = new TimeWindow(session, run.bounds, opening);
    this.rows = new TrackRows(session, run, heightPx, alwaysOpen);
    this.selection = new Selection(session, this.time, this.rows, () => this.size.value.width);
    let known: readonly TileKey[] = [];
    this.tiles = computed(() => {
      const widthPx = Math.max(1, this.size.value.width * pixelRatio);
      const window = this.time.shown.value;
      const tiles = tilesIn(window, levelFor(window, widthPx), run.meta.tile_cells);
      // The same list while it holds the same tiles: what is looked up for it stays.
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
    const notify = (sentence: string): void => session.notify(sentence);
    this.store = new TileStore(session.api, run.meta.tile_cells, changed, notify);
    this.rasters = rasterStore(session.api, run.meta.tile_cells, changed, notify);
    this.data = new RowData(this);
    this.stopWatching = effect(() => {
      session.busy.value = this.time.moving.value || this.pointer.dragging.value !== undefined;
    });
  }

  /** Whether something on the screen is still being fetched. */
  get waiting(): boolean {
    return this.store.waiting || this.rasters.waiting || this.data.waiting;
  }

  /** Stops everything that is under way. */
  close(): void {
    this.stopWatching();
    this.session.busy.value = false;
    for (const part of [this.time, this.selection, this.store, this.rasters, this.data]) part.close();
  }

  /** Fetches what the screen shows and lacks. */
  fetchVisible(): void {
    if (this.size.value.width === 0) return;
    const rows = this.rows.onScreen();
    const radar = this.rows.radar.value;
    const locations = radar ? [] : rows.filter((row) => row.kind === "location");
    // An open location needs its cells for what is marked in them.
    const flat = new Set(locations.map((row) => row.location.location));
    const nested = new Set(locations.flatMap((row) => (row.open ? [row.location.location] : [])));
    this.store.want({ tiles: this.tiles.value, flat: [...flat], nested: [...nested] });
    this.rasters.want(familiesOf(rows, this.rows.places.value, radar), this.tiles.value);
    this.data.fetch(rows);
  }

  /** Goes to the step before, after, or to the next outlier, so that it fills the screen. */
  async goToStep(kind: StepKind): Promise<void> {
    const { session } = this;
    const window = this.time.shown.value;
    const middle = window.startNs + length(window) / 2;
    const near = fetchStepNear(session.api, middle, kind, session.state.peek().level);
    const answer = await session.ask(near.then((step) => ({ step })));
    if (!answer) return;
    const { step } = answer;
    if (!step) {
      const what = kind === "outlier" ? "outlier" : "step";
      session.notify(this.steps.value.length ? `No ${what} further on` : "No steps were found");
      return;
    }
    this.time.goAround({ startNs: step.start_ns, endNs: step.start_ns + step.duration_ns });
    session.notify(`step ${step.step} (${step.class}${step.outlier ? ", outlier" : ""})`);
  }

  /** Goes to the step that takes most time beyond what its class usually does. */
  goToWorst(): void {
    const worst = this.session.stepsAbout.peek()?.worst;
    if (!worst) {
      this.session.notify("No step takes much longer than its class usually does");
      return;
    }
    this.time.goAround({ startNs: worst.start_ns, endNs: worst.start_ns + worst.duration_ns });
    this.session.notify(`step ${worst.step} (${worst.class}, outlier)`);
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
    const span = this.selection.span.value;
    const gap = this.selection.gap.value;
    if (range) {
      this.time.goTo(range);
      this.session.update({ range: undefined });
    } else if (span) this.time.goAround({ startNs: span.start_ns, endNs: span.start_ns + span.duration_ns }, 0.25);
    else if (gap) this.time.goAround({ startNs: gap.start_ns, endNs: gap.end_ns }, 0.25);
  }
}
