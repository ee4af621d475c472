// Tests that several processes on PostgreSQL derive each event once, even during writes, and even if connections are
// terminated.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { deriveEvents } from '../../../../src/events/derive.ts';
import { DAY_MS } from '../../../../src/ledger/instant.ts';
import type { EventType, LoggedEvent } from '../../../../src/store/event-log.ts';
import { InvalidCursor, StoreFault } from '../../../../src/store/store-fault.ts';
import { EndUser, NOON } from '../../temporary-ledger.ts';
import type { TestLedger } from '../../test-ledger.ts';
import { beforeEachPosting } from '../faults/contended-ledger.ts';
import { openFor, openOnMovedClock } from '../postgres-ledger.ts';
import { PostgresServer } from '../postgres-server.ts';
import { RepeatedStep } from './repeated-step.ts';
import { withSharedLedger } from './shared-ledger.ts';

const LIMIT = { timeout: 60_000 };
const ROUNDS = 25;
const FAILURES = 10;
const ROUNDS_MAX = 400;

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start({ fsync: 'off' });
});
after(() => server.remove());

function people(count: number): EndUser[] {
  return Array.from({ length: count }, (_, index) => new EndUser(1, index));
}

async function fill(ledger: TestLedger, users: readonly EndUser[]): Promise<void> {
  await ledger.write(users.map((user) => user.add(10)));
  await ledger.write(users.map((user) => user.subtract(3)));
}

function startDeriving({ events }: TestLedger): RepeatedStep {
  return new RepeatedStep(() => events.deriveNext(deriveEvents));
}

class Reader {
  readonly events: LoggedEvent[] = [];
  readonly #ledger: TestLedger;
  #position: string | null = null;

  constructor(ledger: TestLedger) {
    this.#ledger = ledger;
  }

  async readToEnd(types?: readonly EventType[]): Promise<readonly LoggedEvent[]> {
    for (let hasMore = true; hasMore; ) {
      const page = await this.#ledger.events.page(1, { after: this.#position, limit: 100, types });
      this.events.push(...page.events);
      this.#position = page.position;
      hasMore = page.hasMore;
    }
    return this.events;
  }
}

function assertFilled(events: readonly LoggedEvent[], users: readonly EndUser[], rounds: number): void {
  assert.equal(new Set(events.map(({ id }) => id)).size, events.length);
  const found = new Map<string, number[]>();
  for (const { data } of events) {
    const { end_user_id: endUser, balance } = JSON.parse(data);
    found.set(endUser, [...(found.get(endUser) ?? []), balance]);
  }
  const expected = Array.from({ length: rounds }, (_, round) => [7 * round + 10, 7 * round + 7]).flat();
  for (const { key } of users) assert.deepEqual(found.get(key.endUser), expected);
}

test(
  'if several processes on PostgreSQL make writes, derive events and read events at once, a reader gets each event once and in order',
  LIMIT,
  () =>
    withSharedLedger(server, async ({ processes }) => {
      const [writing, , reading] = processes;
      const users = people(60);
      const deriving = processes.map(startDeriving);
      const reader = new Reader(reading);
      let isWriting = true;
      const read = (async () => {
        while (isWriting) await reader.readToEnd();
      })();
      const lanes = [users.slice(0, 20), users.slice(20, 40), users.slice(40)];
      await Promise.all(
        lanes.map(async (some) => {
          for (let round = 0; round < ROUNDS; round++) await fill(writing, some);
        }),
      );
      isWriting = false;
      await read;
      for (const each of deriving) {
        await each.stop();
        assert.equal(each.failed, 0);
      }
      await writing.deriveEvents();
      assertFilled(await reader.readToEnd(), users, ROUNDS);
      assert.deepEqual(await new Reader(writing).readToEnd(), reader.events, 'the order never changes');
    }),
);

