// `scrip serve`: runs the service in this process, or in several worker processes on one port, until SIGTERM or SIGINT.
// With --first-key it also prints what a new installation needs: an API key and a link to the console.

import cluster from 'node:cluster';
import { type Command, InvalidArgumentError } from 'commander';
import { type Config, InvalidSetting, readConfig } from '../config.ts';
import { openTools } from '../open-tools.ts';
import { createApiKey, type KeyStore } from '../store/key-store.ts';
import { CannotOpen } from '../store/store-fault.ts';
import { invitationPath } from './console-people.ts';
import { startProcesses } from './processes.ts';

/** The account that owns the first key. */
const FIRST_ACCOUNT = 'default';
const FIRST_KEY = 'First key';

export function addServeCommand(program: Command): void {
  program
    .command('serve')
    .description('run the server until SIGTERM or SIGINT')
    .option('--first-key', 'if the ledger has no API keys, create one and print it')
    .option('--processes <count>', 'number of processes that share the port; requires PostgreSQL', processCount, 1)
    .action(serve);
}

async function serve({ firstKey, processes }: { firstKey?: true; processes: number }): Promise<void> {
  const config = readConfig(process.env);
  if (processes > 1 && cluster.isPrimary) {
    await serveFromWorkers(config, processes, firstKey === true);
    return;
  }
  const { startService } = await import('../service.ts');
  const service = await startService(config);
  // A worker is kept alive by its channel to the primary process, which waits for the URL.
  stopOnSignal(() => service.stop().finally(() => process.disconnect?.()));
  if (cluster.isWorker) {
    process.send?.({ url: service.url });
    return;
  }
  printListening(service.url);
  if (firstKey) await printFirstSteps(config, service.stores.keys, service.url);
}

async function serveFromWorkers(config: Config, count: number, firstKey: boolean): Promise<void> {
  const { database } = config;
  if (database.kind === 'file') {
    throw new InvalidSetting('--processes requires PostgreSQL: set DATABASE_URL=postgres://…, or omit --processes.');
  }
  // Creates or migrates the ledger once, before the workers all try to.
  await (await openTools(database)).tools.close();
  const started = startProcesses(count, (pid) =>
    process.stderr.write(`Process ${pid} exited; starting a replacement.\n`),
  );
  stopOnSignal(async () => (await started).stop());
  const { url } = await started.catch(() => {
    throw new CannotOpen(`Failed to start ${count} processes; see above.`);
  });
  printListening(url);
  if (!firstKey) return;
  const { keys, tools } = await openTools(database);
  await printFirstSteps(config, keys, url);
  await tools.close();
}

function printListening(url: string): void {
  process.stdout.write(`Scrip is listening on ${url}\nAPI docs: ${url}/docs\n`);
}

function stopOnSignal(stop: () => Promise<void>): void {
  process.on('SIGTERM', () => void stop());
  process.on('SIGINT', () => void stop());
}

async function printFirstSteps(
  { database, console: { publicUrl } }: Config,
  keys: KeyStore,
  url: string,
): Promise<void> {
  await printFirstKey(keys, url);
  const origin = publicUrl ?? url;
  // The service runs without the console: if the console's tables cannot be used, no link is printed.
  const invitation = invitationPath(database, { accountName: FIRST_ACCOUNT, role: 'owner', onlyFirst: true });
  const path = await invitation.catch(() => null);
  process.stdout.write(`Console: ${origin}/console\n`);
  if (path === null) return;
  process.stdout.write(
    `To become the owner of the account "${FIRST_ACCOUNT}", open this link (works once, expires in 7 days):\n\n  ${origin}${path}\n\n`,
  );
}

async function printFirstKey(keys: KeyStore, url: string): Promise<void> {
  if ((await keys.list()).length > 0) return;
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
