// The commands that take a ledger to safety and back, and its contents elsewhere: backup, restore, export.

import { type Command, Option } from 'commander';
import { backUpDatabase, exportAccount, restoreDatabase } from './app.ts';
import { databaseAt, databaseOf } from './config.ts';
import { counted, ProgressLine } from './progress-line.ts';
import { EXPORT_FORMATS, type ExportFormat } from './store/account-export.ts';

/** @param accountName reads the name of an account from the command line */
export function addSafekeepingCommands(to: Command, { accountName }: { accountName: (text: string) => string }): void {
  to.command('backup')
    .description('write a backup of the ledger file, beside a running server, and check it')
    .argument('<file>', 'a file that is not there yet')
    .action(backUp);
  to.command('restore')
    .description('check a backup, and make a ledger of it where there is none')
    .argument('<file>', 'the backup; it stays as it is')
    .option('--to <url>', 'the ledger to make, as in DATABASE_URL, which it is when absent')
    .action(restore);
  to.command('export')
    .description('write all postings of an account, beside a running server')
    .requiredOption('--account <name>', 'the account', accountName)
    .addOption(new Option('--format <format>', 'how').choices(EXPORT_FORMATS).makeOptionMandatory())
    .option('--output <file>', 'a file that is not there yet; standard output when absent')
    .action(exportPostings);
}

async function backUp(file: string): Promise<void> {
  const line = new ProgressLine(process.stderr);
  const backedUp = await backUpDatabase(databaseOf(process.env), file, (progress) => line.show(progress)).finally(() =>
    line.end(),
  );
  const { endUsers, postings, bytes } = backedUp;
  process.stdout.write(
    `The backup is whole: ${counted(endUsers, 'end user')} and ${counted(postings, 'posting')}, ${until(backedUp.at)}, ${bytes} bytes in ${file}.\n`,
  );
}

async function restore(file: string, { to }: { to?: string }): Promise<void> {
  const database = to === undefined ? databaseOf(process.env) : databaseAt('--to', to, process.env);
  const line = new ProgressLine(process.stderr);
  const { endUsers, postings, at } = await restoreDatabase(file, database, (progress) => line.show(progress)).finally(
    () => line.end(),
  );
  process.stdout.write(
    `The ledger is restored and whole: ${counted(endUsers, 'end user')} and ${counted(postings, 'posting')}, ${until(at)}.\nKeys that were revoked after that are valid again: look at \`scrip key list\` before you serve it.\n`,
  );
}

function until(at: number | null): string {
  return at === null ? 'in which nothing has happened yet' : `up to ${new Date(at).toISOString()}`;
}

interface ExportArguments {
  readonly account: string;
  readonly format: ExportFormat;
  readonly output?: string;
}

async function exportPostings({ account, format, output }: ExportArguments): Promise<void> {
  const line = new ProgressLine(process.stderr);
  const show = (progress: { done: number; total: number }) =>
    line.show({ step: 'exporting', ...progress, unit: 'postings' });
  try {
    const count = await exportAccount(databaseOf(process.env), { account, format, output: output ?? null }, show);
    if (output !== undefined)
      process.stdout.write(`${counted(count, 'posting')} of ${account} ${count === 1 ? 'is' : 'are'} in ${output}.\n`);
  } catch (error) {
    // Whoever reads has had enough, as `head` does.
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error;
  } finally {
    line.end();
  }
}
