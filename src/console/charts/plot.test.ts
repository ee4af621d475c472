// Tests that the credit axis of a chart is readable for small, large and very different amounts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AMOUNT_MAX } from '../../ledger/amount.ts';
import { creditPlot, needsLogarithm, type PlotSize } from './plot.ts';

const SIZE: PlotSize = {
  name: 'wide',
  width: 660,
  height: 210,
  left: 42,
  right: 654,
  top: 10,
  bottom: 186,
  dayTicks: 7,
};
const VISIBLE = 4;

function ticksIn(axis: string): string[] {
  return [...axis.matchAll(/>([^<>]+)<\/text>/g)].map(([, text]) => text as string);
}

test('a chart with similar amounts has a linear axis with round whole numbers in compact notation', () => {
  const amounts = [900, 1_200, 2_650, 0, 1_000];
  assert.equal(needsLogarithm(amounts), false);
  const { axis, size } = creditPlot(SIZE, amounts, false);
  assert.deepEqual(ticksIn(axis), ['0', '500', '1K', '1.5K', '2K', '2.5K']);
  assert.equal(size.left, SIZE.left);
});

test('one huge amount makes the axis of a chart logarithmic, so that the other amounts stay visible', () => {
  const amounts = [100, 250, 180, 40, 220, AMOUNT_MAX];
  assert.equal(needsLogarithm(amounts), true);
  const { y, axis, size } = creditPlot(SIZE, [-90, ...amounts], true);
  assert(y(0) - y(40) > VISIBLE && y(40) - y(250) > VISIBLE && y(250) - y(AMOUNT_MAX) > VISIBLE);
  assert(y(-90) - y(0) > VISIBLE);
  assert.deepEqual(ticksIn(axis), ['0', '10K', '100M', '1T']);
  for (const tick of ticksIn(axis)) assert(size.left - 8 >= 7 * tick.length, `${tick} fits to the left of the plot`);
});

test('a chart with only huge amounts has a linear axis with enough room for the numbers', () => {
  const amounts = [AMOUNT_MAX, AMOUNT_MAX / 2, AMOUNT_MAX / 3];
  assert.equal(needsLogarithm(amounts), false);
  const { axis, size } = creditPlot(SIZE, amounts, false);
  for (const tick of ticksIn(axis)) assert(size.left - 8 >= 7 * tick.length, `${tick} fits to the left of the plot`);
});

test('the axis of a chart without credits goes from 0 to 1', () => {
  const { axis, y } = creditPlot(SIZE, [0, 0], needsLogarithm([0, 0]));
  assert.deepEqual(ticksIn(axis), ['0', '1']);
  assert(y(0) > y(1));
});
