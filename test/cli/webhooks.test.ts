// Tests `scrip webhook`, `scrip threshold` and `scrip expiring-notice`, and the first commands in docs/events.md. In
// `npm test`, the tests that loop over STORES use only PostgreSQL, because test/webhooks/endpoints.test.ts tests the
// same operations on SQLite.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { after, describe, type TestContext, test } from 'node:test';
import { databaseOf } from '../../src/config.ts';
import { Thresholds } from '../../src/events/thresholds.ts';
import { openAccountDatabase } from '../../src/open-store.ts';
import { EVENT_TYPES, THRESHOLDS_MAX } from '../../src/store/event-log.ts';
import { examplesIn, REPOSITORY } from '../docs/documents.ts';
import { effort } from '../effort.ts';
import { eventually } from '../http/running-service.ts';
import { startingEnvironment } from '../run-folder.ts';
import { freePort, PostgresServer } from '../store/postgres/postgres-server.ts';
import { temporaryFile } from '../store/temporary-ledger.ts';
import { assertOneLine, COMMANDS_AT_ONCE, type Environment, ledgerAt, MAIN, scrip } from './scrip-command.ts';
import { createKeyHere, serveHere } from './served-here.ts';

const SECRET = /^whsec_[A-Za-z0-9+/]{32}$/;
const URL = 'https://receiver.example/hooks';
const KEY = 'a'.repeat(64);

let server: Promise<PostgresServer> | null = null;
after(async () => {
  await (await server)?.remove();
});

async function postgresLedger(): Promise<Environment> {
  server ??= PostgresServer.start({ fsync: 'off' });
  return { DATABASE_URL: await (await server).createDatabase(), DATABASE_ACCEPT_UNSAFE: 'yes', WEBHOOK_KEY: KEY };
}

async function run(environment: Environment, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await scrip(args, environment);
  assert.deepEqual([code, stderr], [0, ''], args.join(' '));
  return stdout.trimEnd();
}

async function withAccount(environment: Environment): Promise<Environment> {
  await createKeyHere(environment, 'acme');
  return environment;
}

const ADD = ['webhook', 'add', '--account', 'acme', '--url', URL];

const STORES: readonly (readonly [name: string, ledger: () => Promise<Environment>])[] = [
  ['PostgreSQL', postgresLedger],
  ['SQLite', async () => ledgerAt(temporaryFile())],
];

for (const [name, ledger] of STORES.slice(0, effort(1, 2))) {
  describe(`webhooks on the command line (${name})`, { concurrency: COMMANDS_AT_ONCE }, () => {
    test('scrip webhook add, list, rotate, pause, resume, test and remove manage an endpoint', async () => {
      const environment = await withAccount(await ledger());
      const [first, secret, ...more] = (await run(environment, ...ADD, '--types', 'balance.low, hold.lapsed')).split(
        '\n',
      );
      assert.equal(first, 'Webhook endpoint 1 added to acme. Secret (shown only once):');
      assert.match(secret ?? '', SECRET);
      assert.deepEqual(more, []);
      const day = String.raw`\d{4}-\d\d-\d\d \d\d:\d\d`;
      const list = async () => (await run(environment, 'webhook', 'list', '--account', 'acme')).split('\n')[1] ?? '';
      const listed = `^1 +acme +https://receiver\\.example/hooks +hold\\.lapsed,balance\\.low +${day}`;
      assert.match(await list(), new RegExp(`${listed} +0$`));
      const rotated = (await run(environment, 'webhook', 'rotate', '1')).split('\n').at(-1) ?? '';
      assert.match(rotated, SECRET);
      assert.notEqual(rotated, secret);
      assert.equal(
        await run(environment, 'webhook', 'pause', '1'),
        'Webhook endpoint 1 paused; its events wait until you resume the endpoint.',
      );
      assert.equal(await run(environment, 'webhook', 'test', '1'), 'Test event queued; the server will send it.');
      assert.match(await list(), new RegExp(`${listed} +1 +${day} The endpoint was paused`));
      assert.equal(await run(environment, 'webhook', 'resume', '1'), 'Webhook endpoint 1 resumed.');
      const all = await run(environment, 'webhook', 'list');
      assert.match(all.split('\n')[1] ?? '', new RegExp(`${listed} +1$`));
      for (const one of [secret ?? '', rotated]) assert(!all.includes(one));
      assert.equal(await run(environment, 'webhook', 'remove', '1'), 'Webhook endpoint 1 removed.');
      const unknown = /^Webhook endpoint 1 does not exist; see `scrip webhook list`\.$/;
      for (const command of effort(['rotate', 'remove'], ['rotate', 'pause', 'resume', 'test', 'remove']))
        await assertOneLine(['webhook', command, '1'], environment, unknown);
      await assertOneLine(['webhook', 'resend', '1', '--event', 'evt_1'], environment, unknown);
    });

    test('scrip threshold adds, lists and removes thresholds, and scrip expiring-notice sets the number of days between the credits.expiring event and the expiry of the credits', async () => {
      const environment = await withAccount(await ledger());
      const below = (name: string, value: string) => ['threshold', name, '--account', 'acme', '--below', value];
      assert.equal(await run(environment, ...below('add', '20%')), 'Threshold 20% of acme added.');
      assert.equal(await run(environment, ...below('add', '500')), 'Threshold 500 of acme added.');
      assert.equal(await run(environment, ...below('add', '20%')), 'Threshold 20% of acme already exists.');
      const list = async () =>
        (await run(environment, 'threshold', 'list')).split('\n').map((line) => line.split(/ +/).slice(0, 2));
      assert.deepEqual(await list(), [
        ['ACCOUNT', 'BELOW'],
        ['acme', '20%'],
        ['acme', '500'],
      ]);
      assert.equal(await run(environment, ...below('remove', '20%')), 'Threshold 20% of acme removed.');
      await assertOneLine(
        below('remove', '20%'),
        environment,
        /^Account acme has no threshold 20%; see `scrip threshold list`\.$/,
      );
      const notice = ['expiring-notice', '--account', 'acme'];
      const happens = (days: string) =>
        `For end users of acme, the credits.expiring event happens ${days} before credits expire.`;
      assert.equal(await run(environment, ...notice), happens('7 days'));
      assert.equal(await run(environment, ...notice, '--days', '1'), happens('1 day'));
      assert.equal(await run(environment, ...notice), happens('1 day'));
    });
  });
}

