// Questions to the server: relative addresses, cancellable, errors as sentences.
import { ArrowTable, type Decoder, maybe, object, text, WireError } from "./wire";

/** The server refused or could not be reached; the message is for the user. */
export class ApiError extends Error {}

export type Parameters = Readonly<Record<string, string | number>>;

export type Api = {
  json<T>(name: string, parameters: Parameters, decode: Decoder<T>, signal?: AbortSignal): Promise<T>;
  arrow(name: string, parameters: Parameters, signal?: AbortSignal): Promise<ArrowTable>;
  /** The bare answer, for the one question that has two forms of answer. */
  ask(name: string, parameters: Parameters, signal?: AbortSignal): Promise<Response>;
};

export const ARROW_TYPE = "application/vnd.apache.arrow.stream";

const refusal = object({ error: text, do: maybe(text) });

async function sentence(response: Response): Promise<string> {
  try {
    const { error, do: advice } = refusal(await response.json(), "error");
    return advice ? `${error}. ${advice}` : error;
  } catch {
    return `the server answered ${response.status} ${response.statusText}`;
  }
}

/** Talks to the server under `base`, the page's own address: any prefix that a proxy puts before it stays in place. */
export function createApi(base: URL, fetcher: typeof fetch = (...a) => fetch(...a)): Api {
  const ask = async (name: string, parameters: Parameters, signal?: AbortSignal): Promise<Response> => {
    const address = new URL(`api/${name}`, base);
    for (const [key, value] of Object.entries(parameters)) address.searchParams.set(key, String(value));
    let response: Response;
    try {
      response = await fetcher(address, signal ? { signal } : {});
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new ApiError("the server does not answer: is `strobe view` still running?");
    }
    if (!response.ok) throw new ApiError(await sentence(response));
    return response;
  };
  return {
    ask,
    async json(name, parameters, decode, signal) {
      const value: unknown = await (await ask(name, parameters, signal)).json();
      return decode(value, name);
    },
    async arrow(name, parameters, signal) {
      return new ArrowTable(new Uint8Array(await (await ask(name, parameters, signal)).arrayBuffer()));
    },
  };
}

/** What to tell the user about an error; undefined when it only says that the question was withdrawn. */
export function explain(error: unknown): string | undefined {
  if (error instanceof DOMException && error.name === "AbortError") return undefined;
  if (error instanceof ApiError) return error.message;
  if (error instanceof WireError)
    return `The page and the server do not fit together: ${error.message}. Reload the page.`;
  return `Unexpected: ${error instanceof Error ? error.message : String(error)}`;
}
