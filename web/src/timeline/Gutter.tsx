// The names of the rows, and what one does to rows: fold, open, pin. Reached by Tab, walked by arrows.
import { useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import { css } from "../base/color";
import { plural } from "../base/quantity";
import type { Process } from "../data/run";
import { seriesColor } from "./drawing/drawMetrics";
import type { TimelineModel } from "./model/timelineModel";
import type { Pane } from "./model/trackRows";
import { type LocationRow, type MetricRow, type Row, visibleRows } from "./rows/rowLayout";

/** Rows this far beyond the screen have their names ready, in CSS pixels. */
const NEARBY = 800;
/** A name needs this height, in CSS pixels. */
const NAME_HEIGHT = 13;

/** The rows that have a name on the screen: thousands of threads must not become thousands of elements. */
function namedRows(model: TimelineModel, pane: Pane): readonly Row[] {
  const rows = pane.rows.value;
  const near = visibleRows(rows, pane.scrollTop.value - NEARBY, pane.height.value + 2 * NEARBY);
  const least = Math.min(...near.slice(0, 8).map((row) => row.height));
  if (least >= NAME_HEIGHT) return near;
  // Of rows thinner than their names every so manieth is named, and the one that the keys are at.
  const every = Math.ceil(NAME_HEIGHT / least);
  const focused = model.rows.focused.value;
  const shown = visibleRows(rows, pane.scrollTop.value, pane.height.value);
  return shown.filter((row) => Math.round(row.top / least) % every === 0 || row.key === focused);
}

export function Gutter({ model, pane }: { model: TimelineModel; pane: Pane }) {
  const named = namedRows(model, pane);
  const current = named.find((row) => row.key === model.rows.focused.value)?.key ?? named.find(takesKeys)?.key;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms.
    <div class="gutter fixed anchor surface" role="group" aria-label="Rows: arrows walk, fold and unfold">
      {named.map((row) => (
        <GutterRow
          key={row.key}
          row={row}
          model={model}
          current={row.key === current}
          pinned={pane === model.rows.pinned}
        />
      ))}
    </div>
  );
}

/** Metrics have nothing to fold or open. */
const takesKeys = (row: Row): boolean => row.kind !== "metric";

type RowProps = {
  readonly row: Row;
  readonly model: TimelineModel;
  /** Whether Tab leads to it. */
  readonly current: boolean;
  readonly pinned: boolean;
};

function GutterRow({ row, model, current, pinned }: RowProps) {
  const small = row.height < 18 ? " small" : "";
  const focused = model.rows.focused.value === row.key ? " focused" : "";
  const style = {
    top: `${row.top}px`,
    height: `${Math.max(row.height, NAME_HEIGHT)}px`,
    "--indent": `${row.level * 10}px`,
  };
  return (
    <div class={`gutter-row gutter-${row.kind}${small}${focused}`} style={style}>
      {row.kind === "metric" ? (
        <MetricName row={row} model={model} />
      ) : (
        <RowName row={row} model={model} current={current} pinned={pinned} />
      )}
      {row.kind === "process" && row.canHide && (
        <button
          type="button"
          class="quiet more"
          title={row.hidden ? `Show ${row.hidden} more metrics` : "Show fewer metrics"}
          onClick={() => model.rows.toggleMetrics(row.process.process)}
        >
          {row.hidden ? `+${row.hidden}` : "−"}
        </button>
      )}
      {(row.kind === "location" || row.kind === "metric" || row.kind === "steps") && !small && (
        <Pin row={row} model={model} pinned={pinned} />
      )}
    </div>
  );
}

/** Pins a row, or lets it go. Out of the way of Tab: the key P does the same. */
function Pin({ row, model, pinned }: { row: Row; model: TimelineModel; pinned: boolean }) {
  const held = pinned || model.rows.view.value.pinned.includes(row.key);
  return (
    <button
      type="button"
      class="quiet pin"
      tabIndex={-1}
      aria-pressed={held}
      aria-label={`${held ? "Unpin" : "Pin"} ${nameOf(row)}`}
      title={held ? "Let it go (P)" : "Keep it in sight at the top (P)"}
      onClick={() => model.rows.pin(row.key)}
    >
      {held ? "●" : "○"}
    </button>
  );
}

export function nameOf(row: Row): string {
  if (row.kind === "host") return row.host || "unknown host";
  if (row.kind === "location")
    return row.stands?.title ?? (row.of ? `${row.of} · ${locationName(row)}` : locationName(row));
  return row.title;
}

