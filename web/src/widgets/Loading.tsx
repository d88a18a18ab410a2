// What is shown while something is fetched, and when it could not be.
import type { ComponentChildren } from "preact";
import type { Run } from "../data/run";
import { type Loaded, useSession } from "../data/session";

type Props<T, Shown extends readonly unknown[]> = {
  readonly of: Loaded<T>;
  readonly what: string;
  readonly children: (...shown: Shown) => ComponentChildren;
};

/** Shows the value when it is there; otherwise that it is coming, or why it is not. */
export function Await<T>({ of, what, children }: Props<T, [value: T]>) {
  if (of.status === "ready") return <>{children(of.value)}</>;
  if (of.status === "failed")
    return (
      <p class="empty" role="alert">
        {of.message}
      </p>
    );
  // Shown late (style/base.css), so that a quick answer does not flicker.
  return <p class="empty late">{what} …</p>;
}

/** Shows the run and something else that a page is about, once both are there. */
export function AwaitWithRun<T>({ of, what, children }: Props<T, [run: Run, value: T]>) {
  return (
    <Await of={useSession().run.value} what="Opening the trace">
      {(run) => (
        <Await of={of} what={what}>
          {(value) => children(run, value)}
        </Await>
      )}
    </Await>
  );
}

/** Something was not recorded, and which option records it. */
export function Missing({ what, option }: { what: string; option: string }) {
  return (
    <p class="empty">
      {what} <code>strobe run {option}</code>
    </p>
  );
}
