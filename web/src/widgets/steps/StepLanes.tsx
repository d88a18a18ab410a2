// One step as lanes of a common axis: the thread of the loop over the GPUs. Each segment leads to its evidence.
import { css, groupColor, PART_TITLES, partColor, type Theme, textOn } from "../../base/color";
import { PARTS, type StepPart } from "../../base/kinds.generated";
import { capital } from "../../base/names";
import { formatCount, formatShare, plural } from "../../base/quantity";
import { formatDuration } from "../../base/time";
import { useSession } from "../../data/session";
import type { Evidence, Lane, Segment, StepSummary, Summary } from "../../data/wire/wire.generated";
import { Button } from "../controls";
import { Scale } from "../figures";

/** Segments narrower than this part of the axis carry no label; narrower than the second one only a number. */
const NARROWEST = 0.04;
const ROOM_FOR_WORDS = 0.14;
const TICKS = [0, 0.25, 0.5, 0.75, 1];

const phaseOf = (segment: Segment): StepPart | undefined => PARTS.find((one) => one === segment.name);
const titleOf = (segment: Segment): string => {
  const phase = phaseOf(segment);
  return phase ? PART_TITLES[phase] : segment.name;
};
const styleOf = (segment: Segment, theme: Theme) => {
  const phase = phaseOf(segment);
  const color = phase ? partColor(phase, theme) : groupColor(segment.group, theme);
  return { background: css(color), color: textOn(color) };
};

type Props = {
  readonly summary: Summary;
  /** Shows a usual step on the timeline; undefined where none is in detail. */
  readonly onTypical: (() => void) | undefined;
  readonly onEvidence: (evidence: Evidence) => void;
};

export function StepLanes({ summary, onTypical, onEvidence }: Props) {
  const session = useSession();
  const { lanes, step, gpus } = summary;
  const axisNs = Math.max(...lanes.map((lane) => lane.duration_ns), 1);
  const open = ({ page, evidence, region }: Segment): void => {
    if (evidence) onEvidence(evidence);
    else if (page === "timeline" && onTypical) onTypical();
    else session.update({ page, ...(region && { region }) }, "push");
  };
  const hidden = gpus.length - lanes.filter((lane) => lane.idle_from !== undefined).length;
  return (
    <section class="card surface" aria-labelledby="lanes-title">
      <header>
        <h2 id="lanes-title">{step ? "One step" : "The run"}</h2>
        {step && <StepFacts step={step} />}
        {onTypical && (
          <Button class="link" onClick={onTypical}>
            such a step on the timeline
          </Button>
        )}
      </header>
      {lanes.map((lane) => (
        <LaneBar key={lane.name} lane={lane} axisNs={axisNs} onOpen={open} />
      ))}
      <div class="lane cells gap-12">
        <span />
        <Scale of={TICKS.map((part) => (part ? formatDuration(part * axisNs) : "0"))} />
      </div>
      {hidden > 0 && lanes.length > 1 && (
        <p class="weak fine">{plural(hidden, "GPU")} with less idle time: see GPUs.</p>
      )}
      {step && (
        <p class="weak found fine">
          {plural(step.count, "step")}, found with {step.confidence} confidence: {step.reason}
          {step.kept_count < step.count &&
            `; ${formatCount(step.kept_count)} of them in detail, and statistics of the others: the times here are of all`}
        </p>
      )}
    </section>
  );
}

const StepFacts = ({ step }: { step: StepSummary }) => (
  <span class="weak">
    <b class="step-length">{formatDuration(step.median_ns)}</b> median of {formatCount(step.class_count)} “
    {step.class_name}” steps{step.rank !== null && step.rank !== undefined && ` of rank ${step.rank}`}
    {step.outlier_count > 0 && ", outliers left out"} · best {formatDuration(step.best_ns)} · 95 % below{" "}
    {formatDuration(step.p95_ns)} · mean {formatDuration(step.mean_ns)}, of which the lanes are
  </span>
);

type LaneProps = { readonly lane: Lane; readonly axisNs: number; readonly onOpen: (segment: Segment) => void };

function LaneBar({ lane, axisNs, onOpen }: LaneProps) {
  const theme = useSession().theme.value;
  const isIdle = (at: number): boolean => lane.idle_from !== undefined && at >= lane.idle_from;
  return (
    <div class="lane cells gap-12">
      <span class="lane-name" title={lane.of}>
        <b>{capital(lane.name)}</b>
        <br />
        <span class="weak fine">{formatDuration(lane.duration_ns)}</span>
      </span>
      <div>
        {/* What is below has the same for the keyboard and for readers. */}
        <div class="step-bar" style={{ width: `${(100 * lane.duration_ns) / axisNs}%` }} aria-hidden="true">
          {lane.segments.map((segment, at) => {
            const part = segment.duration_ns / axisNs;
            const share = formatShare(segment.share);
            return (
              <button
                key={segment.name}
                type="button"
                tabIndex={-1}
                class={isIdle(at) ? "idle" : ""}
                style={{ flexGrow: segment.duration_ns, ...(isIdle(at) ? {} : styleOf(segment, theme)) }}
                title={factsOf(segment)}
                onClick={() => onOpen(segment)}
              >
                {part < NARROWEST ? "" : part < ROOM_FOR_WORDS ? share : `${titleOf(segment)} ${share}`}
              </button>
            );
          })}
        </div>
        <ul class="step-parts wraps" aria-label={`${lane.name}, ${lane.of}`}>
          {lane.segments.map((segment, at) => (
            <li key={segment.name} class="row">
              <i class={isIdle(at) ? "idle" : ""} style={isIdle(at) ? {} : styleOf(segment, theme)} />
              <Button class="plain segment" title={factsOf(segment)} onClick={() => onOpen(segment)}>
                {titleOf(segment)}
              </Button>
              <b>{formatDuration(segment.duration_ns)}</b>
              <span class="weak">{formatShare(segment.share)}</span>
            </li>
          ))}
        </ul>
      </div>
    </div>
  );
}

const factsOf = (segment: Segment): string =>
  `${titleOf(segment)}: ${formatDuration(segment.duration_ns)}, ${formatShare(segment.share)}\n${segment.formula}`;
