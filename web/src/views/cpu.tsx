// What cores and threads did: user, system, waiting, idle; over the run, and by class, part or step.
import { useMemo } from "preact/hooks";
import { groupColor, type Rgb, type Theme } from "../base/color";
import { formatShare } from "../base/quantity";
import type { Series } from "../data/readings";
import type { Run } from "../data/run";
import { useSession } from "../data/session";
import type { AnalysisTable } from "../data/tables/analysisTable";
import type { View } from "../state/view";
import { CPU_KINDS, cpuBars } from "../widgets/cpu/cpuBars";
import { PartBar, PartList } from "../widgets/figures";
import { RunChart } from "../widgets/RunChart";
import { AnalysisPage } from "../widgets/tables/AnalysisPage";

const NAME = "cpu";
const MOST_BARS = 12;
/** Parts of a bar that are narrower carry no number. */
const NARROWEST = 0.05;
const IDLE = "idle";
const OF_PROCESS = [
  ["cpu user", "user"],
  ["cpu system", "system"],
] as const;

const CpuPage = () => (
  <AnalysisPage
    name={NAME}
    label="CPU time"
    cells={[]}
    above={(run, table) => table.rows > 0 && <Pictures run={run} table={table} />}
  />
);

type Props = { readonly run: Run; readonly table: AnalysisTable };

function Pictures({ run, table }: Props) {
  const { series, state, theme } = useSession();
  const main = run.processes.find((one) => one.main)?.process ?? 0;
  const { process = main } = state.value;
  const known = series.value.status === "ready" ? series.value.value : undefined;
  const colorOf = useMemo(() => kindColors(theme.value), [theme.value]);
  const [machine, own] = useMemo(() => {
    const of = (name: string): Series[] =>
      known?.filter((one) => one.process === process && one.metric === name && one.highest > 0).slice(0, 1) ?? [];
    const chart = (names: readonly (readonly [metric: string, kind: string])[]) => {
      const shown = names.flatMap(([metric, kind]) => of(metric).map((one) => ({ one, color: colorOf(kind) })));
      return { series: shown.map(({ one }) => one), colors: shown.map(({ color }) => color) };
    };
    return [chart(CPU_KINDS.map(({ metric, name }) => [metric, name])), chart(OF_PROCESS)];
  }, [known, process, colorOf]);
  return (
    <section class="cpu-pictures surface rows gap-6 scrolls fixed" aria-label="Kinds of CPU time">
      <div class="columns rows gap-14">
        {machine.series.length > 0 && <RunChart run={run} {...machine} title="The machine" height={100} stacked />}
        {own.series.length > 0 && <RunChart run={run} {...own} title="The process" height={100} stacked />}
      </div>
      <Bars table={table} />
    </section>
  );
}

function Bars({ table }: Pick<Props, "table">) {
  const theme = useSession().theme.value;
  const colorOf = useMemo(() => kindColors(theme), [theme]);
  const bars = useMemo(() => cpuBars(table, MOST_BARS), [table]);
  return (
    <>
      <PartList parts={CPU_KINDS.map(({ name, title, group }) => ({ name, title, color: group && colorOf(name) }))} />
      {bars.map(({ row, title, shares }) => {
        const text = shares.map(({ kind, share }) => `${titleOf(kind)} ${formatShare(share)}`).join(", ");
        return (
          <div key={row} class="cells fine">
            <span class="ellipsis" title={title}>
              {title}
            </span>
            <PartBar
              label={`${title}: ${text}`}
              parts={shares
                .filter(({ share }) => share > 0)
                .map(({ kind, share }) => ({
                  name: kind,
                  grow: share,
                  color: kind === IDLE ? undefined : colorOf(kind),
                  title: `${titleOf(kind)}: ${formatShare(share)}`,
                  text: share >= NARROWEST && formatShare(share),
                }))}
            />
          </div>
        );
      })}
    </>
  );
}

/** The colour of each kind; that of idle is only used where there is a line around it. */
const kindColors =
  (theme: Theme) =>
  (kind: string): Rgb =>
    groupColor(CPU_KINDS.find(({ name }) => name === kind)?.group ?? "other", theme);

const titleOf = (kind: string): string => CPU_KINDS.find(({ name }) => name === kind)?.title ?? kind;

export const view: View = {
  name: NAME,
  title: "CPU",
  component: CpuPage,
  chosen: ["row"],
  analysis: NAME,
};
