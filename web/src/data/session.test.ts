import { expect, test } from "vitest";
import { Session } from "./session";
import type { Api } from "./wire/api";

/** A browser's window as far as the session knows it; going back changes the hash, and the event for it comes later. */
function fakePage(hash: string) {
  const listeners: (() => void)[] = [];
  const entries = [hash];
  const location = { hash };
  const page = {
    location,
    history: {
      pushState: (_: unknown, __: string, next: string) => {
        location.hash = next;
        entries.push(next);
      },
      replaceState: (_: unknown, __: string, next: string) => {
        location.hash = next;
        entries[entries.length - 1] = next;
      },
    },
    addEventListener: (_: string, listener: () => void) => listeners.push(listener),
    matchMedia: () => ({ matches: true, addEventListener: () => undefined }),
    document: { documentElement: { dataset: {} } },
    localStorage: { getItem: () => null },
  };
  const back = (): void => {
    entries.pop();
    location.hash = entries.at(-1) ?? "";
  };
  const report = (): void => {
    for (const listener of listeners) listener();
  };
  return { page: page as unknown as Window, location, back, report };
}

const never = { json: () => new Promise(() => undefined), arrow: () => new Promise(() => undefined) };
const sessionOn = (page: Window): Session => new Session(never as unknown as Api, page);
const groupsOf = (page: string) => [page === "timeline" ? (["range", "selection"] as const) : [], ["region"] as const];

test("what is chosen is cleared group by group", () => {
  const { page, location } = fakePage("#page=timeline&span=0_5_2&range=1-9&region=forward");
  const session = sessionOn(page);
  session.clear(groupsOf);
  expect(location.hash).toBe("#page=timeline&region=forward");
  session.clear(groupsOf);
  expect(location.hash).toBe("#page=timeline");
  session.clear(groupsOf);
  expect(location.hash).toBe("#page=timeline");
});

test("a key pressed right after going back means what lies there, not what was left", () => {
  const { page, location, back, report } = fakePage("#page=timeline&span=0_5_2&region=forward");
  const session = sessionOn(page);
  session.update({ page: "structure", region: "train_step", step: 3 }, "push");
  back();
  session.clear(groupsOf);
  expect(location.hash).toBe("#page=timeline&region=forward");
  expect(session.state.value.page).toBe("timeline");
  report();
  session.clear(groupsOf);
  expect(location.hash).toBe("#page=timeline");
});

test("a change right after going back is one of what lies there", () => {
  const { page, location, back } = fakePage("#page=timeline&region=forward");
  const session = sessionOn(page);
  session.update({ page: "structure", region: "train_step" }, "push");
  back();
  session.update({ step: 7 });
  expect(location.hash).toBe("#page=timeline&step=7&region=forward");
});
