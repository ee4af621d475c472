// The answers to idempotency keys in a ledger file whose memory knows of few of them, so that segments are written, merged and
// deleted all the while: each is found for as long as it is kept, whenever the process is killed.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ACCEPTED, type Command, type Outcome } from '../../src/ledger/command.ts';
import type { AnswerLimits } from '../../src/store/sqlite/answer-index.ts';
import { openSqliteSource } from '../../src/store/sqlite/copying.ts';
import { openSqliteStore, openSqliteStoreBeside } from '../../src/store/sqlite/sqlite-store.ts';
import { CannotOpen, type Store } from '../../src/store/store.ts';
import { Random } from '../load/random.ts';
import { byHand, crashed, readByHand } from './outside.ts';
import { auditOf, EndUser, NOON, temporaryFile } from './temporary-ledger.ts';

const LIMITS: AnswerLimits = { recentMax: 40, fanOut: 2, filterBytesMax: 1_024 };
const WHOLE = { findings: [], store: [] };
const MINUTE_MS = 60_000;
const USERS = 12;

type Keyed = Exclude<Command, { kind: 'renew' }>;

function keyed(command: Command, key: string, requestId: string): Keyed {
  assert(command.kind !== 'renew');
  return { ...command, idempotency: { key, requestId } };
}

function rows(file: string, sql: string): unknown[][] {
  return readByHand(file, sql).map((row) => Object.values(row));
}

interface Kept {
  readonly command: Keyed;
  readonly outcome: Outcome;
  readonly at: number;
}

/** A ledger under random writes with keys, some of which come again, and what has to become of them. */
class KeyedLedger {
  wall = NOON;
  readonly kept: Kept[] = [];
  readonly #random: Random;
  #requests = 0;

  constructor(seed: number) {
    this.#random = new Random(seed);
  }

  open(file: string, limits = LIMITS): Promise<Store> {
    return openSqliteStore(file, () => this.wall, { answerLimits: limits });
  }

  /** Additions, refusals and cycles, under keys of all kinds. */
  command(): Keyed {
    const random = this.#random;
    const user = new EndUser(1 + random.below(2), random.below(USERS));
    const requestId = `mi5x-c-${(++this.#requests).toString(36)}`;
    const key = random.chance(0.5) ? random.uuid() : `order ☃ ${this.#requests}`;
    const commands = [
      user.add(1 + random.below(1_000), 40),
      user.subtract(1 + random.below(1_000)),
      user.startCycle(7, 30, 'replace'),
      user.stopCycle(),
    ];
    return keyed(random.pick(commands), key, requestId);
  }

