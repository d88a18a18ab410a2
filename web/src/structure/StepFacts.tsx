// The chosen step beside the usual one: what took longer, what came in addition, and the way to the timeline.

import { useMemo } from "preact/hooks";
import { css, extraColor, relativeColor } from "../base/color";
import { shortName } from "../base/names";
import { plural } from "../base/quantity";
import { formatDuration } from "../base/time";
import { ofLevel } from "../data/runSteps";
import { load, useSession } from "../data/session";
import type { Iteration, Position } from "../data/wire/wire.generated";
import { Button, Close } from "../widgets/controls";
import { Await } from "../widgets/Loading";
import { showRange } from "../widgets/showOnTimeline";
import { comparedWith, type Difference, differences } from "./stepDifferences";

const MOST_DIFFERENCES = 6;

export function StepFacts({ positions }: { positions: readonly Position[] }) {
  const session = useSession();
  const { step, level } = session.state.value;
  const loaded = useMemo(
    () => (step === undefined ? undefined : load(() => session.api.json("iteration", { step, ...ofLevel(level) }))),
    [session, step, level],
  );
  if (step === undefined || !loaded)
    return (
      <aside class="step-facts-panel fixed scrolls surface weak" aria-label="Facts about the chosen step">
        Click a step to see what it did differently.
      </aside>
    );
  return (
    <aside class="step-facts-panel fixed scrolls surface" aria-label="Facts about the chosen step">
      <Await of={loaded.value} what="Reading the step">
        {(found) =>
          found ? (
            <Facts step={found} positions={positions} />
          ) : (
            <p>
              <b>Step {step}</b> <span class="weak">was kept as statistics only: it has no positions to compare.</span>
            </p>
          )
        }
      </Await>
    </aside>
  );
}

function Facts({ step, positions }: { step: Iteration; positions: readonly Position[] }) {
  const session = useSession();
  const main = positions.at(-1)?.band;
  const usualNs = positions.reduce((sum, p) => sum + (p.band === main ? p.median_ns + p.median_gap_ns : 0), 0);
  const found = differences(step, positions, MOST_DIFFERENCES);
  const most = Math.max(1, ...found.map((one) => Math.abs(one.excessNs)));
  const show = (startNs: number, lengthNs: number): void => showRange(session, { startNs, endNs: startNs + lengthNs });
  return (
    <>
      <div class="step-facts-head line">
        <b>Step {step.step}</b>
        <span>{formatDuration(step.step_ns)}</span>
        <span class="weak ellipsis">
          {comparedWith(step.step_ns, usualNs)} · {step.class} ·{" "}
          {step.path === 0 ? "the usual path" : `path ${step.path}`}
          {step.extra_count > 0 && ` · ${plural(step.extra_count, "extra event")}`}
        </span>
        <span class="spacer" />
        <Button onClick={() => show(step.start_ns, step.step_ns)}>Show on the timeline</Button>
        <Button onClick={() => session.update({ page: "steps" }, "push")}>In the table</Button>
        <Close title="Clear (Esc)" onClick={() => session.update({ step: undefined, region: "" })} />
      </div>
      <ol class="differences fine" aria-label="What differs most from the usual step">
        {found.map((one) => (
          <DifferenceRow
            key={`${one.kind}-${one.column}-${one.name}`}
            one={one}
            band={bandOf(positions, one.column)}
            most={most}
          />
        ))}
      </ol>
    </>
  );
}

const WORDS: Readonly<Record<Difference["kind"], string>> = { duration: "", gap: "gap before ", extra: "extra: " };

/** The band of a column, "" for the main thread. */
function bandOf(positions: readonly Position[], column: number): string {
  const band = positions[column]?.band ?? "";
  return band === positions.at(-1)?.band ? "" : band;
}

function DifferenceRow({ one, band, most }: { one: Difference; band: string; most: number }) {
  const session = useSession();
  const theme = session.theme.value;
  const color = one.kind === "extra" ? extraColor(theme) : relativeColor(one.excessNs > 0 ? 0.85 : -0.85, theme);
  return (
    <li class="cells">
      <span class="difference-bar">
        <span style={{ width: `${(100 * Math.abs(one.excessNs)) / most}%`, background: css(color) }} />
      </span>
      <span class="number">
        {one.excessNs > 0 ? "+" : ""}
        {formatDuration(one.excessNs)}
      </span>
      <Button class="plain" title={one.name} onClick={() => session.update({ region: one.name })}>
        <span class="weak">{WORDS[one.kind]}</span>
        {shortName(one.name)}
      </Button>
      <span class="weak">
        {band && `${band}, `}
        {formatDuration(one.ns)}
        {one.kind !== "extra" && `, ${comparedWith(one.ns, one.usualNs)}`}
      </span>
    </li>
  );
}
