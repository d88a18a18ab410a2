// What the time of a GPU went into, as a bar: computing, only communicating, only copying, and nothing.

import { groupColor, type Rgb } from "../../base/color";
import type { Group } from "../../base/kinds.generated";
import { formatShare } from "../../base/quantity";
import { useSession } from "../../data/session";
import { PartBar } from "../figures";

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
  const part = (name: string, does: string, share: number, color: Rgb | undefined) => ({
    name,
    grow: share,
    color,
    title: `${does} ${formatShare(share)}`,
    text: labelOf(does, share, room),
  });
  return (
    <PartBar
      label={`${name}: ${parts.join(", ")}, idle ${formatShare(split.idle)}`}
      parts={[
        ...KINDS.filter(([kind]) => split[kind] > 0).map(([kind, group, does]) =>
          part(kind, does, split[kind], groupColor(group, theme)),
        ),
        part("idle", "idle", split.idle, undefined),
      ]}
    />
  );
}
