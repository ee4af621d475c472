// What a console reads takes turns with lists: every read but the name of an account, and not behind all lists of its own.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { AccountReads } from '../store/account-reads.ts';
import { readsInTurn } from './account-reads-in-turn.ts';
import { PAGES, PageTurns } from './page-turns.ts';

const ACCOUNT = 7;
const USER = { account: ACCOUNT, endUser: '3f8e4bd8-9f7a-4a68-9a53-3b1d6c0e2a11' };

/** Every read of the port, with what it is asked. */
const READS: { readonly [Name in Exclude<keyof AccountReads, 'nameOf'>]: (reads: AccountReads) => Promise<unknown> } = {
  endUsers: (reads) => reads.endUsers(ACCOUNT, { after: null, prefix: '', limit: 1 }),
  recent: (reads) => reads.recent(ACCOUNT, 1),
  history: (reads) => reads.history(USER, { from: null, limit: 1, since: null }),
  cyclesSince: (reads) => reads.cyclesSince(USER, 0),
  overview: (reads) => reads.overview(ACCOUNT, { days: 1 }),
};

/** A store whose reads say their name, and in which order they were done. */
function namedReads(done: string[]): AccountReads {
  const read = (name: string) => async () => {
    done.push(name);
    return name;
  };
  const named = Object.fromEntries(Object.keys(READS).map((name) => [name, read(name)]));
  return { ...named, nameOf: read('nameOf') } as unknown as AccountReads;
}

test('one is done in a turn, and each is told what it asked for', async () => {
  const done: string[] = [];
  const reads = readsInTurn(namedReads(done), new PageTurns(PAGES));
  const names = Object.keys(READS);
  const answers = Promise.all(Object.values(READS).map((ask) => ask(reads)));
  for (const [index] of names.entries()) {
    assert.deepEqual(done, names.slice(0, index + 1));
    await nextTurn();
  }
  assert.deepEqual(await answers, names);
});

test('behind 500 lists of its own account it waits for one of them at a time', async () => {
  const turns = new PageTurns(PAGES);
  const done: string[] = [];
  const reads = readsInTurn(namedReads(done), turns);
  const list = async () => void done.push('list');
  const lists = Array.from({ length: 500 }, () => turns.take({ account: ACCOUNT, isDisconnected: false }, list));
  await READS.history(reads);
  await READS.cyclesSince(reads);
  assert(done.length <= 8, `${done.length} reads`);
  await Promise.all(lists);
});
