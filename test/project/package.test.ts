// Packs the npm package, installs it in an empty folder, and runs it. Also checks that the Dockerfile, compose.yaml and
// the systemd unit set only environment variables that Scrip or another program reads. Under `npm test`, npm only lists
// the packages that it would install, because installing them takes 10 s of CPU time.

import assert from 'node:assert/strict';
import { type ChildProcessByStdio, execFile, spawn } from 'node:child_process';
import { globSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { VERSION } from '../../src/version.ts';
import { documents } from '../docs/documents.ts';
import { IS_LONG } from '../effort.ts';
import { temporaryFolder } from '../store/temporary-ledger.ts';
import { npmNetwork } from './npm-network.ts';
import { omitTypeCheck } from './unchecked-build.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '..', '..');
const INSTALL_MS_MAX = 120_000;
const options = { timeout: INSTALL_MS_MAX };

const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));

function environmentWith(settings: Record<string, string> = {}): NodeJS.ProcessEnv {
  const { PATH = '', HOME = '', TMPDIR = '' } = process.env;
  return { PATH: `${dirname(process.execPath)}:${PATH}`, HOME, TMPDIR, ...npmNetwork(), ...settings };
}

/** Packs a copy of the sources, so that concurrent tests do not see `dist` change. */
async function pack(): Promise<string> {
  const folder = temporaryFolder();
  const copy = join(folder, 'project');
  mkdirSync(copy);
  const names = ['src', 'docs', 'packaging', 'node_modules', 'package.json', 'tsconfig.json', 'tsconfig.build.json'];
  const files = ['README.md', 'LICENSE', 'ARCHITECTURE.md', 'CHANGELOG.md'];
  await run('cp', [
    '-R',
    ...[...names, ...files].map((name) => join(ROOT, name)).filter((path) => !path.endsWith('node_modules')),
    copy,
  ]);
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  omitTypeCheck(copy);
  const { stdout } = await run('npm', ['pack', '--silent', '--pack-destination', folder], {
    cwd: copy,
    env: environmentWith(),
  });
  return join(folder, stdout.trim().split('\n').at(-1) as string);
}

/** With `--dry-run`, returns the names of the packages that npm would install. */
async function npmInstall(tarball: string, ...args: readonly string[]): Promise<string[]> {
  const command = ['install', '--prefer-offline', '--no-audit', '--no-fund', ...args, tarball];
  const { stdout } = await run('npm', command, { cwd: folder, env: environmentWith() });
  return [...stdout.matchAll(/^add (\S+) /gm)].map(([, name]) => name as string);
}

