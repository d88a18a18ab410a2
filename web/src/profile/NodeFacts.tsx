// The facts about the chosen call path, and the way to its spans.

import { useMemo } from "preact/hooks";
import { GROUP_TITLES } from "../base/color";
import { lineText } from "../base/names";
import { formatCount, formatShare, plural } from "../base/quantity";
import { formatDuration, formatMoment, length } from "../base/time";
import { type CallTree, spansOfNode, type TreePart } from "../data/callTree";
import type { Run } from "../data/run";
import { load, useSession } from "../data/session";
import { fetchNodeSpans, type Hits } from "../data/spanHits";
import type { ProfileMeasure } from "../state/address";
import { Button, Close } from "../widgets/controls";
import { BigNumbers, Facts, Swatch, UsageRow } from "../widgets/figures";
import { Await } from "../widgets/Loading";
import { jumpTo } from "../widgets/showOnTimeline";
import { selfOf, totalsOf } from "./flameLayout";
import { amount } from "./treeWords";

const SHOWN_SPANS = 12;
const SHOWN_PATH = 40;

export type Props = {
  readonly tree: CallTree;
  readonly node: number;
  readonly measure: ProfileMeasure;
  readonly allNs: number;
  readonly part: TreePart;
  readonly run: Run;
  readonly onNode: (node: number) => void;
  /** Who calls it and what it calls; undefined where that is on the screen. */
  readonly onSandwich?: (() => void) | undefined;
  readonly onClose: () => void;
};

export function NodeFacts({ tree, node, measure, allNs, part, run, onNode, onSandwich, onClose }: Props) {
  const session = useSession();
  const { region } = session.state.value;
  const [name, group] = [tree.name[node] ?? "", tree.group[node] ?? "other"];
  const total = totalsOf(tree, measure)[node] ?? 0;
  const calls = tree.calls[node] ?? 0;
  const device = tree.device[node] === 1;
  const parent = tree.parent[node] ?? -1;
  const path: number[] = [];
  for (let up = node; up >= 0 && path.length < SHOWN_PATH; up = tree.parent[up] ?? -1) path.unshift(up);
  const gpuNs = tree.gpuNs[node] ?? 0;
  const source = lineText(tree.file[node], tree.line[node]);
  const spans = useMemo(
    () => load(() => fetchNodeSpans(session.api, spansOfNode(tree, node, part))),
    [session, tree, node, part],
  );
  return (
    <section class="span-details rows gap-12" aria-label="Chosen call path">
      <header>
        <Swatch group={group} />
        <h2 title={name}>{name}</h2>
        <Close title="Clear (Esc)" onClick={onClose} />
      </header>
      <BigNumbers
        of={[
          [amount(tree, total), <>total, {formatShare(allNs ? total / allNs : 0)} of all</>],
          [amount(tree, selfOf(tree, node, measure)), measure === "gpu" ? "own work of the GPU" : "self"],
        ]}
      />
      <Facts
        of={[
          [
            "calls",
            <>
              {calls > 0 && `${formatCount(calls)} `}
              <span class="weak">
                {calls ? `· ${amount(tree, total / calls)} each` : "none in this part, but some inside of it"}
              </span>
            </>,
          ],
          [
            "kind",
            <>
              {GROUP_TITLES[group].toLowerCase()}
              {device && <span class="weak"> · on the GPU</span>}
            </>,
          ],
          ["launched", measure === "host" && gpuNs > 0 && `${amount(tree, gpuNs)} of GPU time`],
          ["on the host", measure === "gpu" && !device && amount(tree, tree.totalNs[node] ?? 0)],
          ["of caller", parent >= 0 && formatShare(total / Math.max(1, totalsOf(tree, measure)[parent] ?? 0))],
          ["source", source !== "" && <div class="source">{source}</div>],
        ]}
      />
      <div class="buttons">
        {onSandwich && <Button onClick={onSandwich}>Callers, callees</Button>}
        <Button
          aria-pressed={region === name}
          title="Its name stands out on every page"
          onClick={() => session.update({ region: region === name ? "" : name })}
        >
          {region === name ? "Stands out" : "Mark it"}
        </Button>
      </div>
      <h3>Spans</h3>
      <Await of={spans.value} what="Looking for its spans">
        {(value) => <SpanList spans={value} calls={calls} run={run} />}
      </Await>
      <h3>Call path</h3>
      <ol class="call-path rows fine">
        {path.map((each, depth) => (
          <li key={each} class="row" style={{ paddingLeft: `${Math.min(depth, 12) * 7}px` }} title={tree.name[each]}>
            <Swatch group={tree.group[each] ?? "other"} />
            {each === node ? (
              <span class="leaf">{tree.name[each]}</span>
            ) : (
              <Button class="plain" onClick={() => onNode(each)}>
                {tree.name[each]}
              </Button>
            )}
          </li>
        ))}
      </ol>
    </section>
  );
}

/** The longest spans, each a way to the timeline. */
function SpanList({ spans, calls, run }: { spans: Hits; calls: number; run: Run }) {
  const session = useSession();
  const names = new Map(run.locations.map((each) => [each.location, each.name]));
  const folded = calls - spans.count;
  const resolution = Math.max(1000, length(run.bounds) / 10_000);
  if (!spans.count)
    return (
      <p class="weak">{folded > 0 ? "None: it is known by its sums only, not when it ran." : "None in this part."}</p>
    );
  const shown = spans.hits.slice(0, SHOWN_SPANS);
  return (
    <>
      <p class="weak source-note">
        {spans.count > shown.length
          ? `The longest ${shown.length} of ${formatCount(spans.count)}`
          : plural(spans.count, "span")}
        {folded > 0 && `; ${formatCount(folded)} more calls are statistics only`}
      </p>
      <ul class="usage node-spans rows gap-2 fine" aria-label="Spans, longest first">
        {shown.map((hit) => (
          <UsageRow
            key={`${hit.location}-${hit.startNs}-${hit.depth}`}
            title={names.get(hit.location)}
            group={hit.group}
            name={<>at {formatMoment(hit.startNs, resolution)}</>}
            amount={formatDuration(hit.durationNs)}
            button={{ title: "Show it on the timeline", onClick: () => jumpTo(session, run, hit) }}
          />
        ))}
      </ul>
    </>
  );
}
