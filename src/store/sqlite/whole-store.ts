// The audit of a whole ledger file, in one snapshot: the holdings in order, and behind each end user the chain of its
// postings. Memory holds the cycles of one end user, and no posting longer than it takes to check it.

import type { DatabaseSync } from 'node:sqlite';
import { audit, type Finding } from '../../ledger/audit.ts';
import type { EndUserKey } from '../../ledger/command.ts';
import type { Cycle } from '../../ledger/cycle.ts';
import type { Posting } from '../../ledger/posting.ts';
import type { AuditReport } from '../store.ts';
import { ChainReader, CYCLE_COLUMNS, cycleOf, prepare, type Row } from './rows.ts';
import { uuidOf } from './uuid.ts';
import { clockChecksum } from './writer.ts';

export function auditFile(db: DatabaseSync, report: (finding: Finding) => void): AuditReport {
  db.exec('BEGIN');
  try {
    const faults = pageFaults(db);
    const clock = auditClock(db);
    const chain = new ChainReader(db);
    let endUsers = 0;
    let postings = 0;
    const counted = function* (user: EndUserKey, latest: number | null): Generator<Posting> {
      for (const { posting } of chain.from(latest, user)) {
        postings += 1;
        yield posting;
      }
    };
    for (const { user, cycles, latest } of endUsersOf(db)) {
      endUsers += 1;
      for (const finding of audit(user, cycles, counted(user, latest), clock.now)) report(finding);
    }
    const stored = Number(db.prepare('SELECT count(*) AS count FROM postings').get()?.count);
    if (stored !== postings) faults.push(`${stored} postings are stored, and ${postings} belong to an end user`);
    return { endUsers, postings, store: [...faults, ...clock.faults] };
  } finally {
    db.exec('ROLLBACK');
  }
}

interface EndUserHoldings {
  readonly user: EndUserKey;
  readonly cycles: Cycle[];
  latest: number | null;
}

function* endUsersOf(db: DatabaseSync): Generator<EndUserHoldings> {
  const rows = prepare(
    db,
    `SELECT ${CYCLE_COLUMNS}, latest_posting, account, end_user FROM holdings ORDER BY account, end_user, ends_at, cycle_id`,
  );
  let current: EndUserHoldings | null = null;
  for (const each of rows.iterate()) {
    const row = each as unknown as Row;
    const [latest, account, bytes] = row.slice(-3);
    const endUser = uuidOf(bytes as Uint8Array);
    if (current === null || current.user.account !== account || current.user.endUser !== endUser) {
      if (current !== null) yield current;
      current = { user: { account: account as number, endUser }, cycles: [], latest: null };
    }
    if (latest === null) current.cycles.push(cycleOf(row));
    else current.latest = latest as number;
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

function auditClock(db: DatabaseSync): { now: number; faults: string[] } {
  const row = db.prepare('SELECT at, sequence, checksum FROM clock').get();
  if (row === undefined) return { now: 0, faults: [] };
  const [at, sequence] = [Number(row.at), Number(row.sequence)];
  const isWhole = row.checksum === clockChecksum(at, sequence);
  return { now: at, faults: isWhole ? [] : ['the clock of the ledger was changed by other means than Scrip'] };
}
