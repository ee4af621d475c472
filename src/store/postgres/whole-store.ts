// The audit of a whole database, a bucket at a time, each in one snapshot: two ordered scans side by side, so that
// memory holds the cycles of one end user, and no posting longer than it takes to check it. All rows of an end user are
// in one bucket, so nothing that has to agree is looked at in two snapshots.

import type { Pool, PoolClient, QueryResultRow } from 'pg';
import { audit, type Finding } from '../../ledger/audit.ts';
import type { EndUserKey } from '../../ledger/command.ts';
import type { Posting } from '../../ledger/posting.ts';
import type { AuditReport } from '../store.ts';
import { BUCKETS, bucketOf } from './bucket.ts';
import type { DatabaseClock } from './database-clock.ts';
import { type CycleRow, cycleOf, type PostingRow, postingOf } from './rows.ts';

const FETCH_ROWS = 2_000;

export async function auditDatabase(
  pool: Pool,
  clock: DatabaseClock,
  report: (finding: Finding) => void,
): Promise<AuditReport> {
  const total = { endUsers: 0, postings: 0, store: [] as string[] };
  const client = await pool.connect();
  try {
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      await auditBucket(client, { bucket, clock }, total, report);
      await client.query('COMMIT');
    }
  } finally {
    client.release(true);
  }
  return total;
}

async function auditBucket(
  client: PoolClient,
  { bucket, clock }: { bucket: number; clock: DatabaseClock },
  total: { endUsers: number; postings: number; store: string[] },
  report: (finding: Finding) => void,
): Promise<void> {
  const cycles = new UserScan<CycleRow>(client, 'cycles', bucket, 'ends_at DESC, cycle_id DESC');
  const postings = new UserScan<PostingRow>(client, 'postings', bucket, 'transaction_id DESC, cycle_id DESC');
  const [, { rows }] = await Promise.all([
    client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY'),
    // What this process has seen counts as well: it is not kept at once.
    client.query(`SELECT greatest((SELECT at FROM scrip.clock), ${clock.now}, $1::bigint) AS now`, [clock.latest]),
    cycles.start(),
    postings.start(),
  ]);
  for (let user = first(cycles, postings); user !== null; user = first(cycles, postings)) {
    const held = (await cycles.take(user)).map(cycleOf);
    const entered = await postings.take(user);
    total.endUsers += 1;
    total.postings += entered.length;
    const entries: Posting[] = entered.map(postingOf);
    for (const finding of audit(user, held, entries, rows[0].now)) report(finding);
    if (bucketOf(user) !== bucket)
      total.store.push(`end user ${user.endUser} is in bucket ${bucket}, and belongs in ${bucketOf(user)}`);
  }
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
    this.#rows = (await this.#client.query<Row>(`FETCH ${FETCH_ROWS} FROM ${this.#table}`)).rows;
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
