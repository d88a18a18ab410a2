// A GPU's own counters while the program ran: shares as bars, everything else in numbers.
import { formatCount, formatQuantity, formatShare } from "../../base/quantity";
import type { Gpu } from "../../data/tables/gpuTables";
import { Facts } from "../figures";

type Share = readonly [column: string, title: string, means: string];
/** In the order of the ladder beside it. */
const SHARES: readonly Share[] = [
  ["utilisation_share", "utilisation", "NVML, as in nvidia-smi: part of the time in which some kernel ran, however small"],
  ["sm_activity_share", "SM activity", "GPM: mean part of the multiprocessors that had a warp"],
  ["occupancy_share", "SM occupancy", "GPM: mean part of the warps that were there, of all that fit"],
  ["tensor_share", "tensor activity", "GPM: mean part of the time in which tensor cores worked"],
  ["dram_share", "DRAM bandwidth", "GPM: mean part of the memory’s bandwidth that was used"],
]; // biome-ignore format: a line a metric

export function GpuMeasured({ gpu, notRead }: { gpu: Gpu; notRead: string }) {
  const { measured } = gpu;
  if (!measured)
    return (
      <p class="weak">
        Nothing was read of it{notRead ? `: ${notRead}` : ""}. While a program runs, <code>strobe run</code> reads load,
        memory, power, clocks and temperature of NVIDIA GPUs, with <code>pip install "strobe[gpu]"</code>.
      </p>
    );
  const of = measured;
  const shares = SHARES.flatMap(([column, title, means]) => {
    const share = of(column);
    return share === undefined ? [] : [{ title, means, share }];
  });
  const full = shares.some(({ title }) => title === "SM activity");
  return (
    <>
      <ol class="ladder measured rows">
        {shares.map(({ title, means, share }) => (
          <li class="rung cells" key={title} title={means}>
            <span>{title}</span>
            <span class="rung-bar flex" aria-hidden="true">
              <span class="rung-share" style={{ width: `${100 * Math.min(1, share)}%` }} />
            </span>
            <b class="number">{formatShare(share)}</b>
          </li>
        ))}
      </ol>
      {shares.length > 0 && !full && (
        <p class="weak">
          How full it was meanwhile, this GPU does not measure: 100 % utilisation may be one small kernel after another.
        </p>
      )}
      <Readings gpu={gpu} of={of} />
    </>
  );
}

function Readings({ gpu, of }: { gpu: Gpu; of: (column: string) => number | undefined }) {
  const peak = of("memory_peak_bytes");
  const whole = gpu.memory_bytes;
  const throttled = of("throttled_share");
  const shown = (column: string, unit: string): string | undefined => {
    const value = of(column);
    return value === undefined ? undefined : formatQuantity(value, unit);
  };
  const clock = (column: string): string | undefined => {
    const value = of(column);
    return value === undefined ? undefined : `${formatCount(value)} MHz`;
  };
  const both = (first: string | undefined, second: string | undefined, words: readonly [string, string]) =>
    [first && `${first} ${words[0]}`, second && `${second} ${words[1]}`].filter(Boolean).join(", ");
  const facts = [
    [
      "memory, peak",
      peak === undefined
        ? ""
        : whole
          ? `${formatQuantity(peak, "bytes")} of ${formatQuantity(whole, "bytes")}, ${formatShare(peak / whole)}`
          : formatQuantity(peak, "bytes"),
    ],
    ["power", both(shown("power_w", "W"), shown("power_max_w", "W"), ["mean", "at most"])],
    ["energy", both(shown("energy_j", "J"), shown("step_energy_j", "J"), ["in all", "a step"])],
    ["temperature", both(shown("temperature_max_c", "°C"), undefined, ["at most", ""])],
    ["clocks, mean", both(clock("sm_clock_mhz"), clock("memory_clock_mhz"), ["SMs", "memory"])],
    ["PCIe, mean", both(shown("pcie_sent_gb_s", "GB/s"), shown("pcie_received_gb_s", "GB/s"), ["sent", "received"])],
    ["NVLink, mean", both(shown("nvlink_sent_gb_s", "GB/s"), shown("nvlink_received_gb_s", "GB/s"), ["sent", "received"])],
  ] as const; // biome-ignore format: a line a fact
  const reasons = throttled ? (
    <>
      <span class="warning">▲ {formatShare(throttled)} of the time</span>
      {gpu.throttled.map(({ reason, share }) => (
        <span key={reason}>
          {reason} {formatShare(share)}
        </span>
      ))}
    </>
  ) : (
    "never"
  );
  const held =
    "Part of the readings in which its clocks were held down, and by what; reasons may hold at the same time";
  return (
    <Facts
      class="gpu-facts fine"
      of={[...facts.filter(([, text]) => text), ["throttled", throttled !== undefined && reasons, held]]}
    />
  );
}
