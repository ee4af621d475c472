// Tests that idempotency records in a ledger file are found by their keys, even after restarts, crashes and deletions.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { endUserText, type Outcome, type WriteCommand } from '../../../../src/ledger/command.ts';
import { recordName, requestOf } from '../../../../src/ledger/idempotency.ts';
import { DAY_MS, HOUR_MS } from '../../../../src/ledger/instant.ts';
import { hashOf } from '../../../../src/store/sqlite/idempotency/record-table.ts';
import { isGrant } from '../../../../src/store/stored-record.ts';
import { Random } from '../../../load/random.ts';
import { byHand, readByHand } from '../../outside.ts';
import { ACCEPTED, balanceOf, EndUser, keyed, problemsOf, replayed, temporaryFile } from '../../temporary-ledger.ts';
import type { TestLedger } from '../../test-ledger.ts';
import { auditBeside, crashed, openInPlace } from '../sqlite-ledger.ts';

const ada = new EndUser(1, 1);
const USERS = 12;
const RUN_MAX = 40;
const RETENTION = { grantsMs: 12 * HOUR_MS, othersMs: 3 * HOUR_MS };

interface Kept {
  readonly command: WriteCommand;
  readonly outcome: Outcome;
  readonly at: number;
}

class KeyedRequests {
  kept: Kept[] = [];
  readonly #random: Random;
  #requests = 0;

  constructor(seed: number) {
    this.#random = new Random(seed);
  }

  next(): WriteCommand {
    const random = this.#random;
    const user = new EndUser(1 + random.below(2), random.below(USERS));
    const requestId = `request ${++this.#requests}`;
    const key = random.chance(0.5) ? random.uuid() : `order ☃ ${this.#requests}`;
    const commands = [
      user.add(1 + random.below(1_000), 40),
      user.subtract(1 + random.below(1_000)),
      user.startCycle(7, 30, 'replace'),
      user.stopCycle(),
    ];
    return keyed(random.pick(commands), key, requestId);
  }

