// Who holds memory, and for what: its curve by category, what is in use at the peak as a flame graph, and its owners.
import { useMemo } from "preact/hooks";
import { areaColor, changeColor, type Theme } from "../base/color";
import { type CallTree, fetchMemoryTree, frameOf, nodeOfFrame } from "../data/callTree";
import type { Series } from "../data/readings";
import type { Run } from "../data/run";
import { load, useSession } from "../data/session";
import { FlamePanel } from "../profile/FlamePanel";
import { flameOf } from "../profile/flameLayout";
import { flameSummary, nodeFacts } from "../profile/treeWords";
import type { View } from "../state/view";
import { AwaitWithRun } from "../widgets/Loading";
import { MEMORY_CATEGORIES, memoryCharts } from "../widgets/memoryCharts";
import { RunChart } from "../widgets/RunChart";
import { AnalysisPage } from "../widgets/tables/AnalysisPage";

const NAME = "memory_owners";
const CHART_HEIGHT = 130;

const MemoryPage = () => (
  <AnalysisPage
    name={NAME}
    label="Owners of memory"
    cells={[]}
    also={["function"]}
    above={(run, table) => table.rows > 0 && <Pictures run={run} />}
  />
);

function Pictures({ run }: { readonly run: Run }) {
  const session = useSession();
  const theme = session.theme.value;
  const series = session.series.value;
  const known = series.status === "ready" ? series.value : undefined;
  const charts = useMemo(() => memoryCharts(known ?? []), [known]);
  const tree = useMemo(() => load(() => fetchMemoryTree(session.api)), [session]);
  const colored = useMemo(
    () =>
      charts.map(({ title, parts }) => ({
        title,
        series: parts.map(({ series: one }): Series => one),
        colors: parts.map(({ category }) => colorOf(category, theme)),
      })),
    [charts, theme],
  );
  return (
    <section class="memory-pictures surface rows gap-6 fixed" aria-label="Memory over time, and at its peak">
      {colored.map((chart) => (
        <RunChart key={chart.title} run={run} {...chart} height={CHART_HEIGHT} stacked />
      ))}
      <AwaitWithRun of={tree.value} what="Summing up blocks">
        {(_, value) => <AtPeak tree={value} />}
      </AwaitWithRun>
    </section>
  );
}

/** The cache, which nobody uses, is grey. */
const colorOf = (category: (typeof MEMORY_CATEGORIES)[number], theme: Theme) =>
  category === "cache"
    ? changeColor("same", theme)
    : areaColor(MEMORY_CATEGORIES.indexOf(category), MEMORY_CATEGORIES.length - 1, theme);

/** What is in use at the peak, by the call paths that allocated it. */
function AtPeak({ tree }: { readonly tree: CallTree }) {
  const session = useSession();
  const { frame } = session.state.value;
  const flame = useMemo(() => flameOf(tree, "host", true), [tree]);
  const node = useMemo(() => nodeOfFrame(tree, frame), [tree, frame]);
  if (!flame.total) return null;
  return (
    <>
      <p class="weak fine">
        {tree.about.about}, by who allocated it{tree.about.note && `. ${tree.about.note}`}
      </p>
      <FlamePanel
        tree={tree}
        flame={flame}
        title="Memory in use at the peak"
        label={flameSummary(tree, flame, tree.about.about)}
        zoomed={node}
        facts={(one) => nodeFacts(tree, one, "host", flame.total)}
        onChoose={(one) => session.update({ frame: one < 0 ? "" : frameOf(tree, one) }, "push")}
        onReset={() => session.update({ frame: "" }, "push")}
      />
    </>
  );
}

export const view: View = {
  name: "memory",
  title: "Memory",
  component: MemoryPage,
  chosen: ["row", "frame"],
  analysis: NAME,
};
