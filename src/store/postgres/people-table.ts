// The people of the console in a database, read and written for a copy: flags and times become what travels, and back.

import type { PoolClient } from 'pg';
import { type ColumnKind, PEOPLE_TABLE_NAMES, type PeopleRow, peopleColumns } from '../people-rows.ts';

export async function peopleOf(client: PoolClient): Promise<PeopleRow[]> {
  const people: PeopleRow[] = [];
  for (const table of PEOPLE_TABLE_NAMES) {
    const columns = peopleColumns(table);
    const read = columns.map(([name, kind]) => `${readAs(name, kind)} AS ${name}`).join(', ');
    // By the bytes of the key, as a ledger file sorts.
    const { rows } = await client.query(
      `SELECT ${read} FROM scrip.${table} ORDER BY ${table}.${columns[0]?.[0]} COLLATE "C"`,
    );
    for (const row of rows) people.push({ table, values: columns.map(([name]) => row[name]) });
  }
  return people;
}

/** Instead of whoever is there; within a transaction of the caller. */
export async function enterPeople(client: PoolClient, people: readonly PeopleRow[]): Promise<void> {
  for (const table of PEOPLE_TABLE_NAMES.toReversed()) await client.query(`DELETE FROM scrip.${table}`);
  for (const { table, values } of people) {
    const columns = peopleColumns(table);
    const names = columns.map(([name]) => name).join(', ');
    const written = columns.map(([, kind], index) => writtenAs(`$${index + 1}`, kind)).join(', ');
    await client.query(`INSERT INTO scrip.${table} (${names}) VALUES (${written})`, [...values]);
  }
}

function readAs(name: string, kind: ColumnKind): string {
  if (kind === 'flag') return `${name}::integer`;
  return kind === 'time' ? `to_char(${name} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')` : name;
}

function writtenAs(parameter: string, kind: ColumnKind): string {
  if (kind === 'flag') return `${parameter}::integer::boolean`;
  return kind === 'time' ? `${parameter}::timestamptz` : parameter;
}
