// A module of the page as it is, types taken off, for tests without a browser.
import { build } from "vite";

const root = new URL("../..", import.meta.url).pathname;

/** What `src/NAME.ts` exports. */
export async function source(name) {
  const made = await build({
    root,
    configFile: false,
    logLevel: "error",
    build: { ssr: `src/${name}.ts`, write: false, minify: false, target: "es2022" },
  });
  const code = made.output[0].code;
  return import(`data:text/javascript;base64,${Buffer.from(code).toString("base64")}`);
}
