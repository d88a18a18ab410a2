// Asks the server about something that the user may still be changing: not before it has rested, and never twice at once.
// And how much of a slow answer is made.
import { type Signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { formatShare } from "../base/quantity";
import { fetchProgress } from "../data/runList";
import { explain, type Server } from "../data/wire/api";

/** What moves asks again only after it has rested this long. */
const REST_MS = 250;

/** The last answer, why there is none, and whether a newer one is on its way. */
type Rested<T> = {
  readonly value: Signal<T | undefined>;
  readonly failure: Signal<string | undefined>;
  readonly waiting: Signal<boolean>;
};

type Manner = {
  /** How long a question rests before it is asked; the first one is asked at once unless this is given. */
  readonly restMs?: number;
  /** Whether an answer goes with its question; else it stays until the next has come. */
  readonly forget?: boolean;
};

/** Asks whenever `about` changes (a question in words; "": none). */
export function useRested<T>(
  about: string,
  ask: (signal: AbortSignal) => Promise<T>,
  { restMs, forget = false }: Manner = {},
): Rested<T> {
  const value = useSignal<T | undefined>(undefined);
  const failure = useSignal<string | undefined>(undefined);
  const waiting = useSignal(false);
  // `about` holds everything that `ask` depends on.
  useEffect(() => {
    if (forget || !about) {
      value.value = undefined;
      failure.value = undefined;
    }
    if (!about) return undefined;
    const controller = new AbortController();
    waiting.value = true;
    const timer = setTimeout(
      () => {
        ask(controller.signal).then(
          (answer) => {
            value.value = answer;
            failure.value = undefined;
            waiting.value = false;
          },
          (error: unknown) => {
            if (controller.signal.aborted) return;
            failure.value = explain(error);
            waiting.value = false;
          },
        );
      },
      restMs ?? (value.peek() === undefined ? 0 : REST_MS),
    );
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [about]);
  return { value, failure, waiting };
}

/** What takes less than this shows none; then it is asked for as often. */
const EVERY_MS = 1000;

/** "42 %" of what is asked of the run at an address; "" while that is unknown. */
export function useProgress(server: Server, run: URL, question: string): string {
  const share = useSignal<number | undefined>(undefined);
  useEffect(() => {
    share.value = undefined;
    if (!question) return undefined;
    const timer = setInterval(
      () =>
        fetchProgress(server, run).then(
          (shares) => (share.value = shares.get(question)),
          () => undefined, // The answer itself shows what is wrong.
        ),
      EVERY_MS,
    );
    return () => clearInterval(timer);
  }, [server, run.href, question]);
  return share.value === undefined ? "" : formatShare(share.value);
}
