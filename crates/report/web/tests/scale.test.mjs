// Scales and their ticks.

import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./load.mjs";

const { niceTicks, linear, logarithmic, logTicks, ladder, nines, thin } = await load("scale");

test("ticks are round and cover the range", () => {
  assert.deepEqual(niceTicks(0, 15873), [0, 5000, 10000, 15000, 20000]);
  assert.deepEqual(niceTicks(0, 0.3, 3), [0, 0.1, 0.2, 0.3]);
  assert.deepEqual(niceTicks(-12, 30, 4), [-20, 0, 20, 40]);
  for (let top = 1e-9; top < 1e12; top *= 3.7) {
    const ticks = niceTicks(0, top);
    assert.ok(ticks.length >= 3 && ticks.length <= 8, `${ticks.length} ticks for ${top}`);
    assert.ok(ticks.at(-1) >= top * 0.999999, `${ticks.at(-1)} is below ${top}`);
  }
});

test("a linear scale starts and ends at ticks", () => {
  const scale = linear(0, 87, 300, 20);
  assert.deepEqual(scale.domain, [0, 100]);
  assert.equal(scale.at(0), 300);
  assert.equal(scale.at(100), 20);
  assert.equal(scale.at(50), 160);
  assert.ok(Number.isFinite(linear(0, 0, 0, 100).at(0)), "nothing measured is no reason to fail");
});

test("a logarithmic scale gives equal factors equal room", () => {
  const scale = logarithmic(1, 100, 0, 200, [1, 10, 100]);
  assert.ok(Math.abs(scale.at(10) - 100) < 1e-9);
  assert.ok(Math.abs(scale.at(2) - scale.at(1) - (scale.at(20) - scale.at(10))) < 1e-9);
  assert.deepEqual(logTicks(900, 12000), [1000, 2000, 5000, 10000]);
  assert.deepEqual(logTicks(1, 1e6), [1, 10, 100, 1e3, 1e4, 1e5, 1e6]);
});

test("every rung of a ladder has its place, in order", () => {
  const published = [1, 2, 3, 5, 8, 13, 21, 34, 55, 89];
  for (const rungs of [published, [1, 2, 4, 8], [1, 100, 101, 102], [16], [4, 4, 2]]) {
    const scale = ladder(rungs, 10, 310);
    const places = scale.ticks.map(scale.at);
    assert.deepEqual(scale.ticks, [...new Set(rungs)].sort((a, b) => a - b));
    for (let index = 1; index < places.length; index += 1) {
      assert.ok(places[index] - places[index - 1] > 9, `rungs ${rungs} collide`);
    }
    assert.ok(places.every((place) => place >= 10 && place <= 310));
  }
});

test("each further nine gets the same room", () => {
  assert.equal(nines(0), 0);
  assert.ok(Math.abs(nines(0.99) - 2) < 1e-9);
  assert.ok(Math.abs(nines(0.9999) - 4) < 1e-9);
  assert.ok(Number.isFinite(nines(1)));
});

test("labels are left out before they collide; the last stays", () => {
  const at = (value) => value;
  assert.deepEqual(thin([0, 5, 10, 15, 20], at, 10), [0, 10, 20]);
  assert.deepEqual(thin([0, 10, 12], at, 10), [0, 12]);
  assert.deepEqual(thin([], at, 10), []);
  // What a chart turns about goes before its neighbours.
  assert.deepEqual(thin([0, 5, 10, 12], at, 8, 10), [0, 10]);
  assert.deepEqual(thin([0, 5, 10], at, 8, 7), thin([0, 5, 10], at, 8));
});
