// Page 3: who calls what and what that costs, on the host and on GPUs: in time order, left heavy, or as a sandwich
import { useSignal } from "@preact/signals";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { formatCount, formatShare } from "../base/quantity";
import {
  type CallTree,
  fetchTree,
  frameOf,
  frameOfRegion,
  nodeOfFrame,
  partOf,
  regionOfFrame,
  type TreePart,
} from "../data/callTree";
import type { Run } from "../data/run";
import { load, useLasting, useSession } from "../data/session";
import { FlamePanel } from "../profile/FlamePanel";
import { beside, calleesOf, callersOf, type Flame, flameOf, outermostOf, totalsOf } from "../profile/flameLayout";
import { NodeFacts, type Props as NodeFactsProps } from "../profile/NodeFacts";
import { FORM_TITLES, Toolbar } from "../profile/ProfileToolbar";
import { findIn, type Matches } from "../profile/pathSearch";
import { attachProfileKeys } from "../profile/profileKeys";
import { RegionTable } from "../profile/RegionTable";
import { type RegionOrder, type RegionRow, regionRows, sortRegions } from "../profile/regionRows";
import { TimeOrder } from "../profile/TimeOrder";
import { amount, flameSummary, MEASURE_NAMES, nodeFacts } from "../profile/treeWords";
import { PROFILE_FORMS, type ProfileMeasure, type ProfileView } from "../state/address";
import type { View } from "../state/view";
import { openByDefault } from "../timeline/rows/rowLayout";
import { BigNumbers, UsageRow } from "../widgets/figures";
import { GroupLegend } from "../widgets/GroupLegend";
import { AwaitWithRun } from "../widgets/Loading";

function ProfilePage() {
  const session = useSession();
  const { state } = session;
  const asked = JSON.stringify(partOf(state.value));
  const part = useMemo((): TreePart => JSON.parse(asked), [asked]);
  const loading = useMemo(() => load(() => fetchTree(session.api, part)), [session, part]);
  const shown = useLasting(loading.value);
  return (
    <AwaitWithRun of={shown} what="Summing up call paths">
      {(run, tree) => <Profile run={run} tree={tree} part={part} />}
    </AwaitWithRun>
  );
}

/** All time: what roots launched, and own times on the host, as the roots of a profile of pairs lie in one another. */
const sumOfAll = (tree: CallTree, measure: ProfileMeasure): number =>
  measure === "gpu"
    ? tree.gpuNs.reduce((sum, ns, node) => ((tree.parent[node] ?? -1) < 0 ? sum + ns : sum), 0)
    : tree.selfNs.reduce((sum, ns) => sum + ns, 0);

/** What is seen: a tree of calls by one measure, which adds up to `allNs`, of a part of a run. */
type Seen = Pick<NodeFactsProps, "run" | "tree" | "measure" | "allNs" | "part">;
/** The same of one function. */
type SeenRegion = Seen & { readonly row: RegionRow };