  async write(store: Store): Promise<void> {
    const commands = Array.from({ length: 1 + this.#random.below(30) }, () => this.command());
    const outcomes = await store.write(commands);
    commands.forEach((command, index) => {
      const outcome = outcomes[index];
      assert(outcome && outcome.replayOf === undefined, 'a new key is new');
      this.kept.push({ command, outcome, at: this.wall });
    });
    const known = this.#random.pick(this.kept);
    await this.assertKept(store, [known]);
  }

  /** Each is answered as it was. */
  async assertKept(store: Store, kept: readonly Kept[]): Promise<void> {
    for (let from = 0; from < kept.length; from += 200) {
      const some = kept.slice(from, from + 200);
      const again = await store.write(some.map(({ command }) => command));
      assert.deepEqual(
        again,
        some.map(({ command, outcome }) => ({ ...outcome, replayOf: command.idempotency?.requestId })),
      );
    }
  }
}

async function forgetAll(store: Store, ageMs: number): Promise<void> {
  for (let step = 0; step < 400; step++) await store.deleteExpiredRecords(ageMs);
}

test('every answer is found, and no other, whenever the process is killed', async () => {
  const ledger = new KeyedLedger(1);
  const file = temporaryFile();
  const store = await ledger.open(file);
  const states = new Set<unknown>();
  for (let step = 1; step <= 200; step++) {
    await ledger.write(store);
    if (step % 3 === 0) ledger.wall += 2 * MINUTE_MS;
    if (step % 20 !== 0) continue;
    const copy = crashed(file);
    for (const [state] of rows(copy, 'SELECT state FROM answer_segments')) states.add(state);
    const opened = await ledger.open(copy);
    assert.deepEqual(await auditOf(opened), WHOLE);
    await ledger.assertKept(opened, ledger.kept);
    const outcomes = await opened.write([ledger.command(), ledger.command()]);
    assert.deepEqual(
      outcomes.map((outcome) => outcome?.replayOf),
      [undefined, undefined],
    );
    await opened.close();
  }
  assert(states.has('building') && states.has('whole'), 'segments were killed while they were made');
  await ledger.assertKept(store, ledger.kept);
  await store.close();
});

test('a key sent again after kill upon kill has one effect, while segments are made, merged and deleted', async () => {
  const ledger = new KeyedLedger(2);
  let file = temporaryFile();
  let store = await ledger.open(file);
  for (let step = 1; step <= 30; step++) {
    for (let times = 0; times < 4; times++) await ledger.write(store);
    file = crashed(file);
    await store.close();
    store = await ledger.open(file);
    await ledger.assertKept(store, ledger.kept.slice(-300));
  }
  await ledger.assertKept(store, ledger.kept);
  assert.deepEqual(await auditOf(store), WHOLE);
  assert(
    rows(file, 'SELECT level FROM answer_segments').some(([level]) => Number(level) >= 3),
    'some are large',
  );
  await store.close();
});

test('what is old is forgotten while segments are merged, what is not is kept, and nothing is left in the end', async () => {
  const ledger = new KeyedLedger(3);
  const file = temporaryFile();
  let store = await ledger.open(file);
  const ageMs = 60 * MINUTE_MS;
  const young = () => ledger.kept.filter(({ at }) => at >= ledger.wall - ageMs);
  for (let step = 1; step <= 300; step++) {
    await ledger.write(store);
    ledger.wall += MINUTE_MS / 2;
    ledger.kept.splice(0, ledger.kept.length, ...young());
    await store.deleteExpiredRecords(ageMs);
    if (step % 60 !== 0) continue;
    await ledger.assertKept(store, young());
    assert.deepEqual(await auditOf(store), WHOLE);
    await store.close();
    store = await ledger.open(file);
  }
  const { kept } = ledger;
  assert(kept.length > 500, 'many are kept');
  ledger.wall += ageMs + MINUTE_MS;
  await store.write([new EndUser(1, 1).add(1)]);
  await forgetAll(store, ageMs);
  for (const table of ['answer_slips', 'answer_segments', 'answer_buckets'])
    assert.deepEqual(rows(file, `SELECT count(*) FROM ${table}`), [[0]], table);
  const again = await store.write(kept.map(({ command }) => command));
  assert(
    again.every((outcome) => outcome?.replayOf === undefined),
    'their keys are new',
  );
  await store.close();
  store = await ledger.open(file);
  const after = await store.write(kept.map(({ command }) => command));
  assert.deepEqual(
    after.map((outcome) => outcome?.replayOf),
    kept.map(({ command }) => command.idempotency?.requestId),
    'and are found again, though their slips are numbered behind segments that are gone',
  );
  await store.close();
});

test('where segments know of slips that are gone, new slips are numbered behind them', async () => {
  const ledger = new KeyedLedger(7);
  const file = temporaryFile();
  let store = await ledger.open(file);
  for (let step = 0; step < 30; step++) await ledger.write(store);
  await store.close();
  byHand(file, 'DELETE FROM answer_slips');
  ledger.kept.length = 0;
  for (let times = 0; times < 2; times++) {
    store = await ledger.open(file);
    await ledger.assertKept(store, ledger.kept);
    await ledger.write(store);
    await store.close();
  }
  store = await ledger.open(file);
  await ledger.assertKept(store, ledger.kept);
  await store.close();
});

test('a slip that is forgotten is not written again', async () => {
  const file = temporaryFile();
  let now = NOON;
  const store = await openSqliteStore(file, () => now);
  const ada = new EndUser(1, 1);
  await store.write([keyed(ada.add(1), 'a', 'first')]);
  now += 10;
  await store.write([ada.add(1)]);
  assert.equal(await store.deleteExpiredRecords(5), 1);
  await store.write([keyed(ada.add(1), 'b', 'second')]);
  assert.deepEqual(await store.write([keyed(ada.add(1), 'a', 'third')]), [ACCEPTED]);
  assert.deepEqual(await auditOf(store), WHOLE);
  await store.close();
});

test('segments stay few, and so does what a start reads, however many answers there are', async () => {
  const ledger = new KeyedLedger(4);
  const file = temporaryFile();
  const store = await ledger.open(file);
  const user = new EndUser(1, 1);
  await store.write([user.add(1_000_000)]);
  for (let batch = 0; batch < 200; batch++) {
    const commands = Array.from({ length: 64 }, (_, index) => keyed(user.subtract(1), `${batch}/${index}`, 'r'));
    await store.write(commands);
    const [[segments, covered]] = rows(
      file,
      `SELECT count(*), coalesce(max(last_slip), 0) FROM answer_segments WHERE state = 'whole'`,
    ) as [[number, number]];
    const levels = 1 + Math.ceil(Math.log2(1 + (batch * 64) / LIMITS.recentMax));
    assert(segments <= 3 * levels, `${segments} segments of ${batch * 64} answers`);
    const [[tail]] = rows(file, `SELECT coalesce(sum(answers), 0) FROM answer_slips WHERE slip > ${covered}`) as [
      [number],
    ];
    assert(tail <= 2 * LIMITS.recentMax + 3 * 128, `${tail} answers behind the segments`);
  }
  await store.close();
});

test('answers of before there were slips are found, audited, copied and forgotten', async () => {
  const file = temporaryFile();
  let now = NOON;
  const open = () => openSqliteStore(file, () => now);
  const ada = new EndUser(1, 1);
  const first = await open();
  await first.write([keyed(ada.add(10), 'later', 'second')]);
  await first.close();
  byHand(
    file,
    `INSERT INTO answers VALUES (1, unhex('${ada.key.endUser.replaceAll('-', '')}'), 'k', 'add 5 31', 'first', NULL, ${NOON})`,
  );
  const source = openSqliteSource(file);
  const copied = (await Array.fromAsync(source.answers())).flat();
  await source.close();
  assert.deepEqual(
    copied.map(({ key, request, requestId }) => [key, request, requestId]),
    [
      ['k', 'add 5 31', 'first'],
      ['later', 'add 10 31', 'second'],
    ],
  );
  const store = await open();
  assert.deepEqual(await store.write([keyed(ada.add(5), 'k', 'third'), keyed(ada.add(6), 'k', 'fourth')]), [
    { ...ACCEPTED, replayOf: 'first' },
    { refused: 'IdempotencyKeyReused' },
  ]);
  assert.deepEqual(await auditOf(store), WHOLE);
  now += 60 * MINUTE_MS;
  await store.write([ada.add(1)]);
  assert.equal(await store.deleteExpiredRecords(30 * MINUTE_MS), 2);
  assert.deepEqual(await store.write([keyed(ada.add(5), 'k', 'fifth')]), [ACCEPTED]);
  await store.close();
});

const HARM: readonly (readonly [what: string, sql: string, told: RegExp])[] = [
  ['a bucket is gone', 'DELETE FROM answer_buckets WHERE bucket % 2 = 0', /index of the answers .* cannot be read/],
  ['a bucket is another', 'UPDATE answer_buckets SET entries = zeroblob(8)', /index of the answers/],
  [
    'a segment is gone',
    `DELETE FROM answer_segments WHERE first_slip = (SELECT min(first_slip) FROM answer_segments WHERE state = 'whole')`,
    /index of the answers/,
  ],
  ['a slip is cut', 'UPDATE answer_slips SET entries = substr(entries, 1, 60) WHERE slip = 1', /slip 1/],
  ['a slip counts others', 'UPDATE answer_slips SET answers = answers + 1 WHERE slip = 2', /slip 2 says/],
  ['the seed is another', 'UPDATE answer_seed SET seed = zeroblob(8)', /is not found by its key/],
];

test('verify tells of answers that were changed by hand', async (t) => {
  const ledger = new KeyedLedger(5);
  const file = temporaryFile();
  const store = await ledger.open(file);
  for (let step = 0; step < 40; step++) {
    await ledger.write(store);
    ledger.wall += 2 * MINUTE_MS;
  }
  await store.close();
  for (const [what, sql, told] of HARM)
    await t.test(what, async () => {
      const copy = crashed(file);
      byHand(copy, sql);
      const beside = openSqliteStoreBeside(copy);
      const { store: faults } = await auditOf(beside);
      await beside.close();
      assert.match(faults.join('\n'), told);
    });
});

test('a ledger whose latest answers cannot be read is refused with a reason', async () => {
  const ledger = new KeyedLedger(6);
  const file = temporaryFile();
  const store = await ledger.open(file);
  await ledger.write(store);
  await store.close();
  byHand(file, 'UPDATE answer_slips SET entries = substr(entries, 1, length(entries) - 3)');
  await assert.rejects(ledger.open(file), (error: Error) => {
    assert(error instanceof CannotOpen);
    assert.match(error.message, /answers to idempotency keys are damaged .*; run `scrip verify`/);
    return true;
  });
});
