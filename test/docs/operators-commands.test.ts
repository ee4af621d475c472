// The commands that the documents give to operators: each is run as it stands, in folders of the test's own, and what
// comes back is what stands below it, but for names, sizes and times; or it is in the list of those that need what a test
// does not have, with the reason.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { type Scrip, someone, startScrip } from '../http/running-service.ts';

const REPOSITORY = join(import.meta.dirname, '../..');

/** README.md and docs/api.md have a test of their own. */
const DOCUMENTS = ['CONTRIBUTING.md', 'client/README.md', ...globSync('docs/**/*.md', { cwd: REPOSITORY })]
  .filter((path) => path !== 'docs/api.md')
  .toSorted();

/** What is not run here, by how it begins, and why. */
const NOT_RUN: Readonly<Record<string, string>> = {
  'npm ci': 'it installs, and runs all tests; a fresh clone does it',
  'npm run -s scrip -- copy': 'it needs PostgreSQL, and is run in copy.test.ts',
  'npm run ': 'it takes minutes and looks into this repository; a shorter run of each is among the tests',
  'node --test ': 'npm test runs it',
  'initdb -D primary': 'it needs the programs of PostgreSQL; failover.test.ts does the same with what it has',
  'litestream restore': 'it needs Litestream',
  'pg_dump --format': 'it needs the programs of PostgreSQL',
  'pg_basebackup --pgdata': 'it needs the programs of PostgreSQL',
  'mkdir scrip &&': 'the package is not in the registry; package.test.ts installs it from its tarball',
  'useradd --system': 'it changes the machine',
  'docker build': 'it needs Docker',
  'echo "POSTGRES_PASSWORD': 'it needs Docker',
};

interface Example {
  readonly document: string;
  readonly command: string;
  /** What stands below it; empty when nothing does. */
  readonly shown: string;
}

const EXAMPLES: readonly Example[] = DOCUMENTS.flatMap((document) => {
  const text = readFileSync(join(REPOSITORY, document), 'utf8');
  const blocks = text.matchAll(/^```sh\n([\s\S]*?)^```\n(?:```\n([\s\S]*?)^```\n)?/gm);
  return [...blocks].map(([, command = '', shown = '']) => ({ document, command, shown }));
});

function reasonFor({ command }: Example): string | undefined {
  return Object.keys(NOT_RUN).find((beginning) => command.startsWith(beginning));
}

/** A server that is asked to stop as soon as it is up, however long that takes on a busy machine. */
const SERVE_UNTIL_UP = `#!/bin/sh
said=$(mktemp)
scrip serve >"$said" &
server=$!
for _ in $(seq 300); do
  grep -q '^Scrip is up on ' "$said" && break
  sleep 0.1
done
kill -TERM $server
wait $server
code=$?
cat "$said"
rm "$said"
exit $code
`;

