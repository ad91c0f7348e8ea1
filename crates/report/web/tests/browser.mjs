// A headless Chromium and rendered reports, for the tests of the page.
//
// The browser is the one of the system; nothing is downloaded. When there is none, the tests that need
// it say so and are skipped.

import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { chromium } from "playwright-core";
import { WEB } from "./load.mjs";

const PROGRAMS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const FLAGS = [
  "--no-sandbox", "--headless", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
];

const program = [process.env.UNDERLAY_CHROMIUM, ...PROGRAMS].find((path) => path && existsSync(path));

/** Folder with pages that are already rendered: tests/page.rs names it. */
const rendered = process.env.UNDERLAY_RENDERED_PAGES;

function hasCargo() {
  try {
    execFileSync("cargo", ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** Why browser tests cannot run here; empty when they can. */
export function obstacle() {
  if (!program) return "no chromium (Debian: apt-get install chromium; or name it in UNDERLAY_CHROMIUM)";
  if (!rendered && !hasCargo()) return "no cargo to render the report with";
  return "";
}

/** A folder for this test process, removed at its end. */
export const scratch = mkdtempSync(join(tmpdir(), "underlay-page-"));
process.on("exit", () => rmSync(scratch, { recursive: true, force: true }));

/** Renders the invented analysis of the Rust tests; returns the path of the page. */
export function render(name, ...size) {
  if (rendered) return join(rendered, name);
  const file = join(scratch, name);
  const example = ["run", "--quiet", "--package", "underlay-report", "--example", "render_fixture", "--"];
  execFileSync("cargo", [...example, file, ...size.map(String)], { cwd: WEB, stdio: "pipe" });
  return file;
}

/** A copy of a page whose analysis was changed by `change`. */
export function variant(file, name, change) {
  const page = readFileSync(file, "utf8");
  const [, begin, packed, end] = page.match(/^(.*octet-stream">)([^<]*)(.*)$/s);
  const analysis = JSON.parse(gunzipSync(Buffer.from(packed, "base64")).toString());
  change(analysis);
  const copy = join(scratch, name);
  writeFileSync(copy, begin + gzipSync(JSON.stringify(analysis)).toString("base64") + end);
  return copy;
}

/** A browser with an empty profile. */
export function launch() {
  return chromium.launch({ executablePath: program, args: FLAGS });
}

/**
 * Opens a file in a page of its own and waits until the report is drawn. `trouble` collects whatever
 * must not happen: console errors and warnings, exceptions, requests beyond the file itself.
 */
export async function open(browser, file, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(15_000);
  const page = await context.newPage();
  const trouble = [];
  const address = `file://${file}`;
  page.on("console", (message) => {
    // The tests read canvases back, which the browser would rather be told in advance.
    if (message.text().includes("willReadFrequently")) return;
    if (["error", "warning"].includes(message.type())) trouble.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => trouble.push(`exception: ${error.message}`));
  page.on("request", (request) => {
    if (request.url() !== address) trouble.push(`request: ${request.url()}`);
  });
  await page.goto(address);
  if (options.javaScriptEnabled !== false) {
    await page.waitForFunction(() => document.documentElement.dataset.state !== undefined);
  }
  return { page, trouble, close: () => context.close() };
}

/** Shares of the colours in a picture: how many pixels differ from the most frequent colour. */
export async function drawnShare(browser, png) {
  const page = await browser.newPage();
  try {
    return await page.evaluate(async (base64) => {
      const image = new Image();
      image.src = `data:image/png;base64,${base64}`;
      await image.decode();
      const canvas = new OffscreenCanvas(image.width, image.height);
      const context = canvas.getContext("2d");
      context.drawImage(image, 0, 0);
      const pixels = new Uint32Array(context.getImageData(0, 0, image.width, image.height).data.buffer);
      const counts = new Map();
      for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
      return 1 - Math.max(...counts.values()) / pixels.length;
    }, png.toString("base64"));
  } finally {
    await page.close();
  }
}
