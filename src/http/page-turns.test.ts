// Turns counted, not milliseconds: how many pages are read in each turn of the event loop, and whose.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { PageTurns } from './page-turns.ts';

const ACME = 1;
const OTHER = 2;
const READERS = 20;

const readerOf = (account: number) => ({ account, isDisconnected: false });

/** @returns in which turn each was read, by its name, when `turns` reads some as a store does: all of a turn in one */
async function readAll(turns: PageTurns, names: readonly [account: number, name: string][]): Promise<string[][]> {
  const byTurn: string[][] = [];
  let asked: (() => void)[] = [];
  const read = (name: string) =>
    new Promise<string>((resolve) => {
      asked.push(() => resolve(name));
      if (asked.length > 1) return;
      setImmediate(() => {
        const all = asked;
        asked = [];
        byTurn.push([]);
        for (const answer of all) answer();
      });
    });
  const done = names.map(async ([account, name]) => {
    await turns.take(readerOf(account), () => read(name));
    byTurn.at(-1)?.push(name);
  });
  await Promise.all(done);
  return byTurn;
}

const named = (account: number, count: number) =>
  Array.from({ length: count }, (_, index): [number, string] => [account, `${account}.${index}`]);

test('however many wait, as many are read in a turn as there is room for', async () => {
  for (const aTurn of [1, 3]) {
    const byTurn = await readAll(new PageTurns({ aTurn, atOnce: READERS }), named(ACME, READERS));
    assert.equal(Math.max(...byTurn.map(({ length }) => length)), aTurn);
    assert.deepEqual(
      byTurn.flat(),
      named(ACME, READERS).map(([, name]) => name),
      'in the order in which they came',
    );
  }
});

test('control: without a bound all are read in one', async () => {
  const byTurn = await readAll(
    new PageTurns({ aTurn: Number.POSITIVE_INFINITY, atOnce: Number.POSITIVE_INFINITY }),
    named(ACME, READERS),
  );
  assert.deepEqual(
    byTurn.map(({ length }) => length),
    [READERS],
  );
});

test('between two pages whatever has come is looked at', async () => {
  const turns = new PageTurns({ aTurn: 1, atOnce: 4 });
  const order: string[] = [];
  const pages = ['first', 'second', 'third'].map((name) =>
    turns.take(readerOf(ACME), async () => {
      await nextTurn();
      order.push(name);
    }),
  );
  const short = nextTurn().then(() => order.push('short'));
  await Promise.all([...pages, short]);
  assert(order.indexOf('short') <= 1, `${order}`);
});

test('an account that wants one page waits for one of another, and not for all', async () => {
  const turns = new PageTurns({ aTurn: 1, atOnce: 4 });
  const byTurn = await readAll(turns, [...named(ACME, READERS), ...named(OTHER, 1)]);
  assert(byTurn.flat().indexOf(`${OTHER}.0`) <= 2, `${byTurn.flat()}`);
});

test('a store is asked for a few at once, and for the next when one is there', async () => {
  const turns = new PageTurns({ aTurn: READERS, atOnce: 4 });
  const answers: (() => void)[] = [];
  const asked = () => new Promise<void>((resolve) => answers.push(resolve));
  const all = Array.from({ length: READERS }, () => turns.take(readerOf(ACME), asked));
  for (let turn = 0; turn < 5; turn++) await nextTurn();
  assert.equal(answers.length, 4);
  answers[2]?.();
  await all[2];
  assert.equal(answers.length, 5);
  for (let read = 0; read < READERS; read++, await nextTurn()) answers[read]?.();
  await Promise.all(all);
});

test('for a reader that has gone nothing is read, and nobody waits for it', async () => {
  const turns = new PageTurns({ aTurn: 1, atOnce: 4 });
  const gone = { account: ACME, isDisconnected: false };
  let read = 0;
  const page = async () => {
    read += 1;
  };
  const first = turns.take(readerOf(ACME), page);
  const others = Array.from({ length: READERS }, () => turns.take(gone, page));
  const last = turns.take(readerOf(ACME), async () => 'read');
  gone.isDisconnected = true;
  await first;
  await nextTurn();
  assert.equal(await last, 'read');
  assert.deepEqual(new Set(await Promise.all(others)), new Set([null]));
  for (let turn = 0; turn < 3; turn++) await nextTurn();
  assert.equal(await turns.take(gone, page), null, 'nor where there would be room');
  assert.equal(read, 1);
});

test('a read that fails is told to who asked, and the next one has its place', async () => {
  const turns = new PageTurns({ aTurn: 1, atOnce: 1 });
  const failing = turns.take(readerOf(ACME), () => Promise.reject(new Error('the disk is gone')));
  const next = turns.take(readerOf(ACME), async () => 'read');
  await assert.rejects(failing, /the disk is gone/);
  assert.equal(await next, 'read');
});
