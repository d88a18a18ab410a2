// What each layer of a model takes of the GPU in a step of a class.
import { useSignal } from "@preact/signals";
import { formatDuration } from "../../base/time";
import type { EngineLayer } from "../../data/engine";
import { Choices } from "../controls";

export function EngineLayers({ layers }: { layers: readonly EngineLayer[] }) {
  const classes = [...new Set(layers.map(({ class: name }) => name))];
  const chosen = useSignal("");
  const shown = classes.includes(chosen.value) ? chosen.value : (classes[0] ?? "");
  const own = layers.filter(({ class: name }) => name === shown);
  const most = Math.max(1, ...own.map(({ gpuNs = 0 }) => gpuNs));
  return (
    <>
      {classes.length > 1 && (
        <Choices words="steps" choices={classes} value={shown} onChoose={(name) => (chosen.value = name)} />
      )}
      <ol class="ladder layers rows" aria-label={`Layers in ${shown} steps`}>
        {own.map(({ process, rank, layer, gpuNs = 0, attentionNs = 0 }) => (
          <li key={`${process} ${layer}`} class="rung cells">
            <span class="ellipsis" title={layer}>
              {rank === undefined ? layer : `rank ${rank}: ${layer}`}
            </span>
            <span class="rung-bar flex" aria-hidden="true">
              <span class="rung-share" style={{ width: `${(100 * gpuNs) / most}%` }} />
            </span>
            <b class="number">{formatDuration(gpuNs)}</b>
            <span class="weak number">{attentionNs > 0 && `attention ${formatDuration(attentionNs)}`}</span>
          </li>
        ))}
      </ol>
    </>
  );
}
