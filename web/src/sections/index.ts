import type { Section } from "../context";

/** The page from top to bottom. */
export const SECTIONS: Section[] = [];
