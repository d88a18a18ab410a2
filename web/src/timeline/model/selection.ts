// What is selected on the timeline: a span with its links, or an idle gap; and the ways from it to others.

import { type Signal, signal } from "@preact/signals";
import { length } from "../../base/time";
import type { Session } from "../../data/session";
import { fetchNeighbour, fetchSpan, keyOf, type Place, type Way } from "../../data/spans";
import { stretchOf } from "../../data/wire/api";
import type { IdleGap, Link, Links, Routes, SpanFacts } from "../../data/wire/wire.generated";
import type { GapKey, SpanKey } from "../../state/address";
import type { LinkedSpan } from "../drawing/scene";
import type { TimeWindow } from "./timeWindow";
import type { TrackRows } from "./trackRows";

/** Spans that one came from by following links; older ones are forgotten. */
const MOST_BACK = 50;

type GapQuestion = Routes["gap"];

const gapKeyOf = (gap: IdleGap): GapKey => ({ location: gap.location, startNs: gap.start_ns });

export class Selection {
  readonly span = signal<SpanFacts | undefined>(undefined);
  /** The links of the selected span, once they are there. */
  readonly links: Signal<Links | undefined> = signal(undefined);
  readonly gap: Signal<IdleGap | undefined> = signal(undefined);
  /** Number of requests for a selection so far: an answer that comes after the next request is not wanted any more. */
  private wish = 0;
  private walking: Promise<void> = Promise.resolve();
  private linksOf: SpanFacts | undefined;
  private underWay: AbortController | undefined;
  private readonly cameFrom: SpanKey[] = [];
  /** The gap that was found last as one of the longest, and its place among them. */
  private longest: { readonly gap: IdleGap; readonly place: number } | undefined;

  constructor(
    private readonly session: Session,
    private readonly time: TimeWindow,
    private readonly rows: TrackRows,
    /** Width of the tracks, in CSS pixels. */
    private readonly widthPx: () => number,
  ) {}

  /** Drops every answer that is still to come. */
  close(): void {
    this.wish++;
  }

  /** The loop level whose iterations are the steps. */
  private get level(): string {
    return this.session.state.peek().level;
  }

  // Spans

  /** Selects the span that fills most of a place; undefined clears. */
  async select(place: Place | undefined): Promise<void> {
    if (!place) {
      this.deselect();
      this.session.update({ selection: undefined, gap: undefined });
      return;
    }
    const wish = ++this.wish;
    const found = await this.session.ask(fetchSpan(this.session.api, place, this.level));
    if (wish === this.wish) this.choose(found);
  }

  private choose(found: SpanFacts | undefined): void {
    this.span.value = found;
    this.session.update({ selection: found && keyOf(found), gap: undefined });
  }

  /** Shows no span as selected, also none that is still being fetched. */
  deselect(): void {
    this.wish++;
    this.span.value = undefined;
  }

  /** Fetches the facts about the span that the address names. */
  async restore(key: SpanKey): Promise<void> {
    const known = this.span.value;
    if (known && known.location === key.location && known.start_ns === key.startNs && known.depth === key.depth) return;
    const place = { location: key.location, range: { startNs: key.startNs, endNs: key.startNs + 1 }, depth: key.depth };
    const wish = ++this.wish;
    const found = await this.session.ask(fetchSpan(this.session.api, place, this.level));
    if (wish === this.wish) this.span.value = found;
  }

  /** Selects the neighbour of the selected span, or, where none is selected, the widest span of the first thread. */
  walk(way: Way): Promise<void> {
    // A key that is pressed before the answer to the one before has come means what lies beside that answer.
    const wish = this.wish;
    this.walking = this.walking.then(() => (wish === this.wish ? this.walkOn(way, wish) : undefined));
    return this.walking;
  }

  private async walkOn(way: Way, wish: number): Promise<void> {
    const { api } = this.session;
    const from = this.span.value;
    const first = this.rows.all.value.find((row) => row.kind === "location");
    const place = first && { location: first.location.location, range: this.time.shown.value, depth: 0 };
    const asked = from ? fetchNeighbour(api, keyOf(from), way, this.level) : place && fetchSpan(api, place, this.level);
    const found = asked && (await this.session.ask(asked));
    if (!found || wish !== this.wish) return;
    this.choose(found);
    this.time.bringIntoView({ startNs: found.start_ns, endNs: found.start_ns + found.duration_ns });
  }

  // Links

