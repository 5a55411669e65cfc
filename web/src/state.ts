/** What the reader has chosen, kept in the address so that a view can be sent
 *  to somebody, and told to those who show it. */
export type Listener = (changed: ReadonlySet<string>) => void;

export class State {
  private values = new Map<string, string>();
  private listeners = new Set<Listener>();

  constructor(private readonly defaults: Record<string, string> = {}) {
    this.read();
    window.addEventListener("hashchange", () => this.read());
  }

  get(key: string): string {
    return this.values.get(key) ?? this.defaults[key] ?? "";
  }

  is(key: string): boolean {
    return this.get(key) === "1";
  }

  /** Whether the reader has chosen anything whose key begins so. */
  any(prefix: string): boolean {
    return [...this.values.keys()].some((key) => key.startsWith(prefix));
  }

  set(key: string, value: string): void {
    if (this.get(key) === value) return;
    if (value === (this.defaults[key] ?? "")) this.values.delete(key);
    else this.values.set(key, value);
    const hash = new URLSearchParams([...this.values]).toString();
    history.replaceState(null, "", `#${hash}`);
    this.tell(new Set([key]));
  }

  /** Calls back after each change, until the returned function is called. */
  subscribe(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Ends all subscriptions: what had them is drawn anew. */
  release(): void {
    this.listeners.clear();
  }

  private read(): void {
    const before = this.values;
    this.values = new Map(new URLSearchParams(location.hash.slice(1)));
    const keys = new Set([...before.keys(), ...this.values.keys()]);
    const changed = [...keys].filter((key) => before.get(key) !== this.values.get(key));
    if (changed.length > 0) this.tell(new Set(changed));
  }

  private tell(changed: ReadonlySet<string>): void {
    for (const listener of [...this.listeners]) listener(changed);
  }
}
