// Tests how many pages the queue reads in one turn of the event loop, and in which order.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Canceled } from '../../batching/group-commit.ts';
import { PAGES_AT_ONCE } from '../limits.ts';
import { PageQueue } from './page-queue.ts';

function recorded() {
  const pages = new PageQueue();
  const began: number[] = [];
  const read = (account: number, requester: { isDisconnected: boolean } | null = null) =>
    pages.read(account, requester, async () => {
      began.push(account);
      await nextTurn();
      return account;
    });
  return { pages, began, read };
}

test('the number of pages read in one turn of the event loop is bounded, and all pages are read eventually', async () => {
  const { began, read } = recorded();
  const all = Promise.all(Array.from({ length: 50 }, () => read(1)));
  let before = 0;
  while (began.length < 50) {
    assert(began.length - before <= PAGES_AT_ONCE, `${began.length - before} in one turn`);
    before = began.length;
    await nextTurn();
  }
  assert.equal((await all).length, 50);
});

test('other work can run between pages even if reading a page takes no time', async () => {
  const pages = new PageQueue();
  let isDone = false;
  const reading = (async () => {
    for (let page = 0; page < 40; page++) await pages.read(1, null, async () => {});
    isDone = true;
  })();
  let turns = 0;
  while (!isDone) {
    await nextTurn();
    turns += 1;
  }
  await reading;
  assert(turns >= 40 / PAGES_AT_ONCE - 1, `${turns} turns`);
});

test('a page of one account does not wait for all queued pages of another account', async () => {
  const { began, read } = recorded();
  const many = Array.from({ length: 20 }, () => read(1));
  const one = read(2);
  await one;
  assert(began.indexOf(2) <= PAGES_AT_ONCE + 1, `${began}`);
  await Promise.all(many);
});

test('a queued page is not read if its client has disconnected', async () => {
  const { began, read } = recorded();
  const client = { isDisconnected: false };
  const others = Array.from({ length: PAGES_AT_ONCE }, () => read(1));
  const canceled = read(2, client);
  client.isDisconnected = true;
  await assert.rejects(canceled, Canceled);
  await assert.rejects(read(3, client), Canceled);
  await Promise.all(others);
  assert.deepEqual(began, Array(PAGES_AT_ONCE).fill(1));
});

test('if a page cannot be read, only the request for this page fails, and the next pages are read', async () => {
  const { pages, read } = recorded();
  const failing = Array.from({ length: 2 * PAGES_AT_ONCE }, () =>
    pages.read(1, null, () => Promise.reject(new Error('the disk is gone'))),
  );
  const next = read(1);
  for (const failed of failing) await assert.rejects(failed, /the disk is gone/);
  assert.equal(await next, 1);
});