test(
  'if connections to PostgreSQL are terminated while events are derived, no event is lost or stored twice',
  LIMIT,
  () =>
    withSharedLedger(server, async ({ processes: [writing, ...others], database }) => {
      const users = people(40);
      const deriving = others.map(startDeriving);
      const failures = () => deriving.reduce((sum, { failed }) => sum + failed, 0);
      let rounds = 0;
      for (; failures() < FAILURES; rounds++) {
        assert(rounds < ROUNDS_MAX, `only ${failures()} steps failed`);
        await fill(writing, users);
        await server.query(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${database}' AND pid <> pg_backend_pid()
           AND state <> 'idle' AND query ~ 'feed_consumers|DELETE FROM scrip.feed|end_user_summaries|scrip.events'`,
          database,
        );
      }
      await Promise.all(deriving.map((each) => each.stop()));
      await writing.deriveEvents();
      assertFilled(await new Reader(writing).readToEnd(), users, rounds);
    }),
);

test('if deriving events fails on PostgreSQL, no event is stored, writes continue, and the next attempt derives the same events', async (t) => {
  const url = await server.createDatabase();
  const ledger = await openFor(t, url);
  const users = people(5);
  await fill(ledger, users);
  let calls = 0;
  const failing = ledger.events.deriveNext((input) => {
    calls += 1;
    if (calls === 3) throw new assert.AssertionError({ message: 'a bug' });
    return deriveEvents(input);
  });
  await assert.rejects(failing, StoreFault);
  assert.equal(calls, 3);
  assert.deepEqual(await new Reader(ledger).readToEnd(), []);
  assert.equal(ledger.trouble(), null);
  await fill(ledger, users);
  await ledger.deriveEvents();
  assertFilled(await new Reader(ledger).readToEnd(), users, 2);
});

test('while a batch for an end user is in flight, no expiry events are derived for this end user, but the expiry events of other end users are not delayed', async (t) => {
  const url = await server.createDatabase();
  let wall = NOON;
  const ledger = await openOnMovedClock(t, url, () => wall);
  const [ada, bob] = [new EndUser(1, 1), new EndUser(1, 2)];
  await ledger.write([ada.add(10, 1), bob.add(10, 1)]);
  await ledger.deriveEvents();
  const outsider = new pg.Client({ connectionString: url });
  await outsider.connect();
  try {
    await beforeEachPosting(outsider, 'PERFORM pg_advisory_xact_lock(1);');
    await outsider.query('SELECT pg_advisory_lock(1)');
    const writing = ledger.write([ada.subtract(3)]);
    const isWaiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'`;
    while ((await outsider.query(isWaiting)).rows.length === 0) await sleep(5);
    wall += 2 * DAY_MS;
    const began = performance.now();
    await ledger.deriveEvents();
    assert(performance.now() - began < 1_000);
    const happened = async ({ key }: EndUser) =>
      (await new Reader(ledger).readToEnd())
        .map(({ type, data }) => ({ type, data: JSON.parse(data) }))
        .filter(({ data }) => data.end_user_id === key.endUser)
        .map(({ type, data }) => `${type} ${data.amount ?? ''}`.trimEnd());
    assert.deepEqual(await happened(ada), ['credits.added 10']);
    assert.deepEqual(await happened(bob), ['credits.added 10', 'credits.expired 10', 'balance.exhausted']);
    await outsider.query('SELECT pg_advisory_unlock(1)');
    await writing;
    await ledger.deriveEvents();
    assert.deepEqual(await happened(ada), [
      'credits.added 10',
      'credits.subtracted 3',
      'credits.expired 7',
      'balance.exhausted',
    ]);
  } finally {
    await outsider.end();
  }
});

test('if there are no new postings and no time-driven events are due, deriving events writes nothing to PostgreSQL', async (t) => {
  const url = await server.createDatabase();
  const ledger = await openFor(t, url);
  await ledger.write([new EndUser(1, 1).add(10)]);
  await ledger.deriveEvents();
  const versions = `SELECT string_agg(xmin || '/' || xmax, ' ' ORDER BY bucket) FROM scrip.feed_consumers
    UNION ALL SELECT string_agg(xmin || '/' || xmax, ' ') FROM scrip.end_users
    UNION ALL SELECT string_agg(xmin || '/' || xmax, ' ') FROM scrip.end_user_summaries`;
  const database = new URL(url).pathname.slice(1);
  const before = (await server.query(versions, database)).rows;
  assert.equal(await ledger.events.deriveNext(() => assert.fail('there is nothing to derive')), false);
  assert.deepEqual((await server.query(versions, database)).rows, before);
});

test('on PostgreSQL, a position that is not in the event log is refused', async (t) => {
  const url = await server.createDatabase();
  const ledger = await openFor(t, url);
  await ledger.write([new EndUser(1, 1).add(10), new EndUser(1, 2).add(10)]);
  await ledger.deriveEvents();
  const { position } = await ledger.events.page(1, { after: null, limit: 10 });
  assert.equal(position, '2');
  assert.deepEqual((await ledger.events.page(1, { after: position, limit: 10 })).events, []);
  for (const after of ['', '3', '-1', '01', '1.0', '1e0', ' 1', 'x', '9'.repeat(30), '\0'])
    await assert.rejects(ledger.events.page(1, { after, limit: 10 }), InvalidCursor, after);
});

test(
  "no reader gets an event that PostgreSQL's synchronous standby does not have, and other processes do not wait for the standby",
  LIMIT,
  () =>
    withSharedLedger(server, async ({ processes: [deriving, other] }) => {
      const users = people(3);
      await fill(deriving, users);
      const setStandby = async (name: string) => {
        await server.query(`ALTER SYSTEM SET synchronous_standby_names = '${name}'`);
        await server.query('SELECT pg_reload_conf()');
      };
      const areWaiting = async (condition: string) => {
        const waiting = `SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND ${condition}`;
        return (await server.query(waiting)).rows.length > 0;
      };
      await setStandby('missing');
      // COMMITs begin to wait for the standby only some time after the setting has changed.
      const probes: Promise<unknown>[] = [];
      while (!(await areWaiting(`application_name <> 'scrip'`))) {
        probes.push(server.query(`SELECT pg_logical_emit_message(true, 'probe', '')`));
        await sleep(20);
      }
      try {
        const commit = assert.rejects(deriving.events.deriveNext(deriveEvents), StoreFault);
        while (!(await areWaiting(`application_name = 'scrip'`))) await sleep(5);
        assert.equal(await other.events.deriveNext(deriveEvents), null);
        await commit;
        assert.equal(await other.events.deriveNext(deriveEvents), null, 'the COMMIT is still in progress');
        assert.deepEqual(await new Reader(other).readToEnd(), []);
      } finally {
        await setStandby('');
        await Promise.all(probes);
      }
      while ((await new Reader(other).readToEnd()).length === 0) await sleep(5);
      await other.deriveEvents();
      assertFilled(await new Reader(other).readToEnd(), users, 1);
    }),
);

test(
  "time-driven events stay right if the database's clock is set back before other processes learn of their instant",
  LIMIT,
  async (t) => {
    const url = await server.createDatabase();
    let wall = NOON;
    const [deriving, writing] = [
      await openOnMovedClock(t, url, () => wall),
      await openOnMovedClock(t, url, () => wall),
    ];
    const ada = new EndUser(1, 1);
    await deriving.write([ada.add(10, 1)]);
    const derive = async () => {
      while (await deriving.events.deriveNext(deriveEvents));
    };
    await derive();
    wall += DAY_MS + 300;
    await derive();
    wall -= 400;
    await writing.write([ada.add(5), ada.subtract(3)]);
    await derive();
    const events = await new Reader(deriving).readToEnd(['credits.added', 'credits.expired', 'credits.subtracted']);
    const balances = events.map(({ type, data }) => [type, JSON.parse(data).balance]);
    assert.deepEqual(balances, [
      ['credits.added', 10],
      ['credits.expired', 0],
      ['credits.added', 5],
      ['credits.subtracted', 2],
    ]);
  },
);
