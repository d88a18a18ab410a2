// The theme: what the browser prefers, or what the user chose in it.
import { computed, effect, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import type { Theme } from "../base/color";

export type ThemeChoice = Theme | "auto";

export const NEXT_THEME: Readonly<Record<ThemeChoice, ThemeChoice>> = { auto: "dark", dark: "light", light: "auto" };
export const THEME_ICON: Readonly<Record<ThemeChoice, string>> = { auto: "◐", dark: "☾", light: "☀" };
const THEME_KEY = "strobe.theme";

export type Themes = { readonly choice: Signal<ThemeChoice>; readonly theme: ReadonlySignal<Theme> };

/** Reads the theme, and keeps the page in it. */
export function themesOf(page: Window): Themes {
  const kept = readKept(page, THEME_KEY);
  const choice = signal<ThemeChoice>(kept === "dark" || kept === "light" ? kept : "auto");
  const preference = page.matchMedia("(prefers-color-scheme: dark)");
  const prefersDark = signal(preference.matches);
  preference.addEventListener("change", () => (prefersDark.value = preference.matches));
  const theme = computed(() => (choice.value !== "auto" ? choice.value : prefersDark.value ? "dark" : "light"));
  effect(() => {
    page.document.documentElement.dataset.theme = theme.value;
  });
  return { choice, theme };
}

/** Chooses a theme and remembers it in this browser, where it may. */
export function chooseTheme(page: Window, themes: Themes, choice: ThemeChoice): void {
  themes.choice.value = choice;
  keep(page, THEME_KEY, choice);
}

export function readKept(page: Window, key: string): string | null {
  try {
    return page.localStorage.getItem(key);
  } catch {
    return null; // As below.
  }
}

export function keep(page: Window, key: string, value: string): void {
  try {
    page.localStorage.setItem(key, value);
  } catch {
    // Storage may be forbidden; then the choice lasts as long as the page.
  }
}
