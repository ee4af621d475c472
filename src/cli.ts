// The command line. Errors are one line on standard error; standard output holds what was asked for, and nothing else.

import { Command, InvalidArgumentError, Option } from 'commander';
import { SCOPES, type Scope } from './accounts/api-key.ts';
import { ACCOUNT_NAME_MAX, ROLES, type Role } from './accounts/membership.ts';
import {
  copyDatabase,
  createApiKey,
  inviteTo,
  openBeside,
  originAt,
  resetPassword,
  startService,
  VERSION,
} from './app.ts';
import { type Config, databaseAt, databaseOf, InvalidSetting, readConfig } from './config.ts';
import { isOneOfMany, leave, reportUp, startProcesses } from './processes.ts';
import { counted, ProgressLine } from './progress-line.ts';
import { addProofCommands } from './proof-commands.ts';
import { addSafekeepingCommands } from './safekeeping-commands.ts';
import { CopyStopped } from './store/copy.ts';
import { CannotOpen, KEY_NAME_LENGTH_MAX, type ListedKey, type Store, StoreFault } from './store/store.ts';

/** To which the first key belongs. */
const FIRST_ACCOUNT = 'default';
const FIRST_KEY = 'First key';

const program = new Command('scrip')
  .description('A credit ledger that runs beside your backend.')
  .showSuggestionAfterError(false)
  .version(VERSION)
  .addHelpText(
    'after',
    `
Settings come from the environment:
  PORT               8080
  HOST               127.0.0.1
  DATABASE_URL       file:data/scrip.db
  LOG_LEVEL          info   (fatal, error, warn, info, debug, trace, silent)
  REQUEST_LOG        no     (yes: a line in the log for each request)
  METRICS_PORT              (a port of its own for /metrics)
  IDEMPOTENCY_HOURS  24     (how long the answers to idempotency keys are kept)
  RATE_LIMIT                (requests a second of each API key, with RATE_LIMIT_BURST)
  PUBLIC_URL                (the address at which people reach the console, https://…)
  SIGN_UP            open   (open, first, closed)
  LEDGER_CHAIN       no     (yes: the head of each end user's chain is stored)
  SMTP_URL                  (smtp://… or smtps://…, with MAIL_FROM: mail from the console)

With DATABASE_URL=postgres://…, also DATABASE_LANES, DATABASE_PREPARED, DATABASE_CITUS
and DATABASE_ACCEPT_UNSAFE. README.md says more of each, and docs/operating/monitoring.md
of the variables of OpenTelemetry.

All commands but serve, copy and restore also work beside a running server.`,
  );

program
  .command('serve')
  .description('run the service until SIGTERM or SIGINT')
  .option('--first-key', 'on a ledger without any API key, make one and print it')
  .option('--processes <count>', 'how many processes serve on the one port; needs PostgreSQL', processCount, 1)
  .action(serve);

const key = program.command('key').description('make, list and revoke API keys');
key
  .command('create')
  .description('make an API key and print it; it cannot be shown again')
  .requiredOption('--account <name>', 'the account that owns it; made when there is none of that name', accountName)
  .addOption(new Option('--scope <scope>', 'what it may do; write also reads').choices(SCOPES).default('write'))
  .option('--name <name>', 'what you call it, to tell it from others', keyName, '')
  .action(createKey);
key.command('list').description('list all API keys, without their secrets').action(listKeys);
key
  .command('revoke')
  .description('revoke an API key; it stops working within a second')
  .argument('<id>', 'the id, from key list', keyId)
  .action(revokeKey);

program
  .command('invite')
  .description('print a link by which one person joins an account in the console; it works once, for 7 days')
  .requiredOption('--account <name>', 'the account', accountName)
  .addOption(new Option('--role <role>', 'an owner also says who belongs to it').choices(ROLES).default('owner'))
  .action(invite);

program
  .command('password')
  .description('help somebody who forgot the password of the console')
  .command('reset')
  .description('set a new random password, print it, and end all sessions of its user')
  .requiredOption('--email <address>', 'with which the person signed up')
  .action(setRandomPassword);

addProofCommands(program);
program
  .command('migrate')
  .description('bring the ledger to the schema of this version')
  .option('--totals', 'also add up the totals of the console again, where they are not what the postings say')
  .option('--chains', 'also compute the chain of each end user that has none; no server may run on the ledger')
  .action(migrate);
program
  .command('copy')
  .description(
    'copy a whole ledger into an empty one, with its API keys and people, and compare the two; no server may run on either',
  )
  .requiredOption('--from <url>', 'the ledger to copy, as in DATABASE_URL')
  .requiredOption('--to <url>', 'where to copy it; made when there is none')
  .addHelpText('after', '\nA copy that was interrupted goes on where it stopped when the same command is run again.')
  .action(copy);

