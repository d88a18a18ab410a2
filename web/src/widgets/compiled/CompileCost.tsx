// What compiling cost: its part of the run, and each compilation with its causes, a way to its place on the timeline.
import { groupColor } from "../../base/color";
import type { Group } from "../../base/kinds.generated";
import { asSentence } from "../../base/names";
import { formatCount, formatShare, plural } from "../../base/quantity";
import { formatDuration, formatMoment, length } from "../../base/time";
import type { Compilation, Compilations } from "../../data/compilations";
import type { Run } from "../../data/run";
import { useSession } from "../../data/session";
import { Button, WithCode } from "../controls";
import { PartedTime } from "../figures";
import { showRange } from "../showOnTimeline";
import { compileParts } from "./compileParts";

const GROUPS: Readonly<Record<string, Group>> = { first: "compute", again: "sync" };
/** More are in the table by compilation. */
const MOST_ROWS = 50;

type Props = { readonly run: Run; readonly of: Compilations; readonly onAll: () => void };

export function CompileCost({ run, of: { rows, note }, onAll }: Props) {
  const theme = useSession().theme.value;
  const parts = compileParts(rows);
  const processes = new Set(rows.map(({ process }) => process)).size;
  return (
    <>
      <header class="row wraps">
        <h2>What compiling cost</h2>
        <span class="weak">{asSentence(note)} Steps in which code is compiled contain this time.</span>
      </header>
      {parts.length > 0 && (
        <PartedTime
          name="The run"
          label="What compiling takes of the run"
          about={processes > 1 ? `of ${plural(processes, "process")}` : ""}
          parts={parts.map((part) => {
            const group = GROUPS[part.name];
            return { ...part, color: group && groupColor(group, theme) };
          })}
        />
      )}
      <CompilationList run={run} rows={rows.slice(0, MOST_ROWS)} />
      {rows.length > MOST_ROWS && (
        <p class="weak">
          The {MOST_ROWS} longest of {plural(rows.length, "compilation")}.{" "}
          <Button class="link" onClick={onAll}>
            All of them
          </Button>
        </p>
      )}
    </>
  );
}

function CompilationList({ run, rows }: { readonly run: Run; readonly rows: readonly Compilation[] }) {
  const session = useSession();
  const resolution = Math.max(1000, length(run.bounds) / 100_000);
  const several = new Set(rows.map(({ process }) => process)).size > 1;
  const show = ({ startNs, durationNs }: Compilation): void =>
    showRange(session, { startNs, endNs: startNs + durationNs }, { range: undefined });
  return (
    <div class="scrolls">
      <table class="hot compilations" aria-label="Compilations">
        <thead>
          <tr>
            <th scope="col" title="PyTorch's number: frame/compilation">
              frame
            </th>
            <th scope="col">function</th>
            <th scope="col">compiled</th>
            <th scope="col">began</th>
            <th scope="col" title="that the middle of it lies in">
              step
            </th>
            <th scope="col">time</th>
            <th scope="col" title="of the run">
              share
            </th>
            <th scope="col">why again, where it breaks off</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((one) => (
            <tr key={`${one.process} ${one.compileId} ${one.startNs}`}>
              <td>
                {several && (
                  <span class="weak">{one.rank === undefined ? `process ${one.process}` : `rank ${one.rank}`} </span>
                )}
                {one.compileId}
              </td>
              <td title={one.place}>{one.function}</td>
              <td>{`${one.again ? "again" : "first"}${one.backward ? ", backward" : ""}`}</td>
              <td class="number">
                <Button class="link" title="Show it on the timeline" onClick={() => show(one)}>
                  {formatMoment(one.startNs, resolution)}
                </Button>
              </td>
              <td class="number">{one.step === undefined ? "none" : formatCount(one.step)}</td>
              <td class="number">{formatDuration(one.durationNs)}</td>
              <td class="number">{one.runShare === undefined ? "" : formatShare(one.runShare)}</td>
              <td>
                <WithCode text={one.causes} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
