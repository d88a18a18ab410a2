// Pictures as the server sends them: four letters, the length of a header in JSON, the header, and bytes.
import { WireError } from "./decoders";

type Body = { readonly header: unknown; readonly at: number };

/** The header of a body that begins with some letters, and where the bytes behind it begin. */
export function readBody(body: ArrayBuffer, letters: string, what: string): Body {
  const bytes = new Uint8Array(body);
  const text = (from: number, to: number): string => new TextDecoder().decode(bytes.subarray(from, to));
  if (bytes.length < 8 || text(0, 4) !== letters) throw new WireError(`${what}: not a body of ${what}`);
  const at = 8 + new DataView(body).getUint32(4, true);
  return { header: JSON.parse(text(8, at)), at };
}