describe('webhooks on the command line', { concurrency: COMMANDS_AT_ONCE }, () => {
  test('while a server is running, scrip webhook resend queues the events of a time span', async (t) => {
    const environment = ledgerAt(temporaryFile());
    const key = await createKeyHere(environment, 'acme');
    await run(environment, ...ADD);
    await run(environment, 'webhook', 'pause', '1');
    const { url } = await serveHere(t, environment);
    const reply = await fetch(`${url}/add`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ end_user_id: '5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23', amount: 100 }),
    });
    assert.equal(reply.status, 200);
    const from = new Date(Date.now() - 600_000).toISOString();
    const to = new Date(Date.now() + 600_000).toISOString();
    const resend = ['webhook', 'resend', '1', '--from', from];
    const happened = async () => {
      const response = await fetch(`${url}/get-events`, { headers: { Authorization: `Bearer ${key}` } });
      return ((await response.json()) as { events: unknown[] }).events.length === 1;
    };
    await eventually(happened, 'the event happened');
    assert.equal(await run(environment, ...resend, '--to', to), '1 event queued for the server to resend.');
    assert.match(
      (await run(environment, 'webhook', 'list')).split('\n')[1] ?? '',
      / 1 +\S+ \S+ The endpoint was paused/,
    );
    await assertOneLine([...resend, '--to', from], environment, /^--to must be after --from\.$/);
    const either = /^Pass either --event, or both --from and --to\.$/;
    for (const args of [resend, [...resend, '--to', to, '--event', 'evt_1']])
      await assertOneLine(args, environment, either);
    await assertOneLine(
      ['webhook', 'resend', '1', '--event', 'evt_1'],
      environment,
      /^Event evt_1 is neither pending nor among the latest deliveries of webhook endpoint 1\. To resend it by time, use --from and --to\.$/,
    );
  });

  test('without WEBHOOK_KEY, the key that encrypts webhook secrets is in a file beside the ledger, and only the owner of the file can read the key', async () => {
    const file = temporaryFile();
    const environment = await withAccount(ledgerAt(file));
    await run(environment, ...ADD);
    assert.equal(statSync(`${file}.key`).mode & 0o777, 0o600);
    const other = await withAccount({ ...ledgerAt(temporaryFile()), WEBHOOK_KEY: KEY });
    await run(other, ...ADD);
    assert(!existsSync(`${other.DATABASE_URL?.slice('file:'.length)}.key`), 'WEBHOOK_KEY replaces the file');
  });

  test('if the key file cannot be read, scrip webhook add prints one line that names the file and WEBHOOK_KEY', async () => {
    const file = temporaryFile();
    const environment = await withAccount(ledgerAt(file));
    mkdirSync(`${file}.key`);
    await assertOneLine(
      ADD,
      environment,
      /^Scrip cannot create or read .*\.key \(EISDIR.*\)\. This file contains the key that encrypts .*, or set WEBHOOK_KEY\.$/,
    );
    await run({ ...environment, WEBHOOK_KEY: KEY }, ...ADD);
  });

  test('if an argument of scrip webhook, scrip threshold or scrip expiring-notice is invalid, the command prints one line that says what to correct', async () => {
    const environment = await withAccount(ledgerAt(temporaryFile()));
    const add = (...args: string[]) => ['webhook', 'add', '--account', 'acme', ...args];
    const threshold = (...args: string[]) => ['threshold', 'add', ...args];
    const cases: readonly (readonly [args: readonly string[], message: RegExp])[] = [
      [
        add('--url', 'receiver.example'),
        /^--url: The URL must begin with https:\/\/ \(or http:\/\/ for a loopback address\)\.$/,
      ],
      [add('--url', URL, '--types', 'balance.high'), new RegExp(`'--types <types>'.*${EVENT_TYPES.join(', ')}\\.$`)],
      [['webhook', 'add', '--account', 'Unknown', '--url', URL], /^Account Unknown does not exist\. Check the name/],
      [['webhook', 'rotate', '0'], /Must be an ID from `scrip webhook list`\.$/],
      [
        ['webhook', 'resend', '1', '--from', 'yesterday'],
        /'--from <instant>'.*Must be a date and time with a time zone, such as/,
      ],
      [
        threshold('--account', 'acme', '--below', '0'),
        /'--below <threshold>'.*Must be an amount of credits, such as 20/,
      ],
      [threshold('--account', 'Unknown', '--below', '20'), /^Account Unknown does not exist\. Check the name/],
      [['expiring-notice', '--account', 'acme', '--days', '366'], /Must be a whole number from 1 to 365\.$/],
    ];
    for (const [args, message] of cases) await assertOneLine(args, environment, message);
    const local = add('--url', 'http://127.0.0.1:4000/');
    assert.match(await run(environment, ...local), /whsec_/, 'loopback addresses are for development');
    const inProduction = { ...environment, PUBLIC_URL: 'https://scrip.example' };
    await assertOneLine(local, inProduction, /^--url: The URL must begin with https:\/\/\.$/);
    await using database = await openAccountDatabase(databaseOf(environment));
    const thresholds = new Thresholds(database, Date.now);
    for (let credits = 1; credits <= THRESHOLDS_MAX; credits++) await thresholds.add(1, { credits });
    await assertOneLine(
      threshold('--account', 'acme', '--below', '11'),
      environment,
      /^Account acme already has 10 thresholds; remove one with `scrip threshold remove`\.$/,
    );
  });
});

