// Page 1: what kind of run this is, one step, all steps, what to fix, and how far the data can be trusted.

import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { asSentence } from "../base/names";
import { formatCount, formatQuantity, formatShare, plural } from "../base/quantity";
import { formatDuration, length, type TimeRange } from "../base/time";
import { VERDICTS, verdictSentence } from "../base/verdicts";
import { fetchRankSteps, STEP_VALUES } from "../data/rankWaits";
import { gpuOf, type Series } from "../data/readings";
import { type Run, ranksOf } from "../data/run";
import { ofLevel } from "../data/runSteps";
import { type Loaded, load, useSession } from "../data/session";
import { fetchUnfinished } from "../data/unfinished";
import type { Evidence, Quality, Ranks, Summary } from "../data/wire/wire.generated";
import type { View } from "../state/view";
import { metricRows } from "../timeline/rows/rowLayout";
import { Button } from "../widgets/controls";
import { EngineSteps } from "../widgets/engine/EngineSteps";
import { evidenceRange, Findings } from "../widgets/Findings";
import { Facts } from "../widgets/figures";
import { Await, Missing } from "../widgets/Loading";
import { RunChart } from "../widgets/RunChart";
import { StepTiles } from "../widgets/ranks/StepTiles";
import { UnfinishedOperations } from "../widgets/ranks/UnfinishedOperations";
import { titleOf } from "../widgets/ranks/waitSums";
import { showRange } from "../widgets/showOnTimeline";
import { StepLanes } from "../widgets/steps/StepLanes";
import { StepsCard } from "../widgets/steps/StepsCard";
import { typicalStep } from "../widgets/steps/typicalStep";
import { TopTables } from "../widgets/tables/TopTables";
import { useProgress } from "../widgets/useAnswer";

/** Ranks whose rows in the picture of all ranks have their full height. */
const MOST_TALL = 16;

function OverviewPage() {
  const session = useSession();
  const { level } = session.state.value;
  const attempt = useSignal(0);
  const { controller, summary } = useMemo(() => {
    const controller = new AbortController();
    return { controller, summary: load(() => session.api.json("summary", ofLevel(level), controller.signal)) };
  }, [session, level, attempt.value]);
  const { value } = summary;
  if (value.status === "ready") return <Overview summary={value.value} />;
  return <Waiting of={value} controller={controller} onAgain={() => (attempt.value += 1)} />;
}

type WaitingProps = {
  readonly of: Loaded<Summary>;
  readonly controller: AbortController;
  readonly onAgain: () => void;
};

/** The summary is being made, or was not: what is known without it. */
function Waiting({ of: value, controller, onAgain }: WaitingProps) {
  const { server } = useSession().api;
  const done = useProgress(server, new URL("./", location.href), value.status === "loading" ? "summary" : "");
  const stopped = controller.signal.aborted;
  return (
    <div class="overview rows gap-14 late">
      <KnownSoFar />
      {value.status === "failed" && !stopped && <p role="alert">{value.message}</p>}
      <p class="weak">
        {value.status === "loading"
          ? `Finding the steps, and what limits them … ${done} `
          : "The run was not summed up. "}
        {value.status === "loading" ? (
          <Button onClick={() => controller.abort()}>Cancel</Button>
        ) : (
          <Button onClick={onAgain}>Sum it up</Button>
        )}
      </p>
    </div>
  );
}

/** What is known of the run before it is read. */
function KnownSoFar() {
  const state = useSession().run.value;
  if (state.status !== "ready") return null;
  const run = state.value;
  const ranks = ranksOf(run).length;
  return (
    <Facts
      of={[
        ["run", run.meta.name],
        ["command", run.meta.command.join(" ") || undefined],
        ["duration", formatDuration(length(run.bounds))],
        ["processes", `${plural(run.processes.length, "process")}${ranks > 1 ? `, ${plural(ranks, "rank")}` : ""}`],
        ["recorded", `${plural(run.meta.span_count, "span")}, ${formatQuantity(run.meta.size_bytes, "bytes")}`],
        ["program", run.meta.ended],
      ]}
    />
  );
}

