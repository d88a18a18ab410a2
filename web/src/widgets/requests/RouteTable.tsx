// The routes of a service, each with its count and percentiles: the one that is chosen is what the page is about.
import { formatCount, formatShare } from "../../base/quantity";
import { formatDuration } from "../../base/time";
import type { RouteFigures } from "../../data/wire/wire.generated";
import { Button } from "../controls";

const COLUMNS: readonly (readonly [title: string, meaning: string, cell: (row: RouteFigures) => string])[] = [
  ["requests", "that were answered, or given up", (row) => formatCount(row.requests)],
  ["per second", "from the first to the last of all requests", (row) => rateText(row.rate)],
  ["failed", "status of 500 and more, or no response", (row) => formatCount(row.failed)],
  ["p50", "median of the latency", (row) => formatDuration(row.median_ns)],
  ["p95", "95th percentile of the latency", (row) => formatDuration(row.p95_ns)],
  ["p99", "99th percentile of the latency", (row) => formatDuration(row.p99_ns)],
  ["longest", "longest latency", (row) => formatDuration(row.max_ns)],
];

const rateText = (rate: number | undefined): string =>
  rate === undefined ? "–" : rate < 9.95 ? rate.toPrecision(2) : formatCount(rate);

type Props = {
  readonly routes: readonly RouteFigures[];
  readonly chosen: string;
  readonly onChoose: (route: string) => void;
};

export function RouteTable({ routes, chosen, onChoose }: Props) {
  const several = new Set(routes.map(({ process }) => process)).size > 1;
  return (
    <div class="scrolls">
      <table class="hot routes" aria-label="Routes">
        <thead>
          <tr>
            <th scope="col">route</th>
            {COLUMNS.map(([title, meaning]) => (
              <th key={title} scope="col" title={meaning}>
                {title}
              </th>
            ))}
            <th scope="col" title="of the latencies of all requests, added up">
              share
            </th>
            <th scope="col" title="of this route and all above it together">
              up to here
            </th>
          </tr>
        </thead>
        <tbody>
          {routes.map((row) => (
            <tr key={`${row.process} ${row.route}`} class={row.route === chosen ? "chosen-path" : ""}>
              <td class="ellipsis">
                <Button
                  class="link"
                  aria-pressed={row.route === chosen}
                  title={row.route === chosen ? "All routes" : `Only ${row.route}`}
                  onClick={() => onChoose(row.route === chosen ? "" : row.route)}
                >
                  {row.route}
                </Button>
                {several && (
                  <span class="weak"> {row.rank === undefined ? `process ${row.process}` : `rank ${row.rank}`}</span>
                )}
              </td>
              {COLUMNS.map(([title, , cell]) => (
                <td key={title} class={`number ${title === "failed" && row.failed > 0 ? "warning" : ""}`}>
                  {cell(row)}
                </td>
              ))}
              <td class="number">
                <span class="share-bar" style={{ width: `${44 * (row.share ?? 0)}px` }} />
                {formatShare(row.share ?? 0)}
              </td>
              <td class="number weak">{formatShare(row.cumulative_share ?? 0)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
