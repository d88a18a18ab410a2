// When requests arrived and how long they took: a tile for each stretch of time and of latency, brighter for more requests.
import { useMemo } from "preact/hooks";
import { plural } from "../../base/quantity";
import { formatDuration, formatMoment, type TimeRange } from "../../base/time";
import type { LatencyOverTime as Counts } from "../../data/wire/wire.generated";
import { Scale } from "../figures";
import { TilePicture } from "../ranks/TilePicture";

type Props = { readonly of: Counts; readonly onOpen: (range: TimeRange) => void };

export function LatencyOverTime({ of: { begin_ns: begin, edges_ns: edges, counts }, onOpen }: Props) {
  const columns = begin.length - 1;
  const rows = edges.length - 1;
  const values = useMemo(() => Float64Array.from(counts), [counts]);
  const rangeOf = (column: number): TimeRange => ({
    startNs: begin[column] ?? 0,
    endNs: begin[column + 1] ?? 0,
  });
  const resolution = Math.max(1, ((begin[columns] ?? 0) - (begin[0] ?? 0)) / columns);
  const moment = (ns: number | undefined): string => formatMoment(ns ?? 0, resolution);
  return (
    <TilePicture
      class="latency-tiles pairs"
      label="Latencies over time; a tile leads to its time on the timeline"
      {...{ columns, rows, values }}
      left={<Scale of={[formatDuration(edges[0] ?? 0), formatDuration(edges[rows] ?? 0)]} />}
      below={[moment(begin[0]), "arrived at", moment(begin[columns])]}
      none="0"
      amountOf={(count) => plural(count, "request")}
      tooltipOf={(column, row) => (
        <b>
          {moment(begin[column])}: {plural(values[row * columns + column] ?? 0, "request")} of{" "}
          {formatDuration(edges[row + 1] ?? 0)} to {formatDuration(edges[row] ?? 0)}
        </b>
      )}
      onOpen={(column) => onOpen(rangeOf(column))}
    />
  );
}
