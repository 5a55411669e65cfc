import { defineConfig } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

// One file, readable by a browser of the last three years, with nothing to load.
export default defineConfig({
  plugins: [viteSingleFile({ removeViteModuleLoader: true })],
  build: { target: "es2022", outDir: "dist", emptyOutDir: true, assetsInlineLimit: 1e9, reportCompressedSize: false },
});
