// How long the executions of the chosen region last in a stretch of time: a histogram to brush, and the longest of what is brushed.

import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { css, groupColor } from "../../base/color";
import { shortName } from "../../base/names";
import { formatCount, plural } from "../../base/quantity";
import { formatDuration, formatMoment, type TimeRange } from "../../base/time";
import type { Run } from "../../data/run";
import { useSession } from "../../data/session";
import { fetchDurations } from "../../data/windowFacts";
import type { Durations } from "../../data/wire/wire.generated";
import { Button } from "../controls";
import { Here } from "../figures";
import { jumpTo } from "../showOnTimeline";
import { SaveRows } from "../tables/SaveTable";
import { useRested } from "../useAnswer";
import { between, howRead, placeOf } from "./durationBins";

type Props = { readonly run: Run; readonly range: TimeRange };

export function DurationsPanel({ run, range }: Props) {
  const session = useSession();
  const { region, drawer } = session.state.value;
  if (!region)
    return (
      <p class="empty">No region is chosen. Choose one in the flat profile: click its name, or press Enter on it.</p>
    );
  return <OfRegion key={region} run={run} range={range} region={region} lasting={drawer.lasting} />;
}

type OfRegionProps = Props & { readonly region: string; readonly lasting: TimeRange | undefined };

function OfRegion({ run, range, region, lasting }: OfRegionProps) {
  const session = useSession();
  const about = `${range.startNs}-${range.endNs} ${lasting?.startNs}-${lasting?.endNs} ${region}`;
  const { value, failure, waiting } = useRested(about, (signal) =>
    fetchDurations(session.api, region, range, lasting, signal),
  );
  if (failure.value) return <p class="empty">{failure.value}</p>;
  const found = value.value;
  if (!found) return <p class="empty">Reading …</p>;
  const brush = (next: TimeRange | undefined): void =>
    session.update({ drawer: { ...session.state.peek().drawer, lasting: next } });
  if (!found.count)
    return (
      <p class="empty">
        No execution of {shortName(region)} begins in this stretch of time{found.read_share < 1 && " in what was read"}.
      </p>
    );
  return (
    <>
      <div class="drawer-tools row fixed fine">
        <b class="ellipsis" title={region}>
          {shortName(region)}
        </b>
        <span class="weak ellipsis">
          {plural(found.count, "execution")}, {formatDuration(found.total_ns)} in all, median{" "}
          {formatDuration(found.median_ns ?? 0)} · {howRead(found)}
          {waiting.value && " · reading …"}
        </span>
        <span class="spacer" />
        {lasting && (
          <Button class="chip row" aria-pressed={true} onClick={() => brush(undefined)}>
            {formatDuration(lasting.startNs)} to {formatDuration(lasting.endNs)} ✕
          </Button>
        )}
        <SaveRows
          name="durations"
          range={range}
          rows={() => [
            ["from_ns", "to_ns", "executions"],
            ...found.counts.map((count, bin) => [found.edges_ns[bin], found.edges_ns[bin + 1], count]),
          ]}
        />
      </div>
      <div class="durations flex fill">
        <Histogram durations={found} lasting={lasting} onBrush={brush} />
        <Listed run={run} durations={found} />
      </div>
    </>
  );
}

type HistogramProps = {
  readonly durations: Durations;
  readonly lasting: TimeRange | undefined;
  readonly onBrush: (lasting: TimeRange | undefined) => void;
};