function Profile({ run, tree, part }: Pick<Seen, "run" | "tree" | "part">) {
  const session = useSession();
  const { profile: view, frame, find } = session.state.value;
  const search = useRef<HTMLInputElement>(null);
  // Which classes of steps can be chosen: asked for only once there is something to see.
  void session.steps.value;
  const sums = useMemo(() => ({ host: sumOfAll(tree, "host"), gpu: sumOfAll(tree, "gpu") }), [tree]);
  const measure = view.measure || (sums.host || !sums.gpu ? "host" : "gpu");
  const timed = run.meta.span_count > 0;
  const location = timed && view.form === "time" ? locationOf(run, view.place) : undefined;
  const flame = useMemo(() => flameOf(tree, measure, view.form !== "time"), [tree, measure, view.form]);
  const matches = useMemo(() => findIn(tree, find, measure), [tree, find, measure]);
  const node = useMemo(() => nodeOfFrame(tree, frame), [tree, frame]);
  // As of now, not of the last picture: keys may come faster than pictures.
  const now = (): ProfileView => session.state.peek().profile;
  const change = (to: Partial<ProfileView>): void => session.update({ profile: { ...now(), ...to } }, "push");
  const choose = (next: number): void => session.update({ frame: next < 0 ? "" : frameOf(tree, next) }, "push");
  const next = <T,>(all: readonly T[], one: T): T | undefined => all[(all.indexOf(one) + 1) % all.length];
  const keys = {
    walk: (step: Parameters<typeof beside>[2]): void => {
      const to = beside(flame, nodeOfFrame(tree, session.state.peek().frame), step);
      if (to !== undefined) choose(to);
    },
    reset: () => session.update({ frame: "" }, "push"),
    nextForm: () => change({ form: next(PROFILE_FORMS, now().form) ?? now().form }),
    nextMeasure: () => sums.gpu && change({ measure: (now().measure || measure) === "host" ? "gpu" : "host" }),
    search: () => {
      search.current?.focus();
      search.current?.select();
    },
  };
  // With the first picture, not after it: a key must not be lost.
  useLayoutEffect(() => attachProfileKeys(window, keys, view.form !== "sandwich" && location === undefined));

  const seen: Seen = { run, tree, measure, allNs: sums[measure], part };
  const body = ((): preact.ComponentChildren => {
    if (location !== undefined) return <TimeOrder run={run} location={location} />;
    if (!seen.allNs) return <Nothing {...seen} />;
    if (view.form === "sandwich") return <Sandwich {...seen} matches={matches} />;
    return (
      <>
        <div class="vertical fill">
          {view.form === "time" && (
            <p class="weak source-note profile-note">
              This profile has no times: call paths are in the order in which its file names them.
            </p>
          )}
          <FlamePanel
            tree={tree}
            flame={flame}
            title="Call paths"
            label={flameSummary(tree, flame, `${FORM_TITLES[view.form]}, ${MEASURE_NAMES[measure]}`)}
            zoomed={node}
            found={matches?.nodes}
            facts={(one) => nodeFacts(tree, one, measure, seen.allNs)}
            onChoose={choose}
            onReset={keys.reset}
          />
        </div>
        <aside class="details fixed scrolls surface" aria-label="Facts about what is chosen">
          {node >= 0 ? (
            <NodeFacts
              {...seen}
              node={node}
              onNode={choose}
              onSandwich={() => change({ form: "sandwich" })}
              onClose={keys.reset}
            />
          ) : (
            <Heaviest {...seen} />
          )}
        </aside>
      </>
    );
  })();
  return (
    <div class="profile vertical">
      <Toolbar
        run={run}
        view={view}
        measure={measure}
        hasGpu={sums.gpu > 0}
        location={location}
        matches={matches}
        search={search}
        onView={change}
      />
      {tree.about.note && location === undefined && <p class="weak source-note profile-note">{tree.about.note}.</p>}
      <div class="flex fill">{body}</div>
      {location === undefined ? (
        <GroupLegend>
          <kbd>↑</kbd>
          <kbd>↓</kbd>
          <kbd>←</kbd>
          <kbd>→</kbd> walk <kbd>0</kbd> everything <kbd>V</kbd> next view {sums.gpu > 0 && <kbd>M</kbd>}
          {sums.gpu > 0 && " host, GPU"}
        </GroupLegend>
      ) : (
        <GroupLegend />
      )}
    </div>
  );
}

/** The thread that is shown in time order: the chosen one, else the busiest of the chosen process or of the program. */
function locationOf(run: Run, place: string): number | undefined {
  const number = Number(place.slice(1));
  const chosen = run.locations.find((each) => place.startsWith("l") && each.location === number && each.spanCount > 0);
  if (chosen) return chosen.location;
  const busiest = run.locations
    .filter((each) => place.startsWith("p") && each.process === number && each.spanCount > 0)
    .sort((a, b) => b.spanCount - a.spanCount)[0];
  return busiest?.location ?? openByDefault(run)[0] ?? run.locations.find((each) => each.spanCount > 0)?.location;
}

function Nothing({ run, measure, tree }: Seen) {
  if (!run.meta.span_count && !run.meta.folded_count)
    return (
      <p class="empty">
        This run recorded no calls. Record functions and operators with <code>strobe run --preset auto SCRIPT</code>
      </p>
    );
  return (
    <p class="empty">
      There is no {MEASURE_NAMES[measure]} in this part of the run ({tree.about.about}), or not on these threads.
    </p>
  );
}

const HEAVIEST = 14;

/** The functions with most time of their own, while no call path is chosen. */
function Heaviest({ tree, measure, allNs }: Seen) {
  const session = useSession();
  const { profile } = session.state.value;
  const rows = useMemo(
    () => sortRegions(regionRows(tree, measure), { by: "self", down: true }).slice(0, HEAVIEST),
    [tree, measure],
  );
  const { about, unit, nodes } = tree.about;
  const ofAll = measure === "host" ? "of all threads together" : "of all GPUs’ streams together";
  return (
    <section class="stretch rows">
      <h2>{about}</h2>
      <BigNumbers
        of={[
          [amount(tree, allNs), unit ? "in all" : ofAll],
          [formatCount(nodes), nodes === 1 ? "call path" : "call paths"],
        ]}
      />
      <h3>Most time of its own</h3>
      <ul class="usage rows gap-2 fine">
        {rows.map((row) => (
          <UsageRow
            key={row.region}
            title={`${row.name}: ${formatCount(row.calls)} calls`}
            group={row.group}
            name={row.name}
            amount={amount(tree, row.selfNs)}
            share={row.selfNs / allNs}
            button={{
              onClick: () =>
                session.update(
                  { frame: frameOfRegion(row.region), profile: { ...profile, form: "sandwich", measure } },
                  "push",
                ),
            }}
          />
        ))}
      </ul>
      <p class="weak finer">Click a call path to zoom to it, a name above for its callers and callees.</p>
    </section>
  );
}

