// An end user is due at the time of its next renewal or lapse. These tests check when the writer stores this time in
// the ledger file. If an end user is due soon, the writer flushes its balance immediately.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { GroupCommit } from '../../../../src/batching/group-commit.ts';
import { RenewalJob } from '../../../../src/batching/renewal-job.ts';
import { DAY_MS, HOUR_MS } from '../../../../src/ledger/instant.ts';
import { openLedgerFile } from '../../../../src/store/sqlite/file/ledger-file.ts';
import { LedgerClock } from '../../../../src/store/sqlite/writer/ledger-clock.ts';
import { Writer } from '../../../../src/store/sqlite/writer/writer.ts';
import { readByHand } from '../../outside.ts';
import { EndUser, idsOf, NOON, problemsOf, temporaryFile } from '../../temporary-ledger.ts';
import { auditBeside, openFor } from '../sqlite-ledger.ts';

const [ada, bob] = [new EndUser(1, 1), new EndUser(1, 2)];
const MINUTE_MS = 60_000;

function writerOf(t: TestContext) {
  const file = temporaryFile();
  openLedgerFile(file, false).close();
  const clock = { wall: NOON };
  const writer = new Writer(file, new LedgerClock(() => clock.wall));
  t.after(() => writer.close());
  const dueAt = () => {
    const own = `type = 'end-user' AND end_user = x'${ada.key.endUser.replaceAll('-', '')}'`;
    return readByHand(file, `SELECT due_at FROM balances WHERE ${own}`)[0]?.due_at;
  };
  return { file, clock, writer, dueAt };
}

test('the time at which a hold expires is stored in the ledger file immediately if it is at most two minutes away, and otherwise when the balance is flushed', (t) => {
  const { clock, writer, dueAt } = writerOf(t);
  writer.write([ada.add(100), bob.add(100)]);
  assert.equal(dueAt(), undefined, 'the balance is pending');
  writer.write([ada.hold(1, 900)]);
  assert.equal(dueAt(), undefined, 'a hold that expires later is pending too');
  writer.write([ada.hold(1, 120)]);
  assert.equal(dueAt(), NOON + 2 * MINUTE_MS);
  const [soon] = idsOf(writer.write([ada.hold(1, 3)]).outcomes);
  assert.equal(dueAt(), NOON + 3_000);
  writer.write([ada.release(soon as string)]);
  assert.equal(dueAt(), NOON + 3_000, 'the release is pending');
  clock.wall += 3_000;
  writer.write([ada.settle()]);
  assert.equal(dueAt(), NOON + 2 * MINUTE_MS, 'the settlement updates the file');
  clock.wall = NOON + 2 * MINUTE_MS;
  writer.write([ada.settle()]);
  assert.equal(dueAt(), NOON + 15 * MINUTE_MS);
});

test("the time of a cycle's next renewal is stored in the ledger file within two minutes if the ledger is busy, and within seconds if it is idle", async (t) => {
  for (const isBusy of [true, false]) {
    const { file, clock, writer, dueAt } = writerOf(t);
    writer.write([ada.startCycle(10, 1)]);
    assert.equal(dueAt(), undefined);
    for (let second = 0; isBusy && second <= 120; second += 10) {
      clock.wall = NOON + second * 1_000;
      writer.write([bob.add(1)]);
    }
    if (!isBusy) for (let ticks = 0; ticks < 3; ticks++) writer.tick();
    assert.equal(dueAt(), NOON + DAY_MS);
    writer.write([ada.stopCycle()]);
    for (let ticks = 0; ticks < 3; ticks++) writer.tick();
    assert.equal(dueAt(), null);
    clock.wall += HOUR_MS;
    writer.write([ada.subtract(1)]);
    assert.equal(dueAt(), null);
    assert.deepEqual(problemsOf(await auditBeside(file)), []);
  }
});

const HOLDING = 30;
/** The job that stores lapses runs once a second, but may be late on a busy machine. */
const LATE_MAX_MS = 10_000;

for (const isBusy of [false, true])
  test(`the lapse of a hold that expires after a second is stored within seconds while the service is ${isBusy ? 'busy' : 'idle'}`, async (t) => {
    const file = temporaryFile();
    const ledger = await openFor(t, file);
    const commit = new GroupCommit(ledger.store);
    const troubles: unknown[] = [];
    const job = new RenewalJob(ledger.store, commit, (error) => troubles.push(error));
    const people = Array.from({ length: HOLDING }, (_, index) => new EndUser(1, index));
    const others = Array.from({ length: HOLDING }, (_, index) => new EndUser(2, index));
    await ledger.write([...people, ...others].map((user) => user.add(1_000_000)));
    let isOver = false;
    const load = async () => {
      while (isBusy && !isOver) {
        await ledger.write(others.map((user) => user.subtract(1)));
        await turn();
      }
    };
    const loading = load();
    job.start();
    await ledger.write(people.map((user) => user.hold(5, 1)));
    await ledger.write(people.map((user) => user.hold(5, 900)));
    const lapses = () => readByHand(file, `SELECT count(*) AS count FROM postings WHERE kind = 'lapse'`)[0]?.count;
    const began = performance.now();
    while (lapses() !== HOLDING && performance.now() - began < LATE_MAX_MS) await sleep(50);
    assert.equal(lapses(), HOLDING);
    const instants = readByHand(
      file,
      `SELECT p.created_at - h.hold_expires_at AS late FROM postings AS p
      JOIN postings AS h ON h.transaction_id = p.reference WHERE p.kind = 'lapse'`,
    );
    assert(
      instants.every(({ late }) => late === 0),
      'each lapse has the instant at which its hold expired',
    );
    assert.deepEqual(await ledger.due(), []);
    isOver = true;
    await loading;
    await job.stop();
    assert.deepEqual(troubles, []);
    assert.deepEqual(problemsOf(await ledger.audit()), []);
  });
