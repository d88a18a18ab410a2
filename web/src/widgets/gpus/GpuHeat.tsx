// Many GPUs at a glance: a cell each, by machine, as bright as a rung of its ladder is high.
import { css, radarColor, textOn } from "../../base/color";
import { formatShare } from "../../base/quantity";
import { useSession } from "../../data/session";
import type { Gpu } from "../../data/tables/gpuTables";
import { Button } from "../controls";
import { byHost, gpuTitle, type RungKey, spreadSentence } from "./gpuWords";

/** Cells of more GPUs carry no number: the table has it. */
const MOST_NUMBERED = 128;

type Props = {
  readonly gpus: readonly Gpu[];
  readonly rung: RungKey;
  readonly chosen: Gpu | undefined;
  readonly onChoose: (gpu: Gpu) => void;
};

export function GpuHeat({ gpus, rung, chosen, onChoose }: Props) {
  const theme = useSession().theme.value;
  const numbered = gpus.length <= MOST_NUMBERED;
  const hosts = byHost(gpus);
  return (
    <section
      class={numbered ? "gpu-heat scrolls rows gap-4" : "gpu-heat scrolls rows gap-4 small"}
      aria-label={spreadSentence(gpus, rung)}
    >
      {hosts.map(([host, own]) => (
        <div class={hosts.length > 1 ? "gpu-host cells gap-12 named" : "gpu-host cells gap-12"} key={host}>
          {hosts.length > 1 && (
            <span class="weak ellipsis fine" title={host}>
              {host || "machine unknown"}
            </span>
          )}
          <div class="gpu-cells wraps">
            {own.map((gpu) => {
              const share = gpu.ladder?.[rung];
              const text = share === undefined ? "not known" : formatShare(share);
              const color = share === undefined ? undefined : radarColor(share, theme);
              // The table below is walked by keys: the tabulator key does not stop at thousands of cells.
              return (
                <Button
                  tabIndex={-1}
                  key={`${gpu.process}/${gpu.number}`}
                  class={gpu === chosen ? "gpu-cell chosen" : "gpu-cell"}
                  style={color && { background: css(color), color: textOn(color) }}
                  title={`${gpuTitle(gpu, true)}: ${text}`}
                  aria-label={`${gpuTitle(gpu, true)}: ${text}`}
                  aria-pressed={gpu === chosen}
                  onClick={() => onChoose(gpu)}
                  // Drawn by the style: the name above is clearer than "17 19".
                  data-number={numbered ? (gpu.rank ?? gpu.number ?? "") : undefined}
                  data-share={numbered ? (share === undefined ? "–" : Math.round(100 * share)) : undefined}
                />
              );
            })}
          </div>
        </div>
      ))}
    </section>
  );
}
