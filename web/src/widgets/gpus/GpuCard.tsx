// One GPU: what it is, how much of it was used, what it measured itself, what its time went into and why it idled.
import { causeSentence, causeTitle } from "../../base/idleCauses";
import { formatCount, formatQuantity, formatShare, plural } from "../../base/quantity";
import { formatDuration } from "../../base/time";
import type { Gpu, IdleCause, Split } from "../../data/tables/gpuTables";
import { Button, Close } from "../controls";
import { Facts } from "../figures";
import { GpuLadder, HowCounted } from "./GpuLadder";
import { GpuMeasured } from "./GpuMeasured";
import { GpuSplit } from "./GpuSplit";
import { gpuFacts, gpuTitle, lossSentence } from "./gpuWords";

/** Causes of a smaller part of the idle time are left out. */
const LEAST_CAUSE = 0.0005;

export type GpuActions = {
  /** Its metrics and streams on the timeline. */
  readonly onTimeline: (gpu: Gpu) => void;
  readonly onGap: (gap: NonNullable<IdleCause["longest"]>) => void;
  readonly onKernels: () => void;
};

type Props = GpuActions & {
  readonly gpu: Gpu;
  /** Whether there are others, so that its title names its owner. */
  readonly many: boolean;
  /** Why it idled; undefined while that is not known. */
  readonly idle: readonly IdleCause[] | undefined;
  /** Whether most of what it did is statistics only. */
  readonly folded: boolean;
  readonly notRead: string;
  readonly onClose?: () => void;
};

export function GpuCard({ gpu, many, idle, folded, notRead, onClose, ...actions }: Props) {
  const title = gpuTitle(gpu, many);
  const { ladder } = gpu;
  const id = `gpu-${gpu.process ?? gpu.host}-${gpu.number}`;
  return (
    <section class="card surface gpu-card rows gap-12" aria-labelledby={id}>
      <header>
        <h2 id={id}>{title}</h2>
        <span>{gpu.name}</span>
        <span class="weak">{gpuFacts(gpu).join(" · ")}</span>
        <span class="spacer" />
        <Button
          class="link"
          title="Its metrics and its streams, at the top of the timeline"
          onClick={() => actions.onTimeline(gpu)}
        >
          on the timeline
        </Button>
        {ladder && (
          <Button class="link" onClick={actions.onKernels}>
            its kernels
          </Button>
        )}
        {onClose && <Close onClick={onClose} />}
      </header>
      {ladder && <p class="bold">{lossSentence(ladder, idle)}</p>}
      <div class="gpu-sides rows">
        {ladder && (
          <div class="gpu-side rows">
            <h3>From its launches</h3>
            <GpuLadder ladder={ladder} name={title} />
            <HowCounted ladder={ladder} />
          </div>
        )}
        <div class={ladder ? "gpu-side rows" : "gpu-side rows alone"}>
          <h3>
            Measured by the GPU
            {gpu.measured && " over the whole run"}
          </h3>
          {!ladder && gpu.measured && <p class="weak">{withoutKernels(gpu)}</p>}
          <GpuMeasured gpu={gpu} notRead={notRead} />
          {gpu.measured && gpu.process !== undefined && !gpu.by_uuid && (
            <p class="weak">Of the GPU with the same number on its machine: its uuid is not known.</p>
          )}
        </div>
      </div>
      {gpu.split && (
        <Time
          split={gpu.split}
          idle={idle}
          folded={folded}
          onGap={actions.onGap}
          title={title}
          narrow={onClose !== undefined}
        />
      )}
      <Properties gpu={gpu} />
    </section>
  );
}

const withoutKernels = ({ process }: Gpu): string =>
  process === undefined
    ? "Nothing of this run was recorded on it: what it did, other programs may have asked for."
    : "No kernel ran on it: it only copied.";

type TimeProps = Pick<Props, "idle" | "folded" | "onGap"> & {
  readonly split: Split;
  readonly title: string;
  readonly narrow: boolean;
};

function Time({ split, idle, folded, onGap, title, narrow }: TimeProps) {
  return (
    <div class="gpu-time">
      <h3>Its time: {formatDuration(split.durationNs)} from first to last work</h3>
      <GpuSplit name={title} split={split} narrow={narrow} />
      {idle && idle.length > 0 && (
        <ul class="idle-causes fine wraps" aria-label={`Why ${title} idled`}>
          <li class="weak">of the idle time{folded && ", in folded steps as in those kept of their class"}:</li>
          {idle
            .filter(({ share }) => share >= LEAST_CAUSE)
            .map(({ cause, idleNs, share, longest }) => (
              <li key={cause} title={causeSentence(cause)}>
                <b>{formatShare(share)}</b>
                <span>{causeTitle(cause)}</span>
                <span class="weak">{formatDuration(idleNs)}</span>
                {longest && (
                  <Button class="link" title="Show it on the timeline" onClick={() => onGap(longest)}>
                    longest {formatDuration(longest.durationNs)}
                  </Button>
                )}
              </li>
            ))}
        </ul>
      )}
    </div>
  );
}

function Properties({ gpu }: { gpu: Gpu }) {
  const rows: readonly (readonly [string, string])[] = [
    ["uuid", gpu.uuid],
    ["machine", gpu.host],
    ["process", gpu.process === undefined ? "" : String(gpu.process)],
    ...gpu.properties.map(
      ({ name, value, unit }) => [name, unit ? formatQuantity(value, unit) : formatCount(value)] as const,
    ),
  ];
  const known = rows.filter(([, text]) => text);
  return (
    <details class="gpu-properties fine">
      <summary>What this GPU is: {plural(known.length, "fact")}</summary>
      <Facts of={known} />
    </details>
  );
}
