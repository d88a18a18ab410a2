// What the colours of steps mean: their classes, outliers, and those of which only statistics were kept.
import { classColor, css, outlierColor } from "../base/color";
import type { TimelineModel } from "./model/timelineModel";

/** The most frequent classes; the others have the colours of these again. */
const NAMED = 4;

export function StepLegend({ model }: { model: TimelineModel }) {
  const about = model.session.stepsAbout.value;
  const steps = model.steps.value;
  const theme = model.session.theme.value;
  const outliers = steps.some((step) => step.outlier);
  const folded = steps.some((step) => step.detail === "none");
  if (!about || (about.classes.length < 2 && !outliers && !folded)) return null;
  return (
    <ul class="step-legend flex weak finer" aria-label="Colours of steps">
      {about.classes.slice(0, NAMED).map(({ name, rank, count }) => (
        <li key={name} class="row gap-4" title={`${count} steps`}>
          <i style={{ background: css(classColor(rank, theme)) }} />
          {name}
        </li>
      ))}
      {outliers && (
        <li class="row gap-4" title="Takes much longer than its class usually does">
          <i style={{ background: css(outlierColor(theme)) }} />▲ outlier
        </li>
      )}
      {folded && (
        <li class="row gap-4" title="Their sums are exact, their single spans were not kept">
          <i class="hatched" />
          statistics only
        </li>
      )}
    </ul>
  );
}
