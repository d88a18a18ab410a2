// A page of the application. A file in views/ that exports `view` is one, by being there.
import type { ComponentType } from "preact";

export type View = {
  /** Its name in the address. */
  readonly name: string;
  readonly title: string;
  /** The digit that opens it; pages are listed in this order. */
  readonly key: string;
  readonly component: ComponentType;
};
