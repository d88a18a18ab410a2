// The home page: all runs of the server in a table, files that are dropped on it, and two runs to compare.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { listeners, within } from "./base/events";
import { capital } from "./base/names";
import { formatQuantity, plural, shownOf } from "./base/quantity";
import { formatDuration } from "./base/time";
import { VERDICTS, verdictSentence } from "./base/verdicts";
import { addressOf, fetchRuns, fetchSummed, labelRun, type RunRow, upload } from "./data/runList";
import { createServer, explain } from "./data/wire/api";
import { chooseTheme, NEXT_THEME, THEME_ICON, themesOf } from "./state/theme";
import { Button, TableSearch } from "./widgets/controls";
import { Logo } from "./widgets/Logo";
import { useProgress } from "./widgets/useAnswer";

/** Runs without a summary that are summed up without being asked: each takes the server seconds. */
const MOST_UNASKED = 12;

type Column = { readonly name: string; readonly of: (row: RunRow) => number | string; readonly number?: boolean };
const COLUMNS: readonly Column[] = [
  { name: "run", of: (row) => row.name.toLowerCase() },
  { name: "verdict", of: (row) => row.summary?.kind ?? "" },
  { name: "step", of: (row) => row.summary?.step_ns ?? -1, number: true },
  { name: "duration", of: (row) => row.summary?.duration_ns ?? -1, number: true },
  { name: "processes", of: (row) => row.summary?.processes ?? -1, number: true },
  { name: "data", of: (row) => (row.summary ? Number(row.summary.complete) : -1) },
  { name: "size", of: (row) => row.size_bytes, number: true },
  { name: "started", of: (row) => row.started_unix_ns, number: true },
];

/** What the user chose, as the address has it: words to find, a column to sort by, and ticked runs. */
type Chosen = {
  readonly find: string;
  readonly sort: string;
  readonly down: boolean;
  readonly ticked: readonly string[];
};

function readChosen(): Chosen {
  const hash = new URLSearchParams(location.hash.slice(1));
  return {
    find: hash.get("find") ?? "",
    sort: hash.get("sort") ?? "",
    down: hash.has("down"),
    ticked: hash.getAll("run"),
  };
}

function hashOf({ find, sort, down, ticked }: Chosen): string {
  const hash = new URLSearchParams(ticked.map((name) => ["run", name]));
  if (find) hash.set("find", find);
  if (sort) hash.set("sort", sort);
  if (down) hash.set("down", "");
  return `#${hash}`;
}

const dateOf = (unixNs: number): string =>
  unixNs > 0 ? new Date(unixNs / 1e6).toISOString().slice(0, 16).replace("T", " ") : "";

