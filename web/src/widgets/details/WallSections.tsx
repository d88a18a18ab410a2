// What wall-clock time went into, in sections that are never added up: main threads, GPUs, communication on both.
import { css, GROUP_TITLES, groupColor, isGroup } from "../../base/color";
import type { Group } from "../../base/kinds.generated";
import { formatShare, plural } from "../../base/quantity";
import { formatDuration, length, type TimeRange } from "../../base/time";
import { useSession } from "../../data/session";
import { stretchOf } from "../../data/wire/api";
import type { WallTime } from "../../data/wire/wire.generated";
import { UsageRow } from "../figures";
import { useRested } from "../useAnswer";

/** Smaller parts are not listed. */
const SMALLEST = 0.0005;

type Part = WallTime["host"][number];

const HOST_TITLES: Readonly<Record<string, string>> = {
  ...GROUP_TITLES,
  folded: "Steps that were kept as statistics only",
  idle: "Nothing recorded ran",
};
const GPU_TITLES: Readonly<Record<string, string>> = {
  computation: "Computation",
  communication: "Communication alone",
  copy: "Copies alone",
  idle: "Idle",
};

export function WallSections({ range }: { range: TimeRange }) {
  const session = useSession();
  const { value, failure } = useRested(`${range.startNs}-${range.endNs}`, (signal) =>
    session.api.json("window/wall", stretchOf(range), signal),
  );
  if (failure.value) return <p class="empty">{failure.value}</p>;
  const wall = value.value;
  if (!wall) return null;
  const { main_threads, host, others, gpus, gpu } = wall;
  return (
    <>
      {main_threads > 0 && (
        <section class="rows gap-6" aria-label="Host">
          <h3>{main_threads > 1 ? `Host: mean of ${main_threads} main threads` : "Host: main thread"}</h3>
          <WallBar parts={host} titles={HOST_TITLES} range={range} />
          {others.length > 0 && (
            <ul class="usage rows gap-2 fine" aria-label="Other threads">
              {others.map(({ location, name, share }) => (
                <Line key={location} group="other" name={`beside: ${name}`} share={share} range={range} />
              ))}
            </ul>
          )}
        </section>
      )}
      {gpus > 0 && (
        <section class="rows gap-6" aria-label="GPU">
          <h3>{gpus > 1 ? `GPU: mean of ${plural(gpus, "GPU")}` : "GPU"}</h3>
          <WallBar parts={gpu} titles={GPU_TITLES} range={range} />
        </section>
      )}
      <Communication wall={wall} range={range} />
      <p class="weak finer">
        Parts of the wall-clock time of this stretch. Threads and GPUs run at once: their times are not added up.
      </p>
    </>
  );
}

type LineProps = {
  readonly group: Group | undefined;
  readonly name: string;
  readonly share: number;
  readonly range: TimeRange;
};

/** A part of the wall-clock time of a stretch, as time and as share. */
const Line = ({ group, name, share, range }: LineProps) => (
  <UsageRow group={group} name={name} title={name} amount={formatDuration(share * length(range))} share={share} />
);

function Communication({ wall, range }: { wall: WallTime; range: TimeRange }) {
  const { host_communication, gpu_communication, hidden_communication } = wall;
  if (!host_communication && !gpu_communication) return null;
  return (
    <section class="rows gap-6" aria-label="Communication">
      <h3>Communication</h3>
      <ul class="usage rows gap-2 fine">
        {host_communication > 0 && (
          <Line group="communication" name="on main threads" share={host_communication} range={range} />
        )}
        {gpu_communication > 0 && (
          <>
            <Line group="communication" name="on GPUs" share={gpu_communication} range={range} />
            <Line group="compute" name="of it, beside computation" share={hidden_communication} range={range} />
          </>
        )}
      </ul>
    </section>
  );
}

type BarProps = {
  readonly parts: readonly Part[];
  readonly titles: Readonly<Record<string, string>>;
  readonly range: TimeRange;
};

/** Parts of wall-clock time as a bar and as lines; they add up to all of it. */
function WallBar({ parts, titles, range }: BarProps) {
  const theme = useSession().theme.value;
  const shown = parts
    .filter((part) => part.share >= SMALLEST)
    .map(({ name, group, share }) => ({
      name: titles[name] ?? name,
      group: isGroup(group) ? group : undefined,
      idle: group === "",
      share,
    }));
  return (
    <>
      <div
        class="usage-bar"
        role="img"
        aria-label={shown.map(({ name, share }) => `${name} ${formatShare(share)}`).join(", ")}
      >
        {shown.map(({ name, group, idle, share }) => (
          <span
            key={name}
            class={group ? undefined : idle ? "idle" : "hatched"}
            style={{ flexGrow: share, ...(group && { background: css(groupColor(group, theme)) }) }}
          />
        ))}
      </div>
      <ul class="usage rows gap-2 fine">
        {shown.map((part) => (
          <Line key={part.name} {...part} range={range} />
        ))}
      </ul>
    </>
  );
}
