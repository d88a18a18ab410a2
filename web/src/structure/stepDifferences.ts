import type { Iteration, Position } from "../data/wire/wire.generated";
// The iteration stack in words: how a value compares, and what made a step differ most. Pure.

/** "2.1 × as long as usual", "half as long as usual". */
export function comparedWith(value: number, usual: number): string {
  if (usual <= 0) return value <= 0 ? "as usual" : "usually none";
  const factor = value / usual;
  if (Math.abs(factor - 1) < 0.05) return "as usual";
  if (factor > 1) return `${factorText(factor)} usual`;
  return `${Math.round(factor * 100)} % of usual`;
}

/** "1.4 ×", "89 ×". */
export const factorText = (factor: number): string => `${factor < 9.95 ? factor.toFixed(1) : Math.round(factor)} ×`;

export type Difference = {
  readonly kind: "duration" | "gap" | "extra";
  readonly name: string;
  readonly column: number;
  readonly ns: number;
  readonly usualNs: number;
  readonly excessNs: number;
};

/** Sum of the values of a column's positions; undefined where the step has none of them. */
export function columnValue(values: readonly (number | undefined)[], column: Position): number | undefined {
  const members = values.slice(column.position, column.position + column.count).filter((ns) => ns !== undefined);
  return members.length ? members.reduce((sum, ns) => sum + ns, 0) : undefined;
}

/** What made a step longer or shorter than usual, the largest differences first. */
export function differences(step: Iteration, positions: readonly Position[], most: number): Difference[] {
  const found: Difference[] = [];
  positions.forEach((position, column) => {
    const add = (kind: "duration" | "gap", ns: number | undefined, usualNs: number): void => {
      if (ns !== undefined) found.push({ kind, name: position.name, column, ns, usualNs, excessNs: ns - usualNs });
    };
    add("duration", columnValue(step.duration_ns, position), position.median_ns);
    add("gap", columnValue(step.gap_ns, position), position.median_gap_ns);
  });
  for (const extra of step.extras) {
    const column = positions.findIndex((p) => p.position + p.count > extra.before);
    const ns = extra.duration_ns;
    found.push({ kind: "extra", name: extra.name, column: Math.max(0, column), ns, usualNs: 0, excessNs: ns });
  }
  return found
    .filter((one) => one.excessNs !== 0)
    .sort((a, b) => Math.abs(b.excessNs) - Math.abs(a.excessNs))
    .slice(0, most);
}
