// What stands in a panel before there is anything to show, or why there is nothing.
import type { ComponentChildren } from "preact";

export function PanelNote({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}
