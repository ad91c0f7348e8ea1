// The figures of published studies, drawn from records of simulated executions: each is there, has its numbers, and fits.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { launch, obstacle, open } from "./browser.mjs";

/** These pages are written by tests/it/figures.rs alone. */
const folder = process.env.UNDERLAY_RENDERED_PAGES;
const skip = obstacle() || (folder && existsSync(join(folder, "resync.html")) ? "" : "run by `cargo test -p underlay-report page`");

/** The heights of the bars of a figure. */
function bars(figure) {
  return figure.locator("rect.bar").evaluateAll((nodes) => nodes.map((node) => Number(node.getAttribute("height"))));
}

describe("figures of published studies", { skip: skip !== "" && skip }, () => {
  let browser;

  before(async () => {
    browser = await launch();
  });

  after(async () => {
    await browser?.close();
  });

  async function opened(name, width = 1280) {
    const { page, close, trouble } = await open(browser, join(folder, name), { viewport: { width, height: 900 } });
    assert.equal(await page.getAttribute("html", "data-state"), "ready");
    const figure = (section, title) =>
      page.locator(`#${section} figure`, { has: page.locator(".chart-title", { hasText: new RegExp(`^${title}$`) }) });
    return { page, figure, close, trouble };
  }

  for (const name of ["backups", "cores", "databases", "job", "resync", "one-rung", "published"]) {
    for (const width of [1280, 390]) {
      test(`${name} fits ${width} pixels in light and dark`, async () => {
        const { page, close, trouble } = await opened(`${name}.html`, width);
        for (const colorScheme of ["light", "dark"]) {
          await page.emulateMedia({ colorScheme });
          assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
          assert.doesNotMatch(await page.locator("main").innerText(), /NaN|undefined|Infinity|\[object/);
          const beyond = await page.locator("main svg[role=img]").evaluateAll((nodes) => nodes.flatMap((node) => {
            const paper = node.getBoundingClientRect();
            const texts = [...node.querySelectorAll("text")].map((text) => [text.textContent, text.getBoundingClientRect()]);
            return texts.filter(([, box]) =>
              box.width > 0 && (box.left < paper.left - 2 || box.right > paper.right + 2 || box.bottom > paper.bottom + 2))
              .map(([text]) => `${node.getAttribute("aria-label")}: ${text}`);
          }));
          assert.deepEqual(beyond, [], "text leaves its chart");
          const covered = await page.locator("main figure.chart svg[role=img]").evaluateAll((nodes) => nodes.flatMap((node) => {
            const boxes = [...node.querySelectorAll("text.label")].filter((text) => !text.getAttribute("transform"))
              .map((text) => [text.textContent, text.getBoundingClientRect()]);
            return boxes.filter(([, box], index) => boxes.slice(index + 1).some(([, other]) =>
              box.left < other.right && other.left < box.right && box.top < other.bottom && other.top < box.bottom))
              .map(([text]) => text);
          }));
          assert.deepEqual(covered, [], "labels cover each other");
        }
        assert.deepEqual(trouble, []);
        await close();
      });
    }
  }

  test("one published value per design has a bar beside that of the record, and the ratios a table", async () => {
    const { page, figure, close } = await opened("published.html");
    const found = await bars(figure("published", "New orders per minute"));
    assert.equal(found.length, 4, "two designs, published and of the record");
    // Multiples of the first design's: its bars are as high as each other, and the second's published one is half of that.
    assert.ok(Math.abs(found[0] / found[1] - 1) < 0.02, `${found}`);
    assert.ok(Math.abs(found[2] / found[0] - 0.5) < 0.02, `${found}`);
    const table = page.locator("#published table", { has: page.locator("caption", { hasText: "Ratios of designs" }) });
    const cells = await table.locator("tbody tr").first().locator("td, th").allTextContents();
    assert.match(cells.join("|"), /over .*\|2\.00\u00d7 \(given\)\|/);
    await close();
  });

  test("backups and restores have seconds, MB/s and latency of each cycle", async () => {
    const { page, figure, close } = await opened("backups.html");
    for (const kind of ["Backup", "Restore"]) {
      for (const measure of ["seconds", "MB/s"]) {
        const found = await bars(figure("backups", `${kind}: ${measure}`));
        assert.equal(found.length, 4, `${kind}: ${measure}: two cycles on two designs`);
      }
    }
    assert.ok((await bars(figure("backups", "Backup: read latency"))).length > 0);
    // SATA takes twice as long.
    const [nvme, sata] = await bars(figure("backups", "Backup: seconds"));
    assert.ok(Math.abs(sata / nvme - 2) < 0.05, `${sata} and ${nvme}`);
    const texts = await page.locator("#backups text.value").allTextContents();
    assert.ok(!texts.some((text) => /[GM]$/.test(text)), `in the unit of the axis: ${texts}`);
    await close();
  });

  test("databases have an axis of their own beside their total", async () => {
    const { page, figure, close } = await opened("databases.html");
    const each = await bars(figure("databases", "New orders per minute"));
    const total = await bars(figure("databases", "Total"));
    assert.deepEqual([each.length, total.length], [12, 2]);
    // On the total's axis a database would have a sixth of this.
    assert.ok(Math.max(...each) > 0.7 * Math.max(...total), `${each} and ${total}`);
    const [left, right] = await Promise.all(["New orders per minute", "Total"].map((title) =>
      figure("databases", title).boundingBox()));
    assert.ok(right.x > left.x + left.width && right.y < left.y + left.height, "side by side");
    assert.equal((await bars(figure("databases", "CPU use of each server"))).length, 12);
    const phone = await opened("databases.html", 390);
    const below = await Promise.all(["New orders per minute", "Total"].map((title) =>
      phone.figure("databases", title).boundingBox()));
    assert.ok(below[1].y >= below[0].y + below[0].height, "one below the other on a phone");
    await phone.close();
    assert.match(await page.locator("#databases details").textContent(), /oltp-3.*web-2.*total/s);
    await close();
  });

  test("an axis of cores has throughput and processor use against it", async () => {
    const { figure, close } = await opened("cores.html");
    for (const title of ["New orders per minute", "CPU use of the server", "CPU of the server"]) {
      assert.equal(await figure("axes", title).locator(".marker").count(), 3, title);
    }
    assert.match(await figure("axes", "CPU use of the server").textContent(), /100\s%/);
    await close();
  });

  test("jobs have their duration in minutes and seconds", async () => {
    const { figure, close } = await opened("job.html");
    const duration = figure("axes", "Duration");
    assert.deepEqual(await duration.locator("text.value").allTextContents(), ["11:27", "10:36", "6.1\u202fs"]);
    assert.match(await duration.textContent(), /5:00.*10:00/s);
    const [slow, , fast] = await bars(duration);
    assert.ok(slow > 100 * fast, `${slow} and ${fast}`);
    await close();
  });

  test("throughput has the idle time of the server's own limit beside it", async () => {
    const { figure, close } = await opened("cores.html");
    const idle = figure("throughput", "CPU idle");
    assert.match(await idle.textContent(), /of the server\u2019s CPU limit/);
    // Of one processor nothing is left at 8 users, of four about a fifth.
    const found = await bars(idle);
    assert.ok(found[5] > 20 && found[3] < 10, `${found}`);
    await close();
    // Without a limit the host's.
    const host = await opened("databases.html");
    assert.match(await host.figure("throughput", "CPU idle").textContent(), /of the host/);
    await host.close();
  });

  test("the stages of a resync are named on its time line, with their rates", async () => {
    const { page, figure, close } = await opened("resync.html");
    const section = page.locator("#resync");
    await section.scrollIntoViewIfNeeded();
    await section.locator("canvas").waitFor();
    const rows = await section.locator("tbody tr").evaluateAll((nodes) =>
      nodes.map((row) => [...row.cells].map((cell) => cell.textContent)));
    assert.deepEqual(rows.map(([stage]) => stage), ["1 resync alone", "2 load starts", "3 load stable", "4 load stopped"]);
    assert.deepEqual(rows.map((row) => row[3]), ["5,000", "1,500", "1,500", "5,000"].map((rate) => `${rate}\u202f/s`));
    assert.match(await figure("resync", "I/Os of the devices").textContent(), /With resync.*Volumes.*Resync/s);
    // The names are drawn: without them the upper edge of the plot has no letters.
    const inked = await section.locator("canvas").evaluate((canvas) => {
      const ratio = devicePixelRatio;
      const { data, width } = canvas.getContext("2d").getImageData(0, 0, canvas.width, Math.round(24 * ratio));
      const wanted = getComputedStyle(document.documentElement).getPropertyValue("--muted").trim();
      const colour = [1, 3, 5].map((at) => parseInt(wanted.slice(at, at + 2), 16));
      const columns = new Set();
      for (let at = 0; at < data.length; at += 4) {
        if (colour.every((part, index) => Math.abs(data[at + index] - part) < 60)) columns.add((at / 4) % width);
      }
      // Left of the plot stand the labels of the axis.
      return [...columns].filter((column) => column > 70 * ratio).length;
    });
    assert.ok(inked > 60, `${inked} columns with letters`);
    await close();
    const other = await opened("cores.html");
    assert.equal(await other.page.locator("#resync").count(), 0);
    await other.close();
  });

  test("one rung has tables instead of charts of one point", async () => {
    const { page, close } = await opened("one-rung.html");
    assert.equal(await page.locator("#curves svg[role=img]").count(), 0);
    assert.match(await page.locator("#curves").innerText(), /CPU idle of the server's limit.*Volume data.*Reads/s);
    assert.ok(await page.locator("#throughput .bar").count() >= 4);
    await close();
  });

  test("the answer is grouped by what a reader asks", async () => {
    const { page, close } = await opened("databases.html");
    const asked = await page.locator("#verdict .answers dt").allTextContents();
    assert.deepEqual(asked.slice(0, 3), ["How much", "Why", "How sure"]);
    const first = page.locator("#verdict .answers dd").first();
    assert.match(await first.innerText(), /New orders per minute at 8 users: NVMe/);
    assert.match(await page.locator("#verdict figure").first().textContent(), /8 users.*\d\.\d\d\u00d7/s);
    // All of it, and the ratio as a picture, without scrolling.
    const how = await page.locator("#verdict .answers").boundingBox();
    assert.ok(how.y + how.height < 900, `the answers end at ${how.y + how.height}`);
    await close();
  });
});
