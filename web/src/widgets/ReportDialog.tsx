// What of the run goes into one HTML file to send or print: the server writes its sections, the page adds the picture of the timeline.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { fileName } from "../base/csv";
import { saveFile } from "../base/download";
import type { Run } from "../data/run";
import { useSession } from "../data/session";
import { Button, Close } from "./controls";

/** Those of the server (docs/reference/server.md), and the page's own. */
const SECTIONS = {
  verdict: "verdict",
  step: "one step as a bar",
  findings: "what to do first",
  ranks: "picture of the ranks",
  notes: "notes and labels",
  cards: "step trace, operators, data and timeline in figures",
  flame: "flame graph of the whole run",
  tables: "tables: loops, steps, operators, functions",
  quality: "how far the figures can be trusted",
  picture: "picture of the timeline, as it is on the screen",
};
type Section = keyof typeof SECTIONS;
const NAMES = Object.keys(SECTIONS).filter((name): name is Section => name in SECTIONS);

type Props = { readonly open: boolean; readonly run: Run; readonly onClose: () => void };

export function ReportDialog({ open, run, onClose }: Props) {
  const session = useSession();
  const dialog = useRef<HTMLDialogElement>(null);
  const chosen = useSignal<ReadonlySet<Section>>(new Set(NAMES));
  const picture = session.picture.value;
  useEffect(() => {
    if (open && !dialog.current?.open) dialog.current?.showModal();
    if (!open) dialog.current?.close();
  }, [open]);
  const wanted = NAMES.filter((name) => chosen.value.has(name) && (name !== "picture" || picture));
  const save = async (): Promise<void> => {
    onClose();
    session.notify("Writing the report");
    const drawn = wanted.includes("picture") ? picture?.() : undefined;
    const sections = wanted.filter((name) => name !== "picture").join(",");
    const answer = await session.ask(session.api.json("report", { sections }));
    if (!answer) return;
    const section = drawn ? `<section><h2>Timeline</h2>${drawn}</section>\n` : "";
    const end = answer.html.lastIndexOf("</main>");
    const html = answer.html.slice(0, end) + section + answer.html.slice(end);
    saveFile(fileName(run.meta.name, "report", run.bounds, "html"), new Blob([html], { type: "text/html" }));
    session.notify(["Saved the report", ...answer.notes].join("; "));
  };
  const toggle = (name: Section, on: boolean): void => {
    chosen.value = new Set(NAMES.filter((one) => (one === name ? on : chosen.value.has(one))));
  };
  return (
    <dialog ref={dialog} class="legend-card" aria-labelledby="report-title" onClose={onClose}>
      <header class="flex gap-14">
        <h2 id="report-title">Report: one HTML file to send or print</h2>
        <Close label="Close" onClick={onClose} />
      </header>
      <fieldset class="choices rows gap-6">
        <legend class="weak">sections</legend>
        {NAMES.map((name) => (
          <label key={name}>
            <input
              type="checkbox"
              checked={chosen.value.has(name) && (name !== "picture" || picture !== undefined)}
              disabled={name === "picture" && !picture}
              onChange={(event) => toggle(name, event.currentTarget.checked)}
            />{" "}
            {SECTIONS[name]}
            {name === "picture" && !picture && <span class="weak"> (open the page Timeline first)</span>}
          </label>
        ))}
      </fieldset>
      <Button disabled={!wanted.some((name) => name !== "picture")} onClick={() => void save()}>
        Save
      </Button>
    </dialog>
  );
}
