// What takes the most time, one kind of thing at a time: kernels, operators, functions, source lines.
import { formatCount, formatShare } from "../../base/quantity";
import { formatDuration } from "../../base/time";
import { useSession } from "../../data/session";
import type { Summary } from "../../data/wire/wire.generated";
import { Button, Choices } from "../controls";
import { CutName } from "./CutName";
import { useTableView } from "./TablePage";

const NAME = "top";

export function TopTables({ summary }: { summary: Summary }) {
  const session = useSession();
  const [view, change] = useTableView(NAME);
  const table = summary.top.find(({ name }) => name === view.by) ?? summary.top[0];
  if (!table) return <Counted summary={summary} />;
  const unit = summary.hot_unit;
  const titles = new Map(summary.top.map(({ name, title }) => [name, title]));
  return (
    <section class="card surface" aria-labelledby="hot-title">
      <header>
        <h2 id="hot-title">
          Most {unit === "ns" ? "time" : unit} in {table.title}
        </h2>
        <span class="spacer" />
        {titles.size > 1 && (
          <Choices
            choices={[...titles.keys()]}
            value={table.name}
            titleOf={(name) => titles.get(name) ?? name}
            onChoose={(by) => change({ ...view, by })}
          />
        )}
        <Button class="link" onClick={() => session.update({ page: table.page }, "push")}>
          all
        </Button>
      </header>
      <table class="hot">
        <thead>
          <tr>
            <th scope="col">name</th>
            <th scope="col">calls</th>
            <th scope="col">own {unit === "ns" ? "time" : unit}</th>
            <th scope="col" title="of all rows of the whole table together">
              share
            </th>
            <th scope="col" title="of this row and all above it together">
              up to here
            </th>
          </tr>
        </thead>
        <tbody>
          {table.rows.map((one) => (
            <tr key={one.name}>
              <td>
                <Button
                  class="link name"
                  title={`${one.name}: find it on the timeline`}
                  onClick={() => session.update({ page: "timeline", find: one.name }, "push")}
                >
                  <CutName text={one.name} />
                </Button>
              </td>
              <td class="number">{formatCount(one.calls)}</td>
              <td class="number">{unit === "ns" ? formatDuration(one.self_ns) : formatCount(one.self_ns)}</td>
              <td class="number">
                <span class="share-bar" style={{ width: `${44 * one.share}px` }} />
                {formatShare(one.share)}
              </td>
              <td class="number weak">{formatShare(one.cumulative)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** The table of a profile without times: samples, bytes, or what else it counts. */
function Counted({ summary: { hot, hot_kind: kind, hot_unit: unit } }: { summary: Summary }) {
  if (!hot.length) return null;
  return (
    <section class="card surface" aria-labelledby="hot-title">
      <header>
        <h2 id="hot-title">
          Most {unit === "ns" ? "time" : unit} in {kind}
        </h2>
      </header>
      <table class="hot">
        <tbody>
          {hot.map(({ name, self_ns: own, share }) => (
            <tr key={name}>
              <td class="ellipsis">{name}</td>
              <td class="number">{unit === "ns" ? formatDuration(own) : formatCount(own)}</td>
              <td class="number">{formatShare(share)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
