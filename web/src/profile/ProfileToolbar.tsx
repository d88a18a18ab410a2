// What the page Profile shows: which form, which measure, which part of the run, where, and what stands out.
import type { RefObject } from "preact";
import { formatShare, plural } from "../base/quantity";
import { formatDuration, length } from "../base/time";
import { CLASS_PREFIX } from "../data/callTree";
import type { Run } from "../data/run";
import { useSession } from "../data/session";
import {
  PROFILE_FORMS,
  PROFILE_MEASURES,
  type ProfileForm,
  type ProfileMeasure,
  type ProfileView,
} from "../state/address";
import { Choices } from "../widgets/controls";
import type { Matches } from "./pathSearch";
import { MEASURE_TITLES } from "./treeWords";

export const FORM_TITLES: Readonly<Record<ProfileForm, string>> = {
  time: "Time order",
  heavy: "Left heavy",
  sandwich: "Sandwich",
};
/** More threads than this are chosen by their process only. */
const MOST_LISTED = 300;

type Props = {
  readonly run: Run;
  readonly view: ProfileView;
  readonly measure: ProfileMeasure;
  readonly hasGpu: boolean;
  /** In time order: the thread on the screen. */
  readonly location: number | undefined;
  readonly matches: Matches | undefined;
  readonly search: RefObject<HTMLInputElement | null>;
  readonly onView: (view: Partial<ProfileView>) => void;
};

export function Toolbar({ run, view, measure, hasGpu, location, matches, search, onView }: Props) {
  const session = useSession();
  const { find } = session.state.value;
  return (
    <div class="filters profile-bar row wraps" role="toolbar" aria-label="What is shown">
      <Choices
        choices={PROFILE_FORMS}
        value={view.form}
        titleOf={(form) => FORM_TITLES[form]}
        about={(form) => `${FORM_TITLES[form]} (V: the next one)`}
        onChoose={(form) => onView({ form })}
      />
      {hasGpu && view.form !== "time" && (
        <Choices
          choices={PROFILE_MEASURES}
          value={measure}
          titleOf={(one) => MEASURE_TITLES[one]}
          about={(one) =>
            `${one === "host" ? "Time of threads" : "Time of GPUs, below what launched their work"} (M: the other one)`
          }
          onChoose={(one) => onView({ measure: one })}
        />
      )}
      {view.form !== "time" && <PartChoice view={view} onView={onView} />}
      <PlaceChoice run={run} view={view} location={location} onView={onView} />
      <span class="spacer" />
      {view.form !== "time" && (
        <>
          {matches && (
            <span class="weak" role="status">
              {plural(matches.count, "call path")}, {formatShare(matches.share)}
            </span>
          )}
          <input
            ref={search}
            class="profile-find"
            type="search"
            aria-label="Search names of call paths"
            placeholder="Search names (Ctrl F)"
            spellcheck={false}
            value={find}
            onInput={(event) => session.update({ find: event.currentTarget.value })}
            onKeyDown={(event) => {
              if (event.key === "Escape") {
                session.update({ find: "" });
                event.currentTarget.blur();
              }
            }}
          />
        </>
      )}
    </div>
  );
}

type ChoiceProps = Pick<Props, "view" | "onView">;

/** Which part of the run: all of it, steps, or what the timeline shows. */
function PartChoice({ view, onView }: ChoiceProps) {
  const session = useSession();
  const { step, window } = session.state.value;
  const classes = session.stepsAbout.value?.classes ?? [];
  return (
    <select
      aria-label="Part of the run"
      value={view.part}
      onChange={(event) => onView({ part: event.currentTarget.value })}
    >
      <option value="">whole run</option>
      {(classes.length > 0 || view.part === "steady") && <option value="steady">steady steps</option>}
      {classes.map((one) => (
        <option key={one.name} value={`${CLASS_PREFIX}${one.name}`}>
          steps of class {one.name}
        </option>
      ))}
      {(step !== undefined || view.part === "step") && <option value="step">step {step}</option>}
      {(window || view.part === "window") && (
        <option value="window">what the timeline shows{window && ` (${formatDuration(length(window))})`}</option>
      )}
    </select>
  );
}

/** Where: everywhere, one process, or one thread; in time order always one thread. */
function PlaceChoice({ run, view, location, onView }: ChoiceProps & Pick<Props, "run" | "location">) {
  const inTime = view.form === "time";
  const chosen = view.place.startsWith("p") ? Number(view.place.slice(1)) : undefined;
  const known = inTime ? run.locations.filter((each) => each.spanCount > 0) : run.locations;
  const listed = known.length <= MOST_LISTED ? known : known.filter((each) => each.process === chosen);
  const several = run.processes.length > 1;
  if (known.length < 2) return null;
  return (
    <select
      aria-label="Where"
      value={inTime ? `l${location}` : view.place}
      onChange={(event) => onView({ place: event.currentTarget.value })}
    >
      {!inTime && <option value="">all threads and streams</option>}
      {run.processes.map((process) => (
        <optgroup
          key={process.process}
          label={several ? `${process.title || "process"} ${process.pid}` : "one of them"}
        >
          {several && !inTime && <option value={`p${process.process}`}>process {process.pid}</option>}
          {listed
            .filter((each) => each.process === process.process)
            .map((each) => (
              <option key={each.location} value={`l${each.location}`}>
                {each.name || `thread ${each.threadId}`}
              </option>
            ))}
        </optgroup>
      ))}
    </select>
  );
}