function Overview({ summary }: { summary: Summary }) {
  const session = useSession();
  const run = session.run.value.status === "ready" ? session.run.value.value : undefined;
  const show = (range: TimeRange): void => showRange(session, range, { range: undefined });
  const showEvidence = (evidence: Evidence): void => {
    const range = evidenceRange(evidence);
    show(range);
    session.update({ range });
  };
  const found = session.steps.value.status === "ready" ? session.steps.value.value : [];
  const typical = summary.step && typicalStep(found, summary.step.class_name, summary.step.median_ns);
  const showTypical =
    typical && (() => show({ startNs: typical.startNs, endNs: typical.startNs + typical.durationNs }));
  return (
    <div class="overview rows gap-14">
      <section class={`verdict row gap-14 verdict-${summary.verdict.kind}`} aria-label="Verdict">
        <span class="badge fixed">{VERDICTS[summary.verdict.kind] ?? summary.verdict.kind}</span>
        <p>
          {verdictSentence(summary.verdict.text)}{" "}
          {summary.quality.state.map((state, at) => (
            <span key={state} class={`pill ${at || summary.quality.complete ? "weak" : "warning"}`}>
              {state}
            </span>
          ))}
        </p>
        {summary.part && <p class="weak">All of this was {summary.part}.</p>}
      </section>
      <dl class="run-facts line" aria-label="The run">
        {summary.facts.map(({ name, value, title }) => (
          <div key={name} title={title || value}>
            <dt class="weak">{name}</dt> <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {summary.verdict.kind === "empty" && (
        <Missing what="There is nothing to show. Record functions and operators with" option="--preset auto SCRIPT" />
      )}
      {summary.verdict.kind === "unfinished" && run && <HangCard run={run} />}
      {summary.lanes.length > 0 && <StepLanes summary={summary} onTypical={showTypical} onEvidence={showEvidence} />}
      {summary.engine.length > 0 && (
        <EngineSteps
          rows={summary.engine}
          latency={summary.latency}
          more={
            summary.latency.length
              ? {
                  words: "each iteration",
                  onClick: () =>
                    session.update(
                      { page: "analyses", analysis: { name: "serving", options: { by: "step" } } },
                      "push",
                    ),
                }
              : { words: "gaps and layers", onClick: () => session.update({ page: "serving" }, "push") }
          }
        />
      )}
      <div class="columns rows gap-14">
        <Findings findings={summary.findings} checked={summary.checked} onEvidence={showEvidence} />
        <div class="rows gap-14">
          <TopTables summary={summary} />
          <QualityCard quality={summary.quality} />
        </div>
      </div>
      {summary.ranks && <RankStrip ranks={summary.ranks} />}
      <Await of={session.steps.value} what="Finding the steps">
        {(steps) => <StepsCard steps={steps} onSteps={show} />}
      </Await>
      {run && session.series.value.status === "ready" && (
        <Metrics
          run={run}
          series={session.series.value.value}
          recorded={summary.quality.estimated_cost !== undefined}
        />
      )}
    </div>
  );
}

/** Which ranks wait in which collective: the verdict in detail. */
function HangCard({ run }: { run: Run }) {
  const session = useSession();
  const unfinished = useMemo(() => load(() => fetchUnfinished(session.api)), [session]);
  return (
    <Await of={unfinished.value} what="Comparing what ranks called">
      {({ operations }) => <UnfinishedOperations run={run} of={operations} />}
    </Await>
  );
}

/** Lateness, waits or lengths of the steps of all ranks; the page Ranks has the rest. */
function RankStrip({ ranks }: { ranks: Ranks }) {
  const session = useSession();
  const value = STEP_VALUES.find((one) => one === ranks.value) ?? STEP_VALUES[0];
  const asked = useMemo(() => load(() => fetchRankSteps(session.api, value, {})), [session, value]);
  const open = async (column: number, row: number): Promise<void> => {
    const step = await session.ask(session.api.json("ranks/steps/cell", { value, row, column }));
    if (!step) return;
    const range = { startNs: step.start_ns, endNs: step.start_ns + step.duration_ns };
    showRange(session, range, { range, step: step.step });
  };
  return (
    <section class="card surface" aria-labelledby="rank-strip-title">
      <header>
        <h2 id="rank-strip-title">Steps of all ranks by {titleOf(value).toLowerCase()}</h2>
        {ranks.text && <span>{asSentence(ranks.text)}</span>}
        <Button class="link" onClick={() => session.update({ page: "ranks" }, "push")}>
          who waited for whom
        </Button>
      </header>
      <Await of={asked.value} what="Finding the steps of all ranks">
        {(steps) => (
          <div class="rank-strip" style={{ "--ranks": Math.min(steps.first_rank.length, MOST_TALL) }}>
            <StepTiles of={steps} onOpen={(column, row) => void open(column, row)} />
          </div>
        )}
      </Await>
    </section>
  );
}

type MetricsProps = {
  readonly run: Run;
  readonly series: readonly Series[];
  /** By strobe: a file of another tool lacks no reading that strobe could have taken. */
  readonly recorded: boolean;
};

function Metrics({ run, series, recorded }: MetricsProps) {
  const main = run.processes.find((p) => p.main)?.process ?? 0;
  const [cpu, memory, gpus] = useMemo(() => {
    const of = (unit: string): Series[] =>
      series.filter((s) => s.process === main && s.unit === unit && s.highest > 0 && gpuOf(s) === undefined);
    return [
      metricRows(main, series).find(({ family }) => family === "cores")?.series ?? [],
      of("bytes"),
      series.filter((s) => s.process === main && /^GPU \d+: utilisation$/.test(s.metric)),
    ];
  }, [series, main]);
  if (!recorded && !cpu.length && !memory.length && !gpus.length) return null;
  return (
    <section class="card surface" aria-labelledby="metrics-title">
      <header>
        <h2 id="metrics-title">The process over time</h2>
      </header>
      {cpu.length + memory.length === 0 && (
        <Missing
          what="No readings: the run was too short for one, or they were switched off. They are recorded with"
          option="--trace +metrics SCRIPT"
        />
      )}
      <div class="columns rows gap-14">
        {cpu.length > 0 && <RunChart run={run} series={cpu} title="CPU, cores in use by kind of thread" height={130} />}
        {memory.length > 0 && <RunChart run={run} series={memory} title="Memory" height={130} />}
        {gpus.length > 0 && (
          <RunChart run={run} series={gpus} title="GPUs: part of the time with a kernel" height={130} />
        )}
      </div>
    </section>
  );
}

function QualityCard({ quality }: { quality: Quality }) {
  const { estimated_cost: cost, folded_count: folded } = quality;
  return (
    <section class="card surface" aria-labelledby="quality-title">
      <header>
        <h2 id="quality-title">Can it be trusted?</h2>
        <span class={quality.complete ? "good" : "warning"}>{quality.complete ? "complete" : "not complete"}</span>
      </header>
      <Facts
        of={[
          ["lost", quality.losses.length ? quality.losses.join("; ") : "nothing"],
          ["beside", quality.remarks.join("; ") || undefined],
          ["read", quality.records || undefined],
          ["program", quality.ended],
          cost === undefined
            ? ["from", quality.source]
            : ["recorder’s cost", `${formatShare(cost)} of the run, as it estimates itself`],
          [
            "recorded",
            `${plural(quality.span_count, "span")}${folded ? `, ${formatCount(folded)} more in statistics` : ""}, ` +
              `${formatQuantity(quality.size_bytes, "bytes")} (${quality.bytes_per_span.toFixed(1)} bytes ${folded ? "a call" : "a span"})`,
          ],
        ]}
      />
    </section>
  );
}

export const view: View = { name: "overview", title: "Overview", place: 1, component: OverviewPage };
