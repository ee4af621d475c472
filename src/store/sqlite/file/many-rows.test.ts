// Tests that statements for many rows write each row once and in order, and fail if a row is missing.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { ManyRows } from './many-rows.ts';
import { bytesOf } from './uuid.ts';

function uuid(number: number): string {
  return `00000000-0000-4000-8000-${number.toString(16).padStart(12, '0')}`;
}

function table() {
  const db = new DatabaseSync(':memory:');
  db.exec('CREATE TABLE things (place INTEGER PRIMARY KEY, id BLOB, name TEXT) STRICT');
  const insert = new ManyRows(db, 2, (rows) => `INSERT INTO things (id, name) VALUES ${rows}`);
  const all = () => db.prepare('SELECT id, name FROM things ORDER BY place').all();
  return { db, insert, all };
}

test('a bulk insert of any number of rows writes each row once, in order and with its own UUID', () => {
  const { db, insert, all } = table();
  for (let count = 0; count <= 50; count++) {
    db.exec('DELETE FROM things');
    const wanted = Array.from({ length: count }, (_, number) => ({ id: bytesOf(uuid(number)), name: `${number}` }));
    for (let number = 0; number < count; number++) insert.add(insert.uuid(uuid(number)), `${number}`);
    insert.flush();
    assert.deepEqual(
      all().map(({ id, name }) => ({ id, name })),
      wanted,
    );
    insert.flush();
    assert.equal(all().length, count, 'a second flush inserts nothing');
  }
});

test('a bulk update fails if one of its rows does not exist', () => {
  const { db, insert } = table();
  for (let number = 1; number <= 20; number++) insert.add(insert.uuid(uuid(number)), 'before');
  insert.flush();
  const change = new ManyRows(db, 1, (rows) => `UPDATE things SET name = 'after' WHERE place IN (VALUES ${rows})`);
  for (let place = 1; place <= 20; place++) change.add(place);
  change.flush();
  assert.equal(db.prepare("SELECT count(*) AS count FROM things WHERE name = 'after'").get()?.count, 20);
  for (const place of [1, 2, 3, 21]) change.add(place);
  assert.throws(() => change.flush(), /each row is written/);
});

test('a bulk insert refuses a row with too few values', () => {
  assert.throws(() => table().insert.add('one value'), /a value for each column/);
});
