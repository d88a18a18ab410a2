// All functions as a table: what each costs alone and with what it calls.
import { useMemo } from "preact/hooks";
import { formatCount, formatShare } from "../base/quantity";
import type { CallTree } from "../data/callTree";
import { Swatch } from "../widgets/figures";
import { Grid, SortHeading } from "../widgets/tables/Grid";
import { REGION_ORDERS, type RegionOrder, type RegionRow, sortRegions } from "./regionRows";
import { amount } from "./treeWords";

/** Title and width of each column. */
const COLUMNS: Readonly<Record<RegionOrder["by"], readonly [string, string]>> = {
  name: ["function", "auto"],
  calls: ["calls", "84px"],
  self: ["self", "108px"],
  total: ["total", "108px"],
};

type Props = {
  readonly tree: CallTree;
  readonly rows: readonly RegionRow[];
  readonly allNs: number;
  readonly order: RegionOrder;
  readonly onOrder: (order: RegionOrder) => void;
  readonly chosen: number;
  readonly onChoose: (region: number) => void;
};

export function RegionTable({ tree, rows, allNs, order, onOrder, chosen, onChoose }: Props) {
  const sorted = useMemo(() => sortRegions(rows, order), [rows, order]);
  const at = sorted.findIndex((row) => row.region === chosen);
  const cell = (ns: number) => (
    <td class="number" title={tree.about.unit ? undefined : `${Math.round(ns)} ns`}>
      {amount(tree, ns)} <span class="weak share">{formatShare(allNs ? ns / allNs : 0)}</span>
    </td>
  );
  return (
    <Grid
      kind="regions"
      label="Functions"
      rows={sorted}
      at={at}
      idOf={(row) => `region-row-${row.region}`}
      headings={REGION_ORDERS.map((by) => (
        <SortHeading
          key={by}
          title={COLUMNS[by][0]}
          width={COLUMNS[by][1]}
          class={by === "name" ? "" : "number"}
          down={order.by === by ? order.down : undefined}
          onSort={() => onOrder({ by, down: order.by === by ? !order.down : by !== "name" })}
        />
      ))}
      cells={(row) => (
        <>
          <td title={row.name}>
            <Swatch group={row.group} /> {row.name}
          </td>
          <td class="number">{formatCount(row.calls)}</td>
          {cell(row.selfNs)}
          {cell(row.totalNs)}
        </>
      )}
      onChoose={(row) => onChoose(row.region)}
    />
  );
}
