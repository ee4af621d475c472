// The audit of a whole ledger file, in one snapshot: the holdings in order, and behind each end user the chain of its
// postings. Memory holds the cycles of one end user, and no posting longer than it takes to check it.

import type { DatabaseSync } from 'node:sqlite';
import { audit, type Finding } from '../../ledger/audit.ts';
import type { EndUserKey } from '../../ledger/command.ts';
import type { Cycle } from '../../ledger/cycle.ts';
import type { Posting } from '../../ledger/posting.ts';
import type { AuditReport } from '../store.ts';
import { answerFaults } from './answer-audit.ts';
import { LandmarkAudit } from './landmarks.ts';
import { movementFaults } from './movements.ts';
import { clockChecksum } from './open-writer.ts';
import { CYCLE_COLUMNS, cycleOf, PostingsReader, prepare, type Row } from './rows.ts';
import { SQLITE, sqliteCode } from './sqlite-error.ts';
import { showUnposted } from './unposted-view.ts';
import { uuidOf } from './uuid.ts';

const ADVANCE_POSTINGS = 5_000;

/** What is broken below the ledger is told this many times: one is enough to know. */
const STORE_FAULTS_MAX = 100;

/** @param advance told how many of how many postings are checked, now and then */
export function auditFile(
  db: DatabaseSync,
  report: (finding: Finding) => void,
  advance: (checked: number, of: number) => void = () => {},
): AuditReport {
  const total = { endUsers: 0, postings: 0, store: [] as string[] };
  db.exec('BEGIN');
  try {
    total.store.push(...pageFaults(db));
    showUnposted(db);
    auditRows(db, report, total, advance);
    total.store.push(...movementFaults(db), ...answerFaults(db));
  } catch (error) {
    if (sqliteCode(error) !== SQLITE.corrupt) throw error;
    total.store.push(`it can be read no further: ${(error as Error).message}`);
  } finally {
    if (db.isTransaction) db.exec('ROLLBACK');
  }
  return total;
}

function auditRows(
  db: DatabaseSync,
  report: (finding: Finding) => void,
  total: { endUsers: number; postings: number; store: string[] },
  advance: (checked: number, of: number) => void,
): void {
  const stored = Number(db.prepare('SELECT count(*) AS count FROM postings').get()?.count);
  const clock = auditClock(db, stored);
  total.store.push(...clock.faults);
  const chain = new PostingsReader(db, { anyInteger: true });
  const landmarks = new LandmarkAudit(db);
  const fault = (sentence: string) => void (total.store.length < STORE_FAULTS_MAX && total.store.push(sentence));
  const counted = function* ({ user, latest, count }: EndUserHoldings): Generator<Posting> {
    for (const { posting } of landmarks.of(user, count, chain.from(latest, user), fault)) {
      total.postings += 1;
      if (total.postings % ADVANCE_POSTINGS === 0) advance(total.postings, stored);
      yield posting;
    }
  };
  for (const holdings of endUsersOf(db)) {
    total.endUsers += 1;
    for (const finding of audit(holdings.user, holdings.cycles, counted(holdings), clock.now)) report(finding);
  }
  for (const sentence of landmarks.rest()) fault(sentence);
  if (stored !== total.postings) {
    total.store.push(`${stored} postings are stored, and ${total.postings} belong to an end user`);
  }
}

interface EndUserHoldings {
  readonly user: EndUserKey;
  readonly cycles: Cycle[];
  latest: number | null;
  /** How many postings it says to have. */
  count: number | null;
}

function* endUsersOf(db: DatabaseSync): Generator<EndUserHoldings> {
  const rows = prepare(
    db,
    `SELECT ${CYCLE_COLUMNS}, posting_count, latest_posting, account, end_user FROM holdings ORDER BY account, end_user, ends_at, cycle_id`,
  );
  let current: EndUserHoldings | null = null;
  rows.setReadBigInts(true);
  for (const each of rows.iterate()) {
    const row = each as unknown as Row;
    const [count, latest, account, bytes] = row.slice(-4);
    const endUser = uuidOf(bytes as Uint8Array);
    if (current === null || current.user.account !== Number(account) || current.user.endUser !== endUser) {
      if (current !== null) yield current;
      current = { user: { account: Number(account), endUser }, cycles: [], latest: null, count: null };
    }
    if (latest === null) current.cycles.push(cycleOf(row));
    else Object.assign(current, { latest: Number(latest), count: Number(count) });
  }
  if (current !== null) yield current;
}

function pageFaults(db: DatabaseSync): string[] {
  const faults = db
    .prepare('PRAGMA integrity_check(20)')
    .all()
    .map((row) => String(row.integrity_check));
  return faults.length === 1 && faults[0] === 'ok' ? [] : faults;
}

function auditClock(db: DatabaseSync, postings: number): { now: number; faults: string[] } {
  const row = db.prepare('SELECT at, sequence, checksum FROM clock').get();
  if (row === undefined) return { now: 0, faults: postings > 0 ? ['the clock of the ledger is gone'] : [] };
  const [at, sequence] = [Number(row.at), Number(row.sequence)];
  const isWhole = row.checksum === clockChecksum(at, sequence);
  return { now: at, faults: isWhole ? [] : ['the clock of the ledger was changed by other means than Scrip'] };
}
