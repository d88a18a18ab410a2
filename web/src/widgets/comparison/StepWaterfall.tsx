// One lane of a step of run A over that of run B, on one axis, and below it the changes that lead from one to the other.
import type { ComponentChildren } from "preact";
import { type ChangeKind, changeColor, css, type Theme, textOn } from "../../base/color";
import { middleCut } from "../../base/names";
import { formatShare } from "../../base/quantity";
import { formatDuration } from "../../base/time";
import { useSession } from "../../data/session";
import type { Change, Waterfall } from "../../data/wire/wire.generated";
import { Scale } from "../figures";

const NAME_LENGTH = 52;
/** Narrower parts of a bar carry no name, as shares of the axis. */
const NARROWEST = 0.08;
const TICKS = [0, 0.25, 0.5, 0.75, 1];
const LANES: Readonly<Record<string, string>> = { host: "thread of the loop", threads: "other threads", GPU: "GPUs" };

const signed = (ns: number): string => `${ns < 0 ? "" : "+"}${formatDuration(ns)}`;
const percent = (ns: number, axisNs: number): string => `${(100 * ns) / axisNs}%`;
/** What takes longer in B, what takes less, and all else. */
const kindOf = ({ change, a_ns, b_ns }: Change): ChangeKind =>
  change === "" || a_ns === b_ns ? "same" : b_ns > a_ns ? "longer" : "shorter";

type Props = {
  readonly of: Waterfall;
  /** Names of the runs. */
  readonly a: string;
  readonly b: string;
  /** Where the spans of a name are shown, in either run. */
  readonly evidence: (side: "a" | "b", name: string) => string;
};

export function StepWaterfall({ of: lane, a, b, evidence }: Props) {
  const { theme } = useSession();
  const ends = lane.changes.flatMap((each) => [each.from_ns, each.to_ns]);
  const axisNs = Math.max(lane.a_ns, lane.b_ns, ...ends, 1);
  const difference = lane.b_ns - lane.a_ns;
  return (
    <section class="waterfall" aria-label={LANES[lane.lane] ?? lane.lane}>
      <h3>{LANES[lane.lane] ?? lane.lane}</h3>
      <p class="weak">
        {formatDuration(lane.a_ns)} in A, {formatDuration(lane.b_ns)} in B: {signed(difference)}
        {lane.a_ns > 0 && ` (${difference < 0 ? "−" : "+"}${formatShare(Math.abs(difference) / lane.a_ns)})`}
      </p>
      <Line name={<span title={a}>A</span>} amount={formatDuration(lane.a_ns)}>
        <SideBar lane={lane} side="a" axisNs={axisNs} theme={theme.value} />
      </Line>
      <Line name={<span title={b}>B</span>} amount={formatDuration(lane.b_ns)}>
        <SideBar lane={lane} side="b" axisNs={axisNs} theme={theme.value} />
      </Line>
      <ol aria-label="From A to B">
        {lane.changes.map((each) => (
          <li key={`${each.name}\n${each.where}\n${each.change}`}>
            <ChangeLine change={each} axisNs={axisNs} theme={theme.value} evidence={evidence} />
          </li>
        ))}
      </ol>
      <div class="change-line cells">
        <span />
        <span />
        <Scale of={TICKS.map((at) => formatDuration(at * axisNs))} />
        <span />
        <span />
      </div>
    </section>
  );
}

type LineProps = {
  readonly name: ComponentChildren;
  readonly badge?: ComponentChildren;
  readonly amount: string;
  readonly links?: ComponentChildren;
  readonly children: ComponentChildren;
};

const Line = ({ name, badge, amount, links, children }: LineProps) => (
  <div class="change-line cells">
    <span class="ellipsis">{name}</span>
    <span class="weak fine">{badge}</span>
    <div class="change-axis anchor">{children}</div>
    <span class="number">{amount}</span>
    <span class="change-links row gap-6 fine">{links}</span>
  </div>
);

type SideProps = {
  readonly lane: Waterfall;
  readonly side: "a" | "b";
  readonly axisNs: number;
  readonly theme: Theme;
};

/** The step of a side: its changes beside each other, where they are. */
function SideBar({ lane, side, axisNs, theme }: SideProps) {
  const whole = side === "a" ? lane.a_ns : lane.b_ns;
  const parts = lane.beside ? lane.changes : [];
  return (
    <div
      class="change-side flex"
      style={{ width: percent(whole, axisNs) }}
      role="img"
      aria-label={formatDuration(whole)}
    >
      {parts.map((each) => {
        const ns = side === "a" ? each.a_ns : each.b_ns;
        const color = changeColor(kindOf(each), theme);
        return (
          ns > 0 && (
            <span
              key={`${each.name}\n${each.where}`}
              class="ellipsis"
              title={`${each.name}: ${formatDuration(ns)}`}
              style={{ flex: `${ns} 1 0`, background: css(color), color: textOn(color) }}
            >
              {ns / axisNs >= NARROWEST && (side === "a" ? each.a_name : each.b_name)}
            </span>
          )
        );
      })}
    </div>
  );
}

type ChangeProps = {
  readonly change: Change;
  readonly axisNs: number;
  readonly theme: Theme;
  readonly evidence: Props["evidence"];
};

function ChangeLine({ change: each, axisNs, theme, evidence }: ChangeProps) {
  const [low, high] = [Math.min(each.from_ns, each.to_ns), Math.max(each.from_ns, each.to_ns)];
  const title = [each.name, each.where && `in ${each.where}`].filter(Boolean).join("\n");
  const sides = [
    ["a", each.a_name, "A"],
    ["b", each.b_name, "B"],
  ] as const;
  return (
    <Line
      name={<span title={title}>{middleCut(each.name, NAME_LENGTH)}</span>}
      badge={each.change}
      amount={signed(each.b_ns - each.a_ns)}
      links={sides.map(
        ([side, name, letter]) =>
          name && (
            <a key={side} href={evidence(side, name)} aria-label={`${name} in the spans of ${letter}`}>
              {letter} ↗
            </a>
          ),
      )}
    >
      <i
        style={{
          left: percent(low, axisNs),
          width: percent(high - low, axisNs),
          background: css(changeColor(kindOf(each), theme)),
        }}
      />
    </Line>
  );
}
