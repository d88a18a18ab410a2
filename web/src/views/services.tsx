// How fast a service answers, by route; how its latencies are spread, and what its slow requests wait for.
import { useMemo } from "preact/hooks";
import { asSentence } from "../base/names";
import { formatCount, plural } from "../base/quantity";
import type { TimeRange } from "../base/time";
import type { Run } from "../data/run";
import { load, useLasting, useSession } from "../data/session";
import type { ServiceRequests } from "../data/wire/wire.generated";
import type { View } from "../state/view";
import { Button, WithCode } from "../widgets/controls";
import { AwaitWithRun } from "../widgets/Loading";
import { LatencyHistogram } from "../widgets/requests/LatencyHistogram";
import { LatencyOverTime } from "../widgets/requests/LatencyOverTime";
import { RouteTable } from "../widgets/requests/RouteTable";
import { SlowestRequests, SlowOfRoutes } from "../widgets/requests/SlowRequests";
import { showRange } from "../widgets/showOnTimeline";
import { useTableView } from "../widgets/tables/TablePage";

const NAME = "services";
const ANALYSIS = "requests";

function ServicesPage() {
  const session = useSession();
  const [{ inside: route }] = useTableView(NAME);
  const asked = useMemo(() => load(() => session.api.json("requests", route ? { route } : {})), [session, route]);
  return (
    <AwaitWithRun of={useLasting(asked.value)} what="Summing up the requests">
      {(run, value) =>
        value.requests ? (
          <Services run={run} of={value} route={route} />
        ) : (
          <p class="empty">
            <WithCode text={asSentence(value.note)} />
          </p>
        )
      }
    </AwaitWithRun>
  );
}

type Props = { readonly run: Run; readonly of: ServiceRequests; readonly route: string };

function Services({ run, of, route }: Props) {
  const session = useSession();
  const [view, change] = useTableView(NAME);
  const show = (range: TimeRange): void => showRange(session, range, { range: undefined });
  const failed = of.failed > 0 && `, ${formatCount(of.failed)} of them failed`;
  return (
    <div class="overview rows gap-14">
      <section class="verdict" aria-label="Verdict">
        <p>{of.note ? asSentence(of.note) : `${plural(of.requests, "request")} answered${failed || ""}.`}</p>
        {of.note && (
          <p class="weak">
            {plural(of.requests, "request")}
            {failed}
          </p>
        )}
      </section>
      <section class="card surface" aria-labelledby="routes-title">
        <header>
          <h2 id="routes-title">Routes</h2>
          <span class="weak">
            latency from the arrival of a request to the end of its response, as the server sees it
          </span>
          <span class="spacer" />
          <Button
            class="link"
            onClick={() => session.update({ page: "analyses", analysis: { name: ANALYSIS, options: {} } }, "push")}
          >
            as a table
          </Button>
        </header>
        <RouteTable routes={of.routes} chosen={route} onChoose={(inside) => change({ ...view, inside })} />
      </section>
      {route && (
        <p class="row">
          <span class="weak">Below: only</span> <b>{route}</b>
          <Button class="link" onClick={() => change({ ...view, inside: "" })}>
            All routes
          </Button>
        </p>
      )}
      <div class="columns rows gap-14">
        <section class="card surface" aria-labelledby="latencies-title">
          <header>
            <h2 id="latencies-title">How long requests take</h2>
          </header>
          <LatencyHistogram of={of} />
        </section>
        <section class="card surface" aria-labelledby="over-time-title">
          <header>
            <h2 id="over-time-title">Latencies over time</h2>
          </header>
          <LatencyOverTime of={of.over_time} onOpen={show} />
        </section>
      </div>
      <section class="card surface" aria-labelledby="slow-title">
        <header>
          <h2 id="slow-title">What slow requests wait for</h2>
          <span class="weak">those above the 95th percentile: of all, and of each route</span>
        </header>
        <SlowOfRoutes of={of.slow} />
      </section>
      <section class="card surface" aria-labelledby="slowest-title">
        <header>
          <h2 id="slowest-title">Slowest requests</h2>
          <span class="weak">the {formatCount(of.slowest.length)} slowest, each a way to the timeline</span>
        </header>
        <SlowestRequests run={run} of={of.slowest} />
      </section>
    </div>
  );
}

export const view: View = {
  name: NAME,
  title: "Services",
  component: ServicesPage,
  analysis: ANALYSIS,
  onlyWithData: true,
};
