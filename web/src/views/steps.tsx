// Page 6: every step with its class, what it was made of, and what made the slow ones slow.

import { useMemo } from "preact/hooks";
import { classColor, css, outlierColor, PART_TITLES, partColor } from "../base/color";
import { formatCount, formatShare, plural, shownOf } from "../base/quantity";
import { formatDuration, type TimeRange } from "../base/time";
import type { Step } from "../data/runSteps";
import { useSession } from "../data/session";
import type { StepFilter } from "../state/address";
import type { View } from "../state/view";
import { Button, Close } from "../widgets/controls";
import { Await } from "../widgets/Loading";
import { showRange } from "../widgets/showOnTimeline";
import { BreakdownChart, DurationHistogram } from "../widgets/steps/StepCharts";
import { StepSplits } from "../widgets/steps/StepSplits";
import { StepStrip } from "../widgets/steps/StepStrip";
import { StepTable } from "../widgets/steps/StepTable";
import { binsOf, filterSteps, partsOf } from "../widgets/steps/stepLists";
import { stepsIn } from "../widgets/steps/stripBars";

function StepsPage() {
  const session = useSession();
  return (
    <Await of={session.steps.value} what="Finding the steps">
      {(steps) => (steps.length ? <Steps steps={steps} /> : <NoSteps />)}
    </Await>
  );
}

function NoSteps() {
  const session = useSession();
  const reason = (session.stepsAbout.value?.reason ?? "").replace(/^none: /, "");
  return (
    <div class="empty">
      <p>
        <b>No steps were found:</b> {reason || "nothing repeats often and regularly enough"}.
      </p>
      <p>
        Steps are the iterations of the loop that dominates a run. A program can mark their ends itself, with{" "}
        <code>strobe.step()</code> at the end of its loop’s body.
      </p>
    </div>
  );
}

const STRIP_HEIGHT = 74;

function Steps({ steps }: { steps: readonly Step[] }) {
  const session = useSession();
  const { steps: filter, step: chosen } = session.state.value;
  const shown = useMemo(() => filterSteps(steps, filter), [steps, filter]);
  const classes = session.stepsAbout.value?.classes;
  const medians = useMemo(() => new Map((classes ?? []).map((one) => [one.name, one.median_ns])), [classes]);
  const one = steps.find((step) => step.step === chosen);
  const choose = (step: Step): void => session.update({ step: step.step });
  const open = (range: TimeRange): void => showRange(session, range, { range: undefined });
  const openStep = (step: Step): void => {
    choose(step);
    open({ startNs: step.startNs, endNs: step.startNs + step.durationNs });
  };
  const onStretch = (stretch: TimeRange): void => {
    const [from, to] = stepsIn(steps, stretch);
    const [first] = steps.slice(from, to);
    if (to - from === 1 && first) choose(first);
    else open(stretch);
  };
  return (
    <div class="steps vertical">
      <StepStrip steps={steps} window={undefined} height={STRIP_HEIGHT} chosen={chosen} onSteps={onStretch} />
      <Filters steps={steps} shown={shown.length} filter={filter} />
      <div class="steps-body flex fill">
        {shown.length ? (
          <StepTable steps={shown} medians={medians} chosen={chosen} onChoose={choose} onOpen={openStep} />
        ) : (
          <p class="empty fill">No step passes the filter.</p>
        )}
        <aside class="steps-side rows fixed scrolls surface" aria-label="All steps at once">
          {one && <ChosenStep step={one} steps={steps} onOpen={openStep} />}
          <StepSplits step={one} />
          <BreakdownChart steps={steps} chosen={chosen} onChoose={choose} />
          <DurationHistogram steps={shown.length ? shown : steps} chosen={chosen} />
        </aside>
      </div>
    </div>
  );
}

