// What another run (B) does otherwise than this one (A) in a step, what each difference costs, and where its spans are.
import { useMemo } from "preact/hooks";
import { asSentence } from "../base/names";
import { addressOf, fetchNames, nameIn, rootOf } from "../data/runList";
import { load, useSession } from "../data/session";
import { fetchAnalysis } from "../data/tables/analysisTable";
import type { Comparison } from "../data/wire/wire.generated";
import type { View } from "../state/view";
import { StepWaterfall } from "../widgets/comparison/StepWaterfall";
import { Select, TableSearch } from "../widgets/controls";
import { Await } from "../widgets/Loading";
import { Table } from "../widgets/tables/Table";
import { useTableView } from "../widgets/tables/TablePage";
import { orderOf, shownColumns } from "../widgets/tables/tableRows";
import { useProgress } from "../widgets/useAnswer";

const NAME = "compare";
const NONE = "";

function ComparePage() {
  const session = useSession();
  const root = rootOf(location.href);
  const { server } = session.api;
  const names = useMemo(() => load(() => fetchNames(server, root)), [server, root.href]).value;
  const { options } = session.state.value.analysis;
  const { other = NONE } = options;
  const here = nameIn(location.href) ?? (names.status === "ready" ? names.value[0] : undefined);
  const others = names.status === "ready" ? names.value.filter((name) => name !== here) : [];
  const choose = (change: Record<string, string>): void =>
    session.update({ analysis: { name: NAME, options: { ...options, ...change } } }, "push");
  return (
    <div class="comparison vertical">
      <div class="filters row wraps" role="toolbar" aria-label="What is compared">
        <span>
          <b>A</b> {here}
        </span>
        <Select
          words="B"
          choices={[NONE, ...others]}
          value={other}
          titleOf={(name) => name || "choose a run"}
          onChoose={(name) => choose({ other: name, ranks: "" })}
        />
        {other && here && (
          <a href={`${addressOf(root, other)}#page=compare&with.other=${encodeURIComponent(here)}`}>B with A</a>
        )}
      </div>
      {other ? (
        <Compared key={other} other={other} ranks={options.ranks ?? ""} onRanks={(ranks) => choose({ ranks })} />
      ) : (
        <p class="empty">
          {others.length
            ? "Choose the run to compare with."
            : "This server shows one run. To compare two: strobe view A.strobe B.strobe"}
        </p>
      )}
    </div>
  );
}

type ComparedProps = {
  readonly other: string;
  readonly ranks: string;
  readonly onRanks: (ranks: string) => void;
};

function Compared({ other, ranks, onRanks }: ComparedProps) {
  const session = useSession();
  const asked = useMemo(
    () => load(() => session.api.json("comparison", { other, ...(ranks && { ranks }) })),
    [session, other, ranks],
  );
  const done = useProgress(
    session.api.server,
    new URL("./", location.href),
    asked.value.status === "loading" ? "comparison" : "",
  );
  return (
    <Await of={asked.value} what={`Comparing ${done}`}>
      {(found) => (
        <div class="scrolls fill comparison-body rows gap-14">
          <Ranks of={found} ranks={ranks} onRanks={onRanks} />
          <section class="card surface" aria-label="In words">
            {found.sentences.map((each) => (
              <p key={each}>{asSentence(each)}</p>
            ))}
          </section>
          <Steps of={found} />
          <Places other={other} ranks={ranks} />
        </div>
      )}
    </Await>
  );
}

const ALL = "all";

/** Which ranks are compared, where a run has several. */
function Ranks({ of, ranks, onRanks }: { of: Comparison } & Omit<ComparedProps, "other">) {
  if (of.a_ranks.length < 2 || of.b_ranks.length < 2) return null;
  const [a = "", b = a] = ranks.split(",");
  // Both or none: one rank with all of the other run would compare sums of another size.
  const choose = (one: string, two: string): void => onRanks(one && two ? `${one},${two}` : "");
  return (
    <div class="row gap-12">
      <Select
        words="rank of A"
        choices={[ALL, ...of.a_ranks.map(String)]}
        value={a || ALL}
        titleOf={(rank) => rank}
        onChoose={(rank) => choose(rank === ALL ? "" : rank, b || rank)}
      />
      <Select
        words="rank of B"
        choices={[ALL, ...of.b_ranks.map(String)]}
        value={b || ALL}
        titleOf={(rank) => rank}
        onChoose={(rank) => choose(a || rank, rank === ALL ? "" : rank)}
      />
    </div>
  );
}

function Steps({ of: found }: { of: Comparison }) {
  const evidence = (side: "a" | "b", name: string): string => {
    const hash = `#page=timeline&find=${encodeURIComponent(name)}`;
    return side === "a" ? hash : `${addressOf(rootOf(location.href), found.b)}${hash}`;
  };
  return (
    <>
      {found.classes.map(({ name, lanes }) => (
        <section key={name} class="card surface" aria-label={`Steps of the class ${name}`}>
          <h2>{name === "run" ? "The run" : `A step (${name})`}</h2>
          {lanes.map((lane) => (
            <StepWaterfall key={lane.lane} of={lane} a={found.a} b={found.b} evidence={evidence} />
          ))}
        </section>
      ))}
    </>
  );
}

const ignored = (): void => undefined;

/** Every place of the step, changed or not. */
function Places({ other, ranks }: { other: string; ranks: string }) {
  const session = useSession();
  const [view, onView] = useTableView(NAME);
  const asked = useMemo(
    () => load(() => fetchAnalysis(session.api, NAME, { other, by: "place", ...(ranks && { ranks }) })),
    [session, other, ranks],
  );
  return (
    <section class="comparison-places vertical" aria-labelledby="places-title">
      <header class="row gap-12">
        <h2 id="places-title">By place in the step</h2>
        <TableSearch label="Search the places" value={view.find} onInput={(find) => onView({ ...view, find })} />
      </header>
      <Await of={asked.value} what="Listing the places">
        {(table) =>
          table.rows ? (
            <Table
              label="Differences by place"
              table={table}
              columns={shownColumns(table, true)}
              order={orderOf(table, view)}
              view={view}
              chosen={session.state.value.row}
              onView={onView}
              onChoose={ignored}
              onOpen={ignored}
            />
          ) : (
            <p class="empty">{asSentence(table.note)}</p>
          )
        }
      </Await>
    </section>
  );
}

export const view: View = { name: NAME, title: "Compare", place: 12, component: ComparePage };
