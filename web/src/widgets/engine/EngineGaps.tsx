// Why GPUs are idle in the steps of a serving engine: a bar for each class of steps, by what the host does meanwhile.
import { groupColor } from "../../base/color";
import type { Group } from "../../base/kinds.generated";
import { formatDuration } from "../../base/time";
import type { EngineGap } from "../../data/engine";
import { useSession } from "../../data/session";
import { PartedTime } from "../figures";
import { gapsByClass, gapWords } from "./engineWords";

const GROUPS: Readonly<Record<string, Group>> = {
  scheduler: "host",
  sampling: "compute",
  tokenising: "data",
  detokenising: "data",
  launch: "copy",
  wait: "sync",
  other: "other",
};

export function EngineGaps({ gaps }: { gaps: readonly EngineGap[] }) {
  const theme = useSession().theme.value;
  return (
    <div class="rows gap-14">
      {gapsByClass(gaps).map(({ name, idleNs, of }) => (
        <PartedTime
          key={name}
          name={name}
          label={`Idle in steps: ${name}`}
          about={`idle ${formatDuration(idleNs)} a step`}
          parts={of.map((gap) => ({
            name: `${gap.where} ${gap.cause}`,
            title: gapWords(gap),
            ns: gap.idleNs,
            share: gap.idleNs / idleNs,
            color: gap.cause ? groupColor(GROUPS[gap.cause] ?? "other", theme) : undefined,
          }))}
        />
      ))}
    </div>
  );
}
