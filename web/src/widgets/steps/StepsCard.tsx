// All steps as a strip, with what the colours mean: classes, and outliers by what made them slow.
import { classColor, css, outlierColor } from "../../base/color";
import { formatCount } from "../../base/quantity";
import { formatDuration, type TimeRange } from "../../base/time";
import type { Step } from "../../data/runSteps";
import { useSession } from "../../data/session";
import { StepStrip } from "./StepStrip";

export function StepsCard({ steps, onSteps }: { steps: readonly Step[]; onSteps: (range: TimeRange) => void }) {
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