const locationName = ({ location }: LocationRow): string => location.name || `thread ${location.threadId}`;

function MetricName({ row, model }: { row: MetricRow; model: TimelineModel }) {
  return (
    <div class="gutter-name-metric vertical fill">
      <span>{row.title}</span>
      <span class="weak legend flex">
        {row.series.map((series, i) => (
          <span key={series.series} title={series.metric}>
            <i style={{ background: css(seriesColor(i, model.session.theme.value)) }} />
            {shortMetric(series.metric)}
          </span>
        ))}
      </span>
    </div>
  );
}

function RowName({ row, model, current, pinned }: RowProps) {
  const button = useRef<HTMLButtonElement>(null);
  const { title, expanded, toggle, aside } = about(row, model);
  useSignalEffect(() => {
    if (pinned || model.rows.takeFocus.value !== row.key) return;
    model.rows.takeFocus.value = undefined;
    button.current?.focus({ preventScroll: true });
  });
  return (
    <button
      ref={button}
      type="button"
      class="gutter-button row fill gap-5"
      data-row={pinned ? undefined : row.key}
      tabIndex={current ? 0 : -1}
      title={title}
      aria-expanded={expanded}
      onFocus={() => (model.rows.focused.value = row.key)}
      onClick={toggle}
    >
      <span class="chevron weak" aria-hidden="true">
        {expanded === undefined ? "" : expanded ? "▾" : "▸"}
      </span>
      <span class="gutter-name ellipsis">{nameOf(row)}</span>
      {aside && <span class="weak gutter-aside ellipsis">{aside}</span>}
    </button>
  );
}

type About = {
  readonly title: string;
  /** Undefined: there is nothing to fold or open. */
  readonly expanded?: boolean | undefined;
  readonly toggle?: () => void;
  /** Shown beside the name. */
  readonly aside?: string;
};

/** A row's button: its text and its action. */
function about(row: Row, model: TimelineModel): About {
  const toggle = (): void => model.rows.flip(row.key);
  if (row.kind === "host") {
    const title = `host ${row.host}: ${row.folded ? "mean of " : ""}${row.count} processes`;
    return { title, expanded: !row.folded, toggle, aside: `${row.count} ${row.count === 1 ? "process" : "processes"}` };
  }
  if (row.kind === "process") {
    const title = processFacts(row.title, row.process);
    return { title, expanded: row.folds || undefined, toggle, aside: String(row.process.pid) };
  }
  if (row.kind === "location" && row.stands) {
    const { process, count } = row.stands;
    const title = `${processFacts(row.stands.title, process)}: its ${locationName(row)}; ${count} in all`;
    return { title, expanded: false, toggle: () => model.rows.flip(`p${process.process}`), aside: process.host };
  }
  if (row.kind === "location") {
    const { location, open } = row;
    const title = `${location.name}, ${location.kind} ${location.threadId}, ${location.sampled ? "from samples" : `${location.spanCount} spans`}`;
    return { title, expanded: open, toggle: () => model.rows.toggle(location.location) };
  }
  if (row.kind === "ranks") {
    const title = `${row.title}: mean of ${row.count}, ${row.placeTitle}`;
    return { title, expanded: row.open, toggle, aside: row.placeTitle };
  }
  if (row.kind === "gpu") {
    const title = `What ${row.title} is used for: computation, communication and copies without it, idle`;
    return { title, expanded: !row.folded, toggle, aside: plural(row.members.length, "stream") };
  }
  if (row.kind === "system") return { title: "Rows of a profiler and of scheduling", expanded: !row.folded, toggle };
  if (row.kind === "steps") return { title: "The steps of this process, coloured by class" };
  const mean = `mean of ${row.kind === "summary" ? row.count : 0}`;
  return { title: `${row.title}: share of each group, ${mean}`, aside: mean };
}

const processFacts = (title: string, process: Process): string =>
  `${title}, pid ${process.pid}${process.parentPid ? `, started by ${process.parentPid}` : ""}${process.host ? `, on ${process.host}` : ""}`;

/** "cpu main thread" under the heading CPU is "main". */
const shortMetric = (name: string): string =>
  name
    .replace(/^GPU \d+: (throttled: |clocks: )?/, "")
    .replace(/^(cpu|machine|system time) /, "")
    .replace(/ waits? for .*$/, "")
    .replace(/ threads?$/, "")
    .replace(/ (memory|switches)$/, "");
