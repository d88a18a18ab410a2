// What the time of a GPU went into, as a bar: computing, only communicating, only copying, and nothing.

import { css, groupColor, textOn } from "../../base/color";
import type { Group } from "../../base/kinds.generated";
import { formatShare } from "../../base/quantity";
import { useSession } from "../../data/session";

/** Parts narrower than this carry no label; those narrower than the second one carry a number only. */
const NARROWEST_SHARE = 0.04;
const ROOM_FOR_WORDS = 0.16;
/** Beside a table a bar has so many times less room. */
const NARROWER = 3;

type Kind = "computation" | "communication" | "copy";
export const KINDS: readonly (readonly [Kind, Group, string])[] = [
  ["computation", "compute", "computes"],
  ["communication", "communication", "only communicates"],
  ["copy", "copy", "only copies"],
];

const labelOf = (does: string, share: number, room: number): string =>
  share * room < NARROWEST_SHARE
    ? ""
    : share * room < ROOM_FOR_WORDS
      ? formatShare(share)
      : `${does} ${formatShare(share)}`;

type Props = {
  readonly name: string;
  readonly split: Readonly<Record<Kind | "idle", number>>;
  readonly narrow?: boolean;
};

export function GpuSplit({ name, split, narrow = false }: Props) {
  const room = narrow ? 1 / NARROWER : 1;
  const theme = useSession().theme.value;
  const parts = KINDS.map(([kind, , does]) => `${does} ${formatShare(split[kind])}`);
  return (
    <div class="step-bar" role="img" aria-label={`${name}: ${parts.join(", ")}, idle ${formatShare(split.idle)}`}>
      {KINDS.filter(([kind]) => split[kind] > 0).map(([kind, group, does]) => {
        const color = groupColor(group, theme);
        return (
          <div
            key={kind}
            style={{ flexGrow: split[kind], background: css(color), color: textOn(color) }}
            title={`${does} ${formatShare(split[kind])}`}
          >
            {labelOf(does, split[kind], room)}
          </div>
        );
      })}
      <div class="idle" style={{ flexGrow: split.idle }} title={`idle ${formatShare(split.idle)}`}>
        {labelOf("idle", split.idle, room)}
      </div>
    </div>
  );
}
