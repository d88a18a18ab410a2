// How the latencies of requests are spread, on a logarithmic axis, with the percentiles marked.
import { css, groupColor } from "../../base/color";
import { plural } from "../../base/quantity";
import { formatDuration } from "../../base/time";
import { useSession } from "../../data/session";
import type { ServiceRequests } from "../../data/wire/wire.generated";
import { placeOf } from "../drawer/durationBins";
import { Facts, Here, Scale } from "../figures";

const MARKS = [
  ["p50", "median_ns"],
  ["p95", "p95_ns"],
  ["p99", "p99_ns"],
] as const;
/** The axis ends with the longest of all. */
const NUMBERS = [...MARKS, ["longest", "max_ns"]] as const;

export function LatencyHistogram({ of }: { of: ServiceRequests }) {
  const theme = useSession().theme.value;
  const { counts, edges_ns: edges, percentiles } = of;
  const most = Math.max(...counts, 1);
  const color = css(groupColor("compute", theme));
  const wide = 100 / Math.max(1, counts.length);
  const marks = MARKS.map(([name, key]) => ({ name, at: 100 * placeOf(percentiles[key] ?? 0, edges) }));
  const numbers = NUMBERS.map(([name, key]) => [name, formatDuration(percentiles[key] ?? 0)] as const);
  const ends = [edges[0] ?? 0, Math.sqrt((edges[0] ?? 0) * (edges.at(-1) ?? 0)), edges.at(-1) ?? 0];
  const text = numbers.map((number) => number.join(" ")).join(", ");
  return (
    <figure class="latencies">
      <div class="latency-marks anchor finer weak" aria-hidden="true">
        {marks.map(({ name, at }, i) => (
          // Names of marks that lie close together stand one above the other.
          <span key={name} style={{ left: `${at}%`, top: `${i * 13}px` }}>
            {name}
          </span>
        ))}
      </div>
      <svg
        viewBox="0 0 100 40"
        preserveAspectRatio="none"
        role="img"
        aria-label={`Latencies of ${plural(of.requests, "request")}: ${text}`}
      >
        {counts.map((count, bin) => {
          const tall = count ? Math.max(1, 38 * Math.sqrt(count / most)) : 0;
          return <rect key={bin} x={bin * wide} y={40 - tall} width={wide * 0.88} height={tall} fill={color} />;
        })}
        {marks.map(({ name, at }) => (
          <Here key={name} at={at} tall={40} />
        ))}
      </svg>
      <Scale of={ends.map(formatDuration)} />
      <p class="weak finer">logarithmic; heights are square roots of counts</p>
      <Facts of={numbers} class="percentiles" />
    </figure>
  );
}
