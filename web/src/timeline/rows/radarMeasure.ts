// What a radar shows: a metric, or the share of time in a group or a region.

import { GROUP_TITLES, isGroup } from "../../base/color";
import { GROUPS, type Group } from "../../base/kinds.generated";
import { shortName } from "../../base/names";
import type { Series } from "../../data/readings";

export function measureTitle(measure: string): string {
  const [kind, name] = [measure.slice(0, measure.indexOf(".")), measure.slice(measure.indexOf(".") + 1)];
  if (kind === "group") return `share of ${isGroup(name) ? groupTitle(name) : name}`;
  return kind === "region" ? `share of ${shortName(name)}, where it runs most` : name;
}

const groupTitle = (group: Group): string => GROUP_TITLES[group].toLowerCase();

/** All measures that one may choose, the chosen one among them. */
export function measures(series: readonly Series[], region: string, chosen: string): string[] {
  const known = [
    ...GROUPS.map((group) => `group.${group}`),
    ...(region ? [`region.${region}`] : []),
    ...new Set(series.filter((one) => one.highest > 0).map((one) => `metric.${one.metric}`)),
  ];
  return known.includes(chosen) ? known : [...known, chosen];
}
