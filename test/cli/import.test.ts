// Tests the output and the refusals of `scrip import`, and how the command resumes an interrupted import.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { PostgresServer } from '../store/postgres/postgres-server.ts';
import { problemsOf, temporaryFile, temporaryFolder } from '../store/temporary-ledger.ts';
import { auditAt } from '../store/tools/copied-ledger.ts';
import {
  assertOneLine,
  COMMANDS_AT_ONCE,
  createKey,
  type Environment,
  ledgerAt,
  Running,
  scrip,
  serve,
} from './scrip-command.ts';

const options = { timeout: 240_000 };
const IMPORT = ['import', '--account', 'Lovelace Ltd'];

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start();
});
after(() => server.remove());

const endUser = (index: number) => `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`;

function balances(count: number, name = 'balances.csv'): string {
  const path = join(temporaryFolder(), name);
  const rows = Array.from({ length: count }, (_, index) => `${endUser(index >> 1)},${index + 1},400`);
  writeFileSync(path, `end_user_id,amount,validity_days\n${rows.join('\n')}\n`);
  return path;
}

async function balanceOf(url: string, secret: string, index: number): Promise<number> {
  const response = await fetch(`${url}/get-active-balance?end_user_id=${endUser(index)}`, {
    headers: { Authorization: `Bearer ${secret}` },
  });
  return ((await response.json()) as { active_balance: number }).active_balance;
}

describe('scrip import', { ...options, concurrency: COMMANDS_AT_ONCE }, () => {
  test('an import grants each row of a file once, and importing the same file again changes nothing', async (t) => {
    const file = temporaryFile();
    const secret = await createKey(file);
    const path = balances(20);
    const first = await scrip([...IMPORT, path], ledgerAt(file));
    assert.deepEqual(
      [first.code, first.stdout],
      [0, 'Import 1 complete: 20 of 20 rows granted to end users of Lovelace Ltd.\n'],
    );
    assert.match(
      first.stderr,
      /^checking: 1 of 1 KiB, 100%\nimporting: 0 of 20 rows, 0%\nimporting: 20 of 20 rows, 100%\n$/,
    );
    const second = await scrip([...IMPORT, path], ledgerAt(file));
    assert.equal(second.code, 0);
    assert.match(second.stdout, /balances\.csv was imported into Lovelace Ltd at \S+Z; nothing to do\.\n$/);
    const { url } = await serve(t, file);
    assert.deepEqual([await balanceOf(url, secret, 0), await balanceOf(url, secret, 9)], [1 + 2, 19 + 20]);
  });

  test('a running server shows the credits that an import adds to its ledger file', async (t) => {
    const file = temporaryFile();
    const secret = await createKey(file);
    const { url } = await serve(t, file);
    assert.equal(await balanceOf(url, secret, 0), 0);
    const path = balances(1_000);
    const { code, stdout } = await scrip([...IMPORT, path], ledgerAt(file));
    assert.deepEqual(
      [code, stdout],
      [0, 'Import 1 complete: 1000 of 1000 rows granted to end users of Lovelace Ltd.\n'],
    );
    for (const index of [0, 499]) assert.equal(await balanceOf(url, secret, index), 4 * index + 3);
    assert.match((await scrip([...IMPORT, path], ledgerAt(file))).stdout, /nothing to do\.\n$/);
    const verified = await scrip(['verify'], ledgerAt(file));
    assert.deepEqual(
      [verified.code, verified.stdout],
      [0, 'Verification passed. 500 end users and 1000 postings checked.\n'],
    );
  });

  for (const isServed of [false, true])
    test(`${isServed ? 'while a server is running' : 'without a server'}, scrip import prints the line and column of each error and imports nothing`, async (t) => {
      const file = temporaryFile();
      await createKey(file);
      if (isServed) await serve(t, file);
      const path = join(temporaryFolder(), 'balances.csv');
      const instant = (year: number) => `${year}-01-01T00:00:00Z`;
      writeFileSync(
        path,
        `end_user_id,amount,expires_at\n${endUser(1)},5,${instant(2126)}\nada,x,${instant(2126)}\n${endUser(2)},5,${instant(2020)}\n`,
      );
      const { code, stdout, stderr } = await scrip([...IMPORT, path], ledgerAt(file));
      assert.deepEqual([code, stdout], [1, '']);
      const lines = stderr.trimEnd().split('\n').slice(1);
      assert.deepEqual(lines, [
        'line 3, column end_user_id: "ada" is not a UUID',
        'line 3, column amount: "x" is not a whole number from 1 to 9007199254740991',
        'line 4, column expires_at: this instant has already passed',
        `${path} has 3 errors; nothing was imported.`,
      ]);
      assert.equal((await auditAt(`file:${file}`)).postings, 0);
    });

  test('with the column expires_at, scrip import prints that credits expire up to 24 hours later', async () => {
    const file = temporaryFile();
    await createKey(file);
    const path = join(temporaryFolder(), 'balances.csv');
    writeFileSync(path, `end_user_id,amount,expires_at\n${endUser(1)},5,2126-01-01T00:00:00Z\n`);
    const { stdout } = await scrip([...IMPORT, path], ledgerAt(file));
    assert.match(
      stdout,
      /\nCredits with an expires_at stay valid for up to 24 hours after that instant, because .*\n$/,
    );
  });

  test('without --another, scrip import refuses a second file for the same account', async () => {
    const file = temporaryFile();
    await createKey(file);
    await scrip([...IMPORT, balances(20)], ledgerAt(file));
    const other = balances(21, 'others.csv');
    const { code, stderr } = await scrip([...IMPORT, other], ledgerAt(file));
    assert.equal(code, 1);
    assert.match(
      stderr,
      /^Another file, balances\.csv, was imported into Lovelace Ltd at \S+\. Rows .* add --another\.$/m,
    );
    assert.equal((await auditAt(`file:${file}`)).postings, 20);
    const allowed = await scrip([...IMPORT, other, '--another'], ledgerAt(file));
    assert.match(allowed.stdout, /^Import 2 complete: 21 of 21 rows/);
    assert.equal((await auditAt(`file:${file}`)).postings, 41);
  });

  test('scrip import fails if the account, the ledger or the file does not exist', async () => {
    const file = temporaryFile();
    await assertOneLine([...IMPORT, balances(2)], ledgerAt(file), /^There is no ledger at/);
    await createKey(file);
    await assertOneLine(
      ['import', '--account', 'acme', balances(2)],
      ledgerAt(file),
      /^There is no account named acme; create it/,
    );
    await assertOneLine([...IMPORT, 'none.csv'], ledgerAt(file), /^File none\.csv does not exist\.$/);
  });
});