addSafekeepingCommands(program, { accountName });

// Whoever reads may have had enough, as `head` has; what a command does is done all the same.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});

try {
  await program.parseAsync();
} catch (error) {
  process.stderr.write(`${explain(error)}\n`);
  process.exitCode = 1;
}

async function serve({ firstKey, processes }: { firstKey?: true; processes: number }): Promise<void> {
  const config = readConfig(process.env);
  if (processes > 1 && !isOneOfMany()) {
    await serveFromMany(config, processes, firstKey === true);
    return;
  }
  const service = await startService(config);
  stopOnSignal(() => service.stop().finally(leave));
  if (isOneOfMany()) {
    reportUp(service.url);
    return;
  }
  sayUp(service.url);
  if (firstKey) await printFirstSteps(config, service.store, service.url);
}

/** What all processes need is made ready before the first of them starts. */
async function serveFromMany(config: Config, count: number, firstKey: boolean): Promise<void> {
  const { database } = config;
  if (database.kind === 'file') {
    throw new InvalidSetting(
      'Several processes need PostgreSQL; set DATABASE_URL=postgres://…, or leave --processes out.',
    );
  }
  await (await openBeside(database, { create: true })).close();
  const started = startProcesses(count, (pid) =>
    process.stderr.write(`process ${pid} has ended; another one starts\n`),
  );
  stopOnSignal(async () => (await started).stop());
  const { url } = await started.catch(() => {
    throw new CannotOpen(`None of the ${count} processes serves; the reason is above.`);
  });
  sayUp(url);
  if (!firstKey) return;
  const store = await openBeside(database);
  await printFirstSteps(config, store, url);
  await store.close();
}

function sayUp(url: string): void {
  process.stdout.write(`Scrip is up on ${url}, with its API described at ${url}/docs\n`);
}

function stopOnSignal(stop: () => Promise<void>): void {
  process.on('SIGTERM', () => void stop());
  process.on('SIGINT', () => void stop());
}

/** What whoever has just installed Scrip needs: a key, and a way into the console for the account that has it. */
async function printFirstSteps({ database, console: { publicUrl } }: Config, store: Store, url: string): Promise<void> {
  await printFirstKey(store, url);
  const origin = publicUrl ?? url;
  // A console in trouble is no trouble of the service.
  const invitation = inviteTo(database, { accountName: FIRST_ACCOUNT, role: 'owner', onlyFirst: true });
  const path = await invitation.catch(() => null);
  process.stdout.write(`The console is at ${origin}/console\n`);
  if (path === null) return;
  process.stdout.write(
    `The account "${FIRST_ACCOUNT}" has no member yet; this link makes you its owner, once, for 7 days:\n\n  ${origin}${path}\n\n`,
  );
}

async function printFirstKey(store: Store, url: string): Promise<void> {
  if ((await store.apiKeys.list()).length > 0) return;
  const secret = await createApiKey(store, { accountName: FIRST_ACCOUNT, scope: 'write', name: FIRST_KEY });
  process.stdout.write(`
Your first API key, shown this once:

  ${secret}

Give an end user 100 credits with it:

  curl -X POST ${url}/add -H 'Authorization: Bearer ${secret}' -H 'Content-Type: application/json' -d '{"end_user_id":"5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23","amount":100}'

`);
}

async function createKey({ account, ...key }: { account: string; scope: Scope; name: string }): Promise<void> {
  await withStore({ create: true }, async (store) => {
    const secret = await createApiKey(store, { accountName: account, ...key });
    process.stdout.write(`An API key of ${account} with the scope ${key.scope}, shown this once:\n${secret}\n`);
  });
}

async function listKeys(): Promise<void> {
  await withStore({ create: false }, async (store) => {
    const lines = (await store.apiKeys.list()).map(lineOf);
    const header = ['ID', 'ACCOUNT', 'NAME', 'SCOPE', 'KEY', 'CREATED', 'LAST USED', 'REVOKED'];
    process.stdout.write(`${table([header, ...lines])}\n`);
  });
}

async function revokeKey(id: number): Promise<void> {
  await withStore({ create: false }, async (store) => {
    if (!(await store.apiKeys.revoke(id))) throw new CannotOpen(`There is no API key ${id}; see \`scrip key list\`.`);
    process.stdout.write(`API key ${id} is revoked.\n`);
  });
}

