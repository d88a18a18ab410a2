// The loops of a run as a tree: how often each runs, in which other one, and which of them is the step.

import type { ComponentChildren } from "preact";
import { css, PART_TITLES, partColor } from "../base/color";
import { PARTS } from "../base/kinds.generated";
import { shortName } from "../base/names";
import { formatCount, formatShare } from "../base/quantity";
import { formatDuration } from "../base/time";
import { useSession } from "../data/session";
import type { Level, Structure } from "../data/wire/wire.generated";
import { Button } from "../widgets/controls";

type Props = {
  readonly structure: Structure;
  /** Time of all steps by part. */
  readonly partsNs: Readonly<Record<string, number>>;
  readonly runNs: number;
  /** Marker of the level whose iterations count as the steps; "" is the one that was found. */
  readonly chosen: string;
  readonly onLevel: (level: Level) => void;
};

const STREAMS: Readonly<Record<string, string>> = {
  calls: "calls of functions",
  operators: "operators",
  kernels: "kernels in launch order",
  mpi: "calls of MPI",
};

/** "12 ×", "5–7 ×": how often in one iteration of the loop around it. */
export function tripsText([low = 0, middle = 0, high = 0]: readonly number[]): string {
  return `${low === high ? formatCount(middle) : `${formatCount(low)}–${formatCount(high)}`} ×`;
}

/** Levels with their depth in the tree, each before what lies in it. */
export function inOrder(levels: readonly Level[]): { readonly level: Level; readonly depth: number }[] {
  const known = new Set(levels.map((level) => level.id));
  const below = (parent: number, depth: number): { readonly level: Level; readonly depth: number }[] =>
    levels
      .filter((level) => (known.has(level.parent) ? level.parent : -1) === parent && level.id !== parent)
      .sort((a, b) => b.share - a.share)
      .flatMap((level) => [{ level, depth }, ...below(level.id, depth + 1)]);
  return below(-1, 0);
}

export function LoopTree({ structure, partsNs, runNs, chosen, onLevel }: Props) {
  const { levels, confidence, reason, stream } = structure;
  const rows = inOrder(levels);
  const isStep = (level: Level): boolean => (chosen ? chosen === (level.marker || level.name) : level.is_step);
  return (
    <section class="loop-tree" aria-labelledby="loops-title">
      <header class="row">
        <h2 id="loops-title">Loops</h2>
        {levels.length > 0 && (
          <span class={`confidence weak finer confidence-${confidence}`}>{confidence} confidence</span>
        )}
      </header>
      <p class="weak fine">
        {levels.length ? reason : `No loop was found: ${reason}`}
        {levels.length > 0 && STREAMS[stream] && ` (seen in ${STREAMS[stream]})`}
      </p>
      {levels.length > 0 && (
        <ul class="loops">
          <li class="loop cells">
            <span class="loop-name ellipsis">run</span>
            <span class="number weak">{formatDuration(runNs)}</span>
          </li>
          {rows.map(({ level, depth }) => (
            <LevelRow key={level.id} level={level} isStep={isStep(level)} depth={depth + 1} onLevel={onLevel}>
              {isStep(level) && <Parts partsNs={partsNs} depth={depth + 2} />}
            </LevelRow>
          ))}
        </ul>
      )}
      {levels.length > 0 && structure.expression && (
        <details class="expression fine">
          <summary>As one expression</summary>
          <code>{structure.expression}</code>
        </details>
      )}
    </section>
  );
}

/** Place of a row in the tree, and its share of the time as a bar behind it. */
function row(depth: number, share: number, color = "var(--accent)"): Record<string, string> {
  const fill = `color-mix(in srgb, ${color} 17%, transparent)`;
  const until = `${(100 * Math.min(1, share)).toFixed(1)}%`;
  return {
    paddingLeft: `${3 + depth * 10}px`,
    backgroundImage: `linear-gradient(90deg, ${fill} ${until}, transparent ${until})`,
  };
}

type LevelRowProps = Pick<Props, "onLevel"> & {
  readonly level: Level;
  readonly isStep: boolean;
  readonly depth: number;
  readonly children: ComponentChildren;
};

function LevelRow({ level, isStep, depth, onLevel, children }: LevelRowProps) {
  // "step" and "loop in train" mean less than the name that the iterations begin with.
  const named = level.name !== "" && level.name !== "step" && !level.name.startsWith("loop ");
  const facts = [
    ...(named ? [] : [level.name]),
    `marked by ${level.marker}`,
    `${formatCount(level.count)} iterations, ${formatDuration(level.time_ns)} in ${level.in_detail === undefined ? "all" : `the ${formatCount(level.in_detail)} in detail`}`,
    `${level.spine.toFixed(0)} events and transitions repeat with it`,
    `covers ${formatShare(level.coverage)}, varies by ${formatShare(level.cvn)}, score ${level.score.toFixed(2)}`,
  ].join("\n");
  return (
    <>
      <li class={isStep ? "loop cells is-step" : "loop cells"} style={row(depth, level.share)}>
        <Button
          class="plain loop-button row gap-5"
          title={`${facts}${isStep ? "" : "\nClick to count its iterations as the steps"}`}
          aria-pressed={isStep}
          onClick={() => onLevel(level)}
        >
          <span class="loop-name ellipsis">
            <span aria-hidden="true">⟳ </span>
            {shortName(named ? level.name : level.marker)}
          </span>
          {isStep && <span class="step-badge fixed">step</span>}
        </Button>
        <span class="number weak">{level.parent < 0 ? `${formatCount(level.count)} ×` : tripsText(level.trips)}</span>
        <span class="number weak">{formatShare(level.share)}</span>
      </li>
      {children}
    </>
  );
}

/** What a step is made of: its parts, over all steps. */
function Parts({ partsNs, depth }: { partsNs: Readonly<Record<string, number>>; depth: number }) {
  const theme = useSession().theme.value;
  const sums = PARTS.map((phase) => ({ phase, ns: partsNs[phase] ?? 0 }));
  const total = sums.reduce((sum, { ns }) => sum + ns, 0);
  if (total <= 0) return null;
  return (
    <>
      {sums
        .filter(({ ns }) => ns > 0)
        .map(({ phase, ns }) => (
          <li class="loop cells" key={phase} style={row(depth, ns / total, css(partColor(phase, theme)))}>
            <span class="loop-button row gap-5">
              <i style={{ background: css(partColor(phase, theme)) }} />
              <span class="loop-name ellipsis">{PART_TITLES[phase]}</span>
            </span>
            <span />
            <span class="number weak">{formatShare(ns / total)}</span>
          </li>
        ))}
    </>
  );
}
