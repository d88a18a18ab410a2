// What compiling takes of a run: for the first time, and again. Pure.

import type { Compilation } from "../../data/compilations";

export type CompilePart = {
  readonly name: "first" | "again" | "rest";
  readonly title: string;
  readonly ns: number;
  readonly share: number;
};

const sum = (of: readonly number[]): number => of.reduce((all, one) => all + one, 0);

/** The parts of the time of all processes that compile; none where the length of the run is not known. */
export function compileParts(rows: readonly Compilation[]): readonly CompilePart[] {
  const part = (name: "first" | "again", title: string, own: readonly Compilation[]): CompilePart => ({
    name,
    title: `${title} (${own.length})`,
    ns: sum(own.map(({ durationNs }) => durationNs)),
    share: sum(own.map(({ runShare = 0 }) => runShare)),
  });
  const parts = [
    part(
      "first",
      "compiled for the first time",
      rows.filter(({ again }) => !again),
    ),
    part(
      "again",
      "compiled again",
      rows.filter(({ again }) => again),
    ),
  ];
  const [ns, share] = [sum(parts.map((one) => one.ns)), sum(parts.map((one) => one.share))];
  if (!share) return [];
  const rest = Math.max(0, 1 - share);
  return [
    ...parts.filter((one) => one.ns > 0),
    { name: "rest", title: "the rest of the run", ns: Math.round((ns / share) * rest), share: rest },
  ];
}
