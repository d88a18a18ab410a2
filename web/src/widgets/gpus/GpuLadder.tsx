// How much of a GPU was used, rung by rung: never one number alone, which would be taken for all of it.
import { formatShare } from "../../base/quantity";
import type { Ladder } from "../../data/tables/gpuTables";
import { RUNGS, type Rung, rungsOf } from "./gpuWords";

export function GpuLadder({ ladder, name }: { ladder: Ladder; name: string }) {
  const rungs = rungsOf(ladder);
  return (
    <ol class="ladder rows" aria-label={`How much of ${name} was used`}>
      {rungs.map((rung) => (
        <Step key={rung.key} rung={rung} known={rung.key === "roofline" ? ladder.rooflineKnown : undefined} />
      ))}
    </ol>
  );
}

function Step({ rung, known }: { rung: Rung; known: number | undefined }) {
  const { title, means, share, lost, worst } = rung;
  const partly = known !== undefined && known < 0.995;
  return (
    <li class={worst ? "rung cells worst" : "rung cells"} title={`${title}: ${rung.counted}`}>
      <span>{title}</span>
      <span class="rung-bar flex" aria-hidden="true">
        {share !== undefined && (
          <>
            <span class="rung-share" style={{ width: `${100 * share}%` }} />
            <span class="rung-lost" style={{ width: `${100 * lost}%` }} />
          </>
        )}
      </span>
      <b class="number">{share === undefined ? "–" : `${partly ? "≥ " : ""}${formatShare(share)}`}</b>
      <span class="rung-means weak finer">
        {means}
        {share === undefined && ": not known, as the trace has no facts about this GPU"}
        {partly && `; known for ${formatShare(known)} of its kernels’ time`}
      </span>
      {lost >= 0.0005 && (
        <span class="rung-loss weak finer">
          {worst ? `▲ most is lost here: ${formatShare(lost)}` : `${formatShare(lost)} lost`}
        </span>
      )}
    </li>
  );
}

/** How the rungs are counted, for those who ask. */
export function HowCounted({ ladder }: { ladder: Ladder }) {
  return (
    <details class="how-counted fine">
      <summary>How this is counted</summary>
      <dl class="rows gap-5">
        {RUNGS.filter(({ key }) => key !== "roofline" || ladder.roofline !== undefined).map(
          ({ key, title, counted }) => (
            <div key={key}>
              <dt class="bold">{title}</dt>
              <dd>{counted}</dd>
            </div>
          ),
        )}
      </dl>
      <p class="weak">
        Down to the warps each rung is a part of the one before, counted from the launches of all kernels: an upper
        bound of what single kernels reach.
      </p>
    </details>
  );
}
