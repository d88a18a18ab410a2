// The frame of every page: head with pages, search and theme; the page; notices.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { listeners, within } from "./base/events";
import { shortName } from "./base/names";
import { formatCount, formatQuantity, plural } from "./base/quantity";
import { formatDuration, length } from "./base/time";
import { visible } from "./base/visibleText";
import { countLocations, ranksOf } from "./data/run";
import { addressOf, rootOf, upload } from "./data/runList";
import { type Session, SessionContext, useSession } from "./data/session";
import { INITIAL } from "./state/address";
import { NEXT_THEME, THEME_ICON } from "./state/theme";
import { type Page, pageOfPress } from "./state/view";
import { Button } from "./widgets/controls";
import { Legend } from "./widgets/KeyLegend";
import { Logo } from "./widgets/Logo";
import { ReportDialog } from "./widgets/ReportDialog";
import { Search } from "./widgets/SpanSearch";
import { TracePicker } from "./widgets/TracePicker";

/** "what-if" is "what if": titles of pages do for their names, in an address that somebody writes. */
const plain = (page: string): string => page.toLowerCase().replaceAll(/[-_]/g, " ");
/** What Escape clears, one group a press: what is chosen on a page, then the region that stands out on all. */
const clearedOn = (view: Page | undefined) => [view?.chosen ?? [], ["region"]] as const;

export function App({ session, pages }: { session: Session; pages: readonly Page[] }) {
  return (
    <SessionContext.Provider value={session}>
      <Frame pages={pages} />
    </SessionContext.Provider>
  );
}

function Frame({ pages }: { pages: readonly Page[] }) {
  const session = useSession();
  const legend = useSignal(false);
  const report = useSignal(false);
  const { page } = session.state.value;
  const view = pages.find((v) => v.name === page || v.title.toLowerCase() === plain(page)) ?? pages[0];
  const run = session.run.value.status === "ready" ? session.run.value.value : undefined;
  const ranks = useMemo(() => (run ? ranksOf(run).length : 0), [run]);
  const offered = pages.filter(({ fewestRanks = 0 }) => ranks >= fewestRanks);
  const choice = session.themeChoice.value;
  const known = run && session.catalogue.value;
  const missing = ({ analysis }: Page): string =>
    (analysis && known?.status === "ready" && known.value.analyses.find(({ name }) => name === analysis)?.missing) ||
    "";
  const hasData = (v: Page): boolean => known?.status === "ready" && !missing(v);
  const shown = offered.filter((v) => v === view || !v.onlyWithData || hasData(v));

  const current = useRef<HTMLButtonElement>(null);
  // Where the pages have no room beside each other, they scroll.
  useEffect(() => current.current?.scrollIntoView({ block: "nearest", inline: "nearest" }), [view, known]);
  useEffect(() => {
    if (run) document.title = visible(`${run.meta.program || run.meta.name} – strobe`);
  }, [run]);
  useEffect(() => {
    const { on, stop } = listeners(window);
    on("dragover", (event) => event.preventDefault());
    on("drop", async (event) => {
      event.preventDefault();
      const file = event.dataTransfer?.files[0];
      if (!file) return;
      session.notice.value = `Reading ${file.name} …`;
      const root = rootOf(location.href);
      const name = await session.ask(upload(session.api.server, root, file));
      if (name !== undefined) location.assign(addressOf(root, name));
    });
    on("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (within(event, "input, textarea, dialog")) return;
      const wanted = pageOfPress(offered, event);
      if (wanted) session.update({ page: wanted.name }, "push");
      // Here, not with the page's own keys: a key pressed while a page is still being drawn must not be lost.
      else if (event.key === "Escape" && !event.repeat)
        session.clear((name) => clearedOn(pages.find((v) => v.name === name)));
      else if (event.key === "?") legend.value = true;
      else if (event.code === "KeyX") report.value = true;
      else if (event.code === "KeyT") session.chooseTheme(NEXT_THEME[session.themeChoice.value]);
      else return;
      event.preventDefault();
    });
    return stop;
  }, [session, pages, ranks, legend, report]);

  return (
    <>
      <header class="head surface row">
        <a class="logo row" href={new URL("runs/", rootOf(location.href)).href} title="All runs">
          <Logo />
        </a>
        <h1 class="ellipsis" title={run?.meta.command.join(" ")}>
          {run?.meta.program || run?.meta.name} <span class="weak">{run && formatDuration(length(run.bounds))}</span>
        </h1>
        <TracePicker />
        <nav class="pages flex gap-2" aria-label="Pages">
          {shown.map((v) => (
            <Button
              key={v.name}
              {...(v === view && { ref: current })}
              class={missing(v) ? "without-data" : ""}
              title={missing(v)}
              aria-current={v === view ? "page" : undefined}
              onClick={() => session.update({ page: v.name }, "push")}
            >
              {v.title} {v.key && <kbd>{v.key.replace("Shift + ", "⇧")}</kbd>}
            </Button>
          ))}
        </nav>
        <span class="spacer" />
        {run && <Search run={run} />}
        <Button
          class="quiet icon"
          onClick={() => session.chooseTheme(NEXT_THEME[choice])}
          aria-label={`Theme: ${choice}`}
          title={`Theme: ${choice} (T)`}
        >
          {THEME_ICON[choice]}
        </Button>
        <Button class="quiet icon" onClick={() => (report.value = true)} aria-label="Report" title="Save a report (X)">
          ⤓
        </Button>
        <Button class="quiet icon" onClick={() => (legend.value = true)} aria-label="Keys" title="Keys (?)">
          ?
        </Button>
      </header>
      <main class="page scrolls">{view && <view.component />}</main>
      <footer class="status row weak finer surface">
        {run && (
          <>
            <span>{run.meta.name}</span>
            {run.meta.host && <span>{run.meta.host}</span>}
            {run.meta.python && <span>Python {run.meta.python}</span>}
            <span>
              {plural(run.processes.length, "process")}, {countLocations(run.locations)}
            </span>
            <span>
              {plural(run.meta.span_count, "span")}
              {run.meta.folded_count > 0 && `, ${formatCount(run.meta.folded_count)} more in statistics`}
            </span>
            <Level />
            <KeptSteps />
            <span>{formatQuantity(run.meta.size_bytes, "bytes")}</span>
            <span>{run.meta.ended}</span>
          </>
        )}
      </footer>
      {session.api.server.lost.value ? (
        <div class="notice" role="alert">
          The server does not answer: is <code>strobe view</code> still running? Started again, it is found at once.
        </div>
      ) : (
        session.notice.value && (
          <div class="notice" role="status">
            {session.notice.value}
          </div>
        )
      )}
      {run && <ReportDialog open={report.value} run={run} onClose={() => (report.value = false)} />}
      <Legend open={legend.value} pages={offered} onClose={() => (legend.value = false)} />
    </>
  );
}

/** That the steps are not those that were found, but iterations of a level that the user chose. */
function Level() {
  const session = useSession();
  const { level } = session.state.value;
  if (!level) return null;
  return (
    <Button
      class="link"
      title="Count the steps that were found again"
      onClick={() => session.update({ level: "", step: undefined, steps: INITIAL.steps }, "push")}
    >
      a step is one of {shortName(level)} ✕
    </Button>
  );
}

/** How many of the steps are there in detail, once somebody has asked for the steps. */
function KeptSteps() {
  const about = useSession().stepsAbout.value;
  if (!about || about.kept === about.count) return null;
  return (
    <span title="The others are statistics only: sums over the run are exact, their single spans are gone">
      {formatCount(about.kept)} of {plural(about.count, "step")} in detail
    </span>
  );
}