/** Unpacks the package, and links its dependencies. */
async function unpack(tarball: string): Promise<void> {
  mkdirSync(installed, { recursive: true });
  await run('tar', ['-xzf', tarball, '-C', installed, '--strip-components', '1']);
  const { bin, dependencies } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'));
  const links = Object.entries({
    ...Object.fromEntries(Object.keys(dependencies).map((name) => [name, join(ROOT, 'node_modules', name)])),
    '.bin/scrip': join(installed, bin.scrip),
  });
  for (const [name, target] of links) {
    const link = join(folder, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(target, link);
  }
}

let folder: string;
let installed: string;
let installedNames: readonly string[];
before(async () => {
  const tarball = await pack();
  folder = temporaryFolder();
  installed = join(folder, 'node_modules', 'scrip-ledger');
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
  installedNames = await npmInstall(tarball, '--dry-run');
  if (IS_LONG) await npmInstall(tarball);
  else await unpack(tarball);
}, options);
after(() => rmSync(folder, { recursive: true, force: true }));

type Child = ChildProcessByStdio<null, Readable, Readable>;

function npx(args: readonly string[], settings: Record<string, string>): Child {
  return spawn('npx', ['--no-install', 'scrip', ...args], {
    cwd: folder,
    env: environmentWith(settings),
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
}

function ended(child: Child): Promise<number | null> {
  return new Promise((resolve) => child.once('close', resolve));
}

async function outputOf(child: Child, expected: RegExp): Promise<string> {
  let text = '';
  return new Promise((resolve, reject) => {
    // The test searches standard error followed by standard output, so that one regular expression can match text in
    // both.
    let log = '';
    const look = () => expected.test(log + text) && resolve(log + text);
    child.stderr.setEncoding('utf8').on('data', (chunk) => {
      log += chunk;
      look();
    });
    child.stdout.setEncoding('utf8').on('data', (chunk) => {
      text += chunk;
      look();
    });
    child.once('close', () => reject(new Error(`the process exited before printing ${expected}: ${text}`)));
  });
}

describe('the npm package', options, () => {
  test('the installed package serves requests, and stops on SIGTERM', async (t) => {
    const settings = { PORT: '0', DATABASE_URL: `file:${join(temporaryFolder(), 'scrip.db')}` };
    const endUser = '5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23';
    const child = npx(['serve', '--first-key'], settings);
    const end = ended(child);
    t.after(() => child.exitCode === null && process.kill(-(child.pid as number), 'SIGKILL'));
    const text = await outputOf(child, /"pid"[\s\S]*scrip_write_\w+\n/);
    const [secret] = /scrip_write_\w+/.exec(text) ?? [];
    const url = /is listening on (\S+)/.exec(text)?.[1];
    const headers = { Authorization: `Bearer ${secret}`, 'Content-Type': 'application/json' };
    const body = JSON.stringify({ end_user_id: endUser, amount: 100 });
    const added = await fetch(`${url}/add`, { method: 'POST', headers, body });
    assert.deepEqual([added.status, await added.json()], [200, { end_user_id: endUser, amount: 100 }]);
    const read = await fetch(`${url}/get-active-balance?end_user_id=${endUser}`, { headers });
    assert.equal(((await read.json()) as { active_balance: number }).active_balance, 100);
    assert.equal((await fetch(`${url}/docs`)).status, 200, 'the package includes the API documentation');
    const page = await (await fetch(`${url}/console/sign-in`)).text();
    assert.match(page, /<h1>Sign in<\/h1>/);
    const assets = [...page.matchAll(/"(\/console\/assets\/[^"]+)"/g)].map(([, path]) => path as string);
    assert.equal(assets.length, 3, 'the package includes a stylesheet, a script and an icon');
    for (const path of assets) assert.equal((await fetch(`${url}${path}`)).status, 200, path);
    // npx does not forward signals, so the test sends the signal to the process whose ID is in the log.
    process.kill(Number(/"pid":(\d+)/.exec(text)?.[1]), 'SIGTERM');
    assert.equal(await end, 0);
  });

  test('on an older Node.js, the installed package exits with an error that names the required version', async () => {
    const old = `Object.defineProperty(process.versions, 'node', { value: '24.6.9' })`;
    const args = [
      '--import',
      `data:text/javascript,${encodeURIComponent(old)}`,
      join(installed, 'dist', 'main.js'),
      '--help',
    ];
    await assert.rejects(run(process.execPath, args), ({ stderr }) =>
      /^Scrip requires Node\.js 24\.7 or later, but this is Node\.js /.test(stderr),
    );
    assert.equal(manifest.engines.node, '>=24.7');
  });

  test('in the installed package, scrip --help lists the commands, and scrip --version prints the version in package.json', async () => {
    const command = join(folder, 'node_modules/.bin/scrip');
    const inFolder = { cwd: folder, env: environmentWith() };
    const { stdout } = await run(command, ['--version'], inFolder);
    assert.equal(stdout.trim(), manifest.version);
    assert.equal(VERSION, manifest.version);
    const help = await run(command, ['--help'], inFolder);
    for (const listed of ['serve', 'verify', 'backup', 'restore', 'export'])
      assert.match(help.stdout, new RegExp(`^ {2}${listed}`, 'm'));
  });

  test('the installed package contains compiled JavaScript and documents, but no sources, tests or ledgers', () => {
    const files = globSync('**', { cwd: installed, exclude: (name) => name === 'node_modules' });
    assert(files.includes('dist/main.js') && files.includes('dist/store/sqlite/writer/writer-thread.js'));
    assert(files.includes('LICENSE') && files.includes('README.md') && files.includes('docs/operating/backups.md'));
    assert.deepEqual(
      files.filter((file) => /\.ts$|\.db\b|^src|^test|\.test\.|^client|^bench/.test(file)),
      [],
    );
  });

  test('npm installs the scrip command and the dependencies of the package, but not its development dependencies', () => {
    for (const name of ['scrip-ledger', ...Object.keys(manifest.dependencies)])
      assert(installedNames.includes(name), name);
    for (const name of Object.keys(manifest.devDependencies)) assert(!installedNames.includes(name), name);
    assert.deepEqual(Object.keys(JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')).bin), ['scrip']);
  });

  test('the installed package imports only declared dependencies', () => {
    const declared = new Set(Object.keys(manifest.dependencies));
    for (const file of globSync('dist/**/*.js', { cwd: installed })) {
      const text = readFileSync(join(installed, file), 'utf8');
      for (const [, name = ''] of text.matchAll(
        /^(?:import|export) [^'\n]*from '([^'.][^']*)'|import\('([^'.][^']*)'\)/gm,
      )) {
        const owner = name.startsWith('@') ? name.split('/').slice(0, 2).join('/') : (name.split('/')[0] as string);
        assert(name === '' || name.startsWith('node:') || declared.has(owner), `${file} imports ${name}`);
      }
    }
  });
});

const read = (name: string): string => readFileSync(join(ROOT, name), 'utf8');

const DEPLOYMENTS: readonly (readonly [file: string, names: RegExp])[] = [
  ['Dockerfile', /^(?:ENV| {4}) ?([A-Z][A-Z_]+)=/gm],
  ['compose.yaml', /^ {6}([A-Z][A-Z_]+):/gm],
  ['docs/operating/scrip.service', /^Environment=([A-Z_]+)=/gm],
];

const FOREIGN = /^(POSTGRES_|PG|SQLITE_TMPDIR$|NODE_ENV$)/;

/**
 * Matches commands that would fetch the wrong package from the npm registry, because the packages of this project are
 * not published there.
 */
const FROM_REGISTRY =
  /\bnpx (?!--no-install)(?:-\S+ )*scrip\b|\bnpm (?:install|i|add|exec)(?: -\S+)* scrip(?:-ledger|-client)?(?![\w.-])/;

describe('the names of the packages', () => {
  test("the service's package is scrip-ledger and its command is scrip; the client's package is scrip-client", () => {
    const client = JSON.parse(read('client/package.json'));
    assert.deepEqual(
      [manifest.name, client.name, Object.keys(manifest.bin)],
      ['scrip-ledger', 'scrip-client', ['scrip']],
    );
  });

  test('no command in a document installs or runs scrip, scrip-ledger or scrip-client from the npm registry', () => {
    for (const document of [...documents(), 'Dockerfile', 'compose.yaml', 'docs/operating/scrip.service'])
      assert.doesNotMatch(read(document), FROM_REGISTRY, document);
    for (const command of ['npx scrip serve', 'npx --yes scrip', 'npm install scrip', 'npm i -g scrip-ledger'])
      assert.match(command, FROM_REGISTRY);
    for (const command of [
      'npm install /tmp/scrip-client-0.1.0.tgz',
      'npx --no-install scrip',
      'npm run -s scrip -- key',
    ])
      assert.doesNotMatch(command, FROM_REGISTRY);
  });
});

describe('the deployment files', () => {
  for (const [file, names] of DEPLOYMENTS) {
    test(`${file} sets only variables that Scrip or another program reads`, () => {
      const known = readFileSync(join(ROOT, 'src', 'config.ts'), 'utf8');
      const set = [...read(file).matchAll(names)].map(([, name]) => name as string);
      assert(set.length > 0, 'the file sets variables');
      for (const name of set)
        assert(FOREIGN.test(name) || new RegExp(`environment\\.${name}\\b`).test(known), `${name} is a setting`);
    });
  }

  test('in compose.yaml, Scrip has a read-only file system and cannot create a key file, so WEBHOOK_KEY is required', () => {
    assert.match(read('compose.yaml'), /^ {4}read_only: true$/m);
    assert.match(read('compose.yaml'), /^ {6}WEBHOOK_KEY: \$\{WEBHOOK_KEY:\?/m);
  });

  test('the health check of PostgreSQL in compose.yaml uses TCP, because Scrip could not connect while only the socket is open', () =>
    assert.match(read('compose.yaml'), /pg_isready --host=127\.0\.0\.1 /));

  test('the health check of the Docker image fails if /healthz does not return 200 or does not respond', async (t) => {
    const [, code] = /CMD \["node", "-e", "(.+)"\]/.exec(read('Dockerfile')) ?? [];
    assert(code);
    const { createServer } = await import('node:http');
    let status = 200;
    const server = createServer(({ url }, response) => response.writeHead(url === '/healthz' ? status : 503).end());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.after(() => server.close());
    const { port } = server.address() as { port: number };
    const check = () =>
      run(process.execPath, ['-e', code], { env: environmentWith({ PORT: String(port) }) }).then(
        () => 0,
        (error) => error.code,
      );
    assert.equal(await check(), 0);
    status = 503;
    assert.equal(await check(), 1);
    server.close();
    server.closeAllConnections();
    assert.equal(await check(), 1);
  });

  test('the systemd unit runs scrip serve, which may write only to the folder of the ledger', () => {
    const text = read('docs/operating/scrip.service');
    assert.match(text, /^ExecStart=\S*node \S*\/node_modules\/scrip-ledger\/dist\/main\.js serve$/m);
    const ledger = /^Environment=DATABASE_URL=file:(.+)$/m.exec(text)?.[1];
    assert.equal(ledger, '/var/lib/scrip/scrip.db');
    assert.match(text, /^StateDirectory=scrip$/m);
    assert.match(text, /^ProtectSystem=strict$/m);
    assert.match(text, /^KillSignal=SIGTERM$/m);
  });
});
