// Connections of which nothing is known are let go one at first, and more and more while they bring few.

import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { Connection, REQUESTS_A_TURN_MAX } from './connection.ts';
import { STRANGERS_TURN_MAX, Strangers } from './strangers.ts';

function strangersOf(count: number): { strangers: Strangers; all: Connection[] } {
  const strangers = new Strangers();
  const all = Array.from({ length: count }, () => new Connection({} as Socket));
  for (const connection of all) strangers.push(connection);
  return { strangers, all };
}

/** How many are let go in each of so many turns, when each brings so much. */
function turnsOf(strangers: Strangers, turns: number, brought: number): number[] {
  return Array.from({ length: turns }, (_, turn) => {
    const taken = strangers.take();
    for (const connection of taken) Object.assign(connection, { turn, brought });
    return taken.length;
  });
}

test('as long as they bring one request each, twice as many are let go with each turn, up to a bound', () => {
  const { strangers } = strangersOf(2_000);
  assert.deepEqual(turnsOf(strangers, 11, 1), [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 512]);
  assert.equal(STRANGERS_TURN_MAX, 512);
  assert.equal(strangers.length, 2_000 - 1_535);
});

test('those that bring many are let go one at a time', () => {
  assert.deepEqual(turnsOf(strangersOf(100).strangers, 4, 600), [1, 1, 1, 1]);
});

test('no more are let go than bring what a turn has room for', () => {
  assert.deepEqual(turnsOf(strangersOf(300).strangers, 7, 20), [1, 2, 4, 8, 16, 25, 25]);
});

test('one that brings many among those that bring one takes the others back to few', () => {
  const { strangers } = strangersOf(500);
  turnsOf(strangers, 4, 1);
  const [one] = strangers.take();
  assert(one);
  Object.assign(one, { turn: 4, brought: STRANGERS_TURN_MAX });
  assert.equal(strangers.take().length, 1);
});

test('of the first the most is feared, then what those before them brought', () => {
  const { strangers } = strangersOf(100);
  strangers.take();
  assert.equal(strangers.expected, REQUESTS_A_TURN_MAX);
  turnsOf(strangers, 2, 3);
  strangers.take();
  assert.equal(strangers.expected, 3);
});

test('once nobody is left, whoever comes next is feared again', () => {
  const { strangers } = strangersOf(3);
  assert.deepEqual(turnsOf(strangers, 3, 1), [1, 2, 0]);
  for (let count = 0; count < 10; count++) strangers.push(new Connection({} as Socket));
  assert.deepEqual(turnsOf(strangers, 2, 1), [1, 2]);
});

test('who came first and who came last alternate', () => {
  const { strangers, all } = strangersOf(4);
  const order = [1, 2, 3, 4].flatMap(() => strangers.take(1)).map((connection) => all.indexOf(connection));
  assert.deepEqual(order, [0, 3, 1, 2]);
});