interface Script {
  printed(): string;
  hasEnded(): boolean;
}

/** After the test, also kills the background jobs of the script, which are in the same process group. */
function startScript(t: TestContext, script: string, environment: Environment): Script {
  const shell = spawn('bash', ['-euo', 'pipefail', '-c', script], {
    cwd: REPOSITORY,
    env: { ...startingEnvironment(), ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let printed = '';
  for (const stream of [shell.stdout, shell.stderr])
    stream.setEncoding('utf8').on('data', (text) => {
      printed += text;
    });
  // The pipes stay open until the last background job has ended.
  let isClosed = false;
  const closed = once(shell, 'close').then(() => {
    isClosed = true;
  });
  t.after(async () => {
    if (!isClosed) process.kill(-(shell.pid as number), 'SIGKILL');
    await closed;
  });
  return { printed: () => printed, hasEnded: () => shell.exitCode !== null };
}

test('after the commands under "Try it" in docs/events.md, the receiver prints balance.low', async (t) => {
  const file = temporaryFile();
  const environment = { ...ledgerAt(file), WEBHOOK_KEY: KEY };
  await createKeyHere(environment, 'default');
  const { url } = await serveHere(t, environment);
  const commands = examplesIn('docs/events.md')[0]?.command ?? '';
  assert.match(commands, /^npm run -s scrip -- threshold add /);
  const script = commands
    .replaceAll(/\b4000\b/g, String(await freePort()))
    .replaceAll(/http:\/\/127\.0\.0\.1:8080\b/g, url)
    .replaceAll('npm run -s scrip --', `${process.execPath} ${MAIN}`);
  const running = startScript(t, `${script}wait\n`, { ...environment, WEBHOOKS: `${file}.webhooks` });
  const isLow = () => /^balance\.low$/m.test(running.printed());
  await eventually(() => isLow() || running.hasEnded(), 'the receiver prints balance.low');
  assert(isLow(), running.printed());
});
