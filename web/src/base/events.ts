// Events of the browser.

/** Listens to a part of the page; `stop` ends all of it. */
export function listeners(target: Window | HTMLElement) {
  const controller = new AbortController();
  const { signal } = controller;
  return {
    on<Name extends keyof HTMLElementEventMap>(
      name: Name,
      listener: (event: HTMLElementEventMap[Name]) => unknown,
    ): void {
      // The name decides the type of the event.
      target.addEventListener(name, listener as EventListener, { signal });
    },
    stop: (): void => controller.abort(),
  };
}

/** Whether what an event happened to lies in an element of a selector. */
export const within = ({ target }: Event, selector: string): boolean =>
  target instanceof Element && target.closest(selector) !== null;

/** What the user writes into or chooses from: keys mean something else there. */
export const FIELDS = "input, textarea, select, dialog, [role=listbox]";
