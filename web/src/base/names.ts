// Short names of regions: the part in which they differ. The whole name is always a tooltip away.

const RULES: readonly (readonly [RegExp, string])[] = [
  [/^autograd::engine::evaluate_function: (?:torch::autograd::)?/, ""],
  [/^torch::autograd::/, ""],
  [/^enumerate\(DataLoader\)#.*$/, "next batch"],
  [/^Optimizer\.(\w+)#(\w+)\.\w+$/, "$2.$1"],
  [/^aten::/, ""],
];

/** "autograd::engine::evaluate_function: AddmmBackward0" is "AddmmBackward0", "aten::conv2d" is "conv2d". */
export const shortName = (name: string): string => RULES.reduce((text, [from, to]) => text.replace(from, to), name);

/** Cuts in the middle, where names of kernels and functions differ least. */
export function middleCut(name: string, most: number): string {
  if (name.length <= most) return name;
  const head = Math.ceil((most - 1) * 0.6);
  return `${name.slice(0, head)}…${name.slice(name.length - (most - 1 - head))}`;
}

/** A first word that is one, and no name of a function: those keep their case. */
const WORD_FIRST = /^[a-z][a-z'-]*[,:;]?(?= |$)(?! itself )/;

/** With a capital at its begin. */
export const capital = (text: string): string =>
  WORD_FIRST.test(text) ? `${text.charAt(0).toUpperCase()}${text.slice(1)}` : text;

/** With a capital at its begin, and a full stop at its end. */
export const asSentence = (text: string): string => `${capital(text)}${text.endsWith(".") ? "" : "."}`;

/** "train.py:12"; "" where the file is not known. */
export const lineText = (file: string | undefined, line: number | undefined): string =>
  file ? `${file}${line ? `:${line}` : ""}` : "";
