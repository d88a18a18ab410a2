// How the drawer of the timeline is looked at, and its fields in the address.
import type { TimeRange } from "../base/time";

export const DRAWER_TABS = ["profile", "durations", "processes"] as const;
export const BARS_BY = ["group", "region"] as const;
export const BARS_SORTS = ["cluster", "rank", "time"] as const;
export type DrawerTab = (typeof DRAWER_TABS)[number];
export type BarsBy = (typeof BARS_BY)[number];
export type BarsSort = (typeof BARS_SORTS)[number];

export type DrawerView = {
  /** What it shows; "" is closed. */
  readonly tab: DrawerTab | "";
  /** Its height, in CSS pixels. */
  readonly tallPx: number;
  /** Durations of the chosen region that are listed, in ns. */
  readonly lasting: TimeRange | undefined;
  /** What the bars of processes are made of, and how many clusters there are (0: as many as stand out). */
  readonly by: BarsBy;
  readonly clusters: number;
  readonly sort: BarsSort;
};

export const DRAWER_VIEW: DrawerView = {
  tab: "",
  tallPx: 280,
  lasting: undefined,
  by: "group",
  clusters: 0,
  sort: "cluster",
};
const SHORTEST_DRAWER = 120;
const TALLEST_DRAWER = 2000;
export const MOST_CLUSTERS = 16;

/** Reads the drawer's fields. Whatever it cannot understand is as it comes. */
export function parseDrawer(get: (name: string) => string | undefined): DrawerView {
  const [tab, tall] = (get("drawer") ?? "").split("-");
  const [by, sort, clusters] = (get("bars") ?? "").split("-");
  const [, low, high] = (/^(\d{1,15})-(\d{1,15})$/.exec(get("lasting") ?? "") ?? []).map(Number);
  const count = Number(clusters);
  return {
    tab: DRAWER_TABS.find((one) => one === tab) ?? "",
    tallPx: tall && /^\d+$/.test(tall) ? tallness(Number(tall)) : DRAWER_VIEW.tallPx,
    lasting: low !== undefined && high !== undefined && high >= low ? { startNs: low, endNs: high } : undefined,
    by: BARS_BY.find((one) => one === by) ?? DRAWER_VIEW.by,
    sort: BARS_SORTS.find((one) => one === sort) ?? DRAWER_VIEW.sort,
    clusters: Number.isInteger(count) && count >= 0 && count <= MOST_CLUSTERS ? count : 0,
  };
}

/** A height that a drawer may have. */
export const tallness = (px: number): number => Math.round(Math.min(TALLEST_DRAWER, Math.max(SHORTEST_DRAWER, px)));

/** Writes them; what is as it comes is left out. */
export function drawerFields(view: DrawerView): [string, string][] {
  const fields: [string, string][] = [];
  if (view.tab || view.tallPx !== DRAWER_VIEW.tallPx) fields.push(["drawer", `${view.tab}-${view.tallPx}`]);
  if (view.lasting) fields.push(["lasting", `${Math.round(view.lasting.startNs)}-${Math.round(view.lasting.endNs)}`]);
  if (view.by !== DRAWER_VIEW.by || view.sort !== DRAWER_VIEW.sort || view.clusters)
    fields.push(["bars", `${view.by}-${view.sort}-${view.clusters}`]);
  return fields;
}
