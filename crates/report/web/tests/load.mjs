// Loads TypeScript modules of the page into node, through the bundler that builds the page.

import { build } from "esbuild";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** Folder of the page's package. */
export const WEB = dirname(dirname(fileURLToPath(import.meta.url)));

/** The exports of `src/NAME.ts`. */
export async function load(name) {
  const { outputFiles } = await build({
    absWorkingDir: WEB,
    entryPoints: [join("src", `${name}.ts`)],
    bundle: true,
    format: "esm",
    write: false,
    loader: { ".css": "empty" },
  });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].text).toString("base64")}`);
}
