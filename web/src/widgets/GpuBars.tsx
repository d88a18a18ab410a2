// What the GPUs did during the steps: a bar each, split into computing, only communicating, only copying, and nothing.
import { css, type Group, groupColor, textOn } from "../base/color";
import { formatShare, plural } from "../base/quantity";
import { useSession } from "../data/session";
import type { Gpu } from "../data/summary";

/** Parts narrower than this carry no label; those narrower than the second one carry a number only. */
const NARROWEST_SHARE = 0.04;
const ROOM_FOR_WORDS = 0.16;
/** GPUs shown; of more, those with the most idle time. */
const MOST = 8;

type Kind = "computation" | "communication" | "copy";
const KINDS: readonly (readonly [Kind, Group, string])[] = [
  ["computation", "compute", "computes"],
  ["communication", "communication", "only communicates"],
  ["copy", "copy", "only copies"],
];

const labelOf = (does: string, share: number): string =>
  share < NARROWEST_SHARE ? "" : share < ROOM_FOR_WORDS ? formatShare(share) : `${does} ${formatShare(share)}`;

export function GpuBars({ gpus, onShow }: { gpus: readonly Gpu[]; onShow: (() => void) | undefined }) {
  const theme = useSession().theme.value;
  const shown = gpus.length > MOST ? [...gpus].sort((a, b) => b.idle - a.idle).slice(0, MOST) : gpus;
  const nameOf = (gpu: Gpu): string =>
    gpu.rank === undefined || gpus.length < 2 ? gpu.name : `rank ${gpu.rank}, ${gpu.name}`;
  return (
    <section class="card" aria-labelledby="gpus-title">
      <header>
        <h2 id="gpus-title">{plural(gpus.length, "GPU")}</h2>
        <span class="weak">
          the time of the steady steps, split by what ran on it
          {shown.length < gpus.length && `; the ${MOST} with the most idle time`}
        </span>
        {onShow && (
          <button type="button" class="link" onClick={onShow}>
            a usual step on the timeline
          </button>
        )}
      </header>
      {shown.map((gpu) => (
        <div class="gpu" key={`${gpu.rank}/${gpu.name}`}>
          <span>{nameOf(gpu)}</span>
          <div
            class="step-bar"
            role="img"
            aria-label={`${nameOf(gpu)}: ${KINDS.map(([kind, , does]) => `${does} ${formatShare(gpu[kind])}`).join(", ")}, idle ${formatShare(gpu.idle)}`}
          >
            {KINDS.filter(([kind]) => gpu[kind] > 0).map(([kind, group, does]) => {
              const color = groupColor(group, theme);
              return (
                <div
                  key={kind}
                  style={{ flexGrow: gpu[kind], background: css(color), color: textOn(color) }}
                  title={`${does} ${formatShare(gpu[kind])}`}
                >
                  {labelOf(does, gpu[kind])}
                </div>
              );
            })}
            <div class="idle" style={{ flexGrow: gpu.idle }} title={`idle ${formatShare(gpu.idle)}`}>
              {labelOf("idle", gpu.idle)}
            </div>
          </div>
        </div>
      ))}
      <ul class="step-parts">
        {KINDS.map(([kind, group, does]) => (
          <li key={kind}>
            <i style={{ background: css(groupColor(group, theme)) }} />
            <span>{does}</span>
          </li>
        ))}
        <li>
          <i class="idle" />
          <span>idle</span>
        </li>
      </ul>
    </section>
  );
}
