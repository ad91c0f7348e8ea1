// Bundles the page into report.js and report.css.
//
// Usage: node build.mjs [FOLDER]   (default: dist)
//
// What it deliberately does not do: check types (`npm run check`), write the HTML around the
// bundle (html.rs does, together with the data).

import { build } from "esbuild";
import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const folder = resolve(process.argv[2] ?? join(here, "dist"));

/** The licence text of a package, as one line. */
function licence(name) {
  const text = readFileSync(join(here, "node_modules", name, "LICENSE"), "utf8");
  return text.replace(/\s+/g, " ").replaceAll("*/", "").trim();
}

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
  // The page is a copy of the packages in it, so it carries their licence.
  banner: { js: `/*! uPlot. ${licence("uplot")} */` },
  logLevel: "warning",
});
