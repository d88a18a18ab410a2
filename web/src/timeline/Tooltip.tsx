// What lies under the pointer, in words.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { css, GROUP_TITLES } from "../base/color";
import { causeTitle } from "../base/idleCauses";
import { formatQuantity, plural } from "../base/quantity";
import { formatDuration, length } from "../base/time";
import { toNs } from "../base/viewport";
import { fetchSpan } from "../data/spans";
import { GAP } from "../data/tiles/cells";
import type { IdleGap } from "../data/wire/wire.generated";
import { Swatch } from "../widgets/figures";
import { RULER_HEIGHT, STEPS_HEIGHT } from "./drawing/drawHeader";
import { lostAt } from "./drawing/drawLost";
import { markAt, type PlacedMark } from "./drawing/drawMarks";
import { readingAt, seriesColor } from "./drawing/drawMetrics";
import { nameOf } from "./Gutter";
import type { TimelineModel } from "./model/timelineModel";
import { groundOf, lossesOf } from "./Pane";
import { rowAt } from "./pointing/hitTest";
import type { Idle } from "./pointing/idleAt";
import { rasterFacts } from "./rasterFacts";
import type { Row } from "./rows/rowLayout";

const TOOLTIP_GAP = 14;
/** --gutter of style/base.css, in CSS pixels. */
const GUTTER_WIDTH = 208;

/** A pointer that rests this long on a mark asks how long the marked span is. */
const REST_MS = 120;

/** How long the span lasts that is marked, once the pointer rests there; undefined until then, and for gaps. */
function useMarked(model: TimelineModel, row: Row | undefined, mark: PlacedMark | undefined): string | undefined {
  const known = useSignal<{ readonly id: string; readonly text: string } | undefined>(undefined);
  const location = row?.kind === "location" ? row.location.location : undefined;
  const id = mark && location !== undefined ? `${location}/${mark.range.startNs}/${mark.entry.region}` : "";
  useEffect(() => {
    if (!mark || location === undefined || mark.entry.region === GAP) return undefined;
    const timer = setTimeout(() => {
      const place = { location, range: mark.range, region: mark.entry.region };
      void model.session.ask(fetchSpan(model.session.api, place, "")).then((span) => {
        if (span) known.value = { id, text: formatDuration(span.duration_ns) };
      });
    }, REST_MS);
    return () => clearTimeout(timer);
  }, [id]);
  return known.value?.id === id ? known.value.text : undefined;
}

/** The idle gap under the pointer once that rests there; undefined until then. */
function useGap(model: TimelineModel, idle: Idle | undefined): IdleGap | undefined {
  const known = useSignal<{ readonly id: string; readonly gap: IdleGap } | undefined>(undefined);
  const id = idle ? `${idle.location}/${Math.round(idle.range.startNs)}` : "";
  useEffect(() => {
    if (!idle) return undefined;
    const timer = setTimeout(() => {
      const question = { location: idle.location, time_ns: Math.max(0, Math.floor(idle.at)) };
      void model.session.ask(model.session.api.json("gap", question)).then((gap) => {
        if (gap) known.value = { id, gap };
      });
    }, REST_MS);
    return () => clearTimeout(timer);
  }, [id]);
  return known.value?.id === id ? known.value.gap : undefined;
}

/** Why nothing runs, of a stream; of a thread what ran most meanwhile. */
function whyIdle({ cause, meanwhile }: IdleGap): string {
  if (cause) return causeTitle(cause.main);
  const [most] = meanwhile;
  return most ? `meanwhile ${most.thread}: ${most.name}` : "meanwhile nothing else ran in this process";
}

