// Bundles the page into report.js and report.css.
//
// Usage: node build.mjs [FOLDER]   (default: dist)
//
// What it deliberately does not do: check types (`npm run check`), write the HTML around the
// bundle (html.rs does, together with the data).

import { build } from "esbuild";
import { fileURLToPath } from "node:url";
import { dirname, join, resolve } from "node:path";

const here = dirname(fileURLToPath(import.meta.url));
const folder = resolve(process.argv[2] ?? join(here, "dist"));

await build({
  absWorkingDir: here,
  entryPoints: { report: "src/main.ts" },
  outdir: folder,
  bundle: true,
  minify: true,
  // An inline script in a file:// page is a classic script, so the bundle is one function.
  format: "iife",
  // Browsers of the last four years: DecompressionStream is the newest thing the page needs.
  target: ["chrome103", "firefox113", "safari16.4"],
  // Escapes everything that is not ASCII, so that the bundle survives any file encoding.
  charset: "ascii",
  // Licence comments of bundled packages stay in the page.
  legalComments: "inline",
  logLevel: "warning",
});
