// What the GPUs did during the steps: a bar each, split into computing, only communicating, only copying, and nothing.

import { groupColor } from "../../base/color";
import { plural } from "../../base/quantity";
import { useSession } from "../../data/session";
import type { Gpu } from "../../data/wire/wire.generated";
import { Button } from "../controls";
import { PartList } from "../figures";
import { GpuSplit, KINDS } from "./GpuSplit";

/** GPUs shown; of more, those with the most idle time. */
const MOST = 8;

export function GpuBars({ gpus, onShow }: { gpus: readonly Gpu[]; onShow: (() => void) | undefined }) {
  const session = useSession();
  const theme = session.theme.value;
  const shown = gpus.length > MOST ? [...gpus].sort((a, b) => b.idle - a.idle).slice(0, MOST) : gpus;
  const nameOf = (gpu: Gpu): string =>
    gpu.rank === undefined || gpus.length < 2 ? gpu.name : `rank ${gpu.rank}, ${gpu.name}`;
  return (
    <section class="card surface" aria-labelledby="gpus-title">
      <header>
        <h2 id="gpus-title">{plural(gpus.length, "GPU")}</h2>
        <span class="weak">
          the time of the steady steps, split by what ran on it
          {shown.length < gpus.length && `; the ${MOST} with the most idle time`}
        </span>
        {onShow && (
          <Button class="link" onClick={onShow}>
            a usual step on the timeline
          </Button>
        )}
        <Button class="link" onClick={() => session.update({ page: "devices" }, "push")}>
          how full they were
        </Button>
      </header>
      {shown.map((gpu) => (
        <div class="gpu cells gap-12" key={`${gpu.rank}/${gpu.name}`}>
          <span>{nameOf(gpu)}</span>
          <GpuSplit name={nameOf(gpu)} split={gpu} />
        </div>
      ))}
      <PartList
        parts={[
          ...KINDS.map(([name, group, title]) => ({ name, title, color: groupColor(group, theme) })),
          { name: "idle", title: "idle", color: undefined },
        ]}
      />
    </section>
  );
}
