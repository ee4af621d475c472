// `scrip import`: checks a whole CSV file, then adds its credits to end users. Running the command again with the same
// file does not import any row twice.

import { basename } from 'node:path';
import type { Command } from 'commander';
import { databaseOf } from '../config.ts';
import { openImport } from '../open-tools.ts';
import { CannotOpen } from '../store/store-fault.ts';
import { type ImportOptions, importRows, type NotGranted } from '../store/tools/import.ts';
import type { ImportTarget, LedgerImport } from '../store/tools/ledger-import.ts';
import { type CheckedFile, ERRORS_LISTED_MAX, type FileErrors, ImportFile } from './import-file.ts';
import { accountName } from './keys.ts';
import { counted, withProgress } from './output.ts';

const LISTED_MAX = 20;

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

const REASONS: Record<NotGranted, string> = {
  expired: 'the credits have already expired',
  BalanceTooLarge: "the end user's balance would be too large",
};

export function addImportCommand(program: Command): void {
  program
    .command('import')
    .description('add credits to end users from a CSV file; safe to repeat; servers can keep running')
    .argument(
      '<file>',
      'CSV file with the columns end_user_id, amount, and expires_at or validity_days; the note column is optional',
    )
    .requiredOption('--account <name>', 'account to import into; must exist', accountName)
    .option('--another', 'import even if a different file was already imported into this account')
    .addHelpText('after', '\nTo resume an interrupted import, run the same command again. No row is imported twice.')
    .action(importFile);
}

async function importFile(path: string, options: { account: string; another?: true }): Promise<void> {
  const file = new ImportFile(path);
  await using opened = new AsyncDisposableStack();
  const target = opened.adopt(await openImport(databaseOf(process.env)), (ledger) => ledger.close());
  const account = await target.accountNamed(options.account);
  if (account === null)
    throw new CannotOpen(
      `Account ${options.account} does not exist. Check the name, or create the account with \`scrip key create --account "${options.account}"\`.`,
    );
  const { checked, earlier } = await withProgress(async (show) => {
    const checked = await file.check(await target.now(), show);
    return { checked, earlier: await target.imports(account) };
  });
  const known = earlier.find(({ sha256 }) => sha256 === checked.sha256);
  refuseErrors(path, known ? [checked.errors] : [checked.errors, checked.expired]);
  if (known && known.done === known.rows) {
    process.stdout.write(
      `${path} was already imported into ${options.account} at ${instantText(known)}; nothing to do.\n`,
    );
    reportMissing(known);
    return;
  }
  if (!known && !options.another)
    refuseAnother(options.account, earlier.find(({ done, rows }) => done < rows) ?? earlier.at(-1));
  const { rows, sha256 } = checked;
  const one = known ?? (await target.start({ account, sha256, rows, fileName: basename(path) }));
  if (one.done > 0) process.stdout.write(`Resuming after ${one.done} of ${one.rows} rows.\n`);
  printResult(await grantRows(target, one, file), checked, options.account);
}

function refuseErrors(path: string, kinds: readonly FileErrors[]): void {
  const count = kinds.reduce((sum, errors) => sum + errors.count, 0);
  if (count === 0) return;
  const first = kinds.flatMap((errors) => errors.first).sort((a, b) => a.line - b.line);
  const listed = first.slice(0, ERRORS_LISTED_MAX);
  for (const { text } of listed) process.stderr.write(`${text}\n`);
  if (count > listed.length) process.stderr.write(`… and ${counted(count - listed.length, 'more error')}\n`);
  throw new CannotOpen(`${path} has ${counted(count, 'error')}; nothing was imported.`);
}

/**
 * Without --another, Scrip refuses a second file for an account. A corrected or newly exported file usually repeats
 * most rows of the previous file, and Scrip would import these rows twice.
 */
function refuseAnother(account: string, last: LedgerImport | undefined): void {
  if (last === undefined) return;
  const state =
    last.done === last.rows
      ? `was imported into ${account} at ${instantText(last)}`
      : `was only partly imported into ${account} (${last.done} of ${last.rows} rows); finish that import first`;
  throw new CannotOpen(
    `Another file, ${last.fileName}, ${state}. Rows that are in both files would be imported twice; if no row is in both files, add --another.`,
  );
}

async function grantRows(target: ImportTarget, one: LedgerImport, file: ImportFile): Promise<LedgerImport> {
  const interruption = new AbortController();
  const interrupt = () => interruption.abort();
  for (const signal of SIGNALS) process.once(signal, interrupt);
  let notGranted = 0;
  const onNotGranted: ImportOptions['onNotGranted'] = ({ line }, why) => {
    notGranted += 1;
    if (notGranted <= LISTED_MAX) process.stderr.write(`line ${line}: not imported: ${REASONS[why]}\n`);
  };
  try {
    return await withProgress((report) =>
      importRows(target, one, file.rows(), { report, onNotGranted, signal: interruption.signal }),
    );
  } finally {
    for (const signal of SIGNALS) process.off(signal, interrupt);
  }
}

function printResult({ id, rows, granted }: LedgerImport, { hasInstants }: CheckedFile, account: string): void {
  process.stdout.write(`Import ${id} complete: ${granted} of ${counted(rows, 'row')} imported into ${account}.\n`);
  if (hasInstants)
    process.stdout.write(
      'Credits with an expires_at can stay valid for up to 24 hours after that instant, because the ledger counts validity in whole days.\n',
    );
  reportMissing({ rows, granted }, ` Each run lists at most ${LISTED_MAX} of the rows that it did not import.`);
}

function reportMissing({ rows, granted }: Pick<LedgerImport, 'rows' | 'granted'>, note = ''): void {
  if (granted === rows) return;
  process.stderr.write(`${counted(rows - granted, 'row')} not imported.${note}\n`);
  process.exitCode = 1;
}

function instantText({ updatedAt }: LedgerImport): string {
  return new Date(updatedAt).toISOString();
}
