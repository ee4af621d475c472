// Counts the round trips, the statements and the bytes of write-ahead log that a batch takes on PostgreSQL. Unlike
// measured times, these counts are the same on every machine.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { endUserId } from '../../bench/workload.ts';
import type { Command } from '../../src/ledger/command.ts';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { PostgresServer } from '../store/postgres/postgres-server.ts';
import { TcpProxy } from '../store/postgres/tcp-proxy.ts';
import { EndUser } from '../store/temporary-ledger.ts';

const BATCH = 64;
const BATCHES = 20;

/** For a batch of `BATCH` subtractions, each for a different end user. */
const ROUND_TRIPS = 2;
/**
 * Two statements begin the transaction; three lock the rows, read the time and read the cycles; one writes; and two
 * remove the statement timeout and commit.
 */
const STATEMENTS = 2 + 3 + 1 + 2;
/** One statement stores all snapshots of a batch. On average, one in 128 transactions causes a snapshot. */
const SNAPSHOT_STATEMENTS = 1;
/** For one subtraction. `full_page_writes` is off, so that the time of the last checkpoint has no effect. */
const LOG_BYTES_MAX = 670;

let server: PostgresServer;
before(async () => {
  // Autovacuum also writes to the log, which would change the count.
  server = await PostgresServer.start({ fsync: 'off', full_page_writes: 'off', autovacuum: 'off' });
});
after(() => server.remove());

const MESSAGE_TYPES = { execute: 0x45, sync: 0x53 } as const;

function messageTypesIn(bytes: Buffer): number[] {
  const types: number[] = [];
  for (let at = 0; at + 5 <= bytes.length; at += 1 + bytes.readUInt32BE(at + 1)) types.push(bytes[at] as number);
  return types;
}

describe('the cost of a batch on PostgreSQL', () => {
  test('on PostgreSQL, a batch of subtractions takes two round trips and eight statements, and writes a bounded number of bytes to the log', async (t) => {
    const direct = await server.createDatabase();
    const proxy = await TcpProxy.to(server.port);
    const options = { lanes: 1, prepared: true, citus: false, shards: 16, acceptUnsafe: true };
    const { ledger } = await openPostgresStore({ url: proxy.url(direct), ...options });
    const write = (commands: readonly Command[]) => ledger.write(commands, () => {});
    try {
      const batchOf = (command: (endUser: string) => Command) =>
        Array.from({ length: BATCH }, (_, number) => command(endUserId(number)));
      const shared = { account: 1, actor: 'key:1' };
      await write(batchOf((endUser) => ({ kind: 'add', ...shared, endUser, amount: 1_000, validityDays: 31 })));
      const subtract = () => write(batchOf((endUser) => ({ kind: 'subtract', ...shared, endUser, amount: 1 })));
      // The first batches also prepare statements.
      for (let batch = 0; batch < 3; batch++) await subtract();
      const snapshotsBefore = await batchesWithSnapshots(direct);
      const logBefore = await logPosition(direct);
      const counted = countIn(proxy);
      for (let batch = 0; batch < BATCHES; batch++) {
        const outcomes = await subtract();
        assert(outcomes.every((outcome) => outcome?.refused === null));
      }
      const { answered: _, ...costs } = stopCounting(proxy, counted);
      const logBytes = ((await logPosition(direct)) - logBefore) / (BATCHES * BATCH);
      const withSnapshots = (await batchesWithSnapshots(direct)) - snapshotsBefore;
      t.diagnostic(`${JSON.stringify(costs)} in ${BATCHES} batches, ${logBytes} bytes of log a subtraction`);
      assert.deepEqual(costs, {
        pieces: ROUND_TRIPS * BATCHES,
        statements: STATEMENTS * BATCHES + SNAPSHOT_STATEMENTS * withSnapshots,
        syncs: ROUND_TRIPS * BATCHES,
      });
      assert(logBytes > 50 && logBytes <= LOG_BYTES_MAX, `${logBytes} bytes of log`);
    } finally {
      await ledger.close();
      await proxy.close();
    }
  });
});

interface Counted {
  pieces: number;
  statements: number;
  syncs: number;
  answered: number;
}

function countIn(proxy: TcpProxy): Counted {
  const counted = { pieces: 0, statements: 0, syncs: 0, answered: 0 };
  let isHeartbeat = false;
  proxy.rule = (bytes) => {
    const types = messageTypesIn(bytes);
    const executed = types.filter((type) => type === MESSAGE_TYPES.execute).length;
    isHeartbeat = bytes.includes('scrip.clock');
    if (executed === 0 || isHeartbeat) return 'pass';
    counted.pieces += 1;
    counted.statements += executed;
    counted.syncs += types.filter((type) => type === MESSAGE_TYPES.sync).length;
    return 'pass';
  };
  proxy.onAnswer = (bytes) => {
    if (!isHeartbeat) counted.answered += bytes.length;
  };
  return counted;
}