async function invite({ account, role }: { account: string; role: Role }): Promise<void> {
  const { database, host, port, console: settings } = readConfig(process.env);
  await withStore({ create: false }, async () => {
    const path = await inviteTo(database, { accountName: account, role, onlyFirst: false });
    if (path === null) throw new CannotOpen(`There is no account ${account}; see \`scrip key list\`.`);
    const origin = settings.publicUrl ?? originAt(host, port);
    process.stdout.write(
      `A link by which one person joins ${account} as ${role}, once, within 7 days:\n${origin}${path}\n`,
    );
  });
}

async function setRandomPassword({ email }: { email: string }): Promise<void> {
  await withStore({ create: false }, async () => {
    const password = await resetPassword(databaseOf(process.env), email);
    if (password === null) throw new CannotOpen(`Nobody has signed up with ${email}.`);
    process.stdout.write(`All sessions of ${email} have ended. The new password, shown this once:\n${password}\n`);
  });
}

async function migrate({ totals, chains }: { totals?: true; chains?: true }): Promise<void> {
  await withStore({ create: true }, async (store) => {
    process.stdout.write('The ledger has the schema of this version.\n');
    if (totals) {
      await store.addUpTotals();
      process.stdout.write('The totals are what the postings say.\n');
    }
    if (chains)
      process.stdout.write(
        `${counted(await store.addChains(), 'chain was', 'chains were')} added; every end user has one.\n`,
      );
  });
}

async function copy({ from, to }: { from: string; to: string }): Promise<void> {
  const source = databaseAt('--from', from, process.env);
  const destination = databaseAt('--to', to, process.env);
  if (from === to) throw new InvalidSetting('--from and --to are the same ledger.');
  const line = new ProgressLine(process.stderr);
  const copied = await copyDatabase(source, destination, ({ step, postings, total }) =>
    line.show({ step, done: postings, total, unit: 'postings' }),
  ).finally(() => line.end());
  const { accounts, keys, people, endUsers, cycles, postings, sha256, resumedBehind } = copied;
  if (resumedBehind > 0)
    process.stdout.write(`${counted(resumedBehind, 'end user was', 'end users were')} there from an earlier run.\n`);
  process.stdout.write(
    `The copy is whole, and the same as the source: ${counted(accounts, 'account')}, ${counted(keys, 'API key')}, ${counted(people, 'person', 'people')}, ${counted(endUsers, 'end user')}, ${counted(cycles, 'cycle')} and ${counted(postings, 'posting')}.\nSHA-256 of both: ${sha256}\n`,
  );
}

async function withStore(options: { create: boolean }, work: (store: Store) => Promise<void>): Promise<void> {
  const store = await openBeside(databaseOf(process.env), options);
  try {
    await work(store);
  } finally {
    await store.close();
  }
}

function accountName(text: string): string {
  const name = text.trim();
  if (name === '' || name.length > ACCOUNT_NAME_MAX)
    throw new InvalidArgumentError(`It needs 1 to ${ACCOUNT_NAME_MAX} characters.`);
  return name;
}

function keyName(text: string): string {
  const name = text.trim();
  if (name.length > KEY_NAME_LENGTH_MAX)
    throw new InvalidArgumentError(`It has at most ${KEY_NAME_LENGTH_MAX} characters.`);
  return name;
}

function processCount(text: string): number {
  if (/^[1-9]\d{0,2}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It is a whole number from 1 to 999.');
}

function keyId(text: string): number {
  if (!/^[1-9]\d{0,14}$/.test(text)) throw new InvalidArgumentError('It is a whole number, as shown by key list.');
  return Number(text);
}

function lineOf({ id, accountName, name, scope, hint, createdAt, lastUsedAt, revokedAt }: ListedKey): string[] {
  const [used, revoked] = [lastUsedAt, revokedAt].map((at) => (at === null ? '' : day(at))) as [string, string];
  return [String(id), accountName, name, scope, hint, day(createdAt), used, revoked];
}

function day(instant: number): string {
  return new Date(instant).toISOString().slice(0, 16).replace('T', ' ');
}

function table(lines: readonly string[][]): string {
  const widths = (lines[0] as string[]).map((_, column) =>
    Math.max(...lines.map((line) => (line[column] as string).length)),
  );
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] as number))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** What an operator can mend is said in a sentence; anything else is a bug, and comes with its stack. */
function explain(error: unknown): string {
  if (error instanceof CannotOpen || error instanceof CopyStopped || error instanceof InvalidSetting)
    return error.message;
  if (error instanceof StoreFault) return `The ledger cannot be written now (${error.message}); try again.`;
  const { code, message, stack } = error as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE') return `Another program listens there already (${message}); set PORT or HOST.`;
  if (code === 'EACCES' || code === 'EADDRNOTAVAIL') return `Scrip cannot listen there (${message}); set PORT or HOST.`;
  return stack ?? String(error);
}
