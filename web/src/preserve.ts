/** Keeps the reader's place while a part of the page is drawn anew. */

const FOCUSABLE = "a[href], button, input, select, textarea, summary, [tabindex]";
/** Charts take their height in the frames that follow: so long the place is held, ms. */
const SETTLE_MS = 1_500;

/** Where an element is: the section, and the how-manieth of its kind there. */
interface Place {
  section: string;
  index: number;
}

const SECTION = "section[id], header, nav";
const nameOf = (section: Element): string => section.id || section.tagName;

function placeOf(root: Element, element: Element, kind: string): Place | null {
  const section = element.closest(SECTION);
  if (section === null || !root.contains(section)) return null;
  return { section: nameOf(section), index: [...section.querySelectorAll(kind)].indexOf(element) };
}

function find(root: Element, place: Place | null, kind: string): Element | undefined {
  if (place === null) return undefined;
  const section = [...root.querySelectorAll(SECTION)].find((one) => nameOf(one) === place.section);
  return section?.querySelectorAll(kind)[place.index];
}

/** Remembers what is in view, the focus with its selection, open details and
 *  scrolled boxes; the returned function brings them back. */
export function kept(root: HTMLElement): () => void {
  const inView = viewOf(root);
  const focus = focusOf(root);
  const open = [...root.querySelectorAll("details[open]")].map((one) => placeOf(root, one, "details"));
  const boxes = [...root.querySelectorAll(".scroller")]
    .filter((box) => box.scrollLeft !== 0)
    .map((box) => ({ place: placeOf(root, box, ".scroller"), left: box.scrollLeft }));
  return () => {
    for (const place of open) find(root, place, "details")?.setAttribute("open", "");
    for (const { place, left } of boxes) find(root, place, ".scroller")?.scrollTo({ left });
    focus();
    inView();
  };
}

/** Ends what holds the page at the moment. */
let letGo = (): void => {};

/** An element stays where it is in the window, whatever grows above it, until
 *  all has its height or the reader moves, by whatever means. */
export function hold(element: HTMLElement, offset: number): void {
  const main = element.closest("main");
  if (main === null) return;
  letGo();
  const root = document.documentElement;
  let left = window.scrollY;
  const place = (): void => {
    const atEnd = window.innerHeight + window.scrollY >= root.scrollHeight - 1;
    // A bar that is dragged says nothing of itself. A page that grew shorter moves by itself, to its end.
    if (Math.abs(window.scrollY - left) > 1 && !atEnd) return end();
    window.scrollBy(0, element.getBoundingClientRect().top - offset);
    left = window.scrollY;
  };
  const growing = new ResizeObserver(place);
  const moves = ["wheel", "touchstart", "keydown", "pointerdown"] as const;
  const end = (): void => {
    growing.disconnect();
    window.clearTimeout(waiting);
    for (const move of moves) window.removeEventListener(move, end);
    root.style.overflowAnchor = "";
  };
  letGo = end;
  const waiting = window.setTimeout(end, SETTLE_MS);
  for (const move of moves) window.addEventListener(move, end, { passive: true });
  // Or the browser would keep another element in its place, and that would look like the reader.
  root.style.overflowAnchor = "none";
  for (const one of main.children) growing.observe(one);
  place();
}

/** Keeps the page long enough for a section to stay where it was while charts
 *  take their height. Not until the reader moves: a press would miss what it
 *  was meant for if the page grew shorter under it. */
function reserve(section: HTMLElement, offset: number): void {
  const main = section.closest("main");
  if (main === null) return;
  main.style.minHeight = `${section.offsetTop - main.offsetTop + window.innerHeight + Math.max(0, -offset)}px`;
  window.setTimeout(() => (main.style.minHeight = ""), SETTLE_MS);
}

/** The section at the top of the window. */
function viewOf(root: HTMLElement): () => void {
  const at = window.scrollY;
  const top = [...root.querySelectorAll("main > section")].findLast((section) => section.getBoundingClientRect().top <= 100);
  const offset = top?.getBoundingClientRect().top ?? 0;
  return () => {
    const section = at === 0 || top === undefined ? null : document.getElementById(top.id);
    if (section !== null) {
      reserve(section, offset);
      hold(section, offset);
    }
  };
}

function focusOf(root: HTMLElement): () => void {
  const active = document.activeElement;
  const place = active === null ? null : placeOf(root, active, FOCUSABLE);
  const typed = active instanceof HTMLInputElement && active.type === "search" ? ([active.value, active.selectionStart, active.selectionEnd] as const) : null;
  return () => {
    const again = find(root, place, FOCUSABLE);
    if (!(again instanceof HTMLElement)) return;
    again.focus({ preventScroll: true });
    if (typed === null || !(again instanceof HTMLInputElement)) return;
    const [value, start, end] = typed;
    again.value = value;
    again.setSelectionRange(start, end);
  };
}
