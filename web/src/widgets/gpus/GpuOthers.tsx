// GPUs of the machines on which nothing of the run was recorded: a line each, with what they measured.
import { formatQuantity, formatShare, plural } from "../../base/quantity";
import type { Gpu } from "../../data/tables/gpuTables";

type Cell = readonly [title: string, meaning: string, text: (gpu: Gpu) => string | undefined];

const of = (column: string, format: (value: number) => string) => (gpu: Gpu) => {
  const value = gpu.measured?.(column);
  return value === undefined ? undefined : format(value);
};
const quantity = (unit: string) => (value: number) => formatQuantity(value, unit);

const CELLS: readonly Cell[] = [
  ["utilisation", "part of the time in which some kernel ran", of("utilisation_share", formatShare)],
  ["SM activity", "mean part of the multiprocessors that had a warp", of("sm_activity_share", formatShare)],
  ["memory peak", "most memory in use at a reading", of("memory_peak_bytes", quantity("bytes"))],
  ["power", "mean", of("power_w", quantity("W"))],
  ["energy", "from the first to the last reading", of("energy_j", quantity("J"))],
  ["hottest", "highest temperature", of("temperature_max_c", quantity("°C"))],
];

export function GpuOthers({ gpus }: { gpus: readonly Gpu[] }) {
  const cells = CELLS.filter(([, , text]) => gpus.some((gpu) => text(gpu) !== undefined));
  const hosts = new Set(gpus.map(({ host }) => host)).size > 1;
  return (
    <section class="card surface" aria-labelledby="other-gpus">
      <header>
        <h2 id="other-gpus">{plural(gpus.length, "GPU")} without work of this run</h2>
        <span class="weak">nothing was recorded there: what ran there, other programs may have asked for</span>
      </header>
      <table class="hot">
        <thead>
          <tr>
            <th scope="col">GPU</th>
            {cells.map(([title, meaning]) => (
              <th scope="col" key={title} title={meaning}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {gpus.map((gpu) => (
            <tr key={`${gpu.host}/${gpu.number}`} title={gpu.uuid}>
              <td>
                GPU {gpu.number} <span class="weak">{[gpu.name, hosts && gpu.host].filter(Boolean).join(" · ")}</span>
              </td>
              {cells.map(([title, , text]) => (
                <td class="number" key={title}>
                  {text(gpu) ?? "–"}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
