/** Sections are drawn when they come near, when they are unfolded, when the browser
 *  is idle, or when the reader goes to them; so a large page answers at once. */
import type { Context, Section } from "./context";
import { h } from "./dom";
import { whenIdle } from "./idle";
import { hold } from "./preserve";
import { clean } from "./text";

/** Distance below the window at which a section is drawn, px. */
const NEAR_PX = 400;

interface Slot {
  section: Section;
  element: HTMLElement;
  /** Opens and closes it; null where it is whole. */
  fold: HTMLDetailsElement | null;
  title: HTMLElement;
  body: HTMLElement;
  link: HTMLElement;
  drawn: boolean;
}

export class Slots {
  readonly nav: HTMLElement;
  readonly elements: HTMLElement[];
  private readonly slots: Slot[];
  private near: IntersectionObserver | null = null;
  private readonly seen: () => void;
  private stopped = false;

  constructor(sections: readonly Section[], private readonly context: Context) {
    this.slots = sections.filter((section) => section.has(context)).map((section) => this.slot(section));
    this.elements = this.slots.map((slot) => slot.element);
    this.nav = h("nav", { class: "sections", "aria-label": "Sections" }, h("ul", null, this.slots.map((slot) => slot.link)));
    let asked = false;
    this.seen = () => {
      if (asked) return;
      asked = true;
      requestAnimationFrame(() => {
        asked = false;
        this.mark();
      });
    };
  }

  private slot(section: Section): Slot {
    const body = h("div", { class: "body" });
    const title = h("h2", { id: `${section.id}-title`, tabindex: "-1" }, section.title);
    // What an address chooses in a section is to be seen.
    const fold = section.shown === "whole" ? null : h("details", { class: "fold", open: section.shown === "open" || this.context.state.any(`${section.id}.`) }, h("summary", null, title), body);
    const element = h("section", { id: section.id, class: "section waiting", "aria-labelledby": title.id }, fold ?? [title, body]);
    const press = (event: Event): void => {
      event.preventDefault();
      this.go(section.id);
    };
    const link = h("li", null, h("a", { href: `#at=${section.id}`, onclick: press }, section.title));
    const slot = { section, element, fold, title, body, link, drawn: false };
    fold?.addEventListener("toggle", () => fold.open && this.paint(slot));
    return slot;
  }

  /** Draws what is seen now, and the rest as time allows. */
  start(): void {
    this.paint(this.slots[0]);
    this.near = new IntersectionObserver(
      (entries) => {
        for (const { target, isIntersecting } of entries) if (isIntersecting) this.paint(this.slots.find((slot) => slot.element === target));
      },
      { rootMargin: `${NEAR_PX}px 0px` },
    );
    for (const slot of this.slots) if (!slot.drawn && slot.fold?.open !== false) this.near.observe(slot.element);
    window.addEventListener("scroll", this.seen, { passive: true });
    this.mark();
    this.idle();
  }

  stop(): void {
    this.stopped = true;
    this.near?.disconnect();
    window.removeEventListener("scroll", this.seen);
  }

  private idle(): void {
    const next = (): void => {
      const slot = this.slots.find((slot) => !slot.drawn);
      if (slot === undefined || this.stopped) return;
      this.paint(slot);
      this.idle();
    };
    whenIdle(next);
  }

  all(): void {
    for (const slot of this.slots) this.paint(slot);
  }

  drawn(): string[] {
    return this.slots.filter((slot) => slot.drawn).map((slot) => slot.section.id);
  }

  draw(ids: readonly string[]): void {
    for (const slot of this.slots) if (ids.includes(slot.section.id)) this.paint(slot);
  }

  private paint(slot: Slot | undefined): void {
    if (slot === undefined || slot.drawn) return;
    slot.drawn = true;
    this.near?.unobserve(slot.element);
    slot.element.classList.remove("waiting");
    let content: HTMLElement;
    try {
      content = slot.section.render(this.context);
    } catch (error) {
      // One part that cannot be drawn must not take the others with it.
      content = h("p", { class: "error" }, `This part cannot be drawn: ${clean(String(error))}`);
    }
    slot.body.append(content);
  }

  /** Brings a section before the reader; what lies above and has a height is drawn
   *  first, so that it does not move away again. */
  go(id: string): void {
    const at = this.slots.findIndex((slot) => slot.section.id === id);
    if (at < 0) return;
    const { element, fold, title } = this.slots[at]!;
    if (fold !== null) fold.open = true;
    for (const slot of this.slots.slice(0, at + 1)) if (slot.fold?.open !== false) this.paint(slot);
    element.scrollIntoView();
    hold(element, element.getBoundingClientRect().top);
    (fold?.querySelector("summary") ?? title).focus({ preventScroll: true });
    this.context.state.set("at", id);
  }

  /** Marks in the navigation where the reader is. */
  private mark(): void {
    const line = this.nav.getBoundingClientRect().bottom + 80;
    const there = this.slots;
    const atEnd = window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 2 && window.scrollY > 0;
    const current = atEnd ? there.at(-1) : (there.findLast((slot) => slot.element.getBoundingClientRect().top <= line) ?? there[0]);
    for (const slot of this.slots) {
      const anchor = slot.link.firstElementChild!;
      const is = slot === current;
      if (is === anchor.hasAttribute("aria-current")) continue;
      if (is) {
        anchor.setAttribute("aria-current", "true");
        const list = this.nav.firstElementChild!;
        const left = slot.link.offsetLeft - list.clientWidth / 2;
        list.scrollTo({ left });
      } else anchor.removeAttribute("aria-current");
    }
  }
}