export function Tooltip({ model }: { model: TimelineModel }) {
  const pointer = model.pointer.at.value;
  const hit = model.pointer.hit.value;
  const idle = model.pointer.idle.value;
  void model.version.value; // redraws when data arrives while the pointer rests
  const row = pointer && rowAt(groundOf(model, pointer.pane), pointer.y);
  const facts = pointer && row && rasterFacts(model, row, pointer.x);
  const mark = pointer && row && markAt(groundOf(model, pointer.pane), row, pointer.x);
  const lost = pointer && row ? lostAt(lossesOf(model), groundOf(model, pointer.pane), row, pointer.x) : [];
  const long = useMarked(model, row, mark);
  const gap = useGap(model, idle);
  if (
    !pointer ||
    model.pointer.dragging.value ||
    (!hit && !idle && !facts?.length && !mark && !lost.length && row?.kind !== "metric")
  )
    return null;
  const theme = model.session.theme.value;
  const right = pointer.x > model.size.value.width * 0.62;
  const above = RULER_HEIGHT + STEPS_HEIGHT + (pointer.pane === model.rows.main ? model.rows.pinned.height.value : 0);
  const style = {
    top: `${pointer.y + above + TOOLTIP_GAP}px`,
    ...(right
      ? { right: `${model.size.value.width - pointer.x + TOOLTIP_GAP}px` }
      : { left: `${GUTTER_WIDTH + pointer.x + TOOLTIP_GAP}px` }),
  };
  const marked = mark && (
    <div class="tooltip-mark">
      <span aria-hidden="true">▼</span> {mark.entry.name}
      <span class="weak">{long ? ` lasts ${long},` : ""} 16 times as long as usual here, or longer</span>
    </div>
  );
  const content = (): ComponentChildren => {
    if (facts?.length || (mark && !hit))
      return (
        <>
          {row && <div class="weak">{nameOf(row)}</div>}
          {facts?.map((fact) => (
            <Value key={fact.name} swatch={fact.group ? <Swatch group={fact.group} /> : <span />} {...fact} />
          ))}
          {marked}
        </>
      );
    if (hit)
      return (
        <>
          <div class="tooltip-name row bold">
            <Swatch group={hit.group} />
            {hit.name}
          </div>
          {row && model.run.processes.length > 1 && <div class="weak">{nameOf(row)}</div>}
          <div class="weak">
            {hit.exact ? formatDuration(length(hit.range)) : `mostly this for ${formatDuration(length(hit.range))}`} ·{" "}
            {GROUP_TITLES[hit.group].toLowerCase()}
          </div>
          {marked}
        </>
      );
    if (idle) {
      const { startNs, endNs } = idle.range;
      const shown = model.time.shown.value;
      const cut = startNs <= shown.startNs || endNs >= shown.endNs;
      return (
        <>
          <div class="tooltip-name row bold">nothing runs{gap && `: ${whyIdle(gap)}`}</div>
          <div class="weak">
            for{" "}
            {gap
              ? formatDuration(gap.end_ns - gap.start_ns)
              : `${cut ? "at least " : ""}${formatDuration(length(idle.range))}`}{" "}
            · click for more
          </div>
        </>
      );
    }
    if (row?.kind !== "metric") return null;
    const at = toNs(pointer.x, model.time.shown.value, model.size.value.width);
    return row.series.map((series, i) => {
      const value = readingAt(model.data.readings.value.get(series.series), at);
      return (
        <Value
          key={series.series}
          swatch={<i style={{ background: css(seriesColor(i, theme)) }} />}
          name={series.metric}
          value={value === undefined ? "–" : formatQuantity(value, row.unit)}
        />
      );
    });
  };
  return (
    <div class="tooltip" style={style} role="tooltip">
      {lost.map((stretch) => (
        <div key={stretch.start_ns}>
          {plural(stretch.spans, "span")} lost
          <span class="weak">
            {` in ${formatDuration(stretch.end_ns - stretch.start_ns)}: this part of the file is damaged`}
          </span>
        </div>
      ))}
      {content()}
    </div>
  );
}

type ValueProps = { readonly swatch: ComponentChildren; readonly name: string; readonly value: string };

const Value = ({ swatch, name, value }: ValueProps) => (
  <div class="tooltip-metric cells">
    {swatch}
    <span>{name}</span>
    <b>{value}</b>
  </div>
);
