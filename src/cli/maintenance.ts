// The commands `scrip verify`, `scrip digest` and `scrip migrate`.

import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { databaseOf } from '../config.ts';
import type { Finding } from '../ledger/audit.ts';
import { InvariantViolation } from '../ledger/invariant.ts';
import { CannotOpen } from '../store/store-fault.ts';
import { DIGESTS_MAX, digestsIn, instantText, lineOf, type PostingsDigest } from '../store/tools/ledger-digest.ts';
import type { LedgerTools } from '../store/tools/ledger-tools.ts';
import { counted, OutputClosed, printLine } from './output.ts';
import { type CreateOption, createOption, withLedger, withNewLedger } from './with-ledger.ts';

export function addMaintenanceCommands(program: Command): void {
  program
    .command('verify')
    .description('check the whole ledger against its postings; the exit code is 0 if no problem is found')
    .option('--digest <file>', 'also check that no posting has changed since the digests in this file were printed')
    .action(verify);
  program
    .command('digest')
    .description(
      'print a one-line digest of all postings for a later check with `verify --digest`; store the digest where people with write access to the ledger cannot change it',
    )
    .action(printDigest);
  program
    .command('migrate')
    .description('create the ledger, or migrate it to the schema of this version of Scrip')
    .addOption(createOption())
    .option('--totals', "also rebuild the console's totals from the postings")
    .action(migrate);
}

async function migrate({ totals, create }: CreateOption & { totals?: true }): Promise<void> {
  await withNewLedger({ create }, async ({ tools }) => {
    process.stdout.write('The ledger schema is up to date.\n');
    if (!totals) return;
    await tools.rebuildTotals();
    process.stdout.write(
      databaseOf(process.env).kind === 'file'
        ? 'The server rebuilds the totals in the background. If no server is running, start one.\n'
        : 'The totals have been rebuilt.\n',
    );
  });
}

async function verify({ digest: file }: { digest?: string }): Promise<void> {
  const digests = file === undefined ? [] : readDigests(file);
  try {
    await withLedger(({ tools }) => verifyLedger(tools, digests));
  } catch (error) {
    // The reader of standard output has closed the pipe. If a problem was found, the exit code is already 1.
    if (!(error instanceof OutputClosed)) throw error;
  }
}

async function verifyLedger(tools: LedgerTools, digests: readonly PostingsDigest[]): Promise<void> {
  let problems = 0;
  const printProblem = (sentence: string) => {
    problems += 1;
    process.exitCode = 1;
    printLine(sentence);
  };
  const report = ({ invariant, user, message }: Finding) =>
    printProblem(`invariant ${invariant}, account ${user.account}, end user ${user.endUser}: ${message}`);
  const { endUsers, postings, store: faults } = await tools.audit(report);
  for (const fault of faults) printProblem(`store: ${fault}`);
  const changed = await changedSince(digests, tools).catch((error) => {
    if (problems === 0 || error instanceof OutputClosed) throw error;
    return [`store: some postings cannot be read (${(error as Error).message})`];
  });
  for (const sentence of changed) printProblem(sentence);
  const checked = `${counted(endUsers, 'end user')} and ${counted(postings, 'posting')} checked`;
  if (problems > 0) printLine(`Verification failed: ${counted(problems, 'problem')} found. ${checked}.`);
  else printLine(`Verification passed. ${checked}.`);
  if (problems === 0 && digests.length > 0) printLine(matchOf(digests));
}

/** @returns one sentence for each digest that the postings no longer match */
async function changedSince(digests: readonly PostingsDigest[], tools: LedgerTools): Promise<string[]> {
  if (digests.length === 0) return [];
  const present = await tools.digest(digests.map(({ through }) => through));
  return digests.flatMap((kept, index) => {
    const found = present[index] as PostingsDigest;
    if (lineOf(found) === lineOf(kept)) return [];
    return [
      `digest of ${instantText(kept.through)}: postings up to this instant have changed; expected ${contents(kept)}, found ${contents(found)}`,
    ];
  });
}

function contents({ endUsers, postings, sha256 }: PostingsDigest): string {
  return `${counted(postings, 'posting')} of ${counted(endUsers, 'end user')} with SHA-256 ${sha256.slice(0, 12)}…`;
}

function matchOf(digests: readonly PostingsDigest[]): string {
  const latest = digests.reduce((a, b) => (a.through > b.through ? a : b));
  const subject = digests.length === 1 ? 'The digest matches' : `All ${digests.length} digests match`;
  return `${subject}: ${contents(latest)} up to ${instantText(latest.through)}.`;
}

async function printDigest(): Promise<void> {
  await withLedger(async ({ tools }) => {
    const [digest] = await tools.digest(null).catch((error) => {
      if (!(error instanceof InvariantViolation)) throw error;
      throw new CannotOpen(
        `Cannot compute a digest: the ledger has problems (${error.message}); run \`scrip verify\`.`,
      );
    });
    process.stdout.write(`${lineOf(digest as PostingsDigest)}\n`);
  });
}

function readDigests(file: string): readonly PostingsDigest[] {
  let text = '';
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new CannotOpen(`Cannot read ${file} (${(error as Error).message}).`);
  }
  const digests = digestsIn(text);
  if (digests === null)
    throw new CannotOpen(
      `${file} is not a digest file: it must contain 1 to ${DIGESTS_MAX} lines, each printed by \`scrip digest\`.`,
    );
  return digests;
}
