// The audit of a whole database, a bucket at a time, each in one snapshot: two ordered scans side by side, so that
// memory holds the cycles of one end user, and no posting longer than it takes to check it. All rows of an end user are
// in one bucket, so nothing that has to agree is looked at in two snapshots.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool, PoolClient, QueryResultRow } from 'pg';
import { audit, type Finding } from '../../ledger/audit.ts';
import type { EndUserKey } from '../../ledger/command.ts';
import { type Instant, LAST_INSTANT } from '../../ledger/instant.ts';
import type { AuditReport } from '../store.ts';
import { BUCKETS, bucketOf } from './bucket.ts';
import { ANY_INTEGER } from './connection.ts';
import type { DatabaseClock } from './database-clock.ts';
import { movementFaults } from './movements.ts';
import { type CycleRow, cycleOf, type PostingRow, postingOf } from './rows.ts';

const FETCH_ROWS = 2_000;

/** Twice as long as it takes processes to share what they have seen of the clock. */
const SHARED_MS = 2_000;

/** What this process has seen counts as well: it is not kept at once. */
const latest = (now: string) =>
  `SELECT least(greatest((SELECT at FROM scrip.clock), ${now}, $1::bigint), ${LAST_INSTANT}) AS now`;

interface Audit {
  readonly clock: DatabaseClock;
  readonly total: { endUsers: number; postings: number; store: string[] };
  readonly report: (finding: Finding) => void;
  /** The latest instant once all processes have shared theirs; waits for that the first time. */
  readonly shared: () => Promise<Instant>;
}

export async function auditDatabase(
  pool: Pool,
  { clock, isCitus }: { clock: DatabaseClock; isCitus: boolean },
  report: (finding: Finding) => void,
): Promise<AuditReport> {
  const total = { endUsers: 0, postings: 0, store: [] as string[] };
  let asked: Promise<Instant> | null = null;
  const ask = async () => (await pool.query(latest(clock.now), [clock.latest])).rows[0].now as Instant;
  const shared = () => {
    asked ??= sleep(SHARED_MS).then(ask);
    return asked;
  };
  const client = await pool.connect();
  try {
    const { rows: wrong } = await client.query(`SELECT FROM scrip.clock WHERE at NOT BETWEEN 0 AND ${LAST_INSTANT}`);
    if (wrong.length > 0) total.store.push('the clock of the ledger is at no instant');
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      await auditBucket(client, bucket, { clock, total, report, shared });
      await client.query('COMMIT');
    }
    total.store.push(...(await movementFaults(client, { clock, isCitus })));
  } finally {
    client.release(true);
  }
  return total;
}

async function auditBucket(client: PoolClient, bucket: number, { clock, total, report, shared }: Audit): Promise<void> {
  const cycles = new UserScan<CycleRow>(client, 'cycles', bucket, 'ends_at DESC, cycle_id DESC');
  const postings = new UserScan<PostingRow>(client, 'postings', bucket, 'transaction_id DESC, cycle_id DESC');
  const [, { rows }] = await Promise.all([
    client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY'),
    client.query(latest(clock.now), [clock.latest]),
    cycles.start(),
    postings.start(),
  ]);
  let now: Instant = rows[0].now;
  for (let user = first(cycles, postings); user !== null; user = first(cycles, postings)) {
    const held = await cycles.take(user);
    const entered = await postings.take(user);
    total.endUsers += 1;
    total.postings += entered.length;
    // Another process has written this, and the database's clock was then set back, before it could share the instant.
    if (entered.some(({ created_at }) => created_at > now)) now = Math.max(now, await shared());
    for (const finding of findingsOf(user, held, entered, now)) report(finding);
    if (bucketOf(user) !== bucket)
      total.store.push(`end user ${user.endUser} is in bucket ${bucket}, and belongs in ${bucketOf(user)}`);
  }
}

/** On integers that were rounded the rules say nothing, so they are all that is reported of their end user. */
function findingsOf(
  user: EndUserKey,
  held: readonly CycleRow[],
  entered: readonly PostingRow[],
  now: Instant,
): Iterable<Finding> {
  const rounded = [
    ...held.flatMap((row) => roundedIn(user, `cycle ${row.cycle_id} (period ${row.period})`, row)),
    ...entered.flatMap((row) => roundedIn(user, `transaction ${row.transaction_id}`, row)),
  ];
  return rounded.length > 0 ? rounded : audit(user, held.map(cycleOf), entered.map(postingOf), now);
}

function roundedIn(user: EndUserKey, name: string, row: CycleRow | PostingRow): Finding[] {
  return Object.entries(row)
    .filter(([, value]) => typeof value === 'number' && !Number.isSafeInteger(value))
    .map(([column]) => {
      const invariant = column.endsWith('_at') ? 4 : 1;
      return { invariant, user, message: `${name} is stored with ${column} past 2^53−1` };
    });
}

/** Rows of a bucket by end user, the last one first: backwards is how the key gives the latest posting first. */
class UserScan<Row extends QueryResultRow & { account: number; end_user: string }> {
  readonly #client: PoolClient;
  readonly #table: string;
  readonly #bucket: number;
  readonly #order: string;
  #rows: Row[] = [];
  #at = 0;

  constructor(client: PoolClient, table: string, bucket: number, order: string) {
    this.#client = client;
    this.#table = table;
    this.#bucket = bucket;
    this.#order = order;
  }

  get user(): EndUserKey | null {
    const row = this.#rows[this.#at];
    return row ? { account: row.account, endUser: row.end_user } : null;
  }

  async start(): Promise<void> {
    const declared = this.#client.query(
      `DECLARE ${this.#table} CURSOR FOR SELECT * FROM scrip.${this.#table} WHERE bucket = ${this.#bucket}
       ORDER BY bucket DESC, account DESC, end_user DESC, ${this.#order}`,
    );
    await Promise.all([declared, this.#fetch()]);
  }

  async take(user: EndUserKey): Promise<Row[]> {
    const taken: Row[] = [];
    while (this.user !== null && compare(this.user, user) === 0) {
      taken.push(this.#rows[this.#at] as Row);
      this.#at += 1;
      if (this.#at === this.#rows.length) await this.#fetch();
    }
    return taken;
  }

  async #fetch(): Promise<void> {
    const fetch = { text: `FETCH ${FETCH_ROWS} FROM ${this.#table}`, types: ANY_INTEGER };
    this.#rows = (await this.#client.query<Row>(fetch)).rows;
    this.#at = 0;
  }
}

function first(a: UserScan<CycleRow>, b: UserScan<PostingRow>): EndUserKey | null {
  if (a.user === null || b.user === null) return a.user ?? b.user;
  return compare(a.user, b.user) >= 0 ? a.user : b.user;
}

function compare(a: EndUserKey, b: EndUserKey): number {
  return a.account - b.account || (a.endUser < b.endUser ? -1 : a.endUser > b.endUser ? 1 : 0);
}
