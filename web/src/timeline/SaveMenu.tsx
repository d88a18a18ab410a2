// What of the timeline can be saved: the picture, and the spans in it.
import { useEffect, useRef } from "preact/hooks";
import { csvText, fileName } from "../base/csv";
import { csvFile, saveFile } from "../base/download";
import { formatCount, plural } from "../base/quantity";
import { fetchSpansIn } from "../data/windowFacts";
import { Button } from "../widgets/controls";
import type { TimelineModel } from "./model/timelineModel";
import { asPng, asSvg } from "./saveImage";

/** Writes the spans of the rows on the screen in the window, or in the chosen stretch, into a file. */
async function saveSpans(model: TimelineModel): Promise<void> {
  const { session, run } = model;
  const range = session.state.peek().range ?? model.time.shown.peek();
  const shown = model.rows.onScreen().flatMap((row) => (row.kind === "location" ? [row.location.location] : []));
  const locations = [...new Set(shown)];
  if (!locations.length) {
    session.notify("No thread or stream is on the screen");
    return;
  }
  const found = await session.ask(fetchSpansIn(session.api, locations, range));
  if (!found) return;
  const { rows: spans, count, skipped } = found;
  const lines = spans.map(({ location, startNs, durationNs, depth, group, name }) => {
    const where = run.locations[location];
    return [where?.location, where?.name, where?.process, startNs, durationNs, depth, group, name];
  });
  const heading = ["location", "thread", "process", "start_ns", "duration_ns", "depth", "group", "name"];
  saveFile(fileName(run.meta.name, "spans", range, "csv"), csvFile(csvText([heading, ...lines])));
  const all =
    spans.length === count
      ? plural(count, "span")
      : `the ${formatCount(spans.length)} longest of ${plural(count, "span")}`;
  const left = skipped ? `; ${plural(skipped, "row")} left out: too full, zoom in` : "";
  session.notify(`Saved ${all} of ${plural(locations.length - skipped, "row")} on the screen${left}`);
}

export function SaveMenu({ model }: { model: TimelineModel }) {
  const { session, run } = model;
  const menu = useRef<HTMLDivElement>(null);
  const open = model.saving.value;
  const close = (): void => {
    model.saving.value = false;
  };
  const name = (ending: string): string => fileName(run.meta.name, "timeline", model.time.shown.peek(), ending);
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
    session.picture.value = () => {
      const seen = model.picture;
      return seen ? asSvg(model, seen.tools(), seen.box) : "";
    };
    return () => {
      session.picture.value = undefined;
    };
  }, [session, model]);
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
    <div class="anchor" ref={menu}>
      <Button
        class="quiet"
        aria-haspopup="menu"
        aria-expanded={open}
        title="Save the picture or its spans (E)"
        onClick={() => (model.saving.value = !open)}
      >
        save ▾
      </Button>
      {open && (
        <div role="menu" tabIndex={-1} aria-label="Save">
          {items.map((item) => (
            <Button
              role="menuitem"
              class="plain"
              key={item.key}
              onClick={() => {
                close();
                void item.run();
              }}
            >
              {item.title} <kbd>{item.key}</kbd>
            </Button>
          ))}
        </div>
      )}
    </div>
  );
}
