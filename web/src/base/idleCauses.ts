// Why nothing ran on a stream of a GPU: the causes of the analysis `idle`, in words.

/** In one or two words, and as a sentence. */
const CAUSES: Readonly<Record<string, readonly [string, string]>> = {
  data: ["waits for data", "the launching thread waited for data"],
  sync: ["waits for the GPU", "the launching thread waited for the GPU"],
  copy: ["waits for a copy", "the launching thread was in a copy that blocks it"],
  host: ["waits for the host", "the host launched the next activity only later"],
  kernel: ["between kernels", "it was launched in time: the GPU's own time from one kernel to the next"],
  other: ["waits", "it was launched in time, and waited for something else, or its launch is not known"],
};

export const causeTitle = (cause: string | undefined): string => (cause ? (CAUSES[cause]?.[0] ?? cause) : "");
export const causeSentence = (cause: string): string => CAUSES[cause]?.[1] ?? cause;
