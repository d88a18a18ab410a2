// All steps as a table. Only the rows on the screen exist, so that thousands of steps cost nothing.
import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { classColor, css, outlierColor, PHASE_TITLES, phaseColor } from "../base/color";
import { formatDuration } from "../base/time";
import type { Step } from "../data/run";
import { useSession } from "../data/session";
import { partsOf, STEP_ORDERS, type StepOrder, sortSteps } from "./steps";
import { median } from "./strip";
import { ROW_HEIGHT, useRows } from "./virtual";

const CUT_AT_MEDIANS = 3;

const COLUMNS = ["step", "class", "duration", "delta", "breakdown", "detail", "cause"] as const;
const TITLES: Readonly<Record<(typeof COLUMNS)[number], string>> = {
  step: "step",
  class: "class",
  duration: "duration",
  delta: "Δ median",
  breakdown: "breakdown",
  detail: "detail",
  cause: "slow by",
};
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
  // A run that was kept as it is needs no column that says so of every step.
  const details = steps.some((step) => step.detail !== "all");
  const at = sorted.findIndex((step) => step.step === chosen);
  const { scroller, rows } = useRows(sorted.length, at);

  const walk = (by: number): void => {
    const next = sorted[Math.min(sorted.length - 1, Math.max(0, at < 0 ? 0 : at + by))];
    if (next) onChoose(next);
  };
  const nextOutlier = (): void => {
    const next = sorted.find((step, i) => i > at && step.outlier) ?? sorted.find((step) => step.outlier);
    if (next) onChoose(next);
  };
  const actions: Readonly<Record<string, () => void>> = {
    ArrowUp: () => walk(-1),
    ArrowDown: () => walk(1),
    PageUp: () => walk(-rows.page),
    PageDown: () => walk(rows.page),
    Home: () => walk(-sorted.length),
    End: () => walk(sorted.length),
    KeyN: nextOutlier,
    Enter: () => {
      const step = sorted[at];
      if (step) onOpen(step);
    },
  };
  const { first, last } = rows;
  return (
    <div class="grid" ref={scroller}>
      <table
        // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: a grid is a table that one walks through by keys
        role="grid"
        aria-label="Steps"
        aria-rowcount={sorted.length + 1}
        aria-activedescendant={at >= first && at < last ? `step-row-${chosen}` : undefined}
        tabIndex={0}
        onKeyDown={(event) => {
          const action = event.ctrlKey || event.metaKey || event.altKey ? undefined : actions[event.code];
          // Enter on a heading sorts.
          if (!action || (event.code === "Enter" && event.target !== event.currentTarget)) return;
          event.preventDefault();
          action();
        }}
      >
        <thead>
          <tr aria-rowindex={1}>
            {COLUMNS.filter((name) => name !== "detail" || details).map((name) => (
              <Heading key={name} name={name} order={order.value} onOrder={(next) => (order.value = next)} />
            ))}
          </tr>
        </thead>
        <tbody>
          <tr class="grid-space" style={{ height: `${first * ROW_HEIGHT}px` }} />
          {sorted.slice(first, last).map((step, i) => (
            <Row
              key={step.step}
              step={step}
              index={first + i}
              details={details}
              usualNs={medians.get(step.className) ?? 0}
              topNs={topNs}
              chosen={step.step === chosen}
              onChoose={onChoose}
              onOpen={onOpen}
            />
          ))}
          <tr class="grid-space" style={{ height: `${(sorted.length - last) * ROW_HEIGHT}px` }} />
        </tbody>
      </table>
    </div>
  );
}

function Heading({
  name,
  order,
  onOrder,
}: {
  name: (typeof COLUMNS)[number];
  order: StepOrder;
  onOrder: (order: StepOrder) => void;
}) {
  const by = STEP_ORDERS.find((one) => one === name);
  const mine = order.by === name;
  const sort = mine ? (order.down ? "descending" : "ascending") : "none";
  return (
    <th scope="col" class={`cell-${name}`} aria-sort={by && sort}>
      {by ? (
        <button
          type="button"
          class="plain"
          onClick={() => onOrder({ by, down: mine ? !order.down : by === "duration" || by === "delta" })}
        >
          {TITLES[name]}
          <span aria-hidden="true">{mine ? (order.down ? " ↓" : " ↑") : ""}</span>
        </button>
      ) : (
        TITLES[name]
      )}
    </th>
  );
}

type RowProps = Pick<Props, "onChoose" | "onOpen"> & {
  readonly step: Step;
  readonly index: number;
  readonly usualNs: number;
  readonly topNs: number;
  readonly details: boolean;
  readonly chosen: boolean;
};

function Row({ step, index, usualNs, topNs, details, chosen, onChoose, onOpen }: RowProps) {
  const theme = useSession().theme.value;
  const delta = step.durationNs - usualNs;
  const share = usualNs ? delta / usualNs : 0;
  return (
    <tr
      class={`grid-row${chosen ? " chosen" : ""}${step.detail === "none" ? " folded" : ""}`}
      id={`step-row-${step.step}`}
      aria-rowindex={index + 2}
      aria-selected={chosen}
      onPointerDown={() => onChoose(step)}
      onDblClick={() => onOpen(step)}
    >
      <td class="cell-step">
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
        <span title={step.className}>{step.className}</span>
        {step.warmUp && <span class="weak"> warm-up</span>}
        {step.loop > 0 && <span class="weak"> loop {step.loop + 1}</span>}
      </td>
      <td class="cell-duration">{formatDuration(step.durationNs)}</td>
      <td class={`cell-delta${share > 0.25 ? " warning" : ""}`}>
        {Math.abs(share) < 0.005 ? "0" : `${delta > 0 ? "+" : ""}${formatDuration(delta)}`}
      </td>
      <td class="cell-breakdown">
        <Breakdown step={step} topNs={topNs} />
      </td>
      {details && <td class="cell-detail weak">{DETAILS[step.detail]}</td>}
      <td class="cell-cause">{step.cause.replaceAll("_", " ")}</td>
    </tr>
  );
}

/** A step's parts as a bar that is as long as the step; cut where it is far longer than the others. */
function Breakdown({ step, topNs }: { step: Step; topNs: number }) {
  const theme = useSession().theme.value;
  const parts = partsOf(step.parts);
  const text = parts.map(({ phase, ns }) => `${PHASE_TITLES[phase]} ${formatDuration(ns)}`).join(", ");
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
        <span key={phase} style={{ flexGrow: ns, background: css(phaseColor(phase, theme)) }} />
      ))}
    </span>
  );
}
