// `scrip serve`: runs the service until SIGTERM or SIGINT, in this process or in several worker processes. With
// --first-key, the command creates and prints an API key if the ledger has none, and prints a link to the console.

import cluster from 'node:cluster';
import { existsSync, statSync } from 'node:fs';
import { type Command, InvalidArgumentError } from 'commander';
import { type Config, type Database, InvalidSetting, readConfig } from '../config.ts';
import { openTools } from '../open-tools.ts';
import { createApiKey, type KeyStore } from '../store/key-store.ts';
import { CannotOpen } from '../store/store-fault.ts';
import { invitationPath } from './console-people.ts';
import { startProcesses } from './processes.ts';
import { type CreateOption, createOption, prepareFolder } from './with-ledger.ts';

const FIRST_ACCOUNT = 'default';
const FIRST_KEY = 'First key';

export function addServeCommand(program: Command): void {
  program
    .command('serve')
    .description('run the server until SIGTERM or SIGINT')
    .addOption(createOption())
    .option(
      '--test-clock',
      'give a new ledger a test clock, which stands still until you move it; required each time you serve that ledger',
    )
    .option('--first-key', 'if the ledger has no API keys, create one and print it; also print how to open the console')
    .option(
      '--processes <count>',
      'number of server processes that share the port; more than 1 requires PostgreSQL',
      processCount,
      1,
    )
    .action(serve);
}

interface ServeArguments extends CreateOption {
  readonly firstKey?: boolean;
  readonly testClock?: boolean;
  readonly processes: number;
}

async function serve({ firstKey = false, testClock = false, processes, create }: ServeArguments): Promise<void> {
  const config = { ...readConfig(process.env), testClock };
  if (processes > 1 && cluster.isPrimary) {
    await serveFromWorkers(config, processes, firstKey);
    return;
  }
  await prepareFolder(config.database, { create });
  const newFile = missingFile(config.database);
  const { startService } = await import('../service.ts');
  const service = await startService(config);
  // A stopped worker disconnects from the primary process, because an open IPC channel would keep the worker alive.
  stopOnSignal(() => service.stop().finally(() => process.disconnect?.()));
  if (cluster.isWorker) {
    process.send?.({ url: service.url });
    return;
  }
  printListening(service.url, config);
  if (newFile !== null) process.stdout.write(`Created a new ledger: ${newFile}\n`);
  await printSteps(config, { keys: service.stores.keys, url: service.url, firstKey });
}

/** The path of the ledger file that `serve` will create; null if a ledger already exists, or on PostgreSQL. */
function missingFile(database: Database): string | null {
  if (database.kind !== 'file') return null;
  return existsSync(database.path) && statSync(database.path).size > 0 ? null : database.path;
}

async function serveFromWorkers(config: Config, count: number, firstKey: boolean): Promise<void> {
  const { database, testClock = false } = config;
  if (database.kind === 'file') {
    throw new InvalidSetting('--processes requires PostgreSQL: set DATABASE_URL=postgres://…, or omit --processes.');
  }
  // Open the ledger before the workers start, so that an error is printed only once, not by every worker.
  await (await openTools(database, { create: true, testClock })).tools.close();
  const { pino } = await import('pino');
  // A full disk must not end this process, because all other processes would end with it.
  const destination = pino.destination({ dest: 2, sync: true });
  destination.on('error', () => {});
  const logger = pino({ level: config.logLevel }, destination);
  const processes = startProcesses(count, (pid) => {
    if (pid === null) logger.error('a process could not be started; starting a replacement');
    else logger.error({ exited: pid }, 'a process exited; starting a replacement');
  });
  stopOnSignal(() => processes.stop());
  const url = await processes.url.catch(() => {
    throw new CannotOpen(`Failed to start ${count} processes; see the error above.`);
  });
  if (url === null) return;
  printListening(url, config);
  const { keys, tools } = await openTools(database);
  await printSteps(config, { keys, url, firstKey });
  await tools.close();
}

function printListening(url: string, { testClock }: Config): void {
  process.stdout.write(`Scrip is listening on ${url}\nAPI docs: ${url}/docs\n`);
  if (testClock) process.stdout.write('Test clock: time stands still until you move it with POST /test-clock.\n');
}

function stopOnSignal(stop: () => Promise<void>): void {
  process.on('SIGTERM', () => void stop());
  process.on('SIGINT', () => void stop());
}

interface Started {
  readonly keys: KeyStore;
  readonly url: string;
  readonly firstKey: boolean;
}

async function printSteps(config: Config, { keys, url, firstKey }: Started): Promise<void> {
  if (firstKey) {
    if ((await keys.list()).length === 0) await printFirstKey(keys, url);
    await printConsole(config, url);
    return;
  }
  // This read fails if a signal has already stopped the service.
  const hasKeys = await keys.list().then(
    ({ length }) => length > 0,
    () => true,
  );
  if (!hasKeys) process.stdout.write('This ledger has no API keys yet. Create one: scrip key create --account NAME\n');
}

async function printConsole({ database, console: { publicUrl } }: Config, url: string): Promise<void> {
  const origin = publicUrl ?? url;
  // Ignore errors: the service runs even if the console's tables are unusable.
  const invitation = invitationPath(database, { accountName: FIRST_ACCOUNT, role: 'owner', onlyFirst: true });
  const path = await invitation.catch(() => null);
  process.stdout.write(`Console: ${origin}/console\n`);
  if (path === null) return;
  process.stdout.write(
    `To become the owner of the account "${FIRST_ACCOUNT}", open this link (works once, expires in 7 days):\n\n  ${origin}${path}\n\n`,
  );
}

async function printFirstKey(keys: KeyStore, url: string): Promise<void> {
  const secret = await createApiKey(keys, { accountName: FIRST_ACCOUNT, scope: 'write', name: FIRST_KEY });
  process.stdout.write(`
Your first API key (shown only once):

  ${secret}

Add 100 credits to an end user:

  curl -X POST ${url}/add -H 'Authorization: Bearer ${secret}' -H 'Content-Type: application/json' -d '{"end_user_id":"5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23","amount":100}'

`);
}

function processCount(text: string): number {
  if (/^[1-9]\d{0,2}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Must be a whole number from 1 to 999.');
}