function Histogram({ durations, lasting, onBrush }: HistogramProps) {
  const theme = useSession().theme.value;
  const { counts, edges_ns: edges, median_ns: median } = durations;
  const dragged = useSignal<{ readonly from: number; readonly to: number } | undefined>(undefined);
  const picture = useRef<SVGSVGElement>(null);
  const most = Math.max(...counts, 1);
  const at = (event: PointerEvent): number => {
    const box = picture.current?.getBoundingClientRect();
    return box ? Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)) : 0;
  };
  const now = dragged.value;
  const brushed = now ? between(now.from, now.to, edges) : lasting;
  const [left, right] = brushed ? [placeOf(brushed.startNs, edges), placeOf(brushed.endNs, edges)] : [0, 0];
  const color = css(groupColor("compute", theme));
  const wide = 100 / Math.max(1, counts.length);
  return (
    <figure class="durations-chart vertical fill">
      <svg
        ref={picture}
        viewBox="0 0 100 40"
        preserveAspectRatio="none"
        role="img"
        aria-label={`Durations of ${durations.name}: ${formatCount(durations.count)} from ${formatDuration(edges[0] ?? 0)} to ${formatDuration(edges.at(-1) ?? 0)}, median ${formatDuration(median ?? 0)}. Drag to choose some.`}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          dragged.value = { from: at(event), to: at(event) };
        }}
        onPointerMove={(event) => {
          if (dragged.value) dragged.value = { from: dragged.value.from, to: at(event) };
        }}
        onPointerUp={() => {
          const { value } = dragged;
          dragged.value = undefined;
          if (value) onBrush(between(value.from, value.to, edges));
        }}
      >
        {brushed && <rect class="brush" x={left * 100} width={Math.max(0.4, (right - left) * 100)} y="0" height="40" />}
        {counts.map((count, bin) => {
          // Roots, so that a few long ones are seen beside a million short ones.
          const tall = count ? Math.max(1, 38 * Math.sqrt(count / most)) : 0;
          return <rect key={bin} x={bin * wide} y={40 - tall} width={wide * 0.88} height={tall} fill={color} />;
        })}
        {median !== undefined && <Here at={placeOf(median, edges) * 100} tall={40} />}
      </svg>
      <figcaption class="scale weak">
        <span>{formatDuration(edges[0] ?? 0)}</span>
        <span>log time · heights are square roots of counts · dashed: median</span>
        <span>{formatDuration(edges.at(-1) ?? 0)}</span>
      </figcaption>
      <Bounds edges={edges} lasting={lasting} onBrush={onBrush} />
    </figure>
  );
}

type BoundsProps = Omit<HistogramProps, "durations"> & { readonly edges: readonly number[] };

/** The same choice by keys: the shortest and the longest duration, bin by bin. */
function Bounds({ edges, lasting, onBrush }: BoundsProps) {
  const bins = edges.length - 1;
  const binOf = (ns: number): number => Math.round(placeOf(ns, edges) * bins);
  const [first, last] = lasting ? [binOf(lasting.startNs), binOf(lasting.endNs)] : [0, bins];
  const choose = (from: number, to: number): void =>
    onBrush(from <= 0 && to >= bins ? undefined : between(from / bins, to / bins, edges));
  const slider = (label: string, at: number, min: number, change: (to: number) => void) => (
    <input
      type="range"
      aria-label={label}
      aria-valuetext={formatDuration(edges[at] ?? 0)}
      min={min}
      max={min + bins - 1}
      value={at}
      onInput={(event) => change(Number(event.currentTarget.value))}
    />
  );
  return (
    <div class="durations-bounds rows gap-12">
      {slider("Shortest duration", first, 0, (to) => choose(Math.min(to, last - 1), last))}
      {slider("Longest duration", last, 1, (to) => choose(first, Math.max(to, first + 1)))}
    </div>
  );
}

function Listed({ run, durations: { spans, chosen } }: { run: Run; durations: Durations }) {
  const session = useSession();
  const shown = session.state.value.selection;
  return (
    <div class="durations-list fixed scrolls fine">
      <p class="weak">
        {spans.length < chosen
          ? `the ${formatCount(spans.length)} longest of ${formatCount(chosen)}`
          : plural(chosen, "execution")}
      </p>
      <ol>
        {spans.map((span) => {
          const { location, start_ns: startNs, depth, duration_ns: durationNs } = span;
          const current = shown?.location === span.location && shown.startNs === span.start_ns;
          return (
            <li key={`${span.location}_${span.start_ns}_${span.depth}`}>
              <Button
                class="plain rows"
                aria-current={current}
                onClick={() => jumpTo(session, run, { location, startNs, depth, durationNs })}
              >
                <b class="number">{formatDuration(span.duration_ns)}</b>
                <span class="ellipsis">{formatMoment(span.start_ns, Math.max(1000, span.duration_ns))}</span>
                <span class="weak ellipsis">{run.locations[span.location]?.name}</span>
              </Button>
            </li>
          );
        })}
      </ol>
    </div>
  );
}
