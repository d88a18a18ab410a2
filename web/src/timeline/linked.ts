// What hangs on the selection: the links of the selected span, and the selected idle gap with the ways to other gaps.
import { type Signal, signal } from "@preact/signals";
import type { GapKey, SpanKey } from "../base/state";
import { length } from "../base/time";
import {
  fetchGap,
  fetchGapBeside,
  fetchLinks,
  fetchLongestGap,
  type Gap,
  gapKeyOf,
  type Link,
  type Links,
  type SpanEnd,
} from "../data/links";
import type { SpanDetail } from "../data/spans";
import type { TimelineModel } from "./model";

/** Spans that one came from by following links; older ones are forgotten. */
const MOST_BACK = 50;

export class Linked {
  /** The links of the selected span, once they are there. */
  readonly links: Signal<Links | undefined> = signal(undefined);
  readonly gap: Signal<Gap | undefined> = signal(undefined);
  private linksOf: SpanDetail | undefined;
  private underWay: AbortController | undefined;
  private readonly back: SpanKey[] = [];
  /** The gap that was found last as one of the longest, and its place among them. */
  private found: { readonly gap: Gap; readonly place: number } | undefined;

  constructor(private readonly model: TimelineModel) {}

  /** Fetches the links of what is selected now; to be called whenever that changes. */
  follow(span: SpanDetail | undefined): void {
    if (span === this.linksOf) return;
    this.linksOf = span;
    this.underWay?.abort();
    this.links.value = undefined;
    if (!span) return;
    this.gap.value = undefined;
    const controller = new AbortController();
    this.underWay = controller;
    const key = { location: span.location, startNs: span.start_ns, depth: span.depth };
    fetchLinks(this.model.session.api, key, controller.signal).then(
      (links) => {
        if (this.linksOf === span) this.links.value = links;
      },
      () => undefined, // A span without its links is still worth looking at.
    );
  }

  /** Goes to the other end of a link of the selected span: of the first one where none is named. */
  async jump(link?: Link): Promise<void> {
    const { session, selected } = this.model;
    const from = selected.value;
    const to = link ?? this.links.value?.links[0];
    if (!from || !to) {
      session.say(from ? "This span has no links that the trace knows of" : "Select a span first: links are its own");
      return;
    }
    this.back.push({ location: from.location, startNs: from.start_ns, depth: from.depth });
    if (this.back.length > MOST_BACK) this.back.shift();
    await this.goTo(to);
  }

  /** Goes back to where the last jump began. */
  async jumpBack(): Promise<void> {
    const key = this.back.pop();
    if (!key) {
      this.model.session.say("No link was followed");
      return;
    }
    await this.goTo({ location: key.location, start_ns: key.startNs, duration_ns: 1, depth: key.depth });
  }

  /** Selects a span and brings it and its row into view. */
  async goTo(end: Pick<SpanEnd, "location" | "start_ns" | "duration_ns" | "depth">): Promise<void> {
    const { model } = this;
    const range = { startNs: end.start_ns, endNs: end.start_ns + Math.max(1, end.duration_ns) };
    // Of what is longer than the window its begin is what was meant.
    const most = length(model.window.peek()) / 2;
    model.bringIntoView({ startNs: range.startNs, endNs: Math.min(range.endNs, range.startNs + most) });
    model.bringRowIntoView(end.location);
    await model.select({ location: end.location, range: { ...range, endNs: range.startNs + 1 }, depth: end.depth });
  }

  // Gaps

  /** Selects the gap of a row around a moment; where something runs then, nothing. */
  async selectAt(key: GapKey): Promise<void> {
    const found = await this.model.session.ask(fetchGap(this.model.session.api, key).then((gap) => ({ gap })));
    if (found) this.show(found.gap);
  }

  /** Fetches the gap that the address names. */
  async restore(key: GapKey): Promise<void> {
    const known = this.gap.peek();
    if (known && known.location === key.location && known.start_ns === key.startNs) return;
    const found = await this.model.session.ask(fetchGap(this.model.session.api, key).then((gap) => ({ gap })));
    if (found) this.gap.value = found.gap;
  }

  /** Selects the gap beside the selected one, of those that are wider than a pixel. */
  async walk(way: "next" | "previous"): Promise<void> {
    const from = this.gap.value;
    if (!from) return;
    const { session, size, window } = this.model;
    const shortest = length(window.value) / Math.max(1, size.value.width);
    const asked = fetchGapBeside(session.api, gapKeyOf(from), way, Math.min(shortest, from.end_ns - from.start_ns));
    const found = await session.ask(asked.then((gap) => ({ gap })));
    if (found?.gap) this.show(found.gap);
    else if (found) session.say(`No ${way} gap on this row`);
  }

  /** Selects the longest gap on the screen of the row that is meant; asked again, the next longest. */
  async longest(location: number | undefined): Promise<void> {
    const { session, window } = this.model;
    const at = location ?? this.gap.value?.location;
    if (at === undefined) {
      session.say("Point at a stream or thread: its longest gap is looked for");
      return;
    }
    const again = this.found && this.found.gap === this.gap.value && this.found.gap.location === at;
    const place = again && this.found ? this.found.place + 1 : 0;
    const found = await session.ask(fetchLongestGap(session.api, at, window.value, place).then((gap) => ({ gap })));
    if (!found) return;
    this.found = found.gap && { gap: found.gap, place };
    if (found.gap) this.show(found.gap);
    else session.say(place ? "No further gap on the screen" : "No gap on this row is on the screen");
  }

  private show(gap: Gap | undefined): void {
    const { model } = this;
    if (gap) model.deselect();
    this.gap.value = gap;
    model.session.update({ gap: gap && gapKeyOf(gap), selection: undefined });
    if (gap) {
      model.bringIntoView({ startNs: gap.start_ns, endNs: gap.end_ns });
      model.bringRowIntoView(gap.location);
    }
  }
}