  /** Fetches the links of what is selected now; to be called whenever that changes. */
  followLinks(span: SpanFacts | undefined): void {
    if (span === this.linksOf) return;
    this.linksOf = span;
    this.underWay?.abort();
    this.links.value = undefined;
    if (!span) return;
    this.gap.value = undefined;
    const controller = new AbortController();
    this.underWay = controller;
    const { location, start_ns, depth } = span;
    this.session.api.json("links", { location, start_ns, depth }, controller.signal).then(
      (links) => {
        if (this.linksOf === span) this.links.value = links;
      },
      () => undefined, // A span without its links is still worth looking at.
    );
  }

  /** Goes to the other end of a link of the selected span: of the first one where none is named. */
  async jump(link?: Link): Promise<void> {
    const from = this.span.value;
    const to = link ?? this.links.value?.links[0];
    if (!from || !to) {
      this.session.notify(
        from ? "The trace holds no links of this span" : "Select a span first: links are those of a span",
      );
      return;
    }
    this.cameFrom.push(keyOf(from));
    if (this.cameFrom.length > MOST_BACK) this.cameFrom.shift();
    await this.goTo(to);
  }

  async jumpBack(): Promise<void> {
    const key = this.cameFrom.pop();
    if (key) await this.goTo({ location: key.location, start_ns: key.startNs, duration_ns: 1, depth: key.depth });
    else this.session.notify("No link was followed");
  }

  /** Selects a span and brings it and its row into view. */
  async goTo(end: LinkedSpan): Promise<void> {
    const range = { startNs: end.start_ns, endNs: end.start_ns + Math.max(1, end.duration_ns) };
    // Of what is longer than the window its begin is what was meant.
    const most = length(this.time.shown.peek()) / 2;
    this.time.bringIntoView({ startNs: range.startNs, endNs: Math.min(range.endNs, range.startNs + most) });
    this.rows.bringIntoView(end.location);
    await this.select({ location: end.location, range: { ...range, endNs: range.startNs + 1 }, depth: end.depth });
  }

  // Gaps

  /** Selects the gap of a row around a moment; where something runs then, nothing. */
  async selectGapAt(key: GapKey): Promise<void> {
    const found = await this.gapAt(key);
    if (found) this.showGap(found.gap);
  }

  /** Fetches the gap that the address names. */
  async restoreGap(key: GapKey): Promise<void> {
    const known = this.gap.peek();
    if (known && known.location === key.location && known.start_ns === key.startNs) return;
    const found = await this.gapAt(key);
    if (found) this.gap.value = found.gap;
  }

  /** Selects the gap beside the selected one, of those that are wider than a pixel. */
  async walkGaps(way: "next" | "previous"): Promise<void> {
    const from = this.gap.value;
    if (!from) return;
    const pixelNs = length(this.time.shown.value) / Math.max(1, this.widthPx());
    const shortest = Math.min(pixelNs, from.end_ns - from.start_ns);
    const found = await this.gapAt(gapKeyOf(from), { way, shortest_ns: Math.round(shortest) });
    if (found?.gap) this.showGap(found.gap);
    else if (found) this.session.notify(`No ${way} gap on this row`);
  }

  /** Selects the longest gap on the screen of the row that is meant; asked again, the next longest. */
  async longestGap(location: number | undefined): Promise<void> {
    const at = location ?? this.gap.value?.location;
    if (at === undefined) {
      this.session.notify("Point at a stream or thread to find its longest gap");
      return;
    }
    const again = this.longest && this.longest.gap === this.gap.value && this.longest.gap.location === at;
    const place = again && this.longest ? this.longest.place + 1 : 0;
    const found = await this.fetchGap({
      location: at,
      way: "longest",
      ...stretchOf(this.time.shown.value),
      number: place,
      shortest_ns: 1,
    });
    if (!found) return;
    this.longest = found.gap && { gap: found.gap, place };
    if (found.gap) this.showGap(found.gap);
    else this.session.notify(place ? "No further gap on the screen" : "No gap of this row is on the screen");
  }

  /** The gap of a row around a moment, or beside it. */
  private gapAt({ location, startNs }: GapKey, beside: Omit<GapQuestion, "location"> = {}) {
    return this.fetchGap({ location, time_ns: Math.max(0, Math.floor(startNs)), ...beside });
  }

  /** The answer holds a gap or none; undefined without an answer. */
  private fetchGap(question: GapQuestion): Promise<{ readonly gap: IdleGap | undefined } | undefined> {
    return this.session.ask(this.session.api.json("gap", question).then((gap) => ({ gap })));
  }

  private showGap(gap: IdleGap | undefined): void {
    if (gap) this.deselect();
    this.gap.value = gap;
    this.session.update({ gap: gap && gapKeyOf(gap), selection: undefined });
    if (gap) {
      this.time.bringIntoView({ startNs: gap.start_ns, endNs: gap.end_ns });
      this.rows.bringIntoView(gap.location);
    }
  }
}
