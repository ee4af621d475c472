// The command line: assembles the commands, prints errors to standard error and sets exit code 1 after an error.
// Modules that load slowly are imported only by the commands that need them.

import cluster from 'node:cluster';
import { Command } from 'commander';
import { InvalidSetting, misspelledSettings } from '../config.ts';
import { UnusableSecret } from '../events/webhooks/secrets.ts';
import { CannotOpen, StoreFault } from '../store/store-fault.ts';
import { CopyStopped } from '../store/tools/copy.ts';
import { ImportStopped } from '../store/tools/import.ts';
import { VERSION } from '../version.ts';
import { addConsolePeopleCommands } from './console-people.ts';
import { addCopyCommands } from './copies.ts';
import { addDemoCommand } from './demo.ts';
import { addImportCommand } from './imports.ts';
import { addKeyCommands } from './keys.ts';
import { addMaintenanceCommands } from './maintenance.ts';
import { addServeCommand } from './serve.ts';
import { addThresholdCommands } from './thresholds.ts';
import { addWebhookCommands } from './webhooks.ts';

const SETTINGS = `
Settings (environment variables) and their defaults:
  PORT                    8080
  HOST                    127.0.0.1
  DATABASE_URL            file:data/scrip.db   (or postgres://…)
  LOG_LEVEL               info   (fatal, error, warn, info, debug, trace, silent)
  REQUEST_LOG             no     (yes: log every request)
  METRICS_PORT                   (serve /metrics on this port instead of PORT)
  IDEMPOTENCY_GRANT_DAYS  30     (days to keep the idempotency keys of /add and /start-cycle)
  IDEMPOTENCY_HOURS       24     (hours to keep all other idempotency keys)
  MAX_CONNECTIONS         2000   (maximum number of client connections per process)
  RATE_LIMIT                     (requests per second for each API key; RATE_LIMIT_BURST allows larger bursts)
  PUBLIC_URL                     (URL at which users reach the console, https://…)
  SIGN_UP                 first  (who may sign up in the console; first: the first person, open: anyone, closed: no one)
  SMTP_URL                       (mail server for the console, smtp://… or smtps://…; requires MAIL_FROM)
  EVENT_RETENTION_DAYS    30     (days to keep events)
  WEBHOOK_ALLOW_PRIVATE   no     (yes: webhooks may be sent to private addresses)
  WEBHOOK_KEY                    (key that encrypts webhook secrets; if empty, Scrip creates a key file)

PostgreSQL only: DATABASE_LANES, DATABASE_PREPARED, DATABASE_CITUS, DATABASE_SHARDS,
DATABASE_ACCEPT_UNSAFE.
docs/settings.md describes every setting; docs/operating/monitoring.md describes the OpenTelemetry settings.

You can run all commands except serve, demo, copy and restore while a server is running.
On PostgreSQL, you can also run several servers.`;

export async function runCommandLine(): Promise<void> {
  // Only the user that runs Scrip may read the files that Scrip creates.
  process.umask(process.umask() | 0o077);
  process.stdout.once('error', (error: NodeJS.ErrnoException) => {
    // Ignore further errors, because each further write fails as well.
    process.stdout.on('error', () => {});
    // A reader such as `head` can close the pipe early; the command still completes.
    if (error.code !== 'EPIPE') fail(new CannotOpen(`Cannot write to standard output (${error.message}).`));
  });
  try {
    await commandLine().parseAsync();
  } catch (error) {
    fail(error);
    // In a worker of `serve --processes`, an open IPC channel would keep the process alive.
    process.disconnect?.();
  }
}

function fail(error: unknown): void {
  process.stderr.write(`${explain(error)}\n`);
  process.exitCode = 1;
}

function commandLine(): Command {
  const program = new Command('scrip')
    .description('A credit ledger that runs beside your backend.')
    .showSuggestionAfterError(false)
    // A message can repeat an argument, which can contain control characters.
    .configureOutput({ outputError: (text, write) => write(`${text.trimEnd().replace(/\p{Cc}/gu, ' ')}\n`) })
    .version(VERSION)
    .addHelpText('after', SETTINGS)
    .hook('preAction', warnOfMisspelledSettings);
  // The help lists the commands in this order.
  addServeCommand(program);
  addKeyCommands(program);
  addConsolePeopleCommands(program);
  addWebhookCommands(program);
  addThresholdCommands(program);
  addMaintenanceCommands(program);
  addCopyCommands(program);
  addImportCommand(program);
  addDemoCommand(program);
  return program;
}

function warnOfMisspelledSettings(): void {
  if (cluster.isWorker) return;
  for (const [name, setting] of misspelledSettings(process.env))
    process.stderr.write(`Warning: Scrip does not read the variable ${name}; did you mean ${setting}?\n`);
}

/** Errors whose message already tells the operator what to do. */
const EXPLAINED = [CannotOpen, CopyStopped, ImportStopped, InvalidSetting, UnusableSecret];

/** The system calls that fail with EACCES if the process is not permitted to listen on an address. */
const LISTENING: ReadonlySet<string | undefined> = new Set(['listen', 'bind']);

/** Messages of the PostgreSQL driver. */
const LOST = /^(Connection terminated|Client has encountered a connection error)/;

/** Returns a sentence for an error that the operator can correct, and the stack of any other error. */
function explain(error: unknown): string {
  if (EXPLAINED.some((kind) => error instanceof kind)) return (error as Error).message;
  if (error instanceof StoreFault) return `The database failed (${error.message}); try again.`;
  const { code, syscall, message, stack } = error as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE') return `Address already in use (${message}); set a different PORT, METRICS_PORT or HOST.`;
  if (code === 'EADDRNOTAVAIL' || syscall === 'getaddrinfo' || (code === 'EACCES' && LISTENING.has(syscall)))
    return `Cannot listen on this address (${message}); set a different PORT, METRICS_PORT or HOST.`;
  if (code === 'ERR_SQLITE_ERROR')
    return `The ledger file cannot be used (${message}); check the disk, and check the ledger with \`scrip verify\`.`;
  if (LOST.test(message)) return `The connection to PostgreSQL was lost (${message}); try again.`;
  // PostgreSQL reports a severity with each of its errors.
  if ('severity' in (error as object)) return `PostgreSQL reported an error: ${message}.`;
  if (syscall !== undefined) return `The operating system reported an error: ${message}.`;
  return stack ?? String(error);
}
