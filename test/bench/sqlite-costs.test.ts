// What a batch costs in a ledger file, counted rather than timed, so that it is the same on every machine: statements,
// fsyncs, pages and bytes of the log, bytes that are kept, messages between the threads. A bound that a change makes too
// high is lowered with it; one that it breaks has to be worth it.

import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { DatabaseSync, StatementSync } from 'node:sqlite';
import { before, describe, type TestContext, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { endUserId } from '../../bench/workload.ts';
import { GroupCommit } from '../../src/batching/group-commit.ts';
import type { Command } from '../../src/ledger/command.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { POSTING_LIMITS, type PostingLimits } from '../../src/store/sqlite/unposted.ts';
import { type Store, StoreFault } from '../../src/store/store.ts';
import { Random } from '../load/random.ts';
import { NOON, temporaryFile } from '../store/temporary-ledger.ts';
import { countLog, type LogCounts } from './log-file.ts';

const USERS = 2_000;
const BATCH = 64;
/** So few that the log is not brought into the file meanwhile. */
const BATCHES = 16;
const USER_BATCH = 500;

/** Half of the end users wait to be posted, as in a large ledger; there, neighbours share pages as well. */
const LIMITS: PostingLimits = { ...POSTING_LIMITS, usersMax: USERS / 2, tailMax: USERS };
/** Until as many are posted as begin to wait. */
const BATCHES_BEFORE = (2 * USERS) / BATCH;

interface Counted extends LogCounts {
  readonly statements: number;
  readonly keptBytes: number;
}

/** For one command of a batch of 64, in a ledger of 2,000 end users with one cycle each, 16 such batches. */
const BOUNDS: readonly {
  readonly what: string;
  readonly command: (number: number) => Command;
  readonly statements: number;
  readonly pages: number;
  readonly keptBytes: number;
}[] = [
  { what: 'a subtraction', command: (number) => subtract(number), statements: 2, pages: 0.81, keptBytes: 99 },
  { what: 'an addition', command: (number) => add(number), statements: 2.2, pages: 0.9, keptBytes: 115 },
  {
    what: 'a subtraction with a key',
    command: (number) => ({ ...subtract(number), idempotency: { key: nextKey(), requestId: 'r' } }),
    statements: 2.04,
    pages: 0.84,
    keptBytes: 125,
  },
];

let keys = 0;
function nextKey(): string {
  keys += 1;
  return `order-${keys.toString().padStart(8, '0')}`;
}

function subtract(number: number): Command {
  return { kind: 'subtract', account: 1, endUser: endUserId(number), actor: 'key:1', amount: 1 };
}

function add(number: number, amount = 1): Command {
  return { kind: 'add', account: 1, endUser: endUserId(number), actor: 'key:1', amount, validityDays: 31 };
}

/** A ledger whose clock stands still between batches, written to in this thread. */
async function fundedStore(t: TestContext): Promise<{ store: Store; file: string; tick: () => void }> {
  const file = temporaryFile();
  let now = NOON;
  const store = await openSqliteStore(file, () => now, { limits: LIMITS });
  t.after(() => store.close().catch(() => {}));
  for (let first = 0; first < USERS; first += USER_BATCH)
    await store.write(Array.from({ length: USER_BATCH }, (_, index) => add(first + index, 1_000_000)));
  return {
    store,
    file,
    tick: () => {
      now += 1;
    },
  };
}

async function counted(t: TestContext, command: (number: number) => Command): Promise<Counted> {
  const { store, file, tick } = await fundedStore(t);
  const random = new Random(7);
  const batches = Array.from({ length: BATCHES }, () =>
    Array.from({ length: BATCH }, () => command(random.below(USERS))),
  );
  for (let batch = 0; batch < BATCHES_BEFORE; batch++)
    await store.write(Array.from({ length: BATCH }, () => subtract(random.below(USERS))));
  emptyLog(file);
  const before = statSync(file).size;
  const statements = countStatements(t);
  for (const batch of batches) {
    tick();
    const outcomes = await store.write(batch);
    assert(outcomes.every((outcome) => outcome?.refused === null));
  }
  const made = statements.count;
  const log = countLog(file);
  emptyLog(file);
  return { ...log, statements: made, keptBytes: statSync(file).size - before };
}

/** Brings the log into the file, so that it begins again. */
function emptyLog(file: string): void {
  const db = new DatabaseSync(file);
  const [result] = db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').all();
  db.close();
  assert.equal(result?.busy, 0);
}

function countStatements(t: TestContext): { count: number } {
  const counter = { count: 0 };
  const wrap = (owner: object, name: string) => {
    const original = Reflect.get(owner, name) as (...args: unknown[]) => unknown;
    t.mock.method(
      owner as Record<string, unknown> as never,
      name as never,
      function (this: unknown, ...args: unknown[]) {
        counter.count += 1;
        return original.apply(this, args);
      } as never,
    );
  };
  for (const name of ['run', 'get', 'all', 'iterate']) wrap(StatementSync.prototype, name);
  wrap(DatabaseSync.prototype, 'exec');
  return counter;
}

describe('what a batch costs in a ledger file', () => {
  for (const { what, command, ...bound } of BOUNDS) {
    test(`${what} stays within its statements, pages and bytes, with one fsync for all of a batch`, async (t) => {
      const { commits, pages, statements, keptBytes } = await counted(t, command);
      const each = (count: number) => count / (BATCHES * BATCH);
      t.diagnostic(`${each(statements)} statements, ${each(pages)} pages, ${each(keptBytes)} bytes kept`);
      assert.equal(commits, BATCHES);
      assert(statements >= BATCHES * BATCH, 'statements are counted');
      assert(pages >= BATCHES, 'pages are counted');
      assert(each(statements) <= bound.statements, `${each(statements)} statements`);
      assert(each(pages) <= bound.pages, `${each(pages)} pages`);
      assert(each(keptBytes) <= bound.keptBytes, `${each(keptBytes)} bytes kept`);
    });
  }

  test('a batch that is refused as a whole writes nothing', async (t) => {
    const { store, file, tick } = await fundedStore(t);
    emptyLog(file);
    tick();
    const outcomes = await store.write(
      Array.from({ length: BATCH }, (_, number) => ({ ...subtract(number), amount: 2_000_000 })),
    );
    assert(outcomes.every((outcome) => outcome?.refused === 'InsufficientFunds'));
    assert.deepEqual(countLog(file), { commits: 0, pages: 0, bytes: 0 });
  });

  test('a batch is one message to the writer, and one back', async (t) => {
    const store = await openSqliteStore(temporaryFile());
    t.after(() => store.close().catch(() => {}));
    await store.write(Array.from({ length: BATCH }, (_, number) => add(number, 1_000)));
    const messages = countMessages(t);
    const commit = new GroupCommit(store);
    for (let round = 0; round < BATCHES; round++) await Promise.all(asManySubmitted(commit));
    assert.equal(commit.counts.commands, BATCHES * BATCH);
    assert.deepEqual(messages, { sent: BATCHES, received: BATCHES });
    assert.equal(commit.counts.batches, BATCHES);
  });
});

function asManySubmitted(commit: GroupCommit): Promise<void>[] {
  return Array.from(
    { length: BATCH },
    (_, number) =>
      new Promise((resolve, reject) =>
        commit.submit(subtract(number), (result) => (result instanceof StoreFault ? reject(result) : resolve())),
      ),
  );
}

function countMessages(t: TestContext): { sent: number; received: number } {
  const messages = { sent: 0, received: 0 };
  const { postMessage, emit } = Worker.prototype;
  t.mock.method(Worker.prototype, 'postMessage', function (this: Worker, ...args: Parameters<typeof postMessage>) {
    messages.sent += 1;
    return postMessage.apply(this, args);
  });
  t.mock.method(Worker.prototype, 'emit', function (this: Worker, ...args: Parameters<typeof emit>) {
    if ((args[0] as string) === 'message') messages.received += 1;
    return emit.apply(this, args);
  });
  return messages;
}

before(() => {
  keys = 0;
});
