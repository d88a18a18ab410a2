// What a job hangs in: for each operation that is not complete, which ranks wait in it, and what the others did instead.
import { plural } from "../../base/quantity";
import { formatMoment, length } from "../../base/time";
import type { Run } from "../../data/run";
import { useSession } from "../../data/session";
import type { RankOfOperation, UnfinishedOperation } from "../../data/unfinished";
import { Button } from "../controls";
import { jumpTo } from "../showOnTimeline";

type Props = { readonly run: Run; readonly of: readonly UnfinishedOperation[] };

export const UnfinishedOperations = ({ run, of }: Props) => (
  <>
    {of.map((operation) => (
      <OneOperation key={operation.key} run={run} of={operation} />
    ))}
  </>
);

/** What a rank did, in words. */
function didText({ state, difference, operation, lastCall }: RankOfOperation): string {
  if (difference === "missing")
    return lastCall ? `has not called it, its last call is ${lastCall}` : "has called nothing";
  if (difference === "operation") return `called ${operation} instead`;
  if (difference) return `called it with another ${difference === "size" ? "size" : "type"}`;
  return state === "no dump" || state === "overwritten" ? state : `called it: ${state}`;
}

function OneOperation({ run, of: { key, title, ranks } }: { run: Run; of: UnfinishedOperation }) {
  const session = useSession();
  const id = `unfinished-${key.replaceAll(/\W+/g, "-")}`;
  const blamed = ranks.filter(({ difference }) => difference);
  const resolution = Math.max(1000, length(run.bounds) / 100_000);
  const show = ({ location, calledNs }: RankOfOperation): void => {
    if (location !== undefined && calledNs !== undefined)
      jumpTo(session, run, { location, startNs: calledNs, durationNs: 0, depth: 0 });
  };
  return (
    <section class="card surface" aria-labelledby={id}>
      <header>
        <h2 id={id}>Not complete: {title}</h2>
        <span class="weak">
          {blamed.length
            ? `${plural(blamed.length, "rank")} of ${ranks.length} did something else`
            : "all called it alike"}
        </span>
      </header>
      <div class="scrolls">
        <table class="hot unfinished" aria-label={`Ranks of ${title}`}>
          <thead>
            <tr>
              <th scope="col">rank</th>
              <th scope="col">what it did</th>
              <th scope="col">where</th>
              <th scope="col">when</th>
            </tr>
          </thead>
          <tbody>
            {ranks.map((one) => (
              <tr key={one.rank}>
                <td class="bold">{one.rank}</td>
                <td class={one.difference ? "warning" : ""}>
                  {one.difference ? "▲ " : ""}
                  {didText(one)}
                </td>
                <td>{one.calledAt || "–"}</td>
                <td class="number">
                  {one.calledNs === undefined ? (
                    "–"
                  ) : (
                    <Button class="link" title="Show it on the timeline" onClick={() => show(one)}>
                      {formatMoment(one.calledNs, resolution)}
                    </Button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
