// Tests the output and the refusals of `scrip import`, and how the command resumes an interrupted import.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { effort } from '../effort.ts';
import { PostgresServer } from '../store/postgres/postgres-server.ts';
import { problemsOf, temporaryFile, temporaryFolder } from '../store/temporary-ledger.ts';
import { auditAt } from '../store/tools/copied-ledger.ts';
import {
  assertOneLine,
  COMMANDS_AT_ONCE,
  type Environment,
  ledgerAt,
  Running,
  type Server,
  scrip,
  serve,
} from './scrip-command.ts';
import { createKeyHere, serveHere } from './served-here.ts';

const options = { timeout: 240_000 };
const IMPORT = ['import', '--account', 'Lovelace Ltd'];
/** Enough rows to interrupt each import several times. */
const [ROWS, SERVED_ROWS, POSTGRES_ROWS] = effort([8_000, 3_000, 6_000], [40_000, 10_000, 10_000]);

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start({ fsync: 'off' });
});
after(() => server.remove());

const endUser = (index: number) => `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`;

function balances(count: number, name = 'balances.csv'): string {
  const path = join(temporaryFolder(), name);
  const rows = Array.from({ length: count }, (_, index) => `${endUser(index >> 1)},${index + 1},400`);
  writeFileSync(path, `end_user_id,amount,validity_days\n${rows.join('\n')}\n`);
  return path;
}

const allGranted = (rows: number) => `Import 1 complete: ${rows} of ${rows} rows imported into Lovelace Ltd.`;

async function balanceOf(url: string, secret: string, index: number): Promise<number> {
  const response = await fetch(`${url}/get-active-balance?end_user_id=${endUser(index)}`, {
    headers: { Authorization: `Bearer ${secret}` },
  });
  return ((await response.json()) as { active_balance: number }).active_balance;
}

