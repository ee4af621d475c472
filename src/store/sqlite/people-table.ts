// The people of the console in a ledger file, read and written for a copy. What travels is what the file keeps.

import type { DatabaseSync } from 'node:sqlite';
import { PEOPLE_TABLE_NAMES, type PeopleRow, peopleColumns } from '../people-rows.ts';
import { beginToWrite } from './turn-to-write.ts';

export function peopleOf(db: DatabaseSync): PeopleRow[] {
  return PEOPLE_TABLE_NAMES.flatMap((table) => {
    const names = peopleColumns(table).map(([name]) => name);
    const rows = db.prepare(`SELECT ${names.join(', ')} FROM ${table} ORDER BY 1`).all();
    return rows.map((row) => ({ table, values: names.map((name) => row[name] as string | number | null) }));
  });
}

/** Instead of whoever is there. */
export function enterPeople(db: DatabaseSync, people: readonly PeopleRow[]): void {
  beginToWrite(db);
  for (const table of PEOPLE_TABLE_NAMES.toReversed()) db.exec(`DELETE FROM ${table}`);
  for (const { table, values } of people) {
    const names = peopleColumns(table).map(([name]) => name);
    const marks = names.map(() => '?').join(', ');
    db.prepare(`INSERT INTO ${table} (${names.join(', ')}) VALUES (${marks})`).run(...values);
  }
  db.exec('COMMIT');
}
