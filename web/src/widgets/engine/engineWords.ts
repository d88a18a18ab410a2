// Gaps of an engine's steps in words, and by class of steps. Pure.

import { grouped } from "../../base/grouped";
import type { EngineGap } from "../../data/engine";

const CAUSES: Readonly<Record<string, string>> = {
  scheduler: "the scheduler",
  sampling: "sampling",
  tokenising: "tokenising",
  detokenising: "detokenising",
  launch: "until the next launch",
  wait: "the host waits for the GPU",
  other: "other functions",
  "": "not recorded",
};

/** "between steps: the scheduler, get_new_blocks (vllm/v1/core/block_pool.py:190)". */
export function gapWords({ where, cause, function: name, line }: EngineGap): string {
  const code = name && `, ${name}${line && ` (${line})`}`;
  return `${where === "between" ? "between steps" : "in the step"}: ${CAUSES[cause] ?? cause}${code}`;
}

type GapsOfClass = { readonly name: string; readonly idleNs: number; readonly of: readonly EngineGap[] };

/** What is below this part of the idle time of a class has no name of its own. */
const LEAST = 0.01;

/** The gaps of each class of each rank, most first, those between steps before the others. */
export function gapsByClass(gaps: readonly EngineGap[]): readonly GapsOfClass[] {
  const ranks = new Set(gaps.map(({ process }) => process)).size > 1;
  const named = ({ rank, process, class: name }: EngineGap): string =>
    ranks ? `${rank === undefined ? `process ${process}` : `rank ${rank}`} ${name}` : name;
  return [...grouped(gaps, named)].map(([name, own]) => {
    const idleNs = own.reduce((sum, gap) => sum + gap.idleNs, 0);
    const of = own
      .filter((gap) => gap.idleNs >= LEAST * idleNs)
      .sort((a, b) => a.where.localeCompare(b.where) || b.idleNs - a.idleNs);
    return { name, idleNs, of };
  });
}