export function RunsPage({ root }: { root: URL }) {
  const server = useMemo(() => createServer(), []);
  const themes = useMemo(() => themesOf(window), []);
  const runs = useSignal<readonly RunRow[] | undefined>(undefined);
  const chosen = useSignal(readChosen());
  const message = useSignal("");
  const working = useSignal<{ readonly name: string; readonly controller: AbortController } | undefined>(undefined);
  const { name: worked = "", controller } = working.value ?? {};
  const done = useProgress(server, addressOf(root, worked), worked && "run");
  const over = useSignal(false);

  const change = (part: Partial<Chosen>): void => {
    chosen.value = { ...chosen.value, ...part };
    history.replaceState(undefined, "", hashOf(chosen.value));
  };
  const sumUp = async (name: string): Promise<void> => {
    const controller = new AbortController();
    working.value = { name, controller };
    try {
      const found = await fetchSummed(server, root, name, controller.signal);
      runs.value = runs.value?.map((one) => (one.name === name ? found : one));
    } catch (error) {
      const why = explain(error) ?? "";
      runs.value = runs.value?.map((one) => (one.name === name ? { ...one, error: why } : one));
    }
    working.value = undefined;
  };
  const label = async (name: string, text: string): Promise<void> => {
    try {
      const labels = await labelRun(server, root, name, text.split(","));
      runs.value = runs.value?.map((one) => (one.name === name ? { ...one, labels } : one));
      message.value = "";
    } catch (error) {
      message.value = `${name}: ${explain(error)}`;
    }
  };
  const open = async (file: File | null | undefined): Promise<void> => {
    if (!file) return;
    message.value = `Reading ${file.name} …`;
    try {
      location.assign(addressOf(root, await upload(server, root, file)));
    } catch (error) {
      message.value = `${file.name}: ${explain(error)}`;
    }
  };

  useEffect(() => {
    document.title = "Runs – strobe";
    const load = async (): Promise<void> => {
      try {
        runs.value = await fetchRuns(server, root);
      } catch (error) {
        message.value = explain(error) ?? "";
      }
      const unknown = runs.value?.filter((one) => !one.summary && !one.error).slice(0, MOST_UNASKED) ?? [];
      for (const { name } of unknown) await sumUp(name);
    };
    void load();
    const follow = () => (chosen.value = readChosen());
    addEventListener("hashchange", follow);
    const { on, stop } = listeners(window);
    on("dragover", (event) => {
      event.preventDefault();
      over.value = true;
    });
    on("dragleave", (event) => {
      if (!event.relatedTarget) over.value = false;
    });
    on("drop", (event) => {
      event.preventDefault();
      over.value = false;
      void open(event.dataTransfer?.files[0]);
    });
    on("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || within(event, "input, textarea")) return;
      if (event.code === "KeyT") chooseTheme(window, themes, NEXT_THEME[themes.choice.value]);
      else if (event.key === "/") document.querySelector<HTMLInputElement>("input[type=search]")?.focus();
      else return;
      event.preventDefault();
    });
    return () => {
      stop();
      removeEventListener("hashchange", follow);
    };
  }, []);

  const { find, sort, down, ticked } = chosen.value;
  const words = find.toLowerCase().split(/\s+/).filter(Boolean);
  const has = (one: RunRow): boolean => {
    const { name, command, host, labels, error } = one;
    const said = [name, command, host, ...labels, one.summary?.verdict, error].join(" ").toLowerCase();
    return words.every((word) => said.includes(word));
  };
  const shown = (runs.value ?? []).filter(has);
  const column = COLUMNS.find(({ name }) => name === sort);
  if (column) {
    const sign = down ? -1 : 1;
    shown.sort((a, b) => sign * (column.of(a) < column.of(b) ? -1 : column.of(a) > column.of(b) ? 1 : 0));
  }
  const [a, b] = ticked;
  const tick = (name: string): void =>
    change({ ticked: ticked.includes(name) ? ticked.filter((one) => one !== name) : [...ticked, name].slice(-2) });
  const sortBy = ({ name, number }: Column): void => change({ sort: name, down: sort === name ? !down : !!number });

  return (
    <>
      <header class="head surface row">
        <span class="logo row">
          <Logo />
        </span>
        <h1>Runs</h1>
        <TableSearch label="Search runs" value={find} onInput={(text) => change({ find: text })} />
        <span class="weak">{runs.value && shownOf(shown.length, runs.value.length, "run")}</span>
        {a && b ? (
          <a class="primary" href={`${addressOf(root, a)}#page=compare&with.other=${encodeURIComponent(b)}`}>
            Compare {a} with {b}
          </a>
        ) : (
          <span class="weak">Tick two runs to compare them.</span>
        )}
        <span class="spacer" />
        <label class="file">
          Open a file …
          <input type="file" onChange={(event) => void open(event.currentTarget.files?.[0])} />
        </label>
        <Button
          class="quiet icon"
          onClick={() => chooseTheme(window, themes, NEXT_THEME[themes.choice.value])}
          aria-label={`Theme: ${themes.choice.value}`}
          title={`Theme: ${themes.choice.value} (T)`}
        >
          {THEME_ICON[themes.choice.value]}
        </Button>
      </header>
      <main class={`page scrolls runs${over.value ? " dropping" : ""}`} tabIndex={-1}>
        <p role="status" class="runs-message">
          {server.lost.value
            ? "The server does not answer: is `strobe view` still running? Started again, it is found at once."
            : message.value}
        </p>
        {runs.value && (
          <table aria-label="Runs">
            <thead>
              <tr>
                <th scope="col">
                  <span class="unseen">compare</span>
                </th>
                {COLUMNS.map((one) => (
                  <th
                    key={one.name}
                    scope="col"
                    class={one.number ? "number" : ""}
                    aria-sort={sort === one.name ? (down ? "descending" : "ascending") : undefined}
                  >
                    <Button class="plain" onClick={() => sortBy(one)}>
                      {one.name}
                      {sort === one.name && (down ? " ▾" : " ▴")}
                    </Button>
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {shown.map((one) => (
                <tr key={one.name}>
                  <td>
                    <input
                      type="checkbox"
                      aria-label={`Compare ${one.name}`}
                      checked={ticked.includes(one.name)}
                      onChange={() => tick(one.name)}
                    />
                  </td>
                  <td class="run-name">
                    <a href={addressOf(root, one.name).href}>{one.name}</a>
                    <div class="weak fine ellipsis" title={`${one.command}\n${one.host}`}>
                      {one.command || one.file} {one.host && `· ${one.host}`}
                    </div>
                    <Labels row={one} onLabel={(text) => void label(one.name, text)} />
                  </td>
                  <Known
                    row={one}
                    working={worked === one.name ? { done, cancel: () => controller?.abort() } : undefined}
                    onSumUp={() => void sumUp(one.name)}
                  />
                  <td class="number">{formatQuantity(one.size_bytes, "bytes")}</td>
                  <td class="number weak">{dateOf(one.started_unix_ns)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
        <p class="weak">
          A file that is dropped here is opened: any that strobe reads, also packed. Times of starts are UTC.
        </p>
      </main>
    </>
  );
}

/** The labels of a run, and the field to change them in. */
function Labels({ row: { name, labels }, onLabel }: { row: RunRow; onLabel: (text: string) => void }) {
  const editing = useSignal(false);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (editing.value) field.current?.select();
  }, [editing.value]);
  if (editing.value)
    return (
      <input
        ref={field}
        class="fine label-field"
        aria-label={`Labels of ${name}, with commas between them`}
        value={labels.join(", ")}
        onBlur={() => (editing.value = false)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && !event.isComposing) onLabel(event.currentTarget.value);
          else if (event.key !== "Escape") return;
          editing.value = false;
        }}
      />
    );
  return (
    <div class="labels fine row gap-4">
      {labels.map((each) => (
        <span key={each} class="label">
          {each}
        </span>
      ))}
      <Button
        class="quiet"
        aria-label={`${labels.length ? "" : "+ label: "}Labels of ${name}`}
        onClick={() => (editing.value = true)}
      >
        {labels.length ? "✎" : "+ label"}
      </Button>
    </div>
  );
}

type KnownProps = {
  readonly row: RunRow;
  readonly working: { readonly done: string; readonly cancel: () => void } | undefined;
  readonly onSumUp: () => void;
};

/** The cells that need a summary; without one, why there is none. */
function Known({ row: { name, error, summary: known }, working, onSumUp }: KnownProps) {
  if (!known)
    return (
      <td colSpan={5} class="weak">
        {error ? capital(error) : working ? `Summing it up … ${working.done}` : <SumUp name={name} onSumUp={onSumUp} />}
        {working && <Button onClick={working.cancel}>Cancel</Button>}
      </td>
    );
  return (
    <>
      <td class={`verdict-${known.kind}`}>
        <span class="badge fixed">{VERDICTS[known.kind] ?? known.kind}</span>
        <div class="fine run-verdict" title={known.verdict}>
          {verdictSentence(known.verdict)}
        </div>
      </td>
      <td class="number">
        {known.step_ns === undefined ? "–" : formatDuration(known.step_ns)}
        <Spark of={known.strip_ns} />
      </td>
      <td class="number">{formatDuration(known.duration_ns)}</td>
      <td class="number">
        {known.processes}
        {known.gpus > 0 && <div class="weak fine">{plural(known.gpus, "GPU")}</div>}
      </td>
      <td class={known.complete ? "weak" : "warning"}>{known.state.join(", ")}</td>
    </>
  );
}

const SumUp = ({ name, onSumUp }: { name: string; onSumUp: () => void }) => (
  <Button class="link" onClick={onSumUp} aria-label={`Sum up ${name}`}>
    not summed up yet
  </Button>
);

/** All steps as bars, from 0. */
function Spark({ of: values }: { of: readonly number[] }) {
  const most = Math.max(...values, 1);
  if (values.length < 2) return null;
  return (
    <svg
      class="spark"
      viewBox={`0 0 ${values.length} 1`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`Durations of steps up to ${formatDuration(most)}`}
    >
      {values.map((value, at) => (
        <rect key={at} x={at} width="0.8" y={1 - value / most} height={value / most} />
      ))}
    </svg>
  );
}
