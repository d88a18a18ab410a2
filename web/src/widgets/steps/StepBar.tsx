// One step, split into its parts: a bar whose widths are time, and the same in numbers.

import { groupColor, PART_TITLES, partColor, type Theme } from "../../base/color";
import { PARTS, type StepPart } from "../../base/kinds.generated";
import { formatCount, formatShare } from "../../base/quantity";
import { formatDuration } from "../../base/time";
import { useSession } from "../../data/session";
import type { Part, StepSummary } from "../../data/wire/wire.generated";
import { Button } from "../controls";
import { PartBar, PartList, timedPart } from "../figures";

/** Parts narrower than this carry no label. */
const NARROWEST_SHARE = 0.07;

/** The part of a step that has its own colour, where this is one. */
const stepPartOf = (part: Part): StepPart | undefined => PARTS.find((one) => one === part.name);

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
  const parts = step.parts.map((part) => ({
    name: part.name,
    title: titleOf(part),
    ns: part.duration_ns,
    share: part.share,
    color: colorOf(part, theme),
  }));
  const shown = parts.filter(({ ns }) => ns > 0);
  return (
    <section class="card surface" aria-labelledby="step-bar-title">
      <header>
        <h2 id="step-bar-title">One step</h2>
        <span class="weak">
          the median of {formatCount(step.class_count)} “{step.class_name}” steps
        </span>
        {onShow && (
          <Button class="link" onClick={onShow}>
            such a step on the timeline
          </Button>
        )}
      </header>
      <div class="step-facts line gap-12">
        <b>{formatDuration(step.median_ns)}</b>
        <span class="weak">
          best {formatDuration(step.best_ns)} · 95 % below {formatDuration(step.p95_ns)} · the parts are of the mean,{" "}
          {formatDuration(step.mean_ns)}
        </span>
      </div>
      <PartBar
        label={`One step: ${shown.map(({ title, share }) => `${title} ${formatShare(share)}`).join(", ")}`}
        parts={shown.map((part) => timedPart(part, NARROWEST_SHARE))}
      />
      <PartList parts={parts} />
      <p class="weak found fine">
        {formatCount(step.count)} steps, found with {step.confidence} confidence: {step.reason}
        {step.kept_count < step.count &&
          `; ${formatCount(step.kept_count)} of them in detail, and statistics of the others: the times here are of all`}
      </p>
    </section>
  );
}
