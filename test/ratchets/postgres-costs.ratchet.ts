// What a batch costs on PostgreSQL, counted on the wire rather than timed: round trips, statements, and bytes of its log.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { endUserId } from '../../bench/workload.ts';
import type { Command } from '../../src/ledger/command.ts';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { PostgresServer } from '../store/postgres/postgres-server.ts';
import { TcpProxy } from '../store/postgres/tcp-proxy.ts';

const BATCH = 64;
const BATCHES = 20;

/** For a batch of 64 subtractions of as many end users: exactly. */
const ROUND_TRIPS = 2;
/** Two begin the transaction; lock, time, cycles; the update with its postings; no timeout, and COMMIT. */
const STATEMENTS = 2 + 3 + 1 + 2;
/** One more where a snapshot is due: behind every 128th transaction, by chance. */
const SNAPSHOT_STATEMENTS = 1;
/** For one subtraction. With whole pages, which PostgreSQL logs after each checkpoint, it would depend on when that was. */
const LOG_BYTES_MAX = 610;

let server: PostgresServer;
before(async () => {
  // Nothing in the background that would write to the log, or ask for anything, while it is counted.
  server = await PostgresServer.start({ fsync: 'off', full_page_writes: 'off', autovacuum: 'off' });
});
after(() => server.remove());

const MESSAGE_TYPES = { execute: 0x45, sync: 0x53 } as const;

/** Messages of the protocol in what a client sent in one piece: a byte of type, and a length. */
function messagesIn(bytes: Buffer): number[] {
  const types: number[] = [];
  for (let at = 0; at + 5 <= bytes.length; at += 1 + bytes.readUInt32BE(at + 1)) types.push(bytes[at] as number);
  return types;
}

describe('what a batch costs on PostgreSQL', () => {
  test('a batch of subtractions is two round trips, eight statements and a bounded number of bytes', async (t) => {
    const direct = await server.createDatabase();
    const proxy = await TcpProxy.to(server.port);
    const options = { lanes: 1, prepared: true, citus: false, acceptUnsafe: true };
    const { ledger } = await openPostgresStore({ url: proxy.url(direct), ...options });
    const write = (commands: readonly Command[]) => ledger.write(commands, () => {});
    try {
      const batchOf = (command: (endUser: string) => Command) =>
        Array.from({ length: BATCH }, (_, number) => command(endUserId(number)));
      const shared = { account: 1, actor: 'key:1' };
      await write(batchOf((endUser) => ({ kind: 'add', ...shared, endUser, amount: 1_000, validityDays: 31 })));
      const subtract = () => write(batchOf((endUser) => ({ kind: 'subtract', ...shared, endUser, amount: 1 })));
      // The first ones also prepare their statements.
      for (let batch = 0; batch < 3; batch++) await subtract();
      const snapshotsBefore = await batchesWithSnapshots(direct);
      const logBefore = await logPosition(direct);
      const counted = { pieces: 0, statements: 0, syncs: 0 };
      proxy.rule = (bytes) => {
        const types = messagesIn(bytes);
        const executed = types.filter((type) => type === MESSAGE_TYPES.execute).length;
        const isHeartbeat = bytes.includes('scrip.clock');
        if (executed === 0 || isHeartbeat) return 'pass';
        counted.pieces += 1;
        counted.statements += executed;
        counted.syncs += types.filter((type) => type === MESSAGE_TYPES.sync).length;
        return 'pass';
      };
      for (let batch = 0; batch < BATCHES; batch++) {
        const outcomes = await subtract();
        assert(outcomes.every((outcome) => outcome?.refused === null));
      }
      proxy.rule = () => 'pass';
      const logBytes = ((await logPosition(direct)) - logBefore) / (BATCHES * BATCH);
      const withSnapshots = (await batchesWithSnapshots(direct)) - snapshotsBefore;
      t.diagnostic(`${JSON.stringify(counted)} in ${BATCHES} batches, ${logBytes} bytes of log a subtraction`);
      assert.deepEqual(counted, {
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

describe('a database that was never analyzed', () => {
  test('a batch finds its end users by their keys, and reads no table from one end to the other', async () => {
    const url = await server.createDatabase();
    const options = { url, lanes: 1, prepared: true, citus: false, acceptUnsafe: true };
    // What the migrations read is not counted.
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
    assert(found > scans.found, 'rows were found by their keys');
    assert.equal(read, scans.read);
  });
});

/**
 * How often rows of the tables of a batch were found by an index, and how often the tables were read as a whole. A connection
 * reports what it has counted by the time that it has ended.
 */
async function tableScans(url: string): Promise<{ found: number; read: number }> {
  const database = new URL(url).pathname.slice(1);
  const connected = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`;
  while ((await server.query(connected, database)).rows.length > 0) await sleep(10);
  const { rows } = await server.query(
    `SELECT sum(idx_scan)::float8 AS found, sum(seq_scan)::float8 AS read FROM pg_stat_user_tables
     WHERE schemaname = 'scrip' AND relname IN ('end_users', 'cycles')`,
    database,
  );
  return { found: Number(rows[0].found), read: Number(rows[0].read) };
}

/** Each has an instant of its own, with which the ids of its transactions begin. */
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
