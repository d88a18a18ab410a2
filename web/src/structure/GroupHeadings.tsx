// Above the columns of the iteration stack: the parts of the step on each thread and GPU, and the modules; each folds.
import { css, PART_TITLES, partColor } from "../base/color";
import { shortName } from "../base/names";
import { plural } from "../base/quantity";
import { useSession } from "../data/session";
import { Button } from "../widgets/controls";
import { type ColumnGroup, toggled } from "./columnGroups";
import { FRAME, HEADING_HEIGHT, type StackScene } from "./drawStack";

/** Narrower groups have no heading: the key F folds them. */
const NARROWEST = 24;

export function useFold(): (group: ColumnGroup | undefined) => void {
  const session = useSession();
  return (group) => {
    const { stack } = session.state.value;
    if (group) session.update({ stack: { ...stack, folded: toggled(stack.folded, group.key) } });
  };
}

export function GroupHeadings({ scene }: { scene: StackScene }) {
  const { parts, modules } = scene;
  return (
    <>
      <Line groups={parts} scene={scene} top={0} label="Parts of the step" />
      {modules.length > 0 && <Line groups={modules} scene={scene} top={HEADING_HEIGHT} label="Modules" />}
    </>
  );
}

type LineProps = {
  readonly groups: readonly ColumnGroup[];
  readonly scene: StackScene;
  readonly top: number;
  readonly label: string;
};

function Line({ groups, scene, top, label }: LineProps) {
  const theme = useSession().theme.value;
  const fold = useFold();
  const { edges, stack } = scene;
  return (
    <div class="stack-headings" role="toolbar" aria-label={label}>
      {groups.map((group) => {
        const [left, right] = [edges[group.from] ?? 0, edges[group.to] ?? 0];
        if (right - left < NARROWEST || (!group.module && label === "Modules")) return undefined;
        const what = group.module ? shortName(group.module) : PART_TITLES[group.part];
        const columns = stack.positions.slice(group.from, group.to).reduce((sum, { count }) => sum + count, 0);
        return (
          <Button
            key={group.key}
            aria-expanded={!group.folded}
            title={`${group.band} · ${group.module || what}: ${plural(columns, "position")}. ${group.folded ? "Unfold" : "Fold"} (F)`}
            style={{
              left: `${FRAME.left + left}px`,
              width: `${right - left - 2}px`,
              top: `${top}px`,
              borderBottomColor: css(partColor(group.part, theme)),
            }}
            onClick={() => fold(group)}
          >
            {group.folded ? "▸" : "▾"} {what}
            {!group.module && scene.parts.some(({ band }) => band !== group.band) && (
              <span class="weak"> {group.band}</span>
            )}
          </Button>
        );
      })}
    </div>
  );
}
