// Movements in a ledger file: written with each batch, added up now and then, and compared with the postings.
//
//   batch ──▶ a row of recent_movements ──a few thousand entries later──▶ added up in movements, the rows are gone

import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { creditsOf, type Movement, MovementSums, type Series } from '../../ledger/movement.ts';
import { prepare, type Row, rowsOf } from './rows.ts';

/** Entries that wait at most, but for one batch: so many are read in 5 ms, and added up in as much when no two are alike. */
const RECENT_ENTRIES_MAX = 4_096;

/** Credits are kept as `high` × 2^31 + `low`, since those of many end users may pass 64 bits. */
const LOW_BITS = 31n;
const LOW_COUNT = 2 ** 31;
const LOW_MASK = 0x7fff_ffffn;

/** So many postings, one behind the other, that are looked through for those of one account. */
const STRETCH_BITS = 6;

export function creditsOfParts(high: number | bigint, low: number | bigint): bigint {
  return (BigInt(high) << LOW_BITS) + BigInt(low);
}

/** The first and the last posting of a stretch. */
export function rangeOf(stretch: number): readonly [first: number, last: number] {
  const first = stretch * 2 ** STRETCH_BITS;
  return [first, first + 2 ** STRETCH_BITS - 1];
}

const ADD_UP = `
  INSERT INTO movements (account, series, slot, high, low, count) VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT DO UPDATE SET high = high + excluded.high + ((low + excluded.low) >> 31),
    low = (low + excluded.low) & 2147483647, count = count + excluded.count`;

/** Writes within the transactions of the writer. One whose transaction fails is not used again. */
export class MovementWriter {
  readonly #insertRecent: StatementSync;
  readonly #deleteRecent: StatementSync;
  readonly #addUp: StatementSync;
  readonly #insertActivity: StatementSync;
  /** What the rows of `recent_movements` add up to. */
  readonly #recent = new MovementSums();
  #recentEntries = 0;
  /** By account, the latest stretch that is stored. */
  readonly #stretches = new Map<number, number>();

  constructor(db: DatabaseSync) {
    this.#insertRecent = prepare(db, 'INSERT INTO recent_movements (entries) VALUES (?)');
    this.#deleteRecent = prepare(db, 'DELETE FROM recent_movements');
    this.#addUp = prepare(db, ADD_UP);
    this.#insertActivity = prepare(db, 'INSERT OR IGNORE INTO account_activity (account, stretch) VALUES (?, ?)');
    const stored = prepare(db, 'SELECT entries FROM recent_movements');
    for (const [entries] of rowsOf(stored)) {
      for (const [account, series, slot, high, low, count] of JSON.parse(String(entries)) as number[][])
        this.#remember({
          account: account as number,
          series: series as Series,
          slot: slot as number,
          credits: 0,
          moreCredits: creditsOfParts(high as number, low as number),
          count: count as number,
        });
    }
  }

  write(movements: readonly Movement[]): void {
    if (movements.length === 0) return;
    let entries = '';
    for (const movement of movements) {
      const { account, series, slot, count } = movement;
      const [high, low] = partsOf(movement);
      entries += `${entries === '' ? '[' : ','}[${account},${series},${slot},${high},${low},${count}]`;
      this.#remember(movement);
    }
    this.#insertRecent.run(`${entries}]`);
    if (this.#recentEntries >= RECENT_ENTRIES_MAX) this.#addUpRecent();
  }

  /** Notes that this posting is of this account. */
  noteActivity(account: number, posting: number): void {
    const stretch = Math.floor(posting / 2 ** STRETCH_BITS);
    if (this.#stretches.get(account) === stretch) return;
    this.#insertActivity.run(account, stretch);
    this.#stretches.set(account, stretch);
  }

  #remember(movement: Movement): void {
    this.#recent.add(movement);
    this.#recentEntries += 1;
  }

  #addUpRecent(): void {
    for (const movement of this.#recent.movements()) {
      const { account, series, slot, count } = movement;
      this.#addUp.run(account, series, slot, ...partsOf(movement), count);
    }
    this.#deleteRecent.run();
    this.#recent.clear();
    this.#recentEntries = 0;
  }
}

function partsOf(movement: Movement): readonly [high: number, low: number] {
  const { credits, moreCredits } = movement;
  if (moreCredits === 0n) {
    const high = Math.floor(credits / LOW_COUNT);
    return [high, credits - high * LOW_COUNT];
  }
  const sum = creditsOf(movement);
  return [Number(sum >> LOW_BITS), Number(sum & LOW_MASK)];
}

/** Findings of one kind that are told; a table that is gone would give one for each of its rows. */
const FAULTS_MAX = 20;

const MISSING_ACTIVITY = `SELECT account, posting >> ${STRETCH_BITS} FROM postings EXCEPT SELECT account, stretch FROM account_activity`;

/** Where what is derived from the postings is not what they say. */
export function movementFaults(db: DatabaseSync): string[] {
  const differences = prepare(db, `SELECT * FROM movement_differences LIMIT ${FAULTS_MAX}`);
  const missing = prepare(db, `${MISSING_ACTIVITY} LIMIT ${FAULTS_MAX}`);
  return [
    ...rowsOf(differences).map(differenceFault),
    ...rowsOf(missing).map(
      ([account, stretch]) => `the recent activity of account ${account} leaves out the stretch ${stretch} of postings`,
    ),
  ];
}

function differenceFault([account, series, slot, high, low, count]: Row): string {
  const credits = creditsOfParts(high as number, low as number);
  return `the totals of account ${account} (series ${series}, slot ${slot}) lack ${credits} credits and a count of ${count}; \`scrip migrate --totals\` adds them up again`;
}

/** Puts right what `movementFaults` finds, within a transaction of the caller. */
export function addUpAgain(db: DatabaseSync): void {
  const addUp = prepare(db, ADD_UP);
  const differences = prepare(db, 'SELECT * FROM movement_differences');
  for (const row of rowsOf(differences)) addUp.run(...(row as number[]));
  db.exec('DELETE FROM movements WHERE high = 0 AND low = 0 AND count = 0');
  db.exec(`INSERT INTO account_activity ${MISSING_ACTIVITY}`);
}