function stopCounting(proxy: TcpProxy, counted: Counted): Counted {
  proxy.rule = () => 'pass';
  proxy.onAnswer = () => {};
  return counted;
}

const OPEN_HOLDS = 1_000;

describe('the cost of holds on PostgreSQL', () => {
  test('on PostgreSQL, a subtraction does not load the 1,000 open holds of the end user, and a hold, a release or a refund takes two round trips', async (t) => {
    const direct = await server.createDatabase();
    const proxy = await TcpProxy.to(server.port);
    const options = { lanes: 1, prepared: true, citus: false, shards: 16, acceptUnsafe: true };
    const { ledger } = await openPostgresStore({ url: proxy.url(direct), ...options });
    const transactionOf = async (command: Command) => {
      const [outcome] = await ledger.write([command], () => {});
      assert(outcome?.refused === null);
      return outcome.transactionId as string;
    };
    const costsOf = async (command: Command) => {
      const counted = countIn(proxy);
      await transactionOf(command);
      return stopCounting(proxy, counted);
    };
    try {
      const [free, holding] = [new EndUser(1, 1), new EndUser(1, 2)];
      await ledger.write([free.add(10_000), holding.add(10_000)], () => {});
      for (let held = 0; held < OPEN_HOLDS - 1; held += 111)
        await ledger.write(
          Array.from({ length: 111 }, () => holding.hold(1)),
          () => {},
        );
      const spent = await transactionOf(free.subtract(1));
      const released = await transactionOf(free.hold(1));
      for (const command of [holding.hold(1), free.refund(spent), free.release(released)])
        assert.equal((await costsOf(command)).pieces, ROUND_TRIPS, command.kind);
      assert.equal((await ledger.load(holding.key)).state.holds.length, OPEN_HOLDS);
      const [without, beside] = [await costsOf(free.subtract(1)), await costsOf(holding.subtract(1))];
      t.diagnostic(`${JSON.stringify(without)} without holds, ${JSON.stringify(beside)} with ${OPEN_HOLDS} holds`);
      for (const { pieces, statements } of [without, beside])
        assert(pieces === ROUND_TRIPS && statements <= STATEMENTS + SNAPSHOT_STATEMENTS);
      assert(beside.answered < without.answered + 100, `${beside.answered} bytes`);
    } finally {
      await ledger.close();
      await proxy.close();
    }
  });
});

describe('a PostgreSQL database that has never been analyzed', () => {
  test('in a PostgreSQL database that has never been analyzed, a batch finds its end users by index, without a sequential scan', async () => {
    const url = await server.createDatabase();
    const options = { url, lanes: 1, prepared: true, citus: false, shards: 16, acceptUnsafe: true };
    // Create the schema first, so that the count omits scans by migrations.
    await (await openPostgresStore(options)).ledger.close();
    const scans = await tableScans(url);
    const { ledger } = await openPostgresStore(options);
    const write = (commands: readonly Command[]) => ledger.write(commands, () => {});
    const shared = { account: 1, actor: 'key:1' };
    try {
      for (let number = 0; number < 10; number++) {
        const endUser = endUserId(number);
        await write([{ kind: 'add', ...shared, endUser, amount: 1_000, validityDays: 31 }]);
        await write([{ kind: 'subtract', ...shared, endUser, amount: 1 }]);
      }
    } finally {
      await ledger.close();
    }
    const { found, read } = await tableScans(url);
    assert(found > scans.found, 'rows were found by index');
    assert.equal(read, scans.read);
  });
});

/** Waits until all connections are closed: PostgreSQL might not have counted the scans of an open connection yet. */
async function tableScans(url: string): Promise<{ found: number; read: number }> {
  const database = new URL(url).pathname.slice(1);
  const connected = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`;
  while ((await server.query(connected, database)).rows.length > 0) await sleep(10);
  const { rows } = await server.query(
    `SELECT sum(idx_scan)::float8 AS found, sum(seq_scan)::float8 AS read FROM pg_stat_user_tables
     WHERE schemaname = 'scrip' AND relname IN ('end_users', 'cycles', 'holds')`,
    database,
  );
  return { found: Number(rows[0].found), read: Number(rows[0].read) };
}

/**
 * A transaction ID begins with the instant of its batch. A batch takes more than a millisecond, so each batch has
 * its own instant.
 */
async function batchesWithSnapshots(url: string): Promise<number> {
  const { rows } = await server.query(
    'SELECT count(DISTINCT left(transaction_id::text, 13)) AS batches FROM scrip.snapshots',
    new URL(url).pathname.slice(1),
  );
  return Number(rows[0].batches);
}

async function logPosition(url: string): Promise<number> {
  const { rows } = await server.query(
    `SELECT (pg_current_wal_insert_lsn() - '0/0')::float8 AS position`,
    new URL(url).pathname.slice(1),
  );
  return Number(rows[0].position);
}
