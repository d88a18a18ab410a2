// The facts about the selected idle gap: how long, between what, and why.

import { causeSentence, causeTitle } from "../../base/idleCauses";
import { formatShare } from "../../base/quantity";
import { formatDuration, formatMoment } from "../../base/time";
import { useSession } from "../../data/session";
import type { IdleGap, SpanEnd } from "../../data/wire/wire.generated";
import { Button, Close } from "../controls";
import { BigNumbers, Facts, Swatch } from "../figures";

type Props = {
  readonly gap: IdleGap;
  readonly onFocus: () => void;
  readonly onSpan: (span: SpanEnd) => void;
  readonly onClose: () => void;
};

export function GapDetails({ gap, onFocus, onSpan, onClose }: Props) {
  const run = useSession().run.value;
  const location = run.status === "ready" ? run.value.locations[gap.location] : undefined;
  const long = gap.end_ns - gap.start_ns;
  const { cause } = gap;
  return (
    <section class="span-details rows gap-12">
      <header>
        <i class="hatched" />
        <h2>Idle{cause && `: ${causeTitle(cause.main)}`}</h2>
        <Close title="Clear (Esc)" onClick={onClose} />
      </header>
      <BigNumbers
        of={[[formatDuration(long), "nothing ran"], ...(cause ? [[cause.main, "main cause"] as const] : [])]}
      />
      <Facts
        of={[
          ["start", formatMoment(gap.start_ns, Math.max(1000, long / 100))],
          ["row", location?.name],
        ]}
      />
      {cause && (
        <ul class="rows gap-2 fine" aria-label="Causes">
          {[...cause.parts]
            .sort((a, b) => b.ns - a.ns)
            .map((part) => (
              <li key={part.cause}>
                <b>{formatDuration(part.ns)}</b> <span class="weak">{formatShare(part.ns / Math.max(1, long))}</span>{" "}
                {causeSentence(part.cause)}
              </li>
            ))}
        </ul>
      )}
      {!cause && (
        <section class="rows gap-2 fine" aria-label="Meanwhile">
          <h3>Meanwhile in this process</h3>
          {gap.meanwhile.length === 0 && <p class="weak">No other thread or stream recorded anything.</p>}
          <ul class="rows gap-4">
            {gap.meanwhile.map((other) => (
              <li key={other.location}>
                {other.thread}: <b>{formatDuration(other.busy_ns)}</b>{" "}
                <span class="weak">{formatShare(other.busy_ns / Math.max(1, long))}</span>
                <div class="weak ellipsis" title={other.name}>
                  most in {other.name}, {formatDuration(other.ns)}
                </div>
              </li>
            ))}
          </ul>
        </section>
      )}
      <Neighbour title="before" span={gap.before} onSpan={onSpan} none="the row has nothing before it" />
      <Neighbour title="after" span={gap.after} onSpan={onSpan} none="the row has nothing after it" />
      {cause?.call && <Neighbour title="launched by" span={cause.call} onSpan={onSpan} none="" />}
      <div class="buttons">
        <Button onClick={onFocus}>
          Zoom to it <kbd>F</kbd>
        </Button>
      </div>
      <p class="weak finer">
        <kbd>,</kbd> <kbd>.</kbd> the gaps beside it <kbd>I</kbd> the longest on the screen
      </p>
    </section>
  );
}

type NeighbourProps = {
  readonly title: string;
  readonly span: SpanEnd | undefined;
  readonly onSpan: (span: SpanEnd) => void;
  readonly none: string;
};

function Neighbour({ title, span, onSpan, none }: NeighbourProps) {
  return (
    <div class="gap-neighbour rows fine gap-6">
      <span class="weak">{title}</span>
      {span ? (
        <Button class="plain ellipsis" title={span.name} onClick={() => onSpan(span)}>
          <Swatch group={span.group} /> {span.name}
        </Button>
      ) : (
        <span class="weak">{none}</span>
      )}
    </div>
  );
}
