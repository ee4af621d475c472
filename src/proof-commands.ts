// The commands that prove a ledger: verify recomputes what it promises, digest prints the line against which that can be
// proved later.

import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { openBeside } from './app.ts';
import { databaseOf } from './config.ts';
import type { Finding } from './ledger/audit.ts';
import { NobodyReads, printLine } from './output.ts';
import { counted } from './progress-line.ts';
import { digestsIn, instantText, lineOf, type PostingsDigest } from './store/ledger-digest.ts';
import { CannotOpen, type Store } from './store/store.ts';

export function addProofCommands(to: Command): void {
  to.command('verify')
    .description('check the whole ledger against its postings; exit code 0 when it is whole')
    .option('--digest <file>', 'also prove that nothing has changed since the digests in this file were printed')
    .action(verify);
  to.command('digest')
    .description('print one line that stands for all postings up to now; keep it where nobody can change it')
    .action(printDigest);
}

async function verify({ digest: file }: { digest?: string }): Promise<void> {
  const digests = file === undefined ? [] : readDigests(file);
  try {
    await withLedger((store) => verifyStore(store, digests));
  } catch (error) {
    // It has printed what was asked for; that something was found is in the exit code by then.
    if (!(error instanceof NobodyReads)) throw error;
  }
}

async function verifyStore(store: Store, digests: readonly PostingsDigest[]): Promise<void> {
  let broken = 0;
  const say = (sentence: string) => {
    broken += 1;
    process.exitCode = 1;
    printLine(sentence);
  };
  const report = ({ invariant, user, message }: Finding) =>
    say(`invariant ${invariant}, account ${user.account}, end user ${user.endUser}: ${message}`);
  const { endUsers, postings, store: faults } = await store.audit(report);
  for (const fault of faults) say(`store: ${fault}`);
  const proved = await proveAgainst(store, digests, report).catch((error) => {
    // What cannot be read has been reported by then, or else is a fault of another kind.
    if (broken === 0 || error instanceof NobodyReads) throw error;
    return [`store: the postings cannot be followed to their end (${(error as Error).message})`];
  });
  for (const sentence of proved) say(sentence);
  const looked = `${counted(endUsers, 'end user')} and ${counted(postings, 'posting')} checked`;
  if (broken > 0) printLine(`The ledger is broken in ${counted(broken, 'place')}: ${looked}.`);
  else printLine(`The ledger is whole: ${looked}.`);
  if (broken === 0 && digests.length > 0) printLine(unchanged(digests));
}

/** @returns what the ledger no longer holds as it did, a sentence for each digest that it fails */
async function proveAgainst(
  store: Store,
  digests: readonly PostingsDigest[],
  report: (finding: Finding) => void,
): Promise<string[]> {
  const through = digests.map((digest) => digest.through);
  const proof = await store.prove(through, report);
  return digests.flatMap((kept, index) => {
    const found = proof.digests[index] as PostingsDigest;
    if (lineOf(found) === lineOf(kept)) return [];
    return [
      `digest of ${instantText(kept.through)}: what happened up to then is no longer what it was; there were ${contents(kept)}, and now there are ${contents(found)}`,
    ];
  });
}

function contents({ endUsers, postings, sha256 }: PostingsDigest): string {
  return `${counted(postings, 'posting')} of ${counted(endUsers, 'end user')} with SHA-256 ${sha256.slice(0, 12)}…`;
}

function unchanged(digests: readonly PostingsDigest[]): string {
  const latest = digests.reduce((a, b) => (a.through > b.through ? a : b));
  const all = digests.length === 1 ? 'the digest' : `all ${digests.length} digests`;
  return `It agrees with ${all}: ${contents(latest)} up to ${instantText(latest.through)}.`;
}

async function printDigest(): Promise<void> {
  await withLedger(async (store) => {
    let broken: Finding | null = null;
    const { digests } = await store.prove(null, (finding) => {
      broken ??= finding;
    });
    if (broken !== null)
      throw new CannotOpen(
        `There is no digest of a ledger that is broken (${(broken as Finding).message}); \`scrip verify\` says where.`,
      );
    process.stdout.write(`${lineOf(digests[0] as PostingsDigest)}\n`);
  });
}

function readDigests(file: string): readonly PostingsDigest[] {
  let text = '';
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new CannotOpen(`${file} cannot be read (${(error as Error).message}).`);
  }
  const digests = digestsIn(text);
  if (digests === null)
    throw new CannotOpen(`${file} holds something else than digests, one on a line, as \`scrip digest\` prints them.`);
  return digests;
}

async function withLedger(work: (store: Store) => Promise<void>): Promise<void> {
  const store = await openBeside(databaseOf(process.env), { create: false });
  try {
    await work(store);
  } finally {
    await store.close();
  }
}
