// What is worth fixing, the largest gain first, each with the places that show it.

import { capital } from "../base/names";
import { formatDuration, type TimeRange } from "../base/time";
import type { Evidence, Finding } from "../data/wire/wire.generated";
import { Button } from "./controls";

type Props = { readonly findings: readonly Finding[]; readonly onEvidence: (evidence: Evidence) => void };

const MOST_EVIDENCE = 4;

/** "12.0 to 31.0 ms a step", or one number where both ends agree. */
function gainText(low: number, high: number): string {
  const [from, to] = [formatDuration(low), formatDuration(high)];
  if (low <= 0) return `up to ${to} a step`;
  return from === to ? `${from} a step` : `${from} to ${to} a step`;
}

export function Findings({ findings, onEvidence }: Props) {
  return (
    <section class="card surface" aria-labelledby="findings-title">
      <header>
        <h2 id="findings-title">Most worth fixing</h2>
      </header>
      {findings.length === 0 && <p class="weak">No rule found a problem in this run.</p>}
      <ol class="findings rows gap-12">
        {findings.map((finding) => (
          <li key={`${finding.rule}-${finding.what}`} class={finding.informative ? "informative" : ""}>
            <div class="finding-head line gap-14">
              <span class="bold">{capital(finding.what)}</span>
              {finding.gain_high_ns > 0 && !finding.informative && (
                <span class="gain good bold">{gainText(finding.gain_low_ns, finding.gain_high_ns)}</span>
              )}
            </div>
            {finding.do && <p>{capital(finding.do)}</p>}
            <p class="weak finding-foot fine wraps">
              {finding.where && <span class="source">{finding.where}</span>}
              <span>{finding.confidence} confidence</span>
              {finding.evidence.slice(0, MOST_EVIDENCE).map((evidence, i) => (
                <Button
                  class="link"
                  key={`${evidence.start_ns}-${evidence.duration_ns}`}
                  title="Show it on the timeline"
                  onClick={() => onEvidence(evidence)}
                >
                  {evidence.text || `place ${i + 1}`}
                </Button>
              ))}
            </p>
          </li>
        ))}
      </ol>
    </section>
  );
}

/** The time that a piece of evidence covers. */
export const evidenceRange = (evidence: Evidence): TimeRange => ({
  startNs: evidence.start_ns,
  endNs: evidence.start_ns + Math.max(1, evidence.duration_ns),
});
