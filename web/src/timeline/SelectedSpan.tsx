// The facts about the span that is selected on a timeline.
import type { ComponentChildren } from "preact";
import { SpanDetails } from "../widgets/details/SpanDetails";
import type { TimelineModel } from "./model/timelineModel";

type Props = {
  readonly model: TimelineModel;
  /** Where nothing is selected. */
  readonly none: ComponentChildren;
  /** What hangs on the span. */
  readonly children?: ComponentChildren;
};

export function SelectedSpan({ model, none, children }: Props) {
  const span = model.selection.span.value;
  return (
    <aside class="details fixed scrolls surface" aria-label="Facts about what is chosen">
      {span ? (
        <SpanDetails
          span={span}
          onFocus={() => model.focus()}
          onStep={(step) => model.time.goAround(step)}
          onIterations={() =>
            model.session.update({ page: "structure", region: span.name, step: span.step?.step }, "push")
          }
          onClose={() => void model.selection.select(undefined)}
        >
          {children}
        </SpanDetails>
      ) : (
        none
      )}
    </aside>
  );
}
