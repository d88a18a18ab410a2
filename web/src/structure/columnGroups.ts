// The groups of columns in the iteration stack: by part of the step on each thread and GPU, and by module. Pure.
import type { Position } from "../data/wire/wire.generated";

export type ColumnGroup = {
  /** Columns [from, to) of the picture. */
  readonly from: number;
  readonly to: number;
  /** Its positions in the address: first_end. */
  readonly key: string;
  readonly folded: boolean;
  readonly band: string;
  readonly part: Position["part"];
  readonly module: string;
};

/** Neighbours of the same band and part, and, `byModule`, of the same module; the end of the step is in none. */
export function columnGroups(positions: readonly Position[], byModule: boolean): readonly ColumnGroup[] {
  const groups: ColumnGroup[] = [];
  positions.slice(0, -1).forEach(({ band, part, module: all, position, count, folded }, column) => {
    const module = byModule ? all : "";
    const last = groups.at(-1);
    const [first] = last?.key.split("_") ?? [];
    const end = position + count;
    const [from, to] = [column, column + 1];
    if (last?.band === band && last.part === part && last.module === module)
      groups[groups.length - 1] = { ...last, to, key: `${first}_${end}`, folded: false };
    else groups.push({ from, to, key: `${position}_${end}`, folded, band, part, module });
  });
  return groups;
}

const rangeOf = (key: string): readonly [number, number] => {
  const [first = 0, end = 0] = key.split("_").map(Number);
  return [first, end];
};

/** The folded groups after one was folded, or, where it is, unfolded; what lies in a group is folded with it. */
export function toggled(folded: readonly string[], key: string): readonly string[] {
  const [first, end] = rangeOf(key);
  const others = folded.filter((one) => {
    const [from, to] = rangeOf(one);
    return from < first || to > end;
  });
  return folded.includes(key) ? others : [...others, key];
}
