// The way back from a zoom, and on to other steps.
import type { ComponentChildren } from "preact";
import { shortName } from "../base/names";
import { formatDuration, length, type TimeRange } from "../base/time";
import { Button } from "../widgets/controls";
import type { TimelineModel } from "./model/timelineModel";

/** Where we are: the windows that were zoomed into, from the whole run inwards. */
export function Breadcrumb({ model, children }: { model: TimelineModel; children?: ComponentChildren }) {
  const { region } = model.session.state.value;
  const trail = model.time.trail.value;
  const worst = model.session.stepsAbout.value?.worst;
  const name = (crumb: TimeRange | undefined): string => {
    if (!crumb || length(crumb) >= length(model.run.bounds)) return "whole run";
    const size = length(crumb);
    const inside = model.steps.value.filter(
      (s) => s.count === 1 && s.startNs >= crumb.startNs && s.startNs + s.durationNs <= crumb.endNs,
    );
    const [first, last] = [inside[0], inside.at(-1)];
    if (!first || !last || last.startNs + last.durationNs - first.startNs < size * 0.7) return formatDuration(size);
    return first === last ? `step ${first.step}` : `steps ${first.step} to ${last.step}`;
  };
  return (
    <nav class="breadcrumb row gap-2" aria-label="Zoom">
      {trail.map((crumb, i) => (
        <span key={`${i}-${crumb?.startNs}`}>
          <Button class="link" onClick={() => model.time.backTo(i)}>
            {name(crumb)}
          </Button>
          <span class="weak"> ▸ </span>
        </span>
      ))}
      <b>{name(model.time.shown.value)}</b>
      {trail.length > 0 && (
        <Button
          class="quiet"
          onClick={() => model.time.back()}
          aria-label="Undo the last zoom"
          title="Undo the last zoom (Backspace)"
        >
          ⌫
        </Button>
      )}
      <span class="spacer" />
      {region && (
        <Button
          class="quiet chosen-region ellipsis"
          title={`${region} stands out; click to clear (Esc)`}
          onClick={() => model.session.update({ region: "" })}
        >
          {shortName(region)} ✕
        </Button>
      )}
      <Button class="quiet" onClick={() => void model.goToStep("previous")} title="Previous step ( [ )">
        ‹ step
      </Button>
      <Button class="quiet" onClick={() => void model.goToStep("next")} title="Next step ( ] )">
        step ›
      </Button>
      <Button class="quiet" onClick={() => void model.goToStep("outlier")} title="Next outlier (N)">
        ▲ outlier
      </Button>
      {worst && (
        <Button class="quiet" onClick={() => model.goToWorst()} title="The step that is slow by most (Shift+N)">
          worst step
        </Button>
      )}
      {children}
    </nav>
  );
}
