/** Keeps the reader's place while a part of the page is drawn anew. */

const FOCUSABLE = "a[href], button, input, select, textarea, summary, [tabindex]";

/** Where an element is: the section, and the how-manieth of its kind there. */
interface Place {
  section: string;
  index: number;
}

function placeOf(root: Element, element: Element, kind: string): Place | null {
  const section = element.closest("section[id], header, nav");
  if (section === null || !root.contains(section)) return null;
  return { section: section.id || section.tagName, index: [...section.querySelectorAll(kind)].indexOf(element) };
}

function find(root: Element, place: Place, kind: string): Element | undefined {
  const section = [...root.querySelectorAll("section[id], header, nav")].find((one) => (one.id || one.tagName) === place.section);
  return section?.querySelectorAll(kind)[place.index];
}

/** Remembers scroll, focus with the selection, open details and scrolled boxes;
 *  the returned function brings them back. */
export function kept(root: HTMLElement): () => void {
  const top = window.scrollY;
  const height = root.offsetHeight;
  const active = document.activeElement;
  const focus = active === null ? null : placeOf(root, active, FOCUSABLE);
  const selection = active instanceof HTMLInputElement && active.type === "search" ? ([active.value, active.selectionStart, active.selectionEnd] as const) : null;
  const open = [...root.querySelectorAll("details[open]")].map((one) => placeOf(root, one, "details"));
  const boxes = [...root.querySelectorAll(".scroller")].filter((box) => box.scrollLeft !== 0 || box.scrollTop !== 0).map((box) => ({ place: placeOf(root, box, ".scroller"), left: box.scrollLeft, top: box.scrollTop }));
  root.style.minHeight = `${height}px`;
  return () => {
    for (const place of open) if (place) find(root, place, "details")?.setAttribute("open", "");
    for (const { place, left, top } of boxes) if (place) find(root, place, ".scroller")?.scrollTo({ left, top });
    const again = focus && find(root, focus, FOCUSABLE);
    if (again instanceof HTMLElement) {
      again.focus({ preventScroll: true });
      if (selection && again instanceof HTMLInputElement) {
        const [value, start, end] = selection;
        again.value = value;
        again.setSelectionRange(start, end);
      }
    }
    window.scrollTo({ top });
    // Charts take their height in the frames that follow.
    window.setTimeout(() => {
      root.style.minHeight = "";
    }, 1_000);
  };
}