describe('scrip import', { ...options, concurrency: COMMANDS_AT_ONCE }, () => {
  // This test comes first, so that the other tests run while its import waits for 10 seconds.
  test('if the server stops during an import, the import fails with a message, and a second run imports the remaining rows', async (t) => {
    const file = temporaryFile();
    const secret = await createKeyHere(ledgerAt(file));
    const served = await serveHere(t, ledgerAt(file));
    const path = balances(SERVED_ROWS);
    const importing = new Running([...IMPORT, path], ledgerAt(file));
    while ((await balanceOf(served.url, secret, 0)) === 0) await sleep(5);
    await served.stop();
    const stopped = await importing.ended;
    assert.deepEqual([stopped.code, stopped.stdout], [1, '']);
    const message = `The import stopped after [1-9]\\d* of ${SERVED_ROWS} rows \\(no server imported the next rows within 10 seconds\\); run the same command again to resume\\.`;
    assert.match(stopped.stderr, new RegExp(`\\n${message}\\n$`));
    const { code, stdout } = await scrip([...IMPORT, path], ledgerAt(file));
    assert.match(
      stdout,
      new RegExp(`^Resuming after [1-9]\\d* of ${SERVED_ROWS} rows\\.\\n${allGranted(SERVED_ROWS)}\\n$`),
    );
    assert.equal(code, 0);
    await assertImported(`file:${file}`, await serveHere(t, ledgerAt(file)), secret, SERVED_ROWS);
  });

  test('an import grants the credits of each row of a file once, and importing the same file again changes nothing', async (t) => {
    const file = temporaryFile();
    const secret = await createKeyHere(ledgerAt(file));
    const path = balances(20);
    const first = await scrip([...IMPORT, path], ledgerAt(file));
    assert.deepEqual([first.code, first.stdout], [0, 'Import 1 complete: 20 of 20 rows imported into Lovelace Ltd.\n']);
    assert.match(
      first.stderr,
      /^checking: 1 of 1 KiB, 100%\nimporting: 0 of 20 rows, 0%\nimporting: 20 of 20 rows, 100%\n$/,
    );
    const second = await scrip([...IMPORT, path], ledgerAt(file));
    assert.equal(second.code, 0);
    assert.match(second.stdout, /balances\.csv was already imported into Lovelace Ltd at \S+Z; nothing to do\.\n$/);
    const { url } = await serveHere(t, ledgerAt(file));
    assert.deepEqual([await balanceOf(url, secret, 0), await balanceOf(url, secret, 9)], [1 + 2, 19 + 20]);
  });

  test('if a row was not imported, importing the same file again fails again', async () => {
    const file = temporaryFile();
    await createKeyHere(ledgerAt(file));
    const path = join(temporaryFolder(), 'balances.csv');
    const row = `${endUser(1)},${Number.MAX_SAFE_INTEGER},31\n`;
    writeFileSync(path, `end_user_id,amount,validity_days\n${row}${row}`);
    for (const said of ['Import 1 complete: 1 of 2 rows imported', 'was already imported']) {
      const { code, stdout, stderr } = await scrip([...IMPORT, path], ledgerAt(file));
      assert.equal(code, 1);
      assert(stdout.includes(said), stdout);
      assert.match(stderr, /\n1 row not imported\./);
    }
  });

  test("a running server shows the credits that an import adds to the server's ledger file", async (t) => {
    const file = temporaryFile();
    const secret = await createKeyHere(ledgerAt(file));
    const { url } = await serveHere(t, ledgerAt(file));
    assert.equal(await balanceOf(url, secret, 0), 0);
    const path = balances(1_000);
    const { code, stdout } = await scrip([...IMPORT, path], ledgerAt(file));
    assert.deepEqual([code, stdout], [0, 'Import 1 complete: 1000 of 1000 rows imported into Lovelace Ltd.\n']);
    await assertImported(`file:${file}`, { url }, secret, 1_000);
  });

  for (const isServed of effort([true], [false, true]))
    test(`${isServed ? 'while a server is running' : 'without a server'}, scrip import prints the line and column of each error and imports nothing`, async (t) => {
      const file = temporaryFile();
      await createKeyHere(ledgerAt(file));
      if (isServed) await serveHere(t, ledgerAt(file));
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

  test('for a file with an expires_at column, scrip import prints that credits can stay valid for up to 24 hours after expires_at', async () => {
    const file = temporaryFile();
    await createKeyHere(ledgerAt(file));
    const path = join(temporaryFolder(), 'balances.csv');
    writeFileSync(path, `end_user_id,amount,expires_at\n${endUser(1)},5,2126-01-01T00:00:00Z\n`);
    const { stdout } = await scrip([...IMPORT, path], ledgerAt(file));
    assert.match(
      stdout,
      /\nCredits with an expires_at can stay valid for up to 24 hours after that instant, because .*\n$/,
    );
  });

  test('without --another, scrip import refuses a second file for the same account', async () => {
    const file = temporaryFile();
    await createKeyHere(ledgerAt(file));
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
    await createKeyHere(ledgerAt(file));
    await assertOneLine(
      ['import', '--account', 'acme', balances(2)],
      ledgerAt(file),
      /^Account acme does not exist\. Check the name, or create the account/,
    );
    await assertOneLine([...IMPORT, 'none.csv'], ledgerAt(file), /^File none\.csv does not exist\.$/);
  });
});

async function interruptedImport(path: string, environment: Environment, signals: readonly NodeJS.Signals[]) {
  const ended: string[] = [];
  for (const signal of signals) {
    const running = new Running([...IMPORT, path], environment);
    await running.saysOnStandardError(/^importing: /m);
    await sleep(10 + Math.random() * effort(50, 140));
    running.kill(signal);
    const { code, stderr } = await running.ended;
    ended.push(`${code} ${stderr.trimEnd().split('\n').at(-1)}`);
  }
  const { code, stdout } = await scrip([...IMPORT, path], environment);
  return { ended, code, stdout };
}

async function assertImported(database: string, served: Pick<Server, 'url'>, secret: string, count: number) {
  const audited = await auditAt(database);
  assert.deepEqual([problemsOf(audited), audited.postings], [[], count]);
  for (const index of [0, count / 4, count / 2 - 1])
    assert.equal(await balanceOf(served.url, secret, index), 4 * index + 3);
}

describe('interrupted imports', options, () => {
  test('an import into a ledger file grants the credits of each row once, even if it is killed or interrupted several times', async (t) => {
    const file = temporaryFile();
    const secret = await createKeyHere(ledgerAt(file));
    const signals = effort<NodeJS.Signals[]>(
      ['SIGKILL', 'SIGINT', 'SIGTERM'],
      ['SIGKILL', 'SIGINT', 'SIGTERM', 'SIGKILL'],
    );
    const { ended, code, stdout } = await interruptedImport(balances(ROWS), ledgerAt(file), signals);
    t.diagnostic(`${ended.join('; ')}; ${stdout}`);
    const [resumed, completed] = stdout.split('\n');
    assert.match(resumed as string, new RegExp(`^Resuming after \\d+ of ${ROWS} rows\\.$`));
    assert.equal(completed, allGranted(ROWS));
    assert.equal(code, 0);
    const interrupted = new RegExp(
      `^1 The import was interrupted after \\d+ of ${ROWS} rows; run the same command again to resume\\.$`,
    );
    for (const index of [1, 2]) assert.match(ended[index] as string, interrupted);
    await assertImported(`file:${file}`, await serveHere(t, ledgerAt(file)), secret, ROWS);
  });

  for (const [store, place, rows] of [
    ['a ledger file', async () => `file:${temporaryFile()}`, SERVED_ROWS],
    ['PostgreSQL', () => server.createDatabase(), POSTGRES_ROWS],
  ] as const)
    test(`while a server is running, an import into ${store} grants the credits of each row once, even if the import is killed several times`, async (t) => {
      const url = await place();
      const environment = { DATABASE_URL: url, DATABASE_ACCEPT_UNSAFE: 'yes' };
      const secret = await createKeyHere(environment);
      const served = await serveHere(t, environment);
      // After a SIGKILL, the server may still import the last batch of the killed run, so the next run may fail. The
      // run after the last signal must succeed, so the last signal is SIGINT.
      const signals = effort<NodeJS.Signals[]>(['SIGKILL', 'SIGINT'], ['SIGKILL', 'SIGKILL', 'SIGINT']);
      const { ended, code, stdout } = await interruptedImport(balances(rows), environment, signals);
      t.diagnostic(`${ended.join('; ')}; ${stdout}`);
      assert.match(stdout, new RegExp(`^${allGranted(rows)}$`, 'm'));
      assert.equal(code, 0);
      await assertImported(url, served, secret, rows);
    });

  test('two concurrent runs of the same import into the ledger file of a running server grant the credits of each row once', async (t) => {
    const file = temporaryFile();
    const secret = await createKeyHere(ledgerAt(file));
    const served = await serveHere(t, ledgerAt(file));
    const path = balances(SERVED_ROWS);
    const both = await Promise.all([1, 2].map(() => scrip([...IMPORT, path], ledgerAt(file))));
    // A run that stops removes its rows from the queue, even if the other run has queued the same rows in the meantime.
    // The other run then waits in vain for a server to import them, and stops too.
    const stopped =
      /\n(Another process has continued this import; wait until that process has ended, then run the same command again\.|The import stopped after \d+ of \d+ rows \(no server imported the next rows within 10 seconds\); run the same command again to resume\.)\n$/;
    for (const { code, stderr } of both.filter(({ code }) => code !== 0)) {
      assert.equal(code, 1);
      assert.match(stderr, stopped);
    }
    assert.equal((await scrip([...IMPORT, path], ledgerAt(file))).code, 0);
    await assertImported(`file:${file}`, served, secret, SERVED_ROWS);
  });

  test('if the server is killed and restarted during an import, the import continues and grants the credits of each row once', async (t) => {
    const file = temporaryFile();
    const secret = await createKeyHere(ledgerAt(file));
    const server = await serve(t, file);
    const importing = new Running([...IMPORT, balances(SERVED_ROWS)], ledgerAt(file));
    while ((await balanceOf(server.url, secret, 0)) === 0) await sleep(5);
    server.kill('SIGKILL');
    await server.ended;
    const restarted = await serveHere(t, ledgerAt(file));
    const { code, stdout, stderr } = await importing.ended;
    assert.deepEqual([code, stdout], [0, `${allGranted(SERVED_ROWS)}\n`], stderr);
    await assertImported(`file:${file}`, restarted, secret, SERVED_ROWS);
  });
});
