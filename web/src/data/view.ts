// A page of the application. A file in views/ that exports `view` is one, by being there.
import type { ComponentType } from "preact";
import type { State } from "../base/state";

export type View = {
  /** Its name in the address. */
  readonly name: string;
  readonly title: string;
  /** The digit that opens it; pages are listed in this order. */
  readonly key: string;
  readonly component: ComponentType;
  /** What the user chooses on it, which Escape takes back. */
  readonly chosen?: readonly (keyof State)[];
};
