/** Sorting and filtering of rows. Pure functions. */
export type Sortable = number | string | null;

/** Which column, and whether the largest comes first. */
export interface Order {
  key: string;
  down: boolean;
}

/** `p50` or `-p50`, as in the address; null where nothing was chosen. */
export function parseOrder(text: string): Order | null {
  if (text === "") return null;
  return text.startsWith("-") ? { key: text.slice(1), down: true } : { key: text, down: false };
}

export const orderText = (order: Order | null): string => (order === null ? "" : (order.down ? "-" : "") + order.key);

/** What a press on a column's head makes of the order: up, down, none. */
export function turned(order: Order | null, key: string): Order | null {
  if (order?.key !== key) return { key, down: false };
  return order.down ? null : { key, down: true };
}

const collator = new Intl.Collator("en", { numeric: true });

/** Rows in order; what has no value comes last either way, and rows that are
 *  equal stay as they were. */
export function sorted<T>(rows: readonly T[], value: (row: T) => Sortable, down: boolean): T[] {
  const keyed = rows.map((row) => ({ row, value: value(row) }));
  keyed.sort((a, b) => {
    if (a.value === null || b.value === null) return Number(a.value === null) - Number(b.value === null);
    const less = typeof a.value === "number" && typeof b.value === "number" ? a.value - b.value : collator.compare(String(a.value), String(b.value));
    return down ? -less : less;
  });
  return keyed.map(({ row }) => row);
}

/** Whether a text holds every word that was typed, in any order and case. */
export function matcher(typed: string): (text: string) => boolean {
  const words = typed.toLowerCase().split(/\s+/).filter((word) => word !== "");
  return (text) => {
    const lower = text.toLowerCase();
    return words.every((word) => lower.includes(word));
  };
}
