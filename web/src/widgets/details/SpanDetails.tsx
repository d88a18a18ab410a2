// The facts about the selected span.

import type { ComponentChildren } from "preact";
import { css, GROUP_TITLES, groupColor } from "../../base/color";
import { lineText } from "../../base/names";
import { formatCount, formatShare, plural } from "../../base/quantity";
import { formatDuration, formatMoment, type TimeRange } from "../../base/time";
import { useSession } from "../../data/session";
import type { Sisters, SpanFacts } from "../../data/wire/wire.generated";
import { Button, Close } from "../controls";
import { BigNumbers, Facts, Here, Scale, Swatch } from "../figures";

type Props = {
  readonly span: SpanFacts;
  readonly onFocus: () => void;
  readonly onStep: (step: TimeRange) => void;
  /** The user wants to see it in all iterations. */
  readonly onIterations: () => void;
  readonly onClose: () => void;
  /** What hangs on the span: its links. */
  readonly children?: ComponentChildren;
};

export function SpanDetails({ span, onFocus, onStep, onIterations, onClose, children }: Props) {
  const theme = useSession().theme.value;
  const where = lineText(span.file, span.line);
  const { step } = span;
  return (
    <section class="span-details rows gap-12">
      <header>
        <Swatch group={span.group} />
        <h2 title={span.name}>{span.name}</h2>
        <Close title="Clear (Esc)" onClick={onClose} />
      </header>
      {span.samples !== undefined && (
        <p class="weak source-note">
          Seen in {plural(span.samples, "sample")}. Calls were not recorded: this may be one call, or several.
        </p>
      )}
      {!span.complete && <p class="warning">Still open when recording ended: its end is where the record ends.</p>}
      <BigNumbers
        of={[
          [formatDuration(span.duration_ns), "duration"],
          [
            formatDuration(span.self_ns),
            <>self, {formatShare(span.duration_ns ? span.self_ns / span.duration_ns : 1)}</>,
          ],
        ]}
      />
      {span.folded && <FoldedInside folded={span.folded} />}
      <Facts
        of={[
          ["start", formatMoment(span.start_ns, Math.max(1000, span.duration_ns / 100))],
          [
            "kind",
            <>
              {`${span.paradigm} ${span.role} `}
              <span class="weak">· {GROUP_TITLES[span.group].toLowerCase()}</span>
            </>,
          ],
          ["thread", span.location_name],
          ["source", where !== "" && <div class="source">{where}</div>],
          ["module", where === "" && span.module],
          ["step", step && <StepLink step={step} onStep={onStep} />],
        ]}
      />
      {children}
      {span.sisters && (
        <SistersChart sisters={span.sisters} durationNs={span.duration_ns} color={css(groupColor(span.group, theme))} />
      )}
      <h3>Call path</h3>
      <ol class="call-path rows fine">
        {span.path.map((frame, depth) => (
          <li
            class="row"
            key={`${depth}-${frame.name}`}
            style={{ paddingLeft: `${Math.min(depth, 12) * 7}px` }}
            title={lineText(frame.file, frame.line)}
          >
            <Swatch group={frame.group} />
            <span class={depth === span.path.length - 1 ? "leaf" : ""}>{frame.name}</span>
          </li>
        ))}
      </ol>
      <div class="buttons">
        <Button onClick={onFocus}>
          Zoom to it <kbd>F</kbd>
        </Button>
        {step && <Button onClick={onIterations}>In all iterations</Button>}
      </div>
    </section>
  );
}

function StepLink({ step, onStep }: Pick<Props, "onStep"> & { step: NonNullable<SpanFacts["step"]> }) {
  return (
    <>
      <Button class="link" onClick={() => onStep({ startNs: step.start_ns, endNs: step.start_ns + step.duration_ns })}>
        {step.step}
      </Button>{" "}
      <span class="weak">
        {step.class}, {formatDuration(step.duration_ns)}
      </span>
    </>
  );
}

/** What is inside and was folded: it is not self time. */
function FoldedInside({ folded }: { folded: NonNullable<SpanFacts["folded"]> }) {
  return (
    <p class="weak source-note">
      {formatDuration(folded.time_ns)} directly inside is in {plural(folded.steps, "folded step")}.{" "}
      {folded.exact
        ? "Self is exact: without what these called, by their statistics."
        : "Self is that outside of them: what of these is its own is not known for this one span."}
    </p>
  );
}

/** How long the spans of the same region in this thread last, and where this one lies among them. */
function SistersChart({ sisters, durationNs, color }: { sisters: Sisters; durationNs: number; color: string }) {
  const { count, histogram, histogram_low_ns: low, histogram_high_ns: high } = sisters;
  const folded =
    sisters.folded_count > 0 &&
    `${formatCount(sisters.folded_count)} more were folded, ${formatDuration(sisters.folded_ns)} in all`;
  if (count < 2)
    return <p class="weak">The only span of its name in this thread{folded && ` (in detail; ${folded})`}.</p>;
  const most = Math.max(...histogram, 1);
  const at = high > low ? Math.log(Math.max(durationNs, low) / low) / Math.log(high / low) : 0.5;
  const rank = sisters.shorter / count;
  const kept = folded ? " kept in detail" : "";
  const text = `${formatCount(count)} of this name here${kept}, ${formatDuration(sisters.total_ns)} in all; longer than ${formatShare(rank)} of them`;
  return (
    <figure class="sisters">
      <figcaption>{text}</figcaption>
      {folded && <p class="weak source-note">{folded}: they are not in the picture.</p>}
      <svg viewBox="0 0 100 30" preserveAspectRatio="none" role="img" aria-label={`Histogram of durations. ${text}`}>
        {histogram.map((n, i) => {
          const tall = n === 0 ? 0 : Math.max(1.2, 28 * Math.sqrt(n / most));
          const wide = 100 / histogram.length;
          return <rect key={i} x={i * wide} y={30 - tall} width={wide * 0.86} height={tall} fill={color} />;
        })}
        <Here at={at * 100} tall={30} />
      </svg>
      <Scale
        of={[
          formatDuration(sisters.shortest_ns),
          `median ${formatDuration(sisters.median_ns)}`,
          formatDuration(sisters.longest_ns),
        ]}
      />
    </figure>
  );
}
