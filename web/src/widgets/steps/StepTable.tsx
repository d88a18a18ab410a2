// All steps as a table.

import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { classColor, css, outlierColor, PART_TITLES, partColor } from "../../base/color";
import { formatDuration } from "../../base/time";
import type { Step } from "../../data/runSteps";
import { useSession } from "../../data/session";
import { Grid, SortHeading } from "../tables/Grid";
import { partsOf, STEP_ORDERS, type StepOrder, sortSteps } from "./stepLists";
import { CUT_AT_MEDIANS, median } from "./stripBars";

/** Title and width of each column; the breakdown takes what is left. */
const COLUMNS: readonly (readonly [name: string, title: string, width?: string])[] = [
  ["step", "step", "78px"],
  ["class", "class", "164px"],
  ["duration", "duration", "92px"],
  ["delta", "Δ median", "92px"],
  ["breakdown", "breakdown"],
  ["detail", "detail", "104px"],
  ["cause", "slow by", "104px"],
];
const NUMBERS: ReadonlySet<string> = new Set(["step", "duration", "delta"]);
const DETAILS: Readonly<Record<Step["detail"], string>> = { all: "all", part: "its end", none: "statistics only" };

type Props = {
  readonly steps: readonly Step[];
  readonly medians: ReadonlyMap<string, number>;
  readonly chosen: number | undefined;
  readonly onChoose: (step: Step) => void;
  readonly onOpen: (step: Step) => void;
};

export function StepTable({ steps, medians, chosen, onChoose, onOpen }: Props) {
  const order = useSignal<StepOrder>({ by: "step", down: false });
  const sorted = useMemo(() => sortSteps(steps, order.value, medians), [steps, order.value, medians]);
  const topNs = useMemo(() => CUT_AT_MEDIANS * Math.max(1, median(steps.map((s) => s.durationNs))), [steps]);
  // A run that was kept as it is needs no column for it.
  const details = steps.some((step) => step.detail !== "all");
  const at = sorted.findIndex((step) => step.step === chosen);
  const nextOutlier = (): void => {
    const next = sorted.find((step, i) => i > at && step.outlier) ?? sorted.find((step) => step.outlier);
    if (next) onChoose(next);
  };
  const causes = steps.some((step) => step.cause);
  const columns = COLUMNS.filter(([name]) => (name !== "detail" || details) && (name !== "cause" || causes));
  const heading = ([name, title, width]: (typeof COLUMNS)[number]) => {
    const by = STEP_ORDERS.find((one) => one === name);
    const down = order.value.by === name ? order.value.down : undefined;
    const highestFirst = by === "duration" || by === "delta";
    return (
      <SortHeading
        key={name}
        title={title}
        class={NUMBERS.has(name) ? "number" : ""}
        width={width}
        down={down}
        onSort={by && (() => (order.value = { by, down: down === undefined ? highestFirst : !down }))}
      />
    );
  };
  return (
    <Grid
      label="Steps"
      rows={sorted}
      at={at}
      idOf={(step) => `step-row-${step.step}`}
      classOf={(step) => (step.detail === "none" ? "folded" : "")}
      headings={columns.map(heading)}
      cells={(step) => (
        <Cells step={step} details={details} causes={causes} usualNs={medians.get(step.class) ?? 0} topNs={topNs} />
      )}
      onChoose={onChoose}
      onOpen={onOpen}
      keys={{ KeyN: nextOutlier }}
    />
  );
}

type CellsProps = {
  readonly step: Step;
  readonly usualNs: number;
  readonly topNs: number;
  readonly details: boolean;
  readonly causes: boolean;
};

function Cells({ step, usualNs, topNs, details, causes }: CellsProps) {
  const theme = useSession().theme.value;
  const delta = step.durationNs - usualNs;
  const share = usualNs ? delta / usualNs : 0;
  return (
    <>
      <td class="number">
        {step.outlier && (
          <span style={{ color: css(outlierColor(theme)) }} title="takes much longer than its class">
            ▲{" "}
          </span>
        )}
        {step.step}
        {step.count > 1 && <span class="weak"> +{step.count - 1}</span>}
      </td>
      <td class="cell-class">
        <i style={{ background: css(classColor(step.classRank, theme)) }} />
        <span title={step.class}>{step.class}</span>
        {step.warmUp && <span class="weak"> warm-up</span>}
        {step.loop > 0 && <span class="weak"> loop {step.loop + 1}</span>}
      </td>
      <td class="number">{formatDuration(step.durationNs)}</td>
      <td class={share > 0.25 ? "number warning" : "number"}>
        {Math.abs(share) < 0.005 ? "0" : `${delta > 0 ? "+" : ""}${formatDuration(delta)}`}
      </td>
      <td>
        <Breakdown step={step} topNs={topNs} />
      </td>
      {details && <td class="weak">{DETAILS[step.detail]}</td>}
      {causes && <td>{step.cause.replaceAll("_", " ")}</td>}
    </>
  );
}

/** A step's parts as a bar that is as long as the step; cut where it is far longer than the others. */
function Breakdown({ step, topNs }: { step: Step; topNs: number }) {
  const theme = useSession().theme.value;
  const parts = partsOf(step.parts);
  const text = parts.map(({ phase, ns }) => `${PART_TITLES[phase]} ${formatDuration(ns)}`).join(", ");
  const cut = step.durationNs > topNs;
  return (
    <span
      class={cut ? "row-bar cut" : "row-bar"}
      role="img"
      aria-label={text || "not split"}
      title={text.replaceAll(", ", "\n")}
      style={{ width: `${Math.min(100, (100 * step.durationNs) / topNs)}%` }}
    >
      {parts.map(({ phase, ns }) => (
        <span key={phase} style={{ flexGrow: ns, background: css(partColor(phase, theme)) }} />
      ))}
    </span>
  );
}
