// Page: every analysis that there is, by subject, with its question, its options as fields, and its answer as a table.
import { useMemo } from "preact/hooks";
import { load, useSession } from "../data/session";
import { fetchAnalysis } from "../data/tables/analysisTable";
import type { AnalysisFacts, OptionFacts } from "../data/wire/wire.generated";
import type { View } from "../state/view";
import { Button, Select, TableSearch } from "../widgets/controls";
import { Await, AwaitWithRun } from "../widgets/Loading";
import { AnswerTable } from "../widgets/tables/AnswerTable";
import { useTableView } from "../widgets/tables/TablePage";

/** The words searched for in the list stand in the address as those of a table of this name. */
const LIST = "analyses";

function AnalysesPage() {
  const session = useSession();
  const { name } = session.state.value.analysis;
  return (
    <Await of={session.catalogue.value} what="Listing the analyses">
      {({ analyses }) => {
        const chosen = analyses.find((one) => one.name === name);
        return (
          <div class="analyses">
            <Picker analyses={analyses} chosen={name} />
            {chosen ? (
              <Analysis key={chosen.name} analysis={chosen} />
            ) : (
              <p class="empty">
                Choose a question at the left. Each is also a verb: <code>strobe NAME TRACE</code>
              </p>
            )}
          </div>
        );
      }}
    </Await>
  );
}

const titleOf = (name: string): string => name.replaceAll("_", " ");

function Picker({ analyses, chosen }: { analyses: readonly AnalysisFacts[]; chosen: string }) {
  const session = useSession();
  const [view, change] = useTableView(LIST);
  const words = view.find.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = analyses.filter(({ name, subject, question }) => {
    const text = `${titleOf(name)} ${name} ${subject} ${question}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  return (
    <nav class="picker scrolls" aria-label="Analyses">
      <TableSearch label="Search the questions" value={view.find} onInput={(find) => change({ ...view, find })} />
      {[...new Set(shown.map(({ subject }) => subject))].map((subject) => (
        <section key={subject} aria-labelledby={`subject-${subject}`}>
          <h2 id={`subject-${subject}`}>{subject}</h2>
          <ul>
            {shown
              .filter((one) => one.subject === subject)
              .map(({ name, question, missing }) => (
                <li key={name}>
                  <Button
                    class={missing ? "quiet without-data" : "quiet"}
                    title={missing}
                    aria-current={name === chosen ? "true" : undefined}
                    onClick={() => session.update({ analysis: { name, options: {} }, row: "" }, "push")}
                  >
                    <b>{titleOf(name)}</b> <span class="weak fine">{question}</span>
                  </Button>
                </li>
              ))}
          </ul>
        </section>
      ))}
      {!shown.length && <p class="weak">No question has these words.</p>}
    </nav>
  );
}

function Analysis({ analysis }: { analysis: AnalysisFacts }) {
  const session = useSession();
  const { options } = session.state.value.analysis;
  const { name, question, details } = analysis;
  const table = useMemo(
    () => load(() => fetchAnalysis(session.api, name, options)),
    [session, name, JSON.stringify(options)],
  );
  return (
    <section class="analysis vertical" aria-labelledby="question">
      <header class="row wraps">
        <h2 id="question">{question}</h2>
        <details class="fine">
          <summary>How it is computed</summary>
          <pre>{details.trim()}</pre>
        </details>
      </header>
      {analysis.options.length > 0 && (
        <form class="options row wraps" aria-label="Options" onSubmit={(event) => event.preventDefault()}>
          {analysis.options.map((option) => (
            <Field key={option.name} option={option} />
          ))}
        </form>
      )}
      <div class="fill">
        <AwaitWithRun of={table.value} what="Computing">
          {(run, value) => <AnswerTable run={run} table={value} name={name} label={titleOf(name)} options={options} />}
        </AwaitWithRun>
      </div>
    </section>
  );
}

/** A field for an option; what is as it comes does not stand in the address. */
function Field({ option }: { option: OptionFacts }) {
  const session = useSession();
  const { name, help, kind, choices, default: usual } = option;
  const { analysis } = session.state.value;
  const value = analysis.options[name] ?? usual;
  const change = (next: string): void => {
    const { [name]: _, ...others } = analysis.options;
    session.update(
      { analysis: { ...analysis, options: next === usual ? others : { ...others, [name]: next } } },
      "push",
    );
  };
  const title = titleOf(name);
  if (kind === "choice") {
    const all = usual ? choices : ["", ...choices];
    return (
      <Select words={title} about={help} choices={all} value={value} titleOf={(one) => one || "–"} onChoose={change} />
    );
  }
  if (kind === "flag")
    return (
      <label title={help}>
        <input
          type="checkbox"
          checked={value === "yes"}
          onChange={(event) => change(event.currentTarget.checked ? "yes" : "no")}
        />{" "}
        {title}
      </label>
    );
  return (
    <label title={help}>
      <span class="weak">{title}</span>{" "}
      <input
        type="text"
        size={12}
        spellcheck={false}
        value={value}
        placeholder={kind === "text" ? "" : kind}
        onChange={(event) => change(event.currentTarget.value.trim())}
      />
    </label>
  );
}

export const view: View = { name: "analyses", title: "Analyses", place: 20, component: AnalysesPage, chosen: ["row"] };
