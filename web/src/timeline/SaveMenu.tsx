// What of the timeline can be saved: the picture, and the spans in it.
import { useEffect, useRef } from "preact/hooks";
import { csvText, fileName } from "../base/csv";
import { formatCount, plural } from "../base/quantity";
import { csvFile, saveFile } from "../base/save";
import { fetchSpansIn } from "../data/stretch";
import type { TimelineModel } from "./model";
import { asPng, asSvg } from "./picture";

/** Writes the spans of the rows on the screen in the window, or in the chosen stretch, into a file. */
async function saveSpans(model: TimelineModel): Promise<void> {
  const { session, run } = model;
  const range = session.state.peek().range ?? model.window.peek();
  const rows = [...model.visible(model.pinned), ...model.visible(model.main)];
  const locations = [...new Set(rows.flatMap((row) => (row.kind === "location" ? [row.location.location] : [])))];
  if (!locations.length) {
    session.say("No thread or stream is on the screen");
    return;
  }
  const found = await session.ask(fetchSpansIn(session.api, locations, range));
  if (!found) return;
  const { table, count, skipped } = found;
  const lines: (string | number | undefined)[][] = [
    ["location", "thread", "process", "start_ns", "duration_ns", "depth", "group", "name"],
  ];
  if (table.rows) {
    const [location, start, duration, depth] = ["location", "start_ns", "duration_ns", "depth"].map((name) =>
      table.numbers(name),
    );
    const [names, groups] = [table.texts("name"), table.texts("group")];
    for (let i = 0; i < table.rows; i++) {
      const where = run.locations[location?.[i] ?? -1];
      lines.push([
        where?.location,
        where?.name,
        where?.process,
        start?.[i],
        duration?.[i],
        depth?.[i],
        groups[i],
        names[i],
      ]);
    }
  }
  saveFile(fileName(run.meta.name, "spans", range, "csv"), csvFile(csvText(lines)));
  const all =
    table.rows === count ? plural(count, "span") : `the ${formatCount(table.rows)} longest of ${plural(count, "span")}`;
  const left = skipped ? `; ${plural(skipped, "row")} left out: too full, zoom in` : "";
  session.say(`Saved ${all} of ${plural(locations.length - skipped, "row")} on the screen${left}`);
}

export function SaveMenu({ model }: { model: TimelineModel }) {
  const { session, run } = model;
  const menu = useRef<HTMLDivElement>(null);
  const open = model.saving.value;
  const close = (): void => {
    model.saving.value = false;
  };
  const name = (ending: string): string => fileName(run.meta.name, "timeline", model.window.peek(), ending);
  const items: readonly { readonly key: string; readonly title: string; readonly run: () => unknown }[] = [
    {
      key: "P",
      title: "picture as PNG",
      run: async () => {
        const seen = model.picture;
        const made = seen && (await session.ask(asPng(model, seen.box)));
        if (made) saveFile(name("png"), made);
      },
    },
    {
      key: "S",
      title: "picture as SVG",
      run: () => {
        const seen = model.picture;
        if (seen) saveFile(name("svg"), new Blob([asSvg(model, seen.tools(), seen.box)], { type: "image/svg+xml" }));
      },
    },
    { key: "C", title: "spans on the screen as CSV", run: () => saveSpans(model) },
  ];
  useEffect(() => {
    if (!open) return undefined;
    menu.current?.querySelector<HTMLElement>("[role=menuitem]")?.focus();
    const away = (event: PointerEvent): void => {
      if (event.target instanceof Node && !menu.current?.contains(event.target)) model.saving.value = false;
    };
    window.addEventListener("pointerdown", away);
    return () => window.removeEventListener("pointerdown", away);
  }, [open, model]);
  const onKey = (event: KeyboardEvent): void => {
    if (!model.saving.peek() || event.ctrlKey || event.metaKey || event.altKey) return;
    const all = [...(menu.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
    const at = document.activeElement instanceof HTMLElement ? all.indexOf(document.activeElement) : -1;
    const letter = items.find((item) => event.code === `Key${item.key}`);
    if (event.code === "Escape" || event.code === "KeyE") close();
    else if (event.code === "ArrowDown") all[(at + 1) % all.length]?.focus();
    else if (event.code === "ArrowUp") all[(at - 1 + all.length) % all.length]?.focus();
    else if (letter) {
      close();
      void letter.run();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const latest = useRef(onKey);
  latest.current = onKey;
  useEffect(() => {
    // Before all other keys, and not only once the menu is drawn: whoever types fast must not pin rows instead.
    const listen = (event: KeyboardEvent): void => latest.current(event);
    window.addEventListener("keydown", listen, { capture: true });
    return () => window.removeEventListener("keydown", listen, { capture: true });
  }, []);
  return (
    <div class="save-menu" ref={menu}>
      <button
        type="button"
        class="quiet"
        aria-haspopup="menu"
        aria-expanded={open}
        title="Save the picture or its spans (E)"
        onClick={() => {
          model.saving.value = !open;
        }}
      >
        save ▾
      </button>
      {open && (
        <div role="menu" tabIndex={-1} aria-label="Save">
          {items.map((item) => (
            <button
              type="button"
              role="menuitem"
              class="plain"
              key={item.key}
              onClick={() => {
                close();
                void item.run();
              }}
            >
              {item.title} <kbd>{item.key}</kbd>
            </button>
          ))}
        </div>
      )}
    </div>
  );
}