function Filters({ steps, shown, filter }: { steps: readonly Step[]; shown: number; filter: StepFilter }) {
  const session = useSession();
  const theme = session.theme.value;
  const change = (part: Partial<StepFilter>): void => session.update({ steps: { ...filter, ...part } });
  const { count = 0, kept = 0, classes = [] } = session.stepsAbout.value ?? {};
  const outliers = classes.reduce((sum, one) => sum + one.outliers, 0);
  const folded = count - kept;
  const toggle = (name: string): string[] =>
    filter.classes.includes(name) ? filter.classes.filter((one) => one !== name) : [...filter.classes, name];
  return (
    <div class="filters row wraps" role="toolbar" aria-label="Which steps are listed">
      {classes.map((one) => (
        <Button
          class="chip row"
          key={one.name}
          aria-pressed={filter.classes.includes(one.name)}
          onClick={() => change({ classes: toggle(one.name) })}
        >
          <i style={{ background: css(classColor(one.rank, theme)) }} />
          {one.name} <b>{formatCount(one.count)}</b>{" "}
          <span class="weak" title="median, without outliers and warm-up">
            {formatDuration(one.median_ns)}
          </span>
        </Button>
      ))}
      {outliers > 0 && (
        <Button class="chip row" aria-pressed={filter.outliers} onClick={() => change({ outliers: !filter.outliers })}>
          <span style={{ color: css(outlierColor(theme)) }}>▲</span> outliers <b>{formatCount(outliers)}</b>
        </Button>
      )}
      {folded > 0 && (
        <Button
          class="chip row"
          aria-pressed={filter.detailed}
          title={`${formatCount(folded)} steps were kept as statistics only, or but for their end`}
          onClick={() => change({ detailed: !filter.detailed })}
        >
          kept in detail <b>{formatCount(kept)}</b>
        </Button>
      )}
      <span class="spacer" />
      <span class="weak">
        {shownOf(shown, steps.length, "row")} · <kbd>↑</kbd>
        <kbd>↓</kbd> walk <kbd>N</kbd> next outlier <kbd>Enter</kbd> timeline
      </span>
    </div>
  );
}

/** The chosen step above the mean of its class. */
function ChosenStep({ step, steps, onOpen }: { step: Step; steps: readonly Step[]; onOpen: (step: Step) => void }) {
  const session = useSession();
  const theme = session.theme.value;
  const sisters = steps.filter((one) => one.class === step.class && !one.outlier && one.step !== step.step);
  const usual = binsOf(sisters, 1)[0];
  const rows = partsOf(step.parts).map(({ phase, ns }) => ({ phase, ns, usualNs: usual?.parts[phase] ?? 0 }));
  const most = Math.max(1, ...rows.flatMap(({ ns, usualNs }) => [ns, usualNs]));
  return (
    <section class="chosen-step rows" aria-labelledby="chosen-step-title">
      <header>
        <h2 id="chosen-step-title">Step {step.step}</h2>
        <span>{formatDuration(step.durationNs)}</span>
        <span class="weak">{step.class}</span>
        <span class="spacer" />
        <Close onClick={() => session.update({ step: undefined })} />
      </header>
      {step.detail === "none" && (
        <p class="weak">Kept as statistics only: what follows is exact, but the timeline shows no spans in it.</p>
      )}
      {step.detail === "part" && <p class="weak">Only its end was kept in detail.</p>}
      {step.outlier && (
        <p class="warning">
          ▲ takes much longer than its class{step.cause && `, in ${step.cause.replaceAll("_", " ")}`}
        </p>
      )}
      <dl class="beside-usual rows fine gap-4">
        {rows.map(({ phase, ns, usualNs }) => (
          <div class="cells" key={phase}>
            <dt>{PART_TITLES[phase]}</dt>
            <dd class="cells">
              <span class="pair rows gap-2">
                <span style={{ width: `${(100 * ns) / most}%`, background: css(partColor(phase, theme)) }} />
                <span class="usual" style={{ width: `${(100 * usualNs) / most}%` }} />
              </span>
              <span class="number">{formatDuration(ns)}</span>
              <span class="number weak">{usual ? formatDuration(usualNs) : "–"}</span>
              <span class="number weak">{formatShare(step.durationNs ? ns / step.durationNs : 0)}</span>
            </dd>
          </div>
        ))}
      </dl>
      <p class="weak">
        {usual
          ? `grey: the mean of the other ${plural(sisters.length, "step")} of its class`
          : "the only step of its class"}
      </p>
      <div class="buttons">
        <Button onClick={() => onOpen(step)}>
          Show on the timeline <kbd>Enter</kbd>
        </Button>
        <Button onClick={() => session.update({ page: "structure" }, "push")}>Among its iterations</Button>
      </div>
    </section>
  );
}

export const view: View = { name: "steps", title: "Steps", place: 6, component: StepsPage, chosen: ["step"] };
