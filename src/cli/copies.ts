// `scrip copy`, `scrip backup` and `scrip restore` copy a whole ledger; `scrip export` exports the postings of an
// account.

import { createWriteStream, existsSync, realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { type Database, databaseAt, databaseOf, InvalidSetting } from '../config.ts';
import { backUpDatabase, copyDatabase, openAccountPostings, restoreDatabase } from '../open-tools.ts';
import { EXPORT_FORMATS, type ExportFormat, exportedText } from '../store/tools/account-export.ts';
import type { BackupReport, ReportProgress } from '../store/tools/ledger-tools.ts';
import { NewFile } from '../store/tools/new-file.ts';
import { accountName } from './keys.ts';
import { counted, withProgress } from './output.ts';
import { type CreateOption, createOption, prepareFolder } from './with-ledger.ts';

export function addCopyCommands(program: Command): void {
  program
    .command('copy')
    .description(
      'copy a whole ledger, with API keys and console users, into an empty one, and compare the two; stop all servers first',
    )
    .requiredOption('--from <url>', 'ledger to copy, in the same form as DATABASE_URL')
    .requiredOption('--to <url>', 'ledger to copy to; created if it does not exist')
    .addOption(createOption())
    .addHelpText('after', '\nTo resume an interrupted copy, run the same command again.')
    .action(copy);
  program
    .command('backup')
    .description('write a verified backup of the ledger file; servers can keep running')
    .argument('<file>', 'backup to write; must not exist', filePath)
    .action(backUp);
  program
    .command('restore')
    .description('verify a backup and create a ledger from it')
    .argument('<file>', 'backup to restore; it is not changed', filePath)
    .option('--to <url>', 'ledger to create; must not exist (default: DATABASE_URL)')
    .addOption(createOption())
    .action(restore);
  program
    .command('export')
    .description('export all postings of an account; servers can keep running')
    .requiredOption('--account <name>', 'account to export', accountName)
    .addOption(new Option('--format <format>', 'output format').choices(EXPORT_FORMATS).makeOptionMandatory())
    .option('--output <file>', 'file to write; must not exist (default: standard output)', filePath)
    .action(exportPostings);
}

/**
 * Parses the path of a file. Also accepts the form of DATABASE_URL, `file:` and a path: SQLite would not take such a text
 * as a path.
 */
function filePath(text: string): string {
  const path = text.replace(/^(?:file:)+/, '');
  if (path === '') throw new InvalidArgumentError('Must be the path of a file.');
  return path;
}

async function copy({ from, to, create }: CreateOption & { from: string; to: string }): Promise<void> {
  const source = databaseAt('--from', from, process.env);
  const destination = databaseAt('--to', to, process.env);
  if (from === to || isSameFile(source, destination))
    throw new InvalidSetting('--from and --to must be different ledgers.');
  await prepareFolder(destination, { create });
  const copied = await withProgress((show) => copyDatabase(source, destination, show));
  const { accounts, keys, people, endUsers, postings, sha256, resumedAfter } = copied;
  if (resumedAfter > 0)
    process.stdout.write(`Resumed: an earlier run had copied ${counted(resumedAfter, 'end user')}.\n`);
  process.stdout.write(
    `Copy complete, identical to the source: ${counted(accounts, 'account')}, ${counted(keys, 'API key')}, ${counted(people, 'console user')}, ${counted(endUsers, 'end user')} and ${counted(postings, 'posting')}.\nSHA-256 of the source and the copy: ${sha256}\n`,
  );
}

function isSameFile(source: Database, destination: Database): boolean {
  if (source.kind !== 'file' || destination.kind !== 'file') return false;
  const [from, to] = [source, destination].map(({ path }) => (existsSync(path) ? realpathSync(path) : resolve(path)));
  return from === to;
}

async function backUp(file: string): Promise<void> {
  const backedUp = await withProgress((show) => backUpDatabase(databaseOf(process.env), file, show));
  process.stdout.write(`Backup complete and verified: ${contents(backedUp)}, ${backedUp.bytes} bytes in ${file}.\n`);
}

async function restore(file: string, { to, create }: CreateOption & { to?: string }): Promise<void> {
  const database = to === undefined ? databaseOf(process.env) : databaseAt('--to', to, process.env);
  await prepareFolder(database, { create });
  const restored = await withProgress((show) => restoreDatabase(file, database, show));
  process.stdout.write(
    `Restore complete and verified: ${contents(restored)}.\nAPI keys that were revoked after the backup are valid again: check \`scrip key list\` before you start a server.\n`,
  );
}

function contents({ endUsers, postings, at }: BackupReport): string {
  const until = at === null ? ', no transactions yet' : ` up to ${new Date(at).toISOString()}`;
  return `${counted(endUsers, 'end user')} and ${counted(postings, 'posting')}${until}`;
}

interface ExportArguments {
  readonly account: string;
  readonly format: ExportFormat;
  /** Path of the file to create; standard output if absent. */
  readonly output?: string;
}

async function exportPostings({ account, format, output }: ExportArguments): Promise<void> {
  await using opened = new AsyncDisposableStack();
  const postings = opened.adopt(await openAccountPostings(databaseOf(process.env), account), (one) => one.close());
  let done = 0;
  async function* batches(show: ReportProgress) {
    for await (const batch of postings.batches()) {
      yield batch;
      done += batch.length;
      show({ step: 'exporting', done, total: postings.total, unit: 'postings' });
    }
  }
  await withProgress((show) => writeText(exportedText(batches(show), format), output));
  if (output !== undefined) process.stdout.write(`Exported ${counted(done, 'posting')} of ${account} to ${output}.\n`);
}

async function writeText(text: AsyncIterable<string>, output: string | undefined): Promise<void> {
  if (output === undefined) return await printText(text);
  using file = new NewFile(output);
  // The flag `r+` prevents Node.js from creating the file again if a failed export has already removed it.
  await pipeline(text, createWriteStream(file.partial, { flags: 'r+' }));
  file.publish();
}

/** If standard output fails, stops without throwing, because `runCommandLine` handles the error. */
async function printText(text: AsyncIterable<string>): Promise<void> {
  let hasFailed = false;
  process.stdout.once('error', () => {
    hasFailed = true;
  });
  // Keep standard output open for later messages.
  await pipeline(text, process.stdout, { end: false }).catch((error) => {
    if (!hasFailed) throw error;
  });
}
