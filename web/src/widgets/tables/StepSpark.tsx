// The time of a row in each step, as bars from zero in its cell. Steps without detail have a grey foot instead.
import type { Signal } from "@preact/signals";
import { plural } from "../../base/quantity";
import { formatDuration } from "../../base/time";
import type { RowBars, StepBar } from "../../data/tables/overSteps";

const stepsOf = ({ firstStep: first, lastStep: last }: StepBar): string =>
  first === last ? `step ${first}` : `steps ${first} to ${last}`;

/** "4.00 ms to 119 ms a step; most in step 4", and how many steps are unknown. */
export function sparkWords(bars: readonly StepBar[]): string {
  const known = bars.filter((bar) => bar.inDetail > 0);
  const all = bars.reduce((sum, bar) => sum + bar.lastStep - bar.firstStep + 1, 0);
  const unknown = all - known.reduce((sum, bar) => sum + bar.inDetail, 0);
  const sorted = [...known].sort((a, b) => (a.stepNs ?? 0) - (b.stepNs ?? 0));
  const [least, most] = [sorted[0], sorted.at(-1)];
  if (!least || !most) return "no step was kept in detail";
  const averaged = bars.length < all ? ", means of neighbouring steps" : "";
  const [low, high] = [formatDuration(least.stepNs ?? 0), formatDuration(most.stepNs ?? 0)];
  const range = low === high ? `${low} in every step` : `${low} to ${high} a step`;
  const where = low === high ? "" : `; most in ${stepsOf(most)}`;
  return `${range}${averaged}${where}${unknown ? `; ${plural(unknown, "step")} not in detail` : ""}`;
}

/** Outlines of the bars, at most one unit wide and high, and of the feet of those that are unknown. */
export function sparkPaths(bars: readonly StepBar[]): { readonly known: string; readonly unknown: string } {
  const top = bars.reduce((most, bar) => Math.max(most, bar.stepNs ?? 0), 0);
  // Of few bars each stands alone.
  const wide = bars.length > MANY ? 1 : 0.85;
  const box = (at: number, tall: number): string => `M${at} 1V${Number((1 - tall).toFixed(3))}h${wide}V1z`;
  const known = bars.map((bar, at) => (bar.inDetail && top ? box(at, (bar.stepNs ?? 0) / top) : ""));
  const unknown = bars.map((bar, at) => (bar.inDetail ? "" : box(at, FOOT)));
  return { known: known.join(""), unknown: unknown.join("") };
}
const FOOT = 0.16;
const MANY = 30;

export function StepSpark({ of }: { of: Signal<RowBars> }) {
  const bars = of.value;
  if (bars === undefined || typeof bars === "string" || !bars.length)
    return <td class="spark" title={bars === undefined ? "Summing up its steps …" : bars.toString()} />;
  const words = sparkWords(bars);
  const { known, unknown } = sparkPaths(bars);
  return (
    <td class="spark" title={words}>
      <svg viewBox={`0 0 ${bars.length} 1`} preserveAspectRatio="none" role="img" aria-label={words}>
        <path d={known} />
        <path class="unknown" d={unknown} />
      </svg>
    </td>
  );
}
