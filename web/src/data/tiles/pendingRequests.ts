// Requests under way for what the screen wants: begun once, and withdrawn when it is not wanted any more.
import { explain } from "../wire/api";

export class UnderWay {
  private readonly controllers = new Map<string, AbortController>();
  private keep = new Set<string>();

  constructor(
    /** Called when an answer has come. */
    private readonly changed: () => void,
    /** Called with a sentence when one could not. */
    private readonly failed: (sentence: string) => void,
  ) {}

  /** Takes what is wanted now: `changed` calls `start` for each request. All others are withdrawn. */
  want(changed: () => void): void {
    this.keep = new Set();
    changed();
    for (const [id, controller] of this.controllers)
      if (!this.keep.has(id)) {
        controller.abort();
        this.controllers.delete(id);
      }
  }

  /** Begins a request unless it is under way. */
  start(id: string, fetchIt: (signal: AbortSignal) => Promise<void>): void {
    this.keep.add(id);
    if (this.controllers.has(id)) return;
    const controller = new AbortController();
    this.controllers.set(id, controller);
    fetchIt(controller.signal)
      .catch((error: unknown) => {
        const sentence = controller.signal.aborted ? undefined : explain(error);
        if (sentence) this.failed(sentence);
      })
      .finally(() => {
        if (controller.signal.aborted) return;
        this.controllers.delete(id);
        this.changed();
      });
  }

  get waiting(): boolean {
    return this.controllers.size > 0;
  }

  /** Withdraws everything. */
  close(): void {
    for (const controller of this.controllers.values()) controller.abort();
  }
}
