// Runs the operators' commands that the documents show. Each command must print the output in the document; paths,
// numbers and times may differ.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { type Scrip, someone, startScrip } from '../http/running-service.ts';
import { documents, type Example, examplesIn, masked, REPOSITORY, textOf } from './documents.ts';

/** examples-run.test.ts runs the examples in these documents. */
const OF_CALLS = ['README.md', 'docs/api.md', 'docs/recipes.md', 'docs/other-languages.md'];

const NOT_RUN: Readonly<Record<string, string>> = {
  'npm start -- --test-clock': 'it serves until it is stopped; test/cli/test-clock.test.ts runs it',
  'curl "$SCRIP_URL/test-clock"': 'it needs a ledger with a test clock; test/cli/test-clock.test.ts runs it',
  'scrip="env DATABASE_URL=file:$(mktemp': 'it serves a ledger; test/cli/test-clock.test.ts runs it',
  'npm ci': 'it installs packages and runs all tests',
  'npm run -s scrip -- copy': 'it needs PostgreSQL; copy.test.ts runs it',
  'npm run -s scrip -- threshold add': 'it needs a server and starts a receiver; test/cli/webhooks.test.ts runs it',
  'npm run ': 'it takes minutes; npm test runs a shorter form',
  'npx node --test ': 'npm test runs it',
  'npx node --conditions=scrip-source': 'it needs a ledger with a test clock; test/client/stories.test.ts runs it',
  'scrip import': 'it needs a CSV file; import.test.ts runs it',
  'scrip password reset': 'it needs a console user; test/console runs it',
  'initdb -D primary': 'it needs the programs of PostgreSQL; failover.test.ts does the same',
  'litestream restore': 'it needs Litestream',
  'pg_dump --format': 'it needs the programs of PostgreSQL',
  'pg_basebackup --pgdata': 'it needs the programs of PostgreSQL',
  'promtool check config': 'it needs Prometheus; npm run monitoring does the same',
  'useradd --system': 'it changes the machine',
  'docker build': 'it needs Docker',
  'echo "POSTGRES_PASSWORD': 'it needs Docker',
};

const EXAMPLES: readonly Example[] = documents()
  .filter((path) => !OF_CALLS.includes(path))
  .flatMap(examplesIn);

function reasonFor({ command }: Example): string | undefined {
  return Object.keys(NOT_RUN).find((beginning) => command.startsWith(beginning));
}

const SERVE_UNTIL_LISTENING = `#!/bin/sh
said=$(mktemp)
scrip serve >"$said" &
server=$!
for _ in $(seq 300); do
  grep -qE '^Scrip is listening on ' "$said" && break
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
  const command = `#!/bin/sh\nexec '${process.execPath}' '${join(REPOSITORY, 'src/main.ts')}' "$@"\n`;
  await writeFile(join(folder, 'bin/scrip'), command);
  await chmod(join(folder, 'bin/scrip'), 0o755);
  await writeFile(join(folder, 'bin/serve-until-up'), SERVE_UNTIL_LISTENING);
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

const NUMBERS_AND_PATHS: readonly (readonly [pattern: RegExp, mask: string])[] = [
  [/<instant>Z/g, '<instant>'],
  [/\bwhsec_[A-Za-z0-9+/]+/g, '<secret>'],
  [/\S*\/(backups\/)/g, '/$1'],
  [/\b\d+\b(?!-)/g, '<number>'],
  [/ %$/g, '%'],
  [/\bend user\b(?!s)/g, 'end users'],
];

const PROGRESS = /^\w+: <number> of <number> \w+, <number>%$/;

function linesOf(text: string): string[] {
  const named = text.replaceAll(/\b\d{4}-\d\d-\d\d\.db/g, 'day.db').trimEnd();
  return named.split('\n').map((line) => masked(line, NUMBERS_AND_PATHS));
}

/** The width of a column depends on its content, so only the header is compared. */
function headerOf(table: string): string | undefined {
  return table.split('\n')[0]?.replaceAll(/ +/g, ' ');
}

/** A faster run prints fewer progress lines, so a command may print fewer of them than the document shows. */
function assertPrintsAsShown(
  { document, command, shown }: Example,
  { stdout, stderr }: Record<'stdout' | 'stderr', string>,
) {
  if (/^scrip (?:key|webhook|threshold) list/.test(command))
    return assert.equal(headerOf(stdout), headerOf(shown), document);
  const lines = linesOf(shown);
  const progress = lines.filter((line) => PROGRESS.test(line));
  assert.deepEqual(
    linesOf(stdout),
    lines.filter((line) => !PROGRESS.test(line)),
    document,
  );
  for (const line of linesOf(stderr).filter((line) => line !== ''))
    assert(progress.includes(line), `${document}: ${line}`);
}

test('each command in the documentation prints the output shown below it, or is listed with the reason why the tests cannot run it', async () => {
  const backups = join(folder, 'backups');
  const latest = join(backups, 'latest.db');
  const skipped = new Set<string>();
  let count = 0;
  for (const example of EXAMPLES) {
    const reason = reasonFor(example);
    if (reason !== undefined) {
      skipped.add(reason);
      continue;
    }
    // The nightly backup fails if a backup with today's date already exists.
    const today = join(backups, `scrip-${new Date().toISOString().slice(0, 10)}.db`);
    if (example.command.includes('$(date')) await rm(today, { force: true });
    if (example.command.includes('latest.db') && !existsSync(latest)) await run('scrip backup /backups/latest.db');
    const printed = await run(example.command);
    if (example.shown !== '') assertPrintsAsShown(example, printed);
    if (example.command.includes('scrip serve'))
      assert.match(printed.stdout, /^Scrip is listening on /m, 'the server listens');
    count += 1;
  }
  assert(count >= 11, `only ${count} commands were run`);
  assert.match(
    readFileSync(join(folder, 'elsewhere/digests'), 'utf8'),
    /^scrip-digest-1 at=\S+ end_users=2 postings=2 .*\n$/,
  );
  assert.deepEqual(
    [...skipped].toSorted(),
    Object.keys(NOT_RUN).toSorted(),
    'each entry of the list applies to a command',
  );
  assert.match(readFileSync(join(folder, 'acme.csv'), 'utf8'), /^end_user_id,transaction_id,kind,amount,/);
});

test('the documentation names only npm scripts and test files that exist, and CONTRIBUTING.md lists every npm script', () => {
  const { scripts } = JSON.parse(textOf('package.json'));
  const text = EXAMPLES.map(({ command }) => command).join('\n');
  for (const [, name = ''] of text.matchAll(/^npm run (?:-s )?(\S+)/gm)) assert(name in scripts, name);
  for (const [path] of text.matchAll(/\btest\/\S+\.ts\b/g)) assert(existsSync(join(REPOSITORY, path)), path);
  const contributing = textOf('CONTRIBUTING.md');
  for (const name of Object.keys(scripts))
    assert.match(contributing, new RegExp(`\`(npm |npm run (-s )?)?${name}[ \`]`), `${name} is not in CONTRIBUTING.md`);
});

test('docs/command-line.md lists exactly the commands that scrip --help lists', async () => {
  const { stdout } = await run('scrip --help');
  const [, list = ''] = stdout.split('Commands:\n');
  const commands = [...list.matchAll(/^ {2}([a-z]+)\b/gm)].map(([, name]) => name).filter((name) => name !== 'help');
  const rows = [...textOf('docs/command-line.md').matchAll(/^\| \[`scrip ([a-z]+)/gm)].map(([, name]) => name);
  assert.deepEqual([...new Set(rows)].toSorted(), commands.toSorted());
});
