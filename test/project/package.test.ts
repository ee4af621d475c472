// The npm package as users get it: packed, installed into an empty folder without the development dependencies, and run.
// Also checks the Dockerfile, compose.yaml and systemd unit against the settings that Scrip reads.

import assert from 'node:assert/strict';
import { type ChildProcessByStdio, execFile, spawn } from 'node:child_process';
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { readConfig } from '../../src/config.ts';
import { VERSION } from '../../src/version.ts';
import { temporaryFolder } from '../store/temporary-ledger.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '..', '..');
const INSTALL_MS_MAX = 120_000;
const options = { timeout: INSTALL_MS_MAX };

const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));

/** Puts the project's own Node.js first in PATH, and passes on no settings of Scrip. */
function environmentWith(settings: Record<string, string> = {}): NodeJS.ProcessEnv {
  const { PATH = '', HOME = '', TMPDIR = '' } = process.env;
  // npm may need a proxy and a certificate to reach its registry.
  const networkSettings =
    /^(npm_config_(registry|cache|userconfig|globalconfig|cafile|(https_)?proxy)|NODE_EXTRA_CA_CERTS|https?_proxy)$/i;
  const network = Object.entries(process.env).filter(([name]) => networkSettings.test(name));
  return { PATH: `${dirname(process.execPath)}:${PATH}`, HOME, TMPDIR, ...Object.fromEntries(network), ...settings };
}

/** Packs a copy of the sources, so that tests that run at the same time do not see `dist` change. */
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
  await run('ln', ['-s', join(ROOT, 'node_modules'), join(copy, 'node_modules')]);
  const { stdout } = await run('npm', ['pack', '--silent', '--pack-destination', folder], {
    cwd: copy,
    env: environmentWith(),
  });
  return join(folder, stdout.trim().split('\n').at(-1) as string);
}

