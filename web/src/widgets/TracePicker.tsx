// The way to the other runs of the same server.
import { useMemo } from "preact/hooks";
import { addressOf, fetchNames, nameIn, rootOf } from "../data/runList";
import { load, useSession } from "../data/session";

export function TracePicker() {
  const root = rootOf(location.href);
  const { server } = useSession().api;
  const loaded = useMemo(() => load(() => fetchNames(server, root)), [root.href]).value;
  // Without an answer nothing can be chosen; the run itself shows the error.
  const names = loaded.status === "ready" ? loaded.value : [];
  return (
    <span class="traces row">
      {names.length > 1 && (
        <select
          aria-label="Run"
          value={nameIn(location.href) ?? names[0]}
          onChange={(event) => location.assign(addressOf(root, event.currentTarget.value))}
        >
          {names.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      )}
      <a href={new URL("runs/", root).href}>{names.length > 1 ? "all runs" : "runs"}</a>
    </span>
  );
}
