// The page's one object: the address's state, what was loaded, the theme. Made in main.tsx, handed down by context.

import { computed, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { createContext } from "preact";
import { useContext, useRef } from "preact/hooks";
import type { Theme } from "../base/color";
import { formatState, INITIAL, parseState, type State } from "../state/address";
import { chooseTheme, keep, readKept, type ThemeChoice, type Themes, themesOf } from "../state/theme";
import { Notes } from "./notes";
import { fetchSeries, type Series } from "./readings";
import { fetchRun, type Run } from "./run";
import { fetchSteps, type Step, type StepsAbout } from "./runSteps";
import { type Api, explain } from "./wire/api";
import type { Catalogue } from "./wire/wire.generated";

/** Something that is fetched: not yet there, there, or not to be had. */
export type Loaded<T> =
  | { readonly status: "loading" }
  | { readonly status: "ready"; readonly value: T }
  | { readonly status: "failed"; readonly message: string };

type Fetched = { readonly result: WeakRef<Signal<Loaded<unknown>>>; readonly start: () => Promise<unknown> };
/** What was fetched and is still of use to somebody. */
const fetched = new Set<Fetched>();

/** `welcome`: whether what has come is wanted still. */
function fetchInto(
  result: Signal<Loaded<unknown>>,
  start: () => Promise<unknown>,
  welcome: () => boolean = () => true,
): Promise<void> {
  return start().then(
    (value) => {
      if (welcome()) result.value = { status: "ready", value };
    },
    (error: unknown) => {
      // What is there already stays.
      if (result.value.status !== "ready") result.value = { status: "failed", message: explain(error) ?? "withdrawn" };
    },
  );
}

/** Starts a fetch; the signal has its state. Of a run that is being recorded it is fetched anew as that grows. */
export function load<T>(start: () => Promise<T>): ReadonlySignal<Loaded<T>> {
  const result = signal<Loaded<T>>({ status: "loading" });
  for (const one of fetched) if (!one.result.deref()) fetched.delete(one);
  fetched.add({ result: new WeakRef<Signal<Loaded<unknown>>>(result), start });
  void fetchInto(result, start);
  return result;
}

/** Fetches everything anew; what is shown stays until its new value is there, and during a gesture. */
async function fetchAnew(busy: ReadonlySignal<boolean>): Promise<void> {
  const again = [...fetched].map(({ result, start }) => {
    const there = result.deref();
    return there && fetchInto(there, start, () => !busy.value);
  });
  await Promise.all(again);
}

/** How often a run that is being recorded is looked at. */
const FOLLOW_MS = 1000;

/** What was there last stays until the next has come. */
export function useLasting<T>(now: Loaded<T> | undefined): Loaded<T> {
  const last = useRef<Loaded<T>>({ status: "loading" });
  if (now && now.status !== "loading") last.current = now;
  return last.current;
}

/** How a change of state enters the browser's history. */
export type How = "push" | "replace";

export class Session {
  /** Whether the line of keys below the tracks is shown, in this browser. */
  readonly hints: Signal<boolean>;
  readonly state: Signal<State>;
  readonly themeChoice: ReadonlySignal<ThemeChoice>;
  readonly theme: ReadonlySignal<Theme>;
  private readonly themes: Themes;
  /** What the user should know now and need not act on, for a few seconds. */
  readonly notice = signal<string | undefined>(undefined);
  /** Whether a gesture is under way that must not be disturbed. */
  readonly busy = signal(false);
  /** Draws what the timeline shows as SVG, while that page is open. */
  readonly picture = signal<(() => string) | undefined>(undefined);
  readonly run: ReadonlySignal<Loaded<Run>>;
  readonly notes: Notes;
  readonly series: ReadonlySignal<Loaded<readonly Series[]>>;
  private listed: ReadonlySignal<Loaded<Catalogue>> | undefined;
  private readonly aboutOf = signal<ReadonlyMap<string, StepsAbout>>(new Map());
  /** What is known of the steps, once they were asked for. */
  readonly stepsAbout: ReadonlySignal<StepsAbout | undefined> = computed(() =>
    this.aboutOf.value.get(this.state.value.level),
  );
  /** By the loop level that they are the iterations of. */
  private readonly stepsOf = new Map<string, ReadonlySignal<Loaded<readonly Step[]>>>();
  /** The hash that the state was read from, or written to. */
  private hash: string;

  constructor(
    readonly api: Api,
    private readonly page: Window,
  ) {
    this.hash = page.location.hash;
    this.state = signal(parseState(this.hash));
    this.notes = new Notes(api);
    this.run = load(() => fetchRun(api));
    this.series = load(() => fetchSeries(api));
    page.addEventListener("hashchange", () => this.follow());
    this.hints = signal(readKept(page, HINTS_KEY) !== "hidden");
    this.themes = themesOf(page);
    this.themeChoice = this.themes.choice;
    this.theme = this.themes.theme;
  }

  /** What can be asked of the run, fetched when it is first wanted. */
  get catalogue(): ReadonlySignal<Loaded<Catalogue>> {
    this.listed ??= load(() => this.api.json("catalogue", {}));
    return this.listed;
  }

  /** The steps, fetched when they are first asked for: finding them takes the server longer than drawing a picture. */
  get steps(): ReadonlySignal<Loaded<readonly Step[]>> {
    const { level } = this.state.value;
    const known = this.stepsOf.get(level);
    if (known) return known;
    const fetched = load(async () => {
      const { steps, about } = await fetchSteps(this.api, level);
      this.aboutOf.value = new Map([...this.aboutOf.value, [level, about]]);
      return steps;
    });
    this.stepsOf.set(level, fetched);
    return fetched;
  }

  /** From now on fetches everything anew once a second while the run is being recorded, if somebody sees the page. */
  followRun(): void {
    const look = async (): Promise<void> => {
      const { value } = this.run;
      if (value.status === "ready" && !value.value.meta.running) return;
      const seen = this.page.document.visibilityState === "visible";
      if (value.status === "ready" && seen && !this.busy.value) await fetchAnew(this.busy);
      this.page.setTimeout(look, FOLLOW_MS);
    };
    this.page.setTimeout(look, FOLLOW_MS);
  }

  /** Takes over the address. The browser reports a step back late: keys pressed before may mean what lies there. */
  private follow(): void {
    const { hash } = this.page.location;
    if (hash === this.hash) return;
    this.hash = hash;
    this.state.value = parseState(hash);
  }

  /** Changes a part of the state, and with it the address. */
  update(change: Partial<State>, how: How = "replace"): void {
    this.follow();
    const next = { ...this.state.value, ...change };
    const hash = formatState(next);
    this.state.value = next;
    if (hash === this.page.location.hash) return;
    if (how === "push") this.page.history.pushState(undefined, "", hash);
    else this.page.history.replaceState(undefined, "", hash);
    this.hash = this.page.location.hash;
  }

  /** Takes back what was chosen: of several groups, by what the page that is shown has, the first in which there is anything. */
  clear(groupsOf: (page: string) => readonly (readonly (keyof State)[])[]): void {
    this.follow();
    const { value } = this.state;
    const chosen = groupsOf(value.page).find((names) => names.some((name) => value[name] !== INITIAL[name]));
    if (chosen) this.update(Object.fromEntries(chosen.map((name) => [name, INITIAL[name]])));
  }

  /** Chooses a theme and remembers it in this browser, where it may. */
  chooseTheme(choice: ThemeChoice): void {
    chooseTheme(this.page, this.themes, choice);
  }

  /** Shows or hides the line of keys below the tracks, and remembers it as above. */
  toggleHints(): void {
    this.hints.value = !this.hints.value;
    keep(this.page, HINTS_KEY, this.hints.value ? "shown" : "hidden");
  }

  /** Waits for an answer that an action needs; where there is none, notifies the user and gives undefined. */
  async ask<T>(question: Promise<T>): Promise<T | undefined> {
    try {
      return await question;
    } catch (error) {
      const sentence = explain(error);
      if (sentence) this.notify(sentence);
      return undefined;
    }
  }

  notify(text: string): void {
    this.notice.value = text;
    this.page.setTimeout(() => {
      if (this.notice.value === text) this.notice.value = undefined;
    }, 4000);
  }
}

const HINTS_KEY = "strobe.hints";

export const SessionContext = createContext<Session | undefined>(undefined);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error("a component was drawn outside of the session");
  return session;
}
