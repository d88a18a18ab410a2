// One step, split into its parts: a bar whose widths are time, and the same in numbers.

import { css, groupColor, PART_TITLES, partColor, type Theme, textOn } from "../../base/color";
import { formatCount, formatShare } from "../../base/quantity";
import { formatDuration } from "../../base/time";
import { useSession } from "../../data/session";
import { stepPartOf } from "../../data/summary";
import type { Part, StepSummary } from "../../data/wire/wire.generated";

/** Parts narrower than this carry no label. */
const NARROWEST_SHARE = 0.07;

const colorOf = (part: Part, theme: Theme) => {
  const phase = stepPartOf(part);
  return phase ? partColor(phase, theme) : groupColor(part.group, theme);
};

const titleOf = (part: Part): string => {
  const phase = stepPartOf(part);
  return phase ? PART_TITLES[phase] : part.name.replaceAll("_", " ");
};

export function StepBar({ step, onShow }: { step: StepSummary; onShow: (() => void) | undefined }) {
  const theme = useSession().theme.value;
  const parts = step.parts.filter((part) => part.duration_ns > 0);
  return (
    <section class="card" aria-labelledby="step-bar-title">
      <header>
        <h2 id="step-bar-title">One step</h2>
        <span class="weak">
          the median of {formatCount(step.class_count)} “{step.class_name}” steps
        </span>
        {onShow && (
          <button type="button" class="link" onClick={onShow}>
            such a step on the timeline
          </button>
        )}
      </header>
      <div class="step-facts">
        <b>{formatDuration(step.median_ns)}</b>
        <span class="weak">
          best {formatDuration(step.best_ns)} · 95 % below {formatDuration(step.p95_ns)}
        </span>
      </div>
      <div
        class="step-bar"
        role="img"
        aria-label={`One step: ${parts.map((p) => `${titleOf(p)} ${formatShare(p.share)}`).join(", ")}`}
      >
        {parts.map((part) => {
          const color = colorOf(part, theme);
          return (
            <div
              key={part.name}
              style={{ flexGrow: part.share, background: css(color), color: textOn(color) }}
              title={`${titleOf(part)}: ${formatDuration(part.duration_ns)}, ${formatShare(part.share)}`}
            >
              {part.share >= NARROWEST_SHARE && formatShare(part.share)}
            </div>
          );
        })}
      </div>
      <ul class="step-parts">
        {step.parts.map((part) => (
          <li key={part.name}>
            <i style={{ background: css(colorOf(part, theme)) }} />
            <span>{titleOf(part)}</span>
            <b>{formatDuration(part.duration_ns)}</b>
          </li>
        ))}
      </ul>
      <p class="weak found">
        {formatCount(step.count)} steps, found with {step.confidence} confidence: {step.reason}
        {step.kept_count < step.count &&
          `; ${formatCount(step.kept_count)} of them in detail, and statistics of the others: the times here are of all`}
      </p>
    </section>
  );
}
