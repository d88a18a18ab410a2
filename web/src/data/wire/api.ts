// Questions to the server: relative addresses, cancellable, errors as sentences; asked again while it does not run.

import { type ReadonlySignal, signal as signalOf } from "@preact/signals";
import type { TimeRange } from "../../base/time";
import { ArrowTable, RouteTable } from "./arrowTable";
import { maybe, object, text, WireError } from "./decoders";
import { ABOUTS, ANSWERS, type Note, type NotesOfRun, type Routes, TABLES } from "./wire.generated";

/** The server refused or could not be reached; the message is for the user. */
export class ApiError extends Error {}

export type Parameters = Readonly<Record<string, string | number>>;

type Answers = { readonly [Route in keyof typeof ANSWERS]: ReturnType<(typeof ANSWERS)[Route]> };
type Tables = { readonly [Route in keyof typeof TABLES]: RouteTable<(typeof TABLES)[Route]> };
type Abouts = { readonly [Name in keyof typeof ABOUTS]: ReturnType<(typeof ABOUTS)[Name]> };
export type RowOfRoute<Route extends keyof Tables> = ReturnType<Tables[Route]["rowsOf"]>[number];
export type ColumnsOfRoute<Route extends keyof Tables> = ReturnType<Tables[Route]["columns"]>;

/** A note on the run, without when it was written. */
export type NoteFields = Omit<Note, "changed_unix_ns">;
/** A note that is added or replaced, the key of one that is deleted, or all labels of the run. */
export type NotesChange =
  | { readonly note: NoteFields }
  | { readonly remove: string }
  | { readonly labels: readonly string[] };

/** What answers: an address of the server is asked again while it does not run. */
export type Server = {
  /** Whether no server answers; what was asked is asked again until one does. */
  readonly lost: ReadonlySignal<boolean>;
  /** Throws an ApiError where the server refuses. */
  fetch(address: URL, init?: RequestInit): Promise<Response>;
};

export type Api = {
  /** An answer that is JSON. */
  json<Route extends keyof Answers>(
    route: Route,
    parameters: Routes[Route],
    signal?: AbortSignal,
  ): Promise<Answers[Route]>;
  /** An answer that is a table. */
  table<Route extends keyof Tables>(
    route: Route,
    parameters: Routes[Route],
    signal?: AbortSignal,
  ): Promise<Tables[Route]>;
  /** What an analysis answers. */
  analysis(name: string, options: Parameters, signal?: AbortSignal): Promise<ArrowTable>;
  /** Changes what is noted on the run; gives all of it. */
  note(change: NotesChange): Promise<NotesOfRun>;
  readonly server: Server;
  /** The bare answer: of pictures, and of the one route that has two forms of answer. */
  ask(route: string, parameters: Parameters, signal?: AbortSignal): Promise<Response>;
};

/** A stretch of time as parameters: whole nanoseconds, and no less than it holds. */
export const stretchOf = ({ startNs, endNs }: TimeRange) => ({
  start_ns: Math.max(0, Math.floor(startNs)),
  end_ns: Math.max(1, Math.ceil(endNs)),
});

/** The JSON that comes with a table or a picture. */
export const aboutOf = <Name extends keyof Abouts>(name: Name, text: string | undefined): Abouts[Name] =>
  // Looked up by the name that the type is looked up by.
  ABOUTS[name](JSON.parse(text ?? "null"), name) as Abouts[Name];

export const ARROW_TYPE = "application/vnd.apache.arrow.stream";

const refusal = object({ error: text, do: maybe(text) });

/** Why the server refused, in a sentence. */
export async function sentenceOf(response: Response): Promise<string> {
  try {
    const { error, do: advice } = refusal(await response.json(), "error");
    return advice ? `${error}. ${advice}` : error;
  } catch {
    return `the server answered ${response.status} ${response.statusText}`;
  }
}

// A server that is started anew has the same address.
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 4000;

/** Waits; fails as a withdrawn request does when that is withdrawn. */
const pause = (ms: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });

export function createServer(fetcher: typeof fetch = (...a) => fetch(...a)): Server {
  const lost = signalOf(false);
  return {
    lost,
    async fetch(address, init = {}) {
      const signal = init.signal ?? undefined;
      let response: Response | undefined;
      for (let waitMs = FIRST_WAIT_MS; !response; waitMs = Math.min(2 * waitMs, LONGEST_WAIT_MS)) {
        try {
          response = await fetcher(address, init);
        } catch (error) {
          if (signal?.aborted) throw error;
          lost.value = true;
          await pause(waitMs, signal);
        }
      }
      lost.value = false;
      if (!response.ok) throw new ApiError(await sentenceOf(response));
      return response;
    },
  };
}

/** Changes what is noted on the run at an address; gives all of it. Asked twice, it does the same. */
export async function changeNotes(server: Server, run: URL, change: NotesChange): Promise<NotesOfRun> {
  const headers = { "Content-Type": "application/json" };
  const init = { method: "POST", headers, body: JSON.stringify(change) };
  const response = await server.fetch(new URL("api/notes", run), init);
  return ANSWERS.notes(await response.json(), "notes");
}

/** Talks to the server under `base`, the page's own address: any prefix that a proxy puts before it stays in place. */
export function createApi(base: URL, fetcher?: typeof fetch): Api {
  const server = createServer(fetcher);
  const ask = async (name: string, parameters: Parameters, signal?: AbortSignal): Promise<Response> => {
    const address = new URL(`api/${name}`, base);
    for (const [key, value] of Object.entries(parameters)) address.searchParams.set(key, String(value));
    return server.fetch(address, signal ? { signal } : {});
  };
  const bytes = async (route: string, parameters: Parameters, signal?: AbortSignal): Promise<Uint8Array> =>
    new Uint8Array(await (await ask(route, parameters, signal)).arrayBuffer());
  return {
    server,
    ask,
    note: (change) => changeNotes(server, base, change),
    async json(route, parameters, signal) {
      const value: unknown = await (await ask(route, parameters, signal)).json();
      return ANSWERS[route](value, route) as Answers[typeof route]; // As above.
    },
    async table(route, parameters, signal) {
      const made: unknown = new RouteTable(await bytes(route, parameters, signal), TABLES[route]);
      return made as Tables[typeof route]; // As above.
    },
    async analysis(name, options, signal) {
      return new ArrowTable(await bytes(`table/${name}`, options, signal));
    },
  };
}

/** An error's message for the user; undefined for a withdrawn request. */
export function explain(error: unknown): string | undefined {
  if (error instanceof DOMException && error.name === "AbortError") return undefined;
  if (error instanceof ApiError) return error.message;
  if (error instanceof WireError)
    return `The page and the server do not fit together: ${error.message}. Reload the page.`;
  return `Unexpected: ${error instanceof Error ? error.message : String(error)}`;
}
