const LABEL_CHARS = 40;
/** Control characters, and those that turn the direction of text around. */
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Text of a record as a label: what cannot be seen is replaced, what is too
 *  long is cut. */
export function label(text: unknown, chars = LABEL_CHARS): string {
  const short = String(text).slice(0, 4 * chars).replace(UNSEEN, "\ufffd");
  const letters = [...short];
  return letters.length > chars ? `${letters.slice(0, chars - 1).join("")}…` : short;
}
