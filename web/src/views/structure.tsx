// Page 8: the loops of the run, what follows what in them, and every iteration beside the usual one.

import { type Signal, useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { shortName } from "../base/names";
import { length } from "../base/time";
import { type Loaded, load, useLasting, useSession } from "../data/session";
import type { Structure } from "../data/wire/wire.generated";
import { INITIAL } from "../state/address";
import type { View } from "../state/view";
import { FlowGraph } from "../structure/FlowGraph";
import { GraphFacts } from "../structure/GraphFacts";
import { LoopTree } from "../structure/LoopTree";
import { StackPanel } from "../structure/StackPanel";
import { withFlow } from "../structure/shownFlow";
import { Button, Choices } from "../widgets/controls";
import { Await } from "../widgets/Loading";

function StructurePage() {
  const session = useSession();
  const structure = useMemo(() => load(() => session.api.json("structure", {})), [session]);
  // What lies under the pointer on one part of the page stands out on the others.
  const hovered = useSignal<readonly string[]>([]);
  const chosen = useSignal<readonly string[]>([]);
  const { region } = session.state.value;
  const lit = useMemo(() => {
    const names = chosen.value.includes(region) ? chosen.value : region ? [region] : [];
    return new Set(hovered.value.length ? hovered.value : names);
  }, [hovered.value, chosen.value, region]);
  const onHover = (names: readonly string[]) => (hovered.value = names);
  return (
    <div class="structure">
      <div class="structure-side scrolls">
        <Choices
          choices={["Iterations", "Flow"]}
          value={session.state.value.flow ? "Flow" : "Iterations"}
          onChoose={(one) => session.update({ flow: one === "Flow" }, "push")}
        />
        <Await of={structure.value} what="Finding the loops">
          {(value) => <Loops structure={value} />}
        </Await>
      </div>
      {session.state.value.flow ? (
        <Flow structure={structure.value} lit={lit} chosen={chosen} onHover={onHover} />
      ) : (
        <StackPanel lit={lit} onHover={onHover} />
      )}
    </div>
  );
}

type FlowProps = {
  readonly structure: Loaded<Structure>;
  readonly lit: ReadonlySet<string>;
  /** Names that were chosen in the graph: a node may stand for many. */
  readonly chosen: Signal<readonly string[]>;
  readonly onHover: (names: readonly string[]) => void;
};

function Flow({ structure, lit, chosen, onHover }: FlowProps) {
  const session = useSession();
  const whole = useSignal(false);
  // Names of operators whose insides are shown, and whether every call of the run is.
  const opened = useSignal<readonly string[]>([]);
  const everything = useSignal(false);
  const open = opened.value.join("~");
  const flow = useMemo(() => load(() => session.api.json("flow", open ? { open } : {})), [session, open]);
  const lastFlow = useLasting(flow.value);
  const folded = structure.status === "ready" && structure.value.kept_steps !== undefined;
  const { region } = session.state.value;
  return (
    <section class="structure-graph vertical" aria-labelledby="graph-title">
      <header class="row">
        <h2 id="graph-title">Flow</h2>
        {structure.status === "ready" ? (
          <GraphFacts process={structure.value.process} />
        ) : (
          <span class="weak">what runs after what</span>
        )}
        <span class="spacer" />
        {region && (
          <Button class="quiet chosen-region ellipsis" title={region} onClick={() => session.update({ region: "" })}>
            {shortName(region)} ✕
          </Button>
        )}
        {folded && (
          <Button
            class="quiet"
            aria-pressed={everything.value}
            title="Every call in all steps, counted while the program ran; else the outermost operators of the steps in detail"
            onClick={() => (everything.value = !everything.value)}
          >
            all calls
          </Button>
        )}
        <Button class="quiet" aria-pressed={whole.value} onClick={() => (whole.value = !whole.value)}>
          whole run
        </Button>
      </header>
      <Await of={structure} what="Finding the loops">
        {(value) => (
          <Await of={lastFlow} what="Drawing the flow">
            {(operators) => (
              <FlowGraph
                structure={everything.value ? value : withFlow(value, operators)}
                whole={whole.value}
                keptSteps={everything.value ? undefined : value.kept_steps}
                lit={lit}
                holds={new Set(everything.value ? [] : operators.holds)}
                opened={new Set(opened.value)}
                onOpen={(names, open) => {
                  const others = opened.value.filter((name) => !names.includes(name));
                  opened.value = open ? [...others, ...names] : others;
                }}
                onHover={onHover}
                onNames={(names) => {
                  chosen.value = names;
                  session.update({ region: names.includes(region) ? "" : (names[0] ?? "") });
                }}
              />
            )}
          </Await>
        )}
      </Await>
    </section>
  );
}

function Loops({ structure }: { structure: Structure }) {
  const session = useSession();
  const steps = session.steps.value;
  const run = session.run.value;
  return (
    <LoopTree
      structure={structure}
      partsNs={(steps.status === "ready" && session.stepsAbout.value?.parts_ns) || {}}
      runNs={run.status === "ready" ? length(run.value.bounds) : 0}
      chosen={session.state.value.level}
      onLevel={(level) => {
        // The step that was found has no need to be asked for. Numbers of steps mean other steps now.
        const name = level.is_step ? "" : level.marker || level.name;
        session.update({ level: name, step: undefined, steps: INITIAL.steps }, "push");
      }}
    />
  );
}

export const view: View = {
  name: "structure",
  title: "Structure",
  place: 8,
  component: StructurePage,
  chosen: ["step"],
};
