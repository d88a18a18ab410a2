// What is worth fixing, the largest gain first, each with the places that show it.

import { capital } from "../base/names";
import { formatShare, plural } from "../base/quantity";
import { formatDuration, type TimeRange } from "../base/time";
import type { Checked, Evidence, Finding } from "../data/wire/wire.generated";
import { Button, WithCode } from "./controls";

type Props = {
  readonly findings: readonly Finding[];
  /** Rules that measured too little. */
  readonly checked: readonly Checked[];
  readonly onEvidence: (evidence: Evidence) => void;
};

const MOST_EVIDENCE = 4;
const MOST_CHECKED = 8;
/** What rules measured is in sight beside at most so many findings. */
const MOST_BESIDE = 2;

/** "12.0 to 31.0 ms a step", or one number where both ends agree. */
function gainText(low: number, high: number): string {
  const [from, to] = [formatDuration(low), formatDuration(high)];
  if (low <= 0) return `up to ${to} a step`;
  return from === to ? `${from} a step` : `${from} to ${to} a step`;
}

export function Findings({ findings, checked, onEvidence }: Props) {
  return (
    <section class="card surface" aria-labelledby="findings-title">
      <header>
        <h2 id="findings-title">Most worth fixing</h2>
      </header>
      {findings.length === 0 && (
        <p class="weak">
          No rule found a problem in this run.
          {checked.length > 0 && ` ${plural(checked.length, "rule")} measured less than what is worth a finding:`}
        </p>
      )}
      <ol class="findings rows gap-12">
        {findings.map((finding) => (
          <li key={`${finding.rule}-${finding.what}`} class={finding.informative ? "informative" : ""}>
            <div class="finding-head line gap-14">
              <span class="bold">
                <WithCode text={capital(finding.what)} />
              </span>
              {finding.gain_high_ns > 0 && !finding.informative && (
                <span class="gain good bold">{gainText(finding.gain_low_ns, finding.gain_high_ns)}</span>
              )}
            </div>
            {finding.do && (
              <p>
                <WithCode text={capital(finding.do)} />
              </p>
            )}
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
      {checked.length > 0 &&
        (findings.length > MOST_BESIDE ? (
          <details class="fine">
            <summary class="weak">{plural(checked.length, "rule")} found too little for a finding</summary>
            <CheckedRules of={checked} />
          </details>
        ) : (
          <CheckedRules of={checked} />
        ))}
    </section>
  );
}

/** What rules measured: what a problem costs, and from what share of the steps on it is a finding; the nearest to one first. */
const CheckedRules = ({ of: checked }: { of: readonly Checked[] }) => (
  <table class="hot checked">
    <thead>
      <tr>
        <th scope="col">checked</th>
        <th scope="col" title="by so much a step would be shorter without it, at most">
          it costs
        </th>
        <th scope="col">a finding from</th>
      </tr>
    </thead>
    <tbody>
      {checked.slice(0, MOST_CHECKED).map(({ rule, title, share, least }) => (
        <tr key={rule} title={`rule ${rule}: shares of the time of the steps`}>
          <td class="ellipsis">{title}</td>
          <td class="number">{formatShare(share)}</td>
          <td class="number weak">{formatShare(least)}</td>
        </tr>
      ))}
    </tbody>
  </table>
);

/** The time that a piece of evidence covers. */
export const evidenceRange = (evidence: Evidence): TimeRange => ({
  startNs: evidence.start_ns,
  endNs: evidence.start_ns + Math.max(1, evidence.duration_ns),
});