/** All functions as a table; for the chosen one its callers above its callees. */
function Sandwich({ matches, ...seen }: Seen & { readonly matches: Matches | undefined }) {
  const session = useSession();
  const { tree, measure } = seen;
  const { frame, find } = session.state.value;
  const order = useSignal<RegionOrder>({ by: "self", down: true });
  const all = useMemo(() => regionRows(tree, measure), [tree, measure]);
  const rows = useMemo(() => (matches ? all.filter((row) => matches.nodes[row.node]) : all), [all, matches]);
  const region = useMemo(() => regionOfFrame(tree, frame), [tree, frame]);
  const row = all.find((each) => each.region === region);
  const choose = (to: number): void => session.update({ frame: frameOfRegion(to) });
  return (
    <>
      <div class="sandwich fill">
        {rows.length ? (
          <RegionTable
            {...seen}
            rows={rows}
            order={order.value}
            onOrder={(to) => (order.value = to)}
            chosen={region}
            onChoose={choose}
          />
        ) : (
          <p class="empty">No function’s name matches “{find}”.</p>
        )}
        {row ? (
          <Slices {...seen} row={row} onRegion={choose} />
        ) : (
          <p class="empty">Choose a function to see who calls it and what it calls.</p>
        )}
      </div>
      <aside class="details fixed scrolls surface" aria-label="Facts about what is chosen">
        {row ? <RegionFacts {...seen} row={row} /> : <Heaviest {...seen} />}
      </aside>
    </>
  );
}

type SlicesProps = SeenRegion & { readonly onRegion: (region: number) => void };

function Slices({ tree, row, measure, allNs, onRegion }: SlicesProps) {
  const callers = useMemo(() => callersOf(tree, row.region, measure), [tree, row.region, measure]);
  const callees = useMemo(() => calleesOf(tree, row.region, measure), [tree, row.region, measure]);
  const slice = (flame: Flame, title: string, about: string, what: string) => (
    <>
      <h2>{title}</h2>
      <FlamePanel
        tree={tree}
        flame={flame}
        up={flame === callers}
        title={title}
        label={flameSummary(tree, flame, about)}
        zoomed={-1}
        facts={(node) => {
          const ns = flame.weight[node] ?? 0;
          return `${amount(tree, ns)} ${what}; ${formatShare(row.totalNs ? ns / row.totalNs : 0)} of it, ${formatShare(allNs ? ns / allNs : 0)} of all`;
        }}
        onChoose={(node) => {
          if (node >= 0) onRegion(tree.region[flame.of[node] ?? 0] ?? -1);
        }}
      />
    </>
  );
  return (
    <div class="slices">
      {slice(callers, "Callers", `Callers of ${row.name}`, `of ${row.name} on its account`)}
      {slice(callees, "Callees", `What ${row.name} calls`, `in calls of ${row.name}`)}
    </div>
  );
}

const SHOWN_PATHS = 14;

/** A function in numbers, and the call paths that lead to it. */
function RegionFacts({ row, ...seen }: SeenRegion) {
  const session = useSession();
  const { tree, measure, allNs } = seen;
  const chosen = useSignal(-1);
  const totals = totalsOf(tree, measure);
  const paths = useMemo(
    () =>
      outermostOf(tree, row.region)
        .filter((node) => (totals[node] ?? 0) > 0)
        .sort((a, b) => (totals[b] ?? 0) - (totals[a] ?? 0)),
    [tree, row.region, totals],
  );
  const node = paths.includes(chosen.value) ? chosen.value : (paths[0] ?? row.node);
  const callerOf = (one: number): string => {
    const parent = tree.parent[one] ?? -1;
    return parent < 0 ? "nobody, or it is not known" : (tree.name[parent] ?? "");
  };
  return (
    <>
      {paths.length > 1 && (
        <section class="stretch rows">
          <h2>{row.name}</h2>
          <BigNumbers
            of={[
              [amount(tree, row.totalNs), <>total, {formatShare(allNs ? row.totalNs / allNs : 0)} of all</>],
              [amount(tree, row.selfNs), <>self, {formatShare(allNs ? row.selfNs / allNs : 0)} of all</>],
            ]}
          />
          <h3>{formatCount(row.calls)} calls, by call path</h3>
          <ul class="usage rows gap-2 fine">
            {paths.slice(0, SHOWN_PATHS).map((one) => (
              <UsageRow
                key={one}
                chosen={one === node}
                group={tree.group[one] ?? "other"}
                name={<>by {callerOf(one)}</>}
                amount={amount(tree, totals[one] ?? 0)}
                share={row.totalNs ? (totals[one] ?? 0) / row.totalNs : 0}
                button={{ "aria-pressed": one === node, onClick: () => (chosen.value = one) }}
              />
            ))}
          </ul>
          {paths.length > SHOWN_PATHS && (
            <p class="weak">and {formatCount(paths.length - SHOWN_PATHS)} more call paths</p>
          )}
        </section>
      )}
      <NodeFacts
        {...seen}
        node={node}
        onNode={(to) => session.update({ frame: frameOfRegion(tree.region[to] ?? -1) }, "push")}
        onClose={() => session.update({ frame: "" }, "push")}
      />
    </>
  );
}

export const view: View = {
  name: "profile",
  title: "Profile",
  place: 3,
  component: ProfilePage,
  chosen: ["frame", "selection", "range"],
};
