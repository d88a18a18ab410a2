// All functions as a table: what each costs alone and with what it calls. Only the rows on the screen exist.
import { useMemo } from "preact/hooks";
import { css, groupColor } from "../base/color";
import { formatCount, formatShare } from "../base/quantity";
import type { CallTree } from "../data/callTree";
import { useSession } from "../data/session";
import { ROW_HEIGHT, useRows } from "../widgets/virtual";
import { REGION_ORDERS, type RegionOrder, type RegionRow, sortRegions } from "./regions";
import { amount } from "./words";

const TITLES: Readonly<Record<RegionOrder["by"], string>> = {
  name: "function",
  calls: "calls",
  self: "self",
  total: "total",
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
  const theme = useSession().theme.value;
  const sorted = useMemo(() => sortRegions(rows, order), [rows, order]);
  const at = sorted.findIndex((row) => row.region === chosen);
  const { scroller, rows: seen } = useRows(sorted.length, at);
  const walk = (by: number): void => {
    const next = sorted[Math.min(sorted.length - 1, Math.max(0, at < 0 ? 0 : at + by))];
    if (next) onChoose(next.region);
  };
  const actions: Readonly<Record<string, () => void>> = {
    ArrowUp: () => walk(-1),
    ArrowDown: () => walk(1),
    PageUp: () => walk(-seen.page),
    PageDown: () => walk(seen.page),
    Home: () => walk(-sorted.length),
    End: () => walk(sorted.length),
  };
  const cell = (ns: number) => (
    <td class="number" title={tree.about.unit ? undefined : `${Math.round(ns)} ns`}>
      {amount(tree, ns)} <span class="weak share">{formatShare(allNs ? ns / allNs : 0)}</span>
    </td>
  );
  return (
    <div class="grid regions" ref={scroller}>
      <table
        // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: a grid is a table that one walks through by keys
        role="grid"
        aria-label="Functions"
        aria-rowcount={sorted.length + 1}
        aria-activedescendant={at >= seen.first && at < seen.last ? `region-row-${chosen}` : undefined}
        tabIndex={0}
        onKeyDown={(event) => {
          const action = event.ctrlKey || event.metaKey || event.altKey ? undefined : actions[event.code];
          if (!action) return;
          event.preventDefault();
          event.stopPropagation();
          action();
        }}
      >
        <thead>
          <tr aria-rowindex={1}>
            {REGION_ORDERS.map((by) => (
              <th
                key={by}
                scope="col"
                class={by === "name" ? "" : "number"}
                aria-sort={order.by === by ? (order.down ? "descending" : "ascending") : "none"}
              >
                <button
                  type="button"
                  class="plain"
                  onClick={() => onOrder({ by, down: order.by === by ? !order.down : by !== "name" })}
                >
                  {TITLES[by]}
                  <span aria-hidden="true">{order.by === by ? (order.down ? " ↓" : " ↑") : ""}</span>
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          <tr class="grid-space" style={{ height: `${seen.first * ROW_HEIGHT}px` }} />
          {sorted.slice(seen.first, seen.last).map((row, i) => (
            <tr
              key={row.region}
              id={`region-row-${row.region}`}
              class={row.region === chosen ? "grid-row chosen" : "grid-row"}
              aria-rowindex={seen.first + i + 2}
              aria-selected={row.region === chosen}
              onPointerDown={() => onChoose(row.region)}
            >
              <td title={row.name}>
                <i style={{ background: css(groupColor(row.group, theme)) }} /> {row.name}
              </td>
              <td class="number">{formatCount(row.calls)}</td>
              {cell(row.selfNs)}
              {cell(row.totalNs)}
            </tr>
          ))}
          <tr class="grid-space" style={{ height: `${Math.max(0, sorted.length - seen.last) * ROW_HEIGHT}px` }} />
        </tbody>
      </table>
    </div>
  );
}
