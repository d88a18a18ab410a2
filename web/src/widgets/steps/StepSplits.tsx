// What the time of steps went into, as two tools divide it: by kind of work (each nanosecond once), and by the passes of training.

import { useMemo } from "preact/hooks";
import { classColor, groupColor, partColor, type Rgb, type Theme } from "../../base/color";
import { formatShare, plural } from "../../base/quantity";
import { formatDuration } from "../../base/time";
import type { Step } from "../../data/runSteps";
import { load, useSession } from "../../data/session";
import { type AnalysisTable, fetchAnalysis } from "../../data/tables/analysisTable";
import { PartBar, PartList, timedPart } from "../figures";
import { Await } from "../Loading";
import { type Split, splitAt, splitsOf } from "./stepDivisions";

type Part = { readonly name: string; readonly title: string; readonly color: (theme: Theme) => Rgb };
const KINDS: readonly Part[] = [
  { name: "kernel", title: "kernels", color: (theme) => groupColor("compute", theme) },
  { name: "memcpy", title: "copies", color: (theme) => groupColor("copy", theme) },
  { name: "memset", title: "memory sets", color: (theme) => classColor(1, theme) },
  { name: "communication", title: "exposed communication", color: (theme) => groupColor("communication", theme) },
  { name: "runtime", title: "calls of the GPU’s runtime", color: (theme) => groupColor("sync", theme) },
  { name: "data_loader", title: "waits for data", color: (theme) => groupColor("data", theme) },
  { name: "cpu_exec", title: "operators on the host", color: (theme) => groupColor("host", theme) },
  { name: "other", title: "other", color: (theme) => groupColor("other", theme) },
];
const PASSES: readonly Part[] = [
  { name: "interval", title: "before the forward pass", color: (theme) => groupColor("data", theme) },
  { name: "forward_backward", title: "forward and backward", color: (theme) => partColor("forward", theme) },
  { name: "tail", title: "after the backward pass", color: (theme) => partColor("optimizer", theme) },
];
const MOST_RANKS = 8;
/** Parts narrower than this carry no number. */
const NARROWEST_SHARE = 0.09;

export function StepSplits({ step }: { step: Step | undefined }) {
  return (
    <>
      <Splits
        analysis="step_time"
        title="Step-time split"
        what="each nanosecond once, kernels first; as in TensorBoard, until the GPU is done with the step"
        parts={KINDS}
        step={step}
      />
      <Splits
        analysis="step_trace"
        title="Step trace"
        what="before, in, and after the passes"
        parts={PASSES}
        step={step}
      />
    </>
  );
}

type Props = {
  readonly analysis: string;
  readonly title: string;
  readonly what: string;
  readonly parts: readonly Part[];
  readonly step: Step | undefined;
};

function Splits({ analysis, title, what, parts, step }: Props) {
  const session = useSession();
  const means = useMemo(() => load(() => fetchAnalysis(session.api, analysis, { by: "rank" })), [session, analysis]);
  return (
    <section class="step-splits rows fine gap-6" aria-labelledby={`${analysis}-title`}>
      <header>
        <h2 id={`${analysis}-title`}>{title}</h2>
        <span class="weak">{what}</span>
      </header>
      <Await of={means.value} what="Dividing the steps">
        {(table) => (table.rows ? <Ranks table={table} parts={parts} /> : <p class="weak">{table.note}</p>)}
      </Await>
      {step && <OneStep analysis={analysis} parts={parts} step={step} />}
    </section>
  );
}

function Ranks({ table, parts }: { table: AnalysisTable; parts: readonly Part[] }) {
  const theme = useSession().theme.value;
  const names = parts.map(({ name }) => name);
  const splits = splitsOf(table, names, MOST_RANKS);
  if (names.includes("forward_backward") && !splits.some(({ parts: all }) => all.some(isPass)))
    return <p class="weak">PyTorch’s names show no forward and backward pass in these steps.</p>;
  const used = parts.filter(({ name }) => splits.some((split) => split.parts.some((part) => part.name === name)));
  return (
    <>
      {splits.map((split) => (
        <Bar key={split.process} split={split} parts={parts} label={labelOf(split, splits.length > 1)} />
      ))}
      {splits.length < table.rows && (
        <p class="weak">
          the {plural(splits.length, "rank")} with the longest steps of {table.rows}
        </p>
      )}
      <PartList parts={used.map(({ name, title, color }) => ({ name, title, color: color(theme) }))} />
    </>
  );
}

const isPass = ({ name }: { readonly name: string }): boolean => name === "forward_backward";

function labelOf(split: Split, several: boolean): string {
  const mean = `mean of ${plural(split.steps ?? 0, "step")}`;
  if (!several) return mean;
  return split.rank === undefined ? `process ${split.process}, ${mean}` : `rank ${split.rank}, ${mean}`;
}

function OneStep({ analysis, parts, step }: { analysis: string; parts: readonly Part[]; step: Step }) {
  const session = useSession();
  const steps = useMemo(() => load(() => fetchAnalysis(session.api, analysis, { by: "step" })), [session, analysis]);
  const names = parts.map(({ name }) => name);
  return (
    <Await of={steps.value} what="Dividing the step">
      {(table) => {
        const split = splitAt(table, names, step.process, step.startNs + step.durationNs / 2);
        return split ? <Bar split={split} parts={parts} label={`step ${step.step}`} /> : null;
      }}
    </Await>
  );
}

function Bar({ split, parts, label }: { split: Split; parts: readonly Part[]; label: string }) {
  const theme = useSession().theme.value;
  const shown = split.parts.map(({ name, ns }) => {
    const part = parts.find((one) => one.name === name);
    const color = part?.color(theme) ?? groupColor("other", theme);
    return { name, ns, title: part?.title ?? name, color, share: ns / Math.max(1, split.durationNs) };
  });
  const text = shown.map(({ title, ns, share }) => `${title} ${formatDuration(ns)}, ${formatShare(share)}`).join("; ");
  return (
    <div class="step-split rows">
      <span class="weak">{label}</span>
      <span class="number">{formatDuration(split.durationNs)}</span>
      <PartBar
        label={`${label}: ${text}`}
        parts={shown.map((part) => ({ ...timedPart(part, NARROWEST_SHARE), grow: part.ns }))}
      />
    </div>
  );
}
