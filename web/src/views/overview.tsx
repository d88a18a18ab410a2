// Page 1: what kind of run this is, one step, all steps, what to fix, and how far the data can be trusted.

import { useMemo } from "preact/hooks";
import { classColor, css, outlierColor } from "../base/color";
import { asSentence } from "../base/names";
import { formatCount, formatQuantity, formatShare, plural } from "../base/quantity";
import { formatDuration, type TimeRange } from "../base/time";
import { gpuOf, type Series } from "../data/readings";
import type { Run } from "../data/run";
import { ofLevel, type Step } from "../data/runSteps";
import { load, useSession } from "../data/session";
import type { Evidence, Hot, Quality, Summary } from "../data/wire/wire.generated";
import type { View } from "../state/view";
import { Button } from "../widgets/controls";
import { evidenceRange, Findings } from "../widgets/Findings";
import { Facts } from "../widgets/figures";
import { GpuBars } from "../widgets/gpus/GpuBars";
import { Await, Missing } from "../widgets/Loading";
import { RunChart } from "../widgets/RunChart";
import { showRange } from "../widgets/showOnTimeline";
import { StepBar } from "../widgets/steps/StepBar";
import { StepStrip } from "../widgets/steps/StepStrip";
import { typicalStep } from "../widgets/steps/typicalStep";

const KINDS: Readonly<Record<string, string>> = {
  "input-bound": "bound by data",
  "communication-bound": "bound by communication",
  "host-bound": "bound by the host",
  "compute-bound": "bound by compute",
  "transfer-bound": "bound by copies",
  imbalanced: "uneven work",
  "python-bound": "bound by Python",
  "gc-bound": "collects garbage",
  "gil-bound": "waits for the GIL",
  "lock-bound": "waits for a lock",
  "io-bound": "waits for files",
  sleeping: "sleeps",
  waiting: "waits",
  starved: "starved of cores",
  "no-steps": "no steps",
  empty: "nothing recorded",
};

function OverviewPage() {
  const session = useSession();
  const { level } = session.state.value;
  const summary = useMemo(() => load(() => session.api.json("summary", ofLevel(level))), [session, level]);
  return (
    <Await of={summary.value} what="Reading the summary">
      {(value) => <Overview summary={value} />}
    </Await>
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
        <span class="badge fixed">{KINDS[summary.verdict.kind] ?? summary.verdict.kind}</span>
        <p>{sentence(summary.verdict.text)}</p>
        {summary.part && <p class="weak">All of this was {summary.part}.</p>}
      </section>
      {summary.verdict.kind === "empty" && (
        <Missing what="There is nothing to show. Record functions and operators with" option="--preset auto SCRIPT" />
      )}
      {summary.step && <StepBar step={summary.step} onShow={showTypical} />}
      {summary.gpus.length > 0 && <GpuBars gpus={summary.gpus} onShow={showTypical} />}
      <Await of={session.steps.value} what="Finding the steps">
        {(steps) => <StepsCard steps={steps} onSteps={show} />}
      </Await>
      <div class="columns rows gap-14">
        <Findings findings={summary.findings} onEvidence={showEvidence} />
        <div class="rows gap-14">
          <HotTable kind={summary.hot_kind} unit={summary.hot_unit} hot={summary.hot} />
          <QualityCard quality={summary.quality} />
        </div>
      </div>
      {run && session.series.value.status === "ready" && <Metrics run={run} series={session.series.value.value} />}
    </div>
  );
}

/** "input-bound: the loop waits …" without the kind, which the badge has already, beginning with a capital. */
const sentence = (text: string): string => asSentence(text.replace(/^[a-z]+-bound: /, ""));

function StepsCard({ steps, onSteps }: { steps: readonly Step[]; onSteps: (range: TimeRange) => void }) {
  const session = useSession();
  const theme = session.theme.value;
  if (!steps.length) return null;
  const { classes = [], causes = {} } = session.stepsAbout.value ?? {};
  const outliers = classes.reduce((sum, one) => sum + one.outliers, 0);
  return (
    <section class="card surface" aria-labelledby="steps-title">
      <header>
        <h2 id="steps-title">All steps</h2>
        <span class="weak">a bar per step, its height is its duration; click or drag to see them on the timeline</span>
      </header>
      <StepStrip steps={steps} window={undefined} height={92} chosen={session.state.value.step} onSteps={onSteps} />
      <ul class="classes wraps">
        {classes.map((one) => (
          <li key={one.name} class="row">
            <i style={{ background: css(classColor(one.rank, theme)) }} />
            <span>{one.name}</span>
            <b>{formatCount(one.count)}</b>
            <span class="weak">median {formatDuration(one.median_ns)}</span>
          </li>
        ))}
        {outliers > 0 && (
          <li class="row">
            <span style={{ color: css(outlierColor(theme)) }}>▲</span>
            <span>outlier</span>
            <b>{formatCount(outliers)}</b>
            <span class="weak">{causesText(causes)}</span>
          </li>
        )}
      </ul>
    </section>
  );
}

/** What made the outliers slow: "7 by data wait, 1 by rest". */
function causesText(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .sort(([, a], [, b]) => b - a)
    .map(([cause, count]) => `${count} by ${cause.replaceAll("_", " ")}`)
    .join(", ");
}

function HotTable({ kind, unit, hot }: { kind: string; unit: string; hot: readonly Hot[] }) {
  const session = useSession();
  const most = Math.max(...hot.map((one) => one.share), 1e-9);
  return (
    <section class="card surface" aria-labelledby="hot-title">
      <header>
        <h2 id="hot-title">
          Most {unit === "ns" ? "time" : unit} in {kind}
        </h2>
        <span class="weak">their own, without what they call</span>
      </header>
      <table class="hot">
        <thead>
          <tr>
            <th scope="col">name</th>
            <th scope="col">calls</th>
            <th scope="col">a step</th>
            <th scope="col">in all</th>
            <th scope="col">share</th>
          </tr>
        </thead>
        <tbody>
          {hot.map((one) => (
            <tr key={one.name}>
              <td>
                <Button
                  class="link"
                  title="Find it on the timeline"
                  onClick={() => session.update({ page: "timeline", find: one.name }, "push")}
                >
                  {one.name}
                </Button>
              </td>
              <td class="number">{formatCount(one.calls)}</td>
              <td class="number">{one.self_per_step_ns === undefined ? "–" : formatDuration(one.self_per_step_ns)}</td>
              <td class="number">{unit === "ns" ? formatDuration(one.self_ns) : formatCount(one.self_ns)}</td>
              <td class="number">
                <span class="share-bar" style={{ width: `${(44 * one.share) / most}px` }} />
                {formatShare(one.share)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Metrics({ run, series }: { run: Run; series: readonly Series[] }) {
  const main = run.processes.find((p) => p.main)?.process ?? 0;
  const [cpu, memory, gpus] = useMemo(() => {
    const of = (unit: string): Series[] =>
      series.filter((s) => s.process === main && s.unit === unit && s.highest > 0 && gpuOf(s) === undefined);
    return [
      of("cores"),
      of("bytes"),
      series.filter((s) => s.process === main && /^GPU \d+: utilisation$/.test(s.metric)),
    ];
  }, [series, main]);
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