let folder: string;
let scrip: Scrip;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'scrip-operator-'));
  for (const name of ['served', 'backups', 'elsewhere', 'bin']) await mkdir(join(folder, name));
  // `scrip` is the command, as npm and the container put it on the path.
  const command = `#!/bin/sh\nexec '${process.execPath}' '${join(REPOSITORY, 'src/cli.ts')}' "$@"\n`;
  await writeFile(join(folder, 'bin/scrip'), command);
  await chmod(join(folder, 'bin/scrip'), 0o755);
  await writeFile(join(folder, 'bin/serve-until-up'), SERVE_UNTIL_UP);
  await chmod(join(folder, 'bin/serve-until-up'), 0o755);
  const file = join(folder, 'served/scrip.db');
  scrip = await startScrip({ file });
  const key = await scrip.createKey('acme', 'write');
  for (const amount of [100, 200]) await scrip.post('/add', { end_user_id: someone(), amount }, { key });
});
after(async () => {
  await scrip?.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Beside a running server, but for what makes ledgers of its own: as it stands, with the test's folders for the reader's. */
async function run(command: string): Promise<{ stdout: string; stderr: string }> {
  const here = command
    .replaceAll('/backups', join(folder, 'backups'))
    .replaceAll('/elsewhere', join(folder, 'elsewhere'))
    .replaceAll('/tmp/rehearsal', join(folder, 'rehearsal'))
    .replaceAll(/PORT=\d+ scrip serve/g, 'PORT=0 serve-until-up');
  const { PATH = '' } = process.env;
  const env = { PATH: `${join(folder, 'bin')}:${PATH}`, DATABASE_URL: `file:${join(folder, 'served/scrip.db')}` };
  return promisify(execFile)('bash', ['--norc', '-euo', 'pipefail', '-c', here], { cwd: folder, env, timeout: 60_000 });
}

const VOLATILE: readonly (readonly [pattern: RegExp, mask: string])[] = [
  [/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<instant>'],
  [/\S*\/(backups\/)/g, '/$1'],
  [/\b\d+\b(?!-)/g, '<number>'],
  [/\bend user\b(?!s)/g, 'end users'],
];

const PROGRESS = /^\w+: <number> of <number> \w+, <number> %$/;

function masked(text: string): string[] {
  const named = text.replaceAll(/\b\d{4}-\d\d-\d\d\.db/g, 'day.db').trimEnd();
  return named
    .split('\n')
    .map((line) => VOLATILE.reduce((rest, [pattern, mask]) => rest.replaceAll(pattern, mask), line));
}

/** How often a long command says how far it is depends on how long it takes. */
function assertSaysAsShown({ document, shown }: Example, { stdout, stderr }: { stdout: string; stderr: string }): void {
  const lines = masked(shown);
  const progress = lines.filter((line) => PROGRESS.test(line));
  assert.deepEqual(
    masked(stdout),
    lines.filter((line) => !PROGRESS.test(line)),
    document,
  );
  for (const line of masked(stderr)) assert(progress.includes(line), `${document} shows ${line}`);
}

test('each command does what its document shows, or has a reason not to be run', async () => {
  const backups = join(folder, 'backups');
  const latest = join(backups, 'latest.db');
  const passedOver = new Set<string>();
  let isRun = 0;
  for (const example of EXAMPLES) {
    const reason = reasonFor(example);
    if (reason !== undefined) {
      passedOver.add(reason);
      continue;
    }
    // On the day of the example, that of each night has the same name.
    if (example.command.includes('$(date')) for (const name of readdirSync(backups)) await rm(join(backups, name));
    if (example.command.includes('latest.db') && !existsSync(latest)) await run('scrip backup /backups/latest.db');
    const said = await run(example.command);
    if (example.shown !== '') assertSaysAsShown(example, said);
    if (example.command.includes('scrip serve')) assert.match(said.stdout, /^Scrip is up on /m, 'it serves');
    isRun += 1;
  }
  assert(isRun >= 5, `${isRun} are run`);
  assert.match(
    readFileSync(join(folder, 'elsewhere/digests'), 'utf8'),
    /^scrip-digest-1 at=\S+ end_users=2 postings=2 .*\n$/,
  );
  assert.deepEqual([...passedOver].toSorted(), Object.keys(NOT_RUN).toSorted(), 'no reason is for nothing');
  assert.match(await readCsv(), /^end_user_id,transaction_id,kind,amount,/);
});

test('each script and file that a document runs is there, and each script is in CONTRIBUTING.md', () => {
  const { scripts } = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8'));
  const text = EXAMPLES.map(({ command }) => command).join('\n');
  for (const [, name = ''] of text.matchAll(/^npm run (?:-s )?(\S+)/gm)) assert(name in scripts, name);
  for (const [path] of text.matchAll(/\btest\/\S+\.ts\b/g)) assert(existsSync(join(REPOSITORY, path)), path);
  const contributing = readFileSync(join(REPOSITORY, 'CONTRIBUTING.md'), 'utf8');
  for (const name of Object.keys(scripts))
    assert.match(contributing, new RegExp(`\`(npm |npm run (-s )?)?${name}[ \`]`), `${name} is in no document`);
});

async function readCsv(): Promise<string> {
  return readFileSync(join(folder, 'acme.csv'), 'utf8');
}
