// What slow requests spend their time on, a bar for each route; and the slowest ones, each a way to the timeline.
import { formatShare, plural } from "../../base/quantity";
import { formatDuration, formatMoment, length } from "../../base/time";
import type { Run } from "../../data/run";
import { useSession } from "../../data/session";
import type { SlowOfRoute, SlowRequest } from "../../data/wire/wire.generated";
import { Button } from "../controls";
import { PartedTime } from "../figures";
import { jumpTo } from "../showOnTimeline";
import { partWords, slowParts } from "./requestWords";

export function SlowOfRoutes({ of }: { of: readonly SlowOfRoute[] }) {
  const theme = useSession().theme.value;
  if (!of.length) return <p class="weak">No request is slower than the others.</p>;
  return (
    <div class="rows gap-14">
      {of.map((slow) => {
        const name = slow.route || "All routes";
        const [least, all] = [formatDuration(slow.least_ns), formatDuration(slow.total_ns)];
        return (
          <PartedTime
            key={name}
            name={name}
            label={`Slow requests: ${name}`}
            about={`${plural(slow.requests, "request")} of ${least} and more, ${all} in all`}
            parts={slowParts(slow, theme)}
          />
        );
      })}
    </div>
  );
}

type SlowestProps = { readonly run: Run; readonly of: readonly SlowRequest[] };

export function SlowestRequests({ run, of }: SlowestProps) {
  const session = useSession();
  const resolution = Math.max(1000, length(run.bounds) / 100_000);
  const show = ({ location, start_ns: startNs, latency_ns: durationNs }: SlowRequest): void =>
    jumpTo(session, run, { location, startNs, durationNs, depth: 0 });
  return (
    <div class="scrolls">
      <table class="hot slowest" aria-label="Slowest requests">
        <thead>
          <tr>
            <th scope="col">arrived</th>
            <th scope="col">route</th>
            <th scope="col">status</th>
            <th scope="col">latency</th>
            <th scope="col">what took most of it</th>
          </tr>
        </thead>
        <tbody>
          {of.map((one) => (
            <tr key={`${one.process} ${one.request}`}>
              <td>
                <Button class="link" title="Show it on the timeline" onClick={() => show(one)}>
                  {formatMoment(one.start_ns, resolution)}
                </Button>
              </td>
              <td>{one.route}</td>
              <td class="number">{one.status ?? "none"}</td>
              <td class="number">{formatDuration(one.latency_ns)}</td>
              <td>
                <span class="weak">
                  {formatDuration(one.total_ns)}, {formatShare(one.total_ns / Math.max(1, one.latency_ns))}:
                </span>{" "}
                {partWords(one)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