let folder: string;
let installed: string;
before(async () => {
  const tarball = await pack();
  folder = temporaryFolder();
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
  await run('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', tarball], {
    cwd: folder,
    env: environmentWith(),
  });
  installed = join(folder, 'node_modules', 'scrip');
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

/** Resolves with all output so far once it matches. */
async function outputOf(child: Child, expected: RegExp): Promise<string> {
  let text = '';
  return new Promise((resolve, reject) => {
    // Standard error precedes standard output, so that one expression can match both.
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
    child.once('close', () => reject(new Error(`it exited before printing ${expected}: ${text}`)));
  });
}

describe('the npm package', options, () => {
  test('the installed package serves requests, keeps the ledger across a restart and stops on SIGTERM', async (t) => {
    const settings = { PORT: '0', DATABASE_URL: `file:${join(temporaryFolder(), 'scrip.db')}` };
    const endUser = '5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23';
    let secret = '';
    for (const expected of [100, 200]) {
      const child = npx(['serve', '--first-key'], settings);
      const end = ended(child);
      t.after(() => child.exitCode === null && process.kill(-(child.pid as number), 'SIGKILL'));
      const text = await outputOf(
        child,
        secret === '' ? /"pid"[\s\S]*scrip_write_\w+\n/ : /"pid"[\s\S]*is listening on/,
      );
      secret ||= /scrip_write_\w+/.exec(text)?.[0] ?? '';
      const url = /is listening on (\S+)/.exec(text)?.[1];
      const headers = { Authorization: `Bearer ${secret}`, 'Content-Type': 'application/json' };
      const body = JSON.stringify({ end_user_id: endUser, amount: 100 });
      const added = await fetch(`${url}/add`, { method: 'POST', headers, body });
      assert.deepEqual([added.status, await added.json()], [200, { end_user_id: endUser, amount: 100 }]);
      const read = await fetch(`${url}/get-active-balance?end_user_id=${endUser}`, { headers });
      assert.equal(((await read.json()) as { active_balance: number }).active_balance, expected);
      assert.equal((await fetch(`${url}/docs/static/index.html`)).status, 200, 'the API documentation is included');
      const page = await (await fetch(`${url}/console/sign-in`)).text();
      assert.match(page, /<h1>Sign in<\/h1>/);
      const assets = [...page.matchAll(/"(\/console\/assets\/[^"]+)"/g)].map(([, path]) => path as string);
      assert.equal(assets.length, 3, 'a stylesheet, a script and an icon');
      for (const path of assets) assert.equal((await fetch(`${url}${path}`)).status, 200, path);
      // npx does not forward the signal. The log has the process ID of Scrip.
      process.kill(Number(/"pid":(\d+)/.exec(text)?.[1]), 'SIGTERM');
      assert.equal(await end, 0);
    }
  });

  test('the installed package names the required version on an older Node.js', async () => {
    const old = `Object.defineProperty(process.versions, 'node', { value: '24.6.9' })`;
    const args = [
      '--import',
      `data:text/javascript,${encodeURIComponent(old)}`,
      join(installed, 'dist', 'main.js'),
      '--help',
    ];
    await assert.rejects(run(process.execPath, args), ({ stderr }) =>
      /^Scrip requires Node\.js 24\.7 or later; this is /.test(stderr),
    );
    assert.equal(manifest.engines.node, '>=24.7');
  });

  test('the installed package has all commands and the version of package.json', async () => {
    const { stdout } = await run('npx', ['--no-install', 'scrip', '--version'], {
      cwd: folder,
      env: environmentWith(),
    });
    assert.equal(stdout.trim(), manifest.version);
    assert.equal(VERSION, manifest.version);
    const help = await run('npx', ['--no-install', 'scrip', '--help'], { cwd: folder, env: environmentWith() });
    for (const command of ['serve', 'verify', 'backup', 'restore', 'export'])
      assert.match(help.stdout, new RegExp(`^ {2}${command}`, 'm'));
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

  test('the installed package brings no development dependencies', () => {
    for (const name of Object.keys(manifest.devDependencies))
      assert(!existsSync(join(folder, 'node_modules', name)), name);
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

/** How each deployment file sets environment variables. */
const DEPLOYMENTS: readonly (readonly [file: string, names: RegExp])[] = [
  ['Dockerfile', /^(?:ENV| {4}) ?([A-Z][A-Z_]+)=/gm],
  ['compose.yaml', /^ {6}([A-Z][A-Z_]+):/gm],
  ['docs/operating/scrip.service', /^Environment=([A-Z_]+)=/gm],
];

/** Variables of other programs in the same files. */
const FOREIGN = /^(POSTGRES_|PG|SQLITE_TMPDIR$|NODE_ENV$)/;

describe('the deployment files', () => {
  for (const [file, names] of DEPLOYMENTS) {
    test(`${file} sets only variables that Scrip reads`, () => {
      const known = readFileSync(join(ROOT, 'src', 'config.ts'), 'utf8');
      const set = [...read(file).matchAll(names)].map(([, name]) => name as string);
      assert(set.length > 0, 'it sets variables');
      for (const name of set)
        assert(FOREIGN.test(name) || new RegExp(`environment\\.${name}\\b`).test(known), `${name} is a setting`);
    });
  }

  test('the Docker image is built from existing files, runs as a normal user and has a health check', () => {
    const text = read('Dockerfile');
    const copied = [...text.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, list]) => (list as string).split(' '));
    assert(copied.length > 0);
    const ignored = read('.dockerignore').split('\n');
    for (const name of copied) {
      assert(existsSync(join(ROOT, name)), name);
      assert(
        ignored.some((line) => line === `!${name}`),
        `${name} is in .dockerignore as included`,
      );
    }
    assert.match(text, /^USER (?!root)\w+$/m);
    assert.match(text, /^VOLUME \["?\/data"?\]$/m);
    // The root file system may be read-only, and SQLite writes temporary files for large sorts.
    assert.match(text, /^ {4}SQLITE_TMPDIR=\/data$/m);
    assert.match(text, /^HEALTHCHECK .*\\\n.*\["node", /m);
    const port = /^ENV .*?\bPORT=(\d+)/m.exec(text.replaceAll(/\\\n\s*/g, ' '))?.[1];
    assert(port && text.includes(`EXPOSE ${port}`));
    assert.doesNotThrow(() => readConfig({ PORT: port, HOST: '0.0.0.0', DATABASE_URL: 'file:/data/scrip.db' }));
  });

  test('the health check of the Docker image fails if /readyz is not 200 or does not answer', async (t) => {
    const [, code] = /CMD \["node", "-e", "(.+)"\]/.exec(read('Dockerfile')) ?? [];
    assert(code);
    const { createServer } = await import('node:http');
    let status = 200;
    const server = createServer((_request, response) => response.writeHead(status).end());
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

  test('the systemd unit runs scrip serve with write access to the folder of the ledger only', () => {
    const text = read('docs/operating/scrip.service');
    assert.match(text, /^ExecStart=\S*node \S*\/node_modules\/scrip\/dist\/main\.js serve$/m);
    const ledger = /^Environment=DATABASE_URL=file:(.+)$/m.exec(text)?.[1];
    assert.equal(ledger, '/var/lib/scrip/scrip.db');
    assert.match(text, /^StateDirectory=scrip$/m);
    assert.match(text, /^ProtectSystem=strict$/m);
    assert.match(text, /^KillSignal=SIGTERM$/m);
  });
});