async function interruptedImport(path: string, environment: Environment, signals: readonly NodeJS.Signals[]) {
  const ended: string[] = [];
  for (const signal of signals) {
    const running = new Running([...IMPORT, path], environment);
    await running.saysOnStandardError(/^importing: /m);
    await sleep(30 + Math.random() * 120);
    running.kill(signal);
    const { code, stderr } = await running.ended;
    ended.push(`${code} ${stderr.trimEnd().split('\n').at(-1)}`);
  }
  const { code, stdout } = await scrip([...IMPORT, path], environment);
  return { ended, code, stdout };
}

async function assertImported(url: string, secret: string, file: string, count: number): Promise<void> {
  const audited = await auditAt(`file:${file}`);
  assert.deepEqual([problemsOf(audited), audited.postings], [[], count]);
  for (const index of [0, 777, count / 2 - 1]) assert.equal(await balanceOf(url, secret, index), 4 * index + 3);
}

describe('interrupted imports', options, () => {
  const count = 40_000;

  test('an import into a ledger file grants each row once, even if it is killed or interrupted several times', async (t) => {
    const file = temporaryFile();
    const secret = await createKey(file);
    const path = balances(count);
    const { ended, code, stdout } = await interruptedImport(path, ledgerAt(file), [
      'SIGKILL',
      'SIGINT',
      'SIGKILL',
      'SIGTERM',
    ]);
    t.diagnostic(`${ended.join('; ')}; ${stdout}`);
    assert.match(stdout, /^Resuming after \d+ of 40000 rows\.\nImport 1 complete: 40000 of 40000 rows granted/);
    assert.equal(code, 0);
    for (const index of [1, 3])
      assert.match(
        ended[index] as string,
        /^1 The import was interrupted after \d+ of 40000 rows; run the same command again to continue\.$/,
      );
    await assertImported((await serve(t, file)).url, secret, file, count);
  });

  test('an import into the ledger file of a running server grants each row once, even if the import is killed several times', async (t) => {
    const file = temporaryFile();
    const secret = await createKey(file);
    const { url } = await serve(t, file);
    const { ended, code, stdout } = await interruptedImport(balances(count / 4), ledgerAt(file), [
      'SIGKILL',
      'SIGINT',
      'SIGKILL',
    ]);
    t.diagnostic(`${ended.join('; ')}; ${stdout}`);
    assert.match(stdout, /Import 1 complete: 10000 of 10000 rows granted/);
    assert.equal(code, 0);
    await assertImported(url, secret, file, count / 4);
  });

  test('two concurrent runs of the same import into the ledger file of a running server grant each row once', async (t) => {
    const file = temporaryFile();
    const secret = await createKey(file);
    const { url } = await serve(t, file);
    const path = balances(count / 4);
    const both = await Promise.all([1, 2].map(() => scrip([...IMPORT, path], ledgerAt(file))));
    for (const { code, stderr } of both.filter(({ code }) => code !== 0)) {
      assert.equal(code, 1);
      assert.match(
        stderr,
        /\nAnother process has continued this import; wait until that process has ended, then run the same command again\.\n$/,
      );
    }
    assert.equal((await scrip([...IMPORT, path], ledgerAt(file))).code, 0);
    await assertImported(url, secret, file, count / 4);
  });

  test('if the server is killed and restarted during an import, the import continues and grants each row once', async (t) => {
    const { file, secret, server, importing } = await startedImport(t);
    server.kill('SIGKILL');
    await server.ended;
    const { url } = await serve(t, file);
    const { code, stdout, stderr } = await importing.ended;
    assert.deepEqual(
      [code, stdout],
      [0, 'Import 1 complete: 40000 of 40000 rows granted to end users of Lovelace Ltd.\n'],
      stderr,
    );
    await assertImported(url, secret, file, count);
  });

  test('if the server stops during an import, the import fails with a message, and a second run grants the remaining rows', async (t) => {
    const { file, secret, server, path, importing } = await startedImport(t);
    server.kill('SIGTERM');
    await server.ended;
    const stopped = await importing.ended;
    assert.deepEqual([stopped.code, stopped.stdout], [1, '']);
    assert.match(
      stopped.stderr,
      /\nThe import stopped after [1-9]\d* of 40000 rows \(no server has granted the next rows within 10 seconds\); run the same command again to continue\.\n$/,
    );
    const { code, stdout } = await scrip([...IMPORT, path], ledgerAt(file));
    assert.match(stdout, /^Resuming after [1-9]\d* of 40000 rows\.\nImport 1 complete: 40000 of 40000 rows granted/);
    assert.equal(code, 0);
    await assertImported((await serve(t, file)).url, secret, file, count);
  });

  async function startedImport(t: TestContext) {
    const file = temporaryFile();
    const secret = await createKey(file);
    const server = await serve(t, file);
    const path = balances(count);
    const importing = new Running([...IMPORT, path], ledgerAt(file));
    while ((await balanceOf(server.url, secret, 0)) === 0) await sleep(5);
    return { file, secret, server, path, importing };
  }

  test('an import into PostgreSQL grants each row once, even if it is killed several times while a server is running', async (t) => {
    const url = await server.createDatabase();
    const environment = { DATABASE_URL: url };
    const { stdout: printed } = await scrip(['key', 'create', '--account', 'Lovelace Ltd'], environment);
    const secret = printed.trimEnd().split('\n').at(-1) as string;
    const running = await serve(t, '', [], environment);
    const { ended, code, stdout } = await interruptedImport(balances(count / 4), environment, [
      'SIGKILL',
      'SIGKILL',
      'SIGINT',
    ]);
    t.diagnostic(`${ended.join('; ')}; ${stdout}`);
    assert.match(stdout, /Import 1 complete: 10000 of 10000 rows granted/);
    assert.equal(code, 0);
    const audited = await auditAt(url);
    assert.deepEqual([problemsOf(audited), audited.postings], [[], count / 4]);
    for (const index of [0, 777, count / 8 - 1])
      assert.equal(await balanceOf(running.url, secret, index), 4 * index + 3);
  });
});
