// The files that the page offers.

import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./load.mjs";

const { csv, timelinesCsv } = await load("csv");

test("no cell is a formula for a spreadsheet", () => {
  const cells = csv([["=1+1", "@SUM(A1)", "-1.5", -2, "+x", "＝A1", "\t1", "plain"]]);
  assert.equal(cells, "'=1+1,'@SUM(A1),-1.5,-2,'+x,'＝A1,\t1,plain\r\n");
});

test("cells are quoted as RFC 4180 asks", () => {
  assert.equal(csv([["a", 1, null], ['say "x"', "a,b", "two\nlines"]]), 'a,1,\r\n"say ""x""","a,b","two\nlines"\r\n');
});

test("each bucket is a line with its own times", () => {
  const analysis = {
    designs: [{ name: "nvme" }],
    runs: [{ design: 0, repeat: 2 }],
    timelines: {
      series: [{ name: "headline", unit: "1/min" }],
      lines: [{ run: 0, series: 0, begin_s: 10, step_s: 0.5, mean: [7, null], min: [6, null], max: [8, null] }],
    },
  };
  assert.deepEqual(timelinesCsv(analysis).split("\r\n"), [
    "design,repeat,series,unit,begin_s,end_s,mean,min,max",
    "nvme,2,headline,1/min,10,10.5,7,6,8",
    "nvme,2,headline,1/min,10.5,11,,,",
    "",
  ]);
});
