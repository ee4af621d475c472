// The holdings as they are, for who reads all of them in SQL: within a transaction, the name `holdings` stands for the
// stored ones with those that wait to be posted put in their places. Gone with a rollback, or by `hideUnposted`.

import { AssertionError } from 'node:assert/strict';
import type { DatabaseSync } from 'node:sqlite';
import type { EndUserKey } from '../../ledger/command.ts';
import type { Cycle } from '../../ledger/cycle.ts';
import { headsOf } from './heads.ts';
import { JournalReader, type Redone } from './journal.ts';
import { CYCLE_COLUMNS, END_OF_TIME, prepare } from './rows.ts';
import { bytesOf } from './uuid.ts';

const COLUMNS = `account, end_user, ${CYCLE_COLUMNS}, chain, posting_count, latest_posting`;

const REPLACED = `
  CREATE TEMP TABLE unposted (
    account INTEGER, end_user BLOB, cycle_id BLOB, period INTEGER, type TEXT, status TEXT, amount INTEGER,
    remaining INTEGER, starts_at INTEGER, ends_at INTEGER, validity_days INTEGER, chain TEXT, posting_count INTEGER,
    latest_posting INTEGER, PRIMARY KEY (account, end_user, ends_at, cycle_id)
  ) STRICT, WITHOUT ROWID`;

const VIEW = `
  CREATE TEMP VIEW holdings AS
    SELECT ${COLUMNS} FROM main.holdings AS h WHERE NOT EXISTS (
      SELECT 1 FROM unposted AS u WHERE u.account = h.account AND u.end_user = h.end_user AND u.ends_at = h.ends_at
        AND u.cycle_id = h.cycle_id
    )
    UNION ALL
    SELECT ${COLUMNS} FROM unposted`;

/** Does nothing where nobody waits. */
export function showUnposted(db: DatabaseSync): void {
  const heads = headsOf(db);
  if (heads.size === 0) return;
  db.exec(REPLACED);
  const insert = prepare(db, `INSERT INTO unposted (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`);
  const insertCycle = ({ account, endUser }: EndUserKey, cycle: Cycle) => {
    const { id, period, type, status, amount, remaining, start, end, validityDays } = cycle;
    const columns = [period, type, status, amount, remaining, start, end, validityDays] as const;
    insert.run(account, bytesOf(endUser), bytesOf(id), ...columns, null, null, null);
  };
  const journal = new JournalReader(db);
  for (const [slot, head] of heads.slots()) {
    const user = heads.users.user(slot);
    const redone = redoneOrNull(journal, user, head);
    if (redone === null || redone.current.latestPosting === redone.stored.latestPosting) continue;
    const { stored, current } = redone;
    current.cycles.forEach((cycle, place) => {
      if (cycle !== stored.cycles[place]) insertCycle(user, cycle);
    });
    const own = [new Uint8Array(), null, 'end-user', null, null, null, null, END_OF_TIME, null] as const;
    const { chain, postingCount, latestPosting } = current;
    insert.run(user.account, bytesOf(user.endUser), ...own, chain, postingCount, latestPosting);
  }
  db.exec(VIEW);
  // A view of the file speaks of the tables of the file.
  const differences = db.prepare("SELECT sql FROM sqlite_schema WHERE name = 'movement_differences'").get();
  db.exec(String(differences?.sql).replace('CREATE VIEW', 'CREATE TEMP VIEW'));
}

/** Null for an end user who is broken: as stored, the audit finds out. */
function redoneOrNull(journal: JournalReader, user: EndUserKey, head: number): Redone | null {
  try {
    return journal.redo(user, head, END_OF_TIME);
  } catch (error) {
    if (error instanceof AssertionError) return null;
    throw error;
  }
}

export function hideUnposted(db: DatabaseSync): void {
  db.exec(`
    DROP VIEW IF EXISTS temp.movement_differences;
    DROP VIEW IF EXISTS temp.holdings;
    DROP TABLE IF EXISTS temp.unposted`);
}
