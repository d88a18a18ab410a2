// The way to the other traces that the same server shows; nothing where there is only one.

import { useMemo } from "preact/hooks";
import { load, useSession } from "../data/session";

export function TracePicker() {
  const { api } = useSession();
  const traces = useMemo(() => load(() => api.json("traces", {})), [api]).value;
  // Without an answer nothing can be chosen; the run itself shows the error.
  const { here, names } = traces.status === "ready" ? traces.value : { here: "", names: [] };
  if (names.length < 2) return null;
  return (
    <span class="traces row">
      <select
        aria-label="Run"
        value={here}
        onChange={(event) => location.assign(`../${encodeURIComponent(event.currentTarget.value)}/`)}
      >
        {names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
      <a href="../../">all runs</a>
    </span>
  );
}