  async write(ledger: TestLedger): Promise<void> {
    const commands = Array.from({ length: 1 + this.#random.below(30) }, () => this.next());
    const outcomes = await ledger.write(commands);
    commands.forEach((command, index) => {
      const outcome = outcomes[index];
      assert(outcome && outcome.replayOf === undefined, 'a request with a new key is not replayed');
      this.kept.push({ command, outcome, at: ledger.wall });
    });
    await this.assertReplayed(ledger, [this.#random.pick(this.kept)]);
  }

  async assertReplayed(ledger: TestLedger, kept: readonly Kept[] = this.kept): Promise<void> {
    for (let from = 0; from < kept.length; from += 200) {
      const some = kept.slice(from, from + 200);
      assert.deepEqual(
        await ledger.write(some.map(({ command }) => command)),
        some.map(({ command, outcome }) => replayed(outcome, command.idempotency?.requestId as string)),
      );
    }
  }

  takeExpired(now: number): Kept[] {
    const isKept = ({ command, at }: Kept) =>
      at >= now - (isGrant({ request: requestOf(command) }) ? RETENTION.grantsMs : RETENTION.othersMs);
    const expired = this.kept.filter((each) => !isKept(each));
    this.kept = this.kept.filter(isKept);
    return expired;
  }
}

function open(t: TestContext, file: string, wall?: number, indexRunMax = RUN_MAX): Promise<TestLedger> {
  return openInPlace(t, file, { indexRunMax, ...(wall !== undefined && { wall }) });
}

test('a key of a grant that is in the index on disk is found after all records around it have been deleted', async (t) => {
  const ledger = await open(t, temporaryFile(), undefined, 3);
  const grant = keyed(ada.add(100), 'payment 1', 'first');
  const subtract = (key: string) => keyed(ada.subtract(1), key, key);
  const [granted] = await ledger.write([grant, subtract('a'), subtract('b')]);
  await ledger.write([subtract('c'), subtract('d')]);
  await ledger.write([subtract('e')]);
  await ledger.write([subtract('f')]);
  ledger.wall += 4 * HOUR_MS;
  await ledger.deleteExpiredRecords(RETENTION);
  await ledger.write([subtract('g'), subtract('h')]);
  assert.deepEqual(await ledger.write([grant]), [replayed(granted as Outcome, 'first')]);
});

test('after a kill at any time, all idempotency records are found, and keys without a record are treated as new', async (t) => {
  const requests = new KeyedRequests(61);
  const file = temporaryFile();
  const ledger = await open(t, file);
  for (let step = 1; step <= 120; step++) {
    await requests.write(ledger);
    if (step % 3 === 0) ledger.wall += 120_000;
    if (step % 11 !== 0) continue;
    const again = await open(t, crashed(file), ledger.wall);
    assert.deepEqual(problemsOf(await again.audit()), []);
    await requests.assertReplayed(again);
    const fresh = await again.write([requests.next(), requests.next()]);
    assert(fresh.every((outcome) => outcome?.replayOf === undefined));
    await again.close();
  }
  await requests.assertReplayed(ledger);
});

test('idempotency records are indexed even if each process adds fewer of them than a run contains', async (t) => {
  const requests = new KeyedRequests(5);
  const file = temporaryFile();
  for (let process = 0; process < 12; process++) {
    const ledger = await open(t, file);
    await requests.write(ledger);
    await ledger.close();
  }
  const [{ unindexed } = {}] = readByHand(
    file,
    `SELECT count(*) AS unindexed FROM idempotency_records WHERE record > (SELECT record FROM idempotency_indexed)`,
  );
  assert(requests.kept.length > 3 * RUN_MAX);
  assert(Number(unindexed) < 2 * RUN_MAX, `${unindexed} of ${requests.kept.length} records are not indexed`);
  await requests.assertReplayed(await open(t, file));
});

test('a request that is repeated after many kills takes effect only once', async (t) => {
  const requests = new KeyedRequests(62);
  let file = temporaryFile();
  for (let kills = 0; kills < 30; kills++) {
    const ledger = await open(t, file);
    for (let times = 0; times < 4; times++) await requests.write(ledger);
    await requests.assertReplayed(ledger, requests.kept.slice(-300));
    file = crashed(file);
    await ledger.close();
  }
  const ledger = await open(t, file);
  await requests.assertReplayed(ledger);
  assert.deepEqual(problemsOf(await ledger.audit()), []);
});

for (const indexRunMax of [1, 2, 7, 1_000])
  test(`with sorted runs of ${indexRunMax} records, lookups find exactly the idempotency records that have not expired`, async (t) => {
    const requests = new KeyedRequests(63);
    let file = temporaryFile();
    let ledger = await open(t, file, undefined, indexRunMax);
    for (let step = 1; step <= 90; step++) {
      await requests.write(ledger);
      ledger.wall += HOUR_MS / 4;
      await ledger.deleteExpiredRecords(RETENTION);
      const expired = requests.takeExpired(ledger.wall);
      const [first] = expired;
      if (first !== undefined && step % 5 === 0) {
        const [outcome] = await ledger.write([first.command]);
        assert(outcome && outcome.replayOf === undefined, 'a key whose record was deleted is treated as new');
        requests.kept.push({ ...first, outcome, at: ledger.wall });
      }
      if (step % 15 !== 0) continue;
      await requests.assertReplayed(ledger);
      assert.deepEqual(problemsOf(await ledger.audit()), []);
      const { wall } = ledger;
      if (step % 30 === 0) file = crashed(file);
      await ledger.close();
      ledger = await open(t, file, wall, indexRunMax);
    }
    assert(requests.kept.length > 200, 'many records have not expired');
    await requests.assertReplayed(ledger);
  });

test('after all idempotency records have expired, all keys are treated as new, and their new records are found', async (t) => {
  const requests = new KeyedRequests(64);
  const file = temporaryFile();
  const ledger = await open(t, file);
  for (let step = 0; step < 40; step++) await requests.write(ledger);
  ledger.wall += DAY_MS;
  await ledger.write([ada.add(1)]);
  await ledger.deleteExpiredRecords(RETENTION);
  const commands = requests.kept.map(({ command }) => command);
  const decided = await ledger.write(commands);
  assert(decided.every((outcome) => outcome?.replayOf === undefined));
  await ledger.reopen();
  const again = await ledger.write(commands);
  assert.deepEqual(
    again.map((outcome) => outcome?.replayOf),
    commands.map(({ idempotency }) => idempotency?.requestId),
  );
  assert.deepEqual(problemsOf(await ledger.audit()), []);
});

test('idempotency records that are deleted before they are indexed are never found again, even after a kill', async (t) => {
  const file = temporaryFile();
  let ledger = await open(t, file, undefined, 8);
  const commands = (name: string) =>
    Array.from({ length: 12 }, (_, index) => keyed(ada.add(1), `${name} ${index}`, name));
  await ledger.write(commands('first'));
  await ledger.write([keyed(ada.add(1), 'one more', 'first')]);
  ledger.wall += DAY_MS;
  await ledger.load(ada.key);
  await ledger.deleteExpiredRecords(RETENTION);
  ledger = await open(t, crashed(file), ledger.wall, 8);
  for (const name of ['second', 'third']) {
    const outcomes = await ledger.write(commands(name));
    assert(outcomes.every((outcome) => outcome?.replayOf === undefined));
  }
  const outcomes = await ledger.write([...commands('first'), ...commands('second'), ...commands('third')]);
  assert.deepEqual(
    outcomes.map((outcome) => outcome?.replayOf ?? 'new'),
    ['new', 'second', 'third'].flatMap((name) => Array(12).fill(name)),
  );
  assert.deepEqual(problemsOf(await ledger.audit()), []);
});

test('idempotency records and their index stop growing once records expire at the rate at which they are added', async (t) => {
  const file = temporaryFile();
  const ledger = await open(t, file);
  for (let round = 0; round < 80; round++) {
    await ledger.write(Array.from({ length: 50 }, (_, index) => keyed(ada.add(1), `${round}/${index}`, 'r')));
    ledger.wall += RETENTION.grantsMs / 2;
    await ledger.deleteExpiredRecords(RETENTION);
    if (round % 25 === 24) await ledger.reopen();
  }
  for (const table of ['idempotency_records', 'idempotency_index']) {
    const [row] = readByHand(file, `SELECT count(*) AS count FROM ${table}`);
    assert(Number(row?.count) < 1_000, `${row?.count} of 4,000 are left in ${table}`);
  }
});

test('a failed batch stores no idempotency records', async (t) => {
  const ledger = await open(t, temporaryFile(), undefined, 4);
  const commands = Array.from({ length: 10 }, (_, index) => keyed(ada.add(1), `k${index}`, 'first'));
  await ledger.write(commands.slice(0, 3));
  await ledger.whileCommitsFail(() => assert.rejects(ledger.write(commands.slice(3)), { code: 'OutcomeUnknown' }));
  const outcomes = await ledger.write(commands);
  assert.deepEqual(
    outcomes.map((outcome) => outcome?.replayOf ?? 'new'),
    [...Array(3).fill('first'), ...Array(7).fill('new')],
  );
  assert.equal(await balanceOf(ledger, ada), 10);
});

/** Returns two idempotency keys of `ada` with the same hash. Among 150,000 keys, there are about five such pairs. */
function collidingKeys(seed: string): readonly [string, string] {
  const keys = new Map<number, string>();
  for (let number = 0; ; number++) {
    const key = `key ${number}`;
    const hash = hashOf(seed, recordName(endUserText(ada.key), key));
    const other = keys.get(hash);
    if (other !== undefined) return [other, key];
    keys.set(hash, key);
  }
}

test('two idempotency keys with the same hash have separate outcomes, before and after their records are indexed', async (t) => {
  const file = temporaryFile();
  const ledger = await open(t, file, undefined, 4);
  const [row] = readByHand(file, 'SELECT hex(seed) AS seed FROM idempotency_indexed');
  const [one, other] = collidingKeys(String(row?.seed).toLowerCase());
  assert.deepEqual(await ledger.results([keyed(ada.add(5), one, '1')]), [ACCEPTED]);
  assert.deepEqual(await ledger.results([keyed(ada.add(7), other, '2')]), [ACCEPTED], 'the other key is new');
  for (let step = 0; step < 20; step++) {
    const outcomes = await ledger.results([keyed(ada.add(5), one, '3'), keyed(ada.add(7), other, '4')]);
    assert.deepEqual(outcomes, [replayed(ACCEPTED, '1'), replayed(ACCEPTED, '2')], `after ${step} other keys`);
    await ledger.write([keyed(ada.add(1), `other ${step}`, 'x')]);
    if (step % 7 === 6) await ledger.reopen();
  }
  ledger.wall += 4 * HOUR_MS;
  await ledger.write([keyed(ada.subtract(1), one, '5')]);
  assert.deepEqual(await ledger.results([keyed(ada.add(7), one, '6')]), [{ refused: 'IdempotencyKeyReused' }]);
});

const TAMPERINGS: readonly (readonly [what: string, sql: string, says: RegExp])[] = [
  ['A missing entry of the index', 'DELETE FROM idempotency_index WHERE record % 3 = 0', /missing from the index/],
  ['An empty index', 'DELETE FROM idempotency_index', /missing from the index/],
  [
    'A record with another hash',
    'UPDATE idempotency_records SET hash = hash + 1 WHERE record % 4 = 0',
    /a hash that does not match its key/,
  ],
  [
    'A record with another key',
    `UPDATE idempotency_records SET key = key || '.' WHERE record % 4 = 0`,
    /a hash that does not match its key/,
  ],
  [
    'A record with another end user',
    `UPDATE idempotency_records SET account = 3`,
    /a hash that does not match its key/,
  ],
  [
    'An outcome that is not JSON',
    `UPDATE idempotency_records SET outcome = '{' WHERE record % 4 = 0`,
    /cannot be read/,
  ],
  ['Another seed', `UPDATE idempotency_indexed SET seed = zeroblob(16)`, /a hash that does not match its key/],
  ['A missing seed', `DELETE FROM idempotency_indexed`, /seed of the idempotency records is missing/],
];

test('the audit finds idempotency records and index entries that were changed by hand', async (t) => {
  const requests = new KeyedRequests(65);
  const file = temporaryFile();
  const ledger = await open(t, file);
  for (let step = 0; step < 20; step++) await requests.write(ledger);
  await ledger.close();
  assert.deepEqual(problemsOf(await auditBeside(file)), []);
  for (const [what, sql, says] of TAMPERINGS) {
    const copy = crashed(file);
    byHand(copy, sql);
    assert.match(problemsOf(await auditBeside(copy)).join('\n'), says, what);
  }
});
