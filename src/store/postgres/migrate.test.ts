// What the migrations may not say, since some version of Citus refuses it.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const MIGRATIONS = join(import.meta.dirname, 'migrations');

test('no column is added together with a rule or a key, which Citus before 12.1 refuses', () => {
  const added = readdirSync(MIGRATIONS)
    .map((name) => readFileSync(join(MIGRATIONS, name), 'utf8'))
    .flatMap((sql) => sql.match(/ADD COLUMN[^;]*/g) ?? []);
  assert(added.length > 0, 'columns are added by ADD COLUMN');
  assert.deepEqual(
    added.filter((column) => /CHECK|UNIQUE|PRIMARY KEY|REFERENCES/.test(column)),
    [],
  );
});
