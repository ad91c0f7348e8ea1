// How numbers are written.

import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./load.mjs";

const format = await load("format");
const { quantity, tickTexts } = await load("unit");

/** Runs a function over a table of inputs and expected outputs; spaces of any width count as one. */
function check(write, table) {
  for (const [input, expected] of table) {
    const arguments_ = Array.isArray(input) ? input : [input];
    assert.equal(write(...arguments_).replaceAll("\u202f", " "), expected, `of ${JSON.stringify(input)}`);
  }
}

test("what is missing is never a number", () => {
  const writers = [
    format.fixed, format.significant, format.count, format.rate, format.short, format.percent,
    format.change, format.ratio, format.latency, format.duration, format.bytes, format.wallTime,
  ];
  for (const write of writers) {
    for (const nothing of [null, undefined, Number.NaN, Number.POSITIVE_INFINITY]) {
      assert.equal(write(nothing), "\u2013", `${write.name} of ${nothing}`);
    }
  }
});

test("thousands are separated, small values keep three digits", () => {
  check(format.rate, [
    [0, "0"], [0.123456, "0.123"], [12.345, "12.3"], [99.99, "100"], [1234.6, "1,235"],
    [1463290, "1,463,290"], [-1234, "\u22121,234"],
  ]);
  check(format.fixed, [[[-0.001, 1], "0.0"], [[1e6, 2], "1,000,000.00"]]);
});

test("axis labels are short", () => {
  check(format.short, [
    [0, "0"], [2.5, "2.5"], [750, "750"], [1000, "1k"], [1500, "1.5k"], [20000, "20k"],
    [1200000, "1.2M"], [-5000, "\u22125k"],
  ]);
});

test("latency takes the unit in which it is at least one", () => {
  check(format.latency, [
    [0, "0"], [250, "250 ns"], [999, "999 ns"], [999.9, "1.00 \u00b5s"], [1000, "1.00 \u00b5s"],
    [412345, "412 \u00b5s"], [999999, "1.00 ms"], [1834000, "1.83 ms"], [2.4e9, "2.40 s"],
    [95e9, "95.0 s"],
  ]);
});

test("durations read as people say them", () => {
  check(format.duration, [
    [0.25, "0.25 s"], [5, "5.0 s"], [45, "45 s"], [272, "4 min 32 s"], [3599.7, "1 h 00 min"], [7500, "2 h 05 min"],
  ]);
  check(format.clock, [[65, "1:05"], [3725, "1:02:05"], [0, "0:00"], [-3, "\u22120:03"]]);
});

test("bytes count in powers of 1024", () => {
  check(format.bytes, [[512, "512 B"], [1024, "1.00 KiB"], [1536, "1.50 KiB"], [2 ** 31, "2.00 GiB"]]);
});

test("changes carry their sign", () => {
  check(format.change, [[1, "0.0 %"], [1.031, "+3.1 %"], [2.56, "+156 %"], [0.39, "\u221261 %"], [0.99999, "0.0 %"]]);
  check(format.ratio, [[2.561, "2.56\u00d7"], [12.34, "12.3\u00d7"], [0.05, "0.050\u00d7"]]);
});

test("an interval names a shared unit once", () => {
  check(format.interval, [
    [[3.9e6, 4.1e6, format.latency], "3.90 to 4.10 ms"],
    [[0.9e6, 1.1e6, format.latency], "900 \u00b5s to 1.10 ms"],
    [[1200, 1300, format.rate], "1,200 to 1,300"],
    [[null, 1300, format.rate], "\u2013"],
  ]);
});

test("quantities follow the unit of their series", () => {
  check(quantity, [
    [[15600, "1/min"], "15,600"], [[4210, "1/s"], "4,210 /s"], [[94e6, "bytes/s"], "94.0 MB/s"],
    [[0.169, "share"], "16.9 %"], [[1.318, "cores"], "1.32 cores"], [[131000, "ns"], "131 \u00b5s"],
    [[null, "ns"], "\u2013"],
  ]);
});

test("only the last tick of an axis carries the unit", () => {
  const texts = (ticks, unit) => tickTexts(ticks, unit).map((text) => text.replaceAll("\u202f", " "));
  assert.deepEqual(texts([0, 250000, 500000, 750000, 1000000], "ns"), ["0", "0.25", "0.5", "0.75", "1 ms"]);
  assert.deepEqual(texts([0, 0.25, 0.5, 0.75, 1], "share"), ["0", "25", "50", "75", "100 %"]);
  assert.deepEqual(texts([0, 5e7, 1e8], "bytes/s"), ["0", "50", "100 MB/s"]);
  // An axis of little or nothing has no ticks that are all 0.
  assert.deepEqual(texts([0, 2500, 5000], "bytes/s"), ["0", "2.5", "5 kB/s"]);
  assert.deepEqual(texts([0, 0.5, 1], "bytes/s"), ["0", "0.5", "1 B/s"]);
  assert.deepEqual(texts([0, 2 ** 33, 2 ** 34], "bytes"), ["0", "8", "16 GiB"]);
  assert.deepEqual(texts([0, 5000, 10000], "1/min"), ["0", "5k", "10k"]);
  // Over many powers of ten a single unit would be unreadable.
  assert.deepEqual(texts([1e5, 1e6, 1e8, 1e9], "ns"), ["100 \u00b5s", "1 ms", "100 ms", "1 s"]);
});

test("titles in the middle of a sentence keep their abbreviations", () => {
  const texts = ["Server CPU", "CPU", "Log writes", ""].map(format.uncapitalised);
  assert.deepEqual(texts, ["server CPU", "CPU", "log writes", ""]);
});
