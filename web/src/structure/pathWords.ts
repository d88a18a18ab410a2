// Why the steps of an iteration stack do not all take the usual path, in a sentence. Pure.
import { shortName } from "../base/names";
import { formatCount, formatShare, plural } from "../base/quantity";
import type { StackHeader } from "../data/wire/wire.generated";

/** With more filled cells than this, the picture shows the differences itself. */
const ENOUGH = 0.95;

const listOf = (named: StackHeader["path_facts"]["absent"]): string =>
  named.map(({ name, steps }) => `${shortName(name)} (${plural(steps, "step")})`).join(", ");

/** The sentence; "" where the picture needs none. */
export function pathSentence({ path_facts: facts, shown }: Pick<StackHeader, "path_facts" | "shown">): string {
  const { aligned, usual_steps: usual, paths, absent, extra } = facts;
  if (aligned >= ENOUGH || shown < 2) return "";
  const reasons = [
    absent.length && `some steps lack ${listOf(absent)}`,
    extra.length && `some have more: ${listOf(extra)}`,
  ].filter(Boolean);
  return (
    `${formatShare(aligned)} of the cells are filled: ${formatCount(usual)} of ${plural(shown, "step")} ` +
    `${usual === 1 ? "takes" : "take"} the usual path, of ${plural(paths, "path")}${reasons.length ? "; " : ""}${reasons.join("; ")}.`
  );
}
