// Loads a source file of the page as it is, without building the page.
import { after } from "node:test";
import { createServer } from "vite";

const root = new URL("../..", import.meta.url).pathname;
const server = await createServer({
  root, configFile: false, logLevel: "silent", appType: "custom",
  server: { middlewareMode: true, ws: false, hmr: false, watch: null },
});
after(() => server.close());

/** A module by its path below `src`. */
export const load = (path) => server.ssrLoadModule(`/src/${path}`);
