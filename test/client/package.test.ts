// Tests the packed client: it has no dependencies, uses only features that every JavaScript runtime has, works in
// worker threads, and can be used as ES modules and as CommonJS with every module resolution in MODES.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { effort } from '../effort.ts';
import { type Scrip, someone, startScrip } from '../http/running-service.ts';
import { CLIENT, pathWithoutNodeModules, runNode, TSC, TSC_5 } from './client-package.ts';
import { RuntimeRun } from './runtime-run.ts';
import { unpackClient } from './unpacked-client.ts';
import { VECTOR, VECTOR_HEADERS } from './webhook-vector.ts';

const BARE = `
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createContext, SourceTextModule } from 'node:vm';

const { fetch, AbortController, crypto, URL, URLSearchParams, TextEncoder, TextDecoder, atob, setTimeout, clearTimeout } = globalThis;
const context = createContext({ fetch, AbortController, crypto, URL, URLSearchParams, TextEncoder, TextDecoder, atob, setTimeout, clearTimeout });
const modules = new Map();
const load = (path) => {
  if (!modules.has(path)) modules.set(path, new SourceTextModule(readFileSync(path, 'utf8'), { context, identifier: path }));
  return modules.get(path);
};
const entry = load(join(import.meta.dirname, 'node_modules/scrip-client/dist/scrip.js'));
await entry.link((specifier, { identifier }) => load(join(dirname(identifier), specifier)));
await entry.evaluate();
const { InsufficientFunds, Scrip, TimedOut, verifyWebhook } = entry.namespace;

const { SCRIP_URL, SCRIP_KEY, END_USER } = process.env;
const scrip = new Scrip({ baseUrl: SCRIP_URL, apiKey: SCRIP_KEY });
await scrip.add({ end_user_id: END_USER, amount: 100 });
const error = await scrip.subtract({ end_user_id: END_USER, amount: 130 }).catch((error) => error);
const neverResponding = (input, init) => new Promise((_, reject) => init.signal.addEventListener('abort', () => reject(init.signal.reason)));
const impatient = new Scrip({ baseUrl: SCRIP_URL, apiKey: SCRIP_KEY, timeoutMs: 20, retries: 1, fetch: neverResponding });
const late = await impatient.getActiveBalance({ end_user_id: END_USER }).catch((error) => error);
const { test } = await verifyWebhook(${JSON.stringify(VECTOR_HEADERS)}, '${VECTOR.body}', '${VECTOR.secret}', { now: new Date(${VECTOR.timestamp * 1_000}) });
console.log(error instanceof InsufficientFunds, error.available, late instanceof TimedOut, test);
`;

const PROGRAM = `
import { type Balance, createdAt, InsufficientFunds, Scrip, verifyWebhook, type WebhookEvent } from 'scrip-client';

declare const console: { log(text: string): void };
declare const process: { env: Record<string, string>; versions: { node: string } };

function leftOf(event: WebhookEvent): number {
  if (event.type === 'webhook.test') return event.data.endpoint_id;
  // @ts-expect-error only balance events have this field
  event.data.previous_balance;
  return event.type === 'balance.low' ? event.data.previous_balance - event.data.balance : event.data.balance;
}

async function run(): Promise<void> {
  const { SCRIP_URL = '', SCRIP_KEY = '', END_USER = '' } = process.env;
  const scrip = new Scrip({ baseUrl: SCRIP_URL, apiKey: SCRIP_KEY });
  let after: string | undefined;
  after = (await scrip.getEvents({ after, types: ['balance.low'] })).next_cursor;
  await scrip.add({ end_user_id: END_USER, amount: 100, validity_days: undefined }, { idempotencyKey: undefined });
  try {
    await scrip.subtract({ end_user_id: END_USER, amount: 130 });
  } catch (error) {
    if (!(error instanceof InsufficientFunds)) throw error;
    const available: number = error.available;
    const cycle = await scrip.startCycle({ end_user_id: END_USER, amount: 7 });
    const isSame: boolean = createdAt(cycle).toISOString() === cycle.current_cycle_start;
    const balance: Balance = await scrip.getActiveBalance({ end_user_id: END_USER });
    // @ts-expect-error the API has no such field
    balance.balance_now;
    verifyWebhook(new Headers(), '{}', []).then(leftOf, () => {});
    console.log([process.versions.node, available, isSame, balance.active_balance].join(' '));
  }
}
void run();
`;

interface Mode {
  readonly compiler: string;
  readonly options: string;
  readonly type: 'module' | 'commonjs';
}

const MODES: readonly (readonly [name: string, mode: Mode])[] = [
  [
    'TypeScript 5, moduleResolution node, to CommonJS',
    { compiler: TSC_5, options: '--module commonjs --moduleResolution node', type: 'commonjs' },
  ],
  [
    'TypeScript 5, moduleResolution node, to ES modules',
    { compiler: TSC_5, options: '--module es2022 --moduleResolution node', type: 'module' },
  ],
  ['TypeScript 7, nodenext, in CommonJS', { compiler: TSC, options: '--module nodenext', type: 'commonjs' }],
  ['TypeScript 7, nodenext, in an ES module', { compiler: TSC, options: '--module nodenext', type: 'module' }],
  ['TypeScript 7, bundler', { compiler: TSC, options: '--module esnext --moduleResolution bundler', type: 'module' }],
  ['TypeScript 5, node16, in CommonJS', { compiler: TSC_5, options: '--module node16', type: 'commonjs' }],
  ['TypeScript 5, node16, in an ES module', { compiler: TSC_5, options: '--module node16', type: 'module' }],
  ['TypeScript 5, bundler', { compiler: TSC_5, options: '--module esnext --moduleResolution bundler', type: 'module' }],
];

/** Without --skipDefaultLibCheck, checking TypeScript's own libraries would take most of the time. */
const STRICT =
  '--strict --skipDefaultLibCheck --exactOptionalPropertyTypes --noUncheckedIndexedAccess --target es2022 --lib es2022,dom';

let folder: string;
let user: string;
let scrip: Scrip;
before(async () => {
  scrip = await startScrip();
  folder = await mkdtemp(join(tmpdir(), 'scrip-client-'));
  user = await unpackClient(folder);
});
after(async () => {
  await scrip.stop();
  await rm(folder, { recursive: true, force: true });
});

test('the client needs no globals except fetch, AbortController, crypto, URL, URLSearchParams, TextEncoder, TextDecoder, atob and timers', async () => {
  await writeFile(join(user, 'bare.mjs'), BARE);
  const env = { SCRIP_URL: scrip.url, SCRIP_KEY: scrip.writeKey, END_USER: someone() };
  const output = await runNode({ cwd: user, env }, '--experimental-vm-modules', '--no-warnings', 'bare.mjs');
  assert.equal(output, 'true 100 true 2432232314\n');
});

test('the client has no dependencies, and its sources import only each other', async () => {
  const { dependencies, peerDependencies } = JSON.parse(await readFile(join(CLIENT, 'package.json'), 'utf8'));
  assert.deepEqual([dependencies, peerDependencies], [undefined, undefined]);
  const sources = await readdir(join(CLIENT, 'src'));
  for (const source of sources) {
    const text = await readFile(join(CLIENT, 'src', source), 'utf8');
    for (const [, from] of text.matchAll(/(?:from|import\()\s*'([^']+)'/g))
      assert(sources.includes((from as string).replace('./', '')), `${source} imports ${from}`);
  }
});

test('the type declarations of the client import only JavaScript files, because older compilers do not resolve .ts', async () => {
  const dist = join(user, 'node_modules/scrip-client/dist');
  const names = (await readdir(dist, { recursive: true })).filter((name) => name.endsWith('.d.ts'));
  assert(names.length > 0);
  for (const name of names) {
    const declarations = await readFile(join(dist, name), 'utf8');
    for (const [, from] of declarations.matchAll(/(?:from |import\()['"]([^'"]+)['"]/g))
      assert.match(from as string, /^\.\/[\w-]+\.js$/, name);
  }
});

describe('the checks that the client must pass in every runtime', () => {
  let runtimeRun: RuntimeRun;
  before(async () => {
    runtimeRun = await RuntimeRun.prepare();
  });
  after(() => runtimeRun.stop());

  test('in a worker thread, the client passes the checks of essentials.ts', async () => {
    const worker = new Worker(await runtimeRun.writeProgram(user), { stdout: true, env: {} });
    const output = text(worker.stdout);
    // `once` rejects if the worker fails.
    await once(worker, 'exit');
    await runtimeRun.assertPassed(await output);
  });

  test('in a Node process, the client passes the checks of essentials.ts', async () => {
    await runtimeRun.assertPassed(await runNode(user, await runtimeRun.writeProgram(user)));
  });
});

async function compile(name: string, { compiler, options, type }: Mode): Promise<string> {
  const program = join(user, name.replaceAll(/\W+/g, '-'));
  await mkdir(program);
  await writeFile(join(program, 'package.json'), JSON.stringify({ type }));
  await writeFile(join(program, 'program.ts'), PROGRAM);
  await runNode(program, compiler, ...STRICT.split(' '), ...options.split(' '), 'program.ts');
  return program;
}

async function output(node: string, cwd: string): Promise<string> {
  const settings = { SCRIP_URL: scrip.url, SCRIP_KEY: scrip.writeKey, END_USER: someone() };
  const env = { ...settings, PATH: pathWithoutNodeModules() };
  return (await promisify(execFile)(node, ['program.js'], { cwd, env, timeout: 60_000 })).stdout;
}

describe('programs that use the client', () => {
  // `npm test` uses TypeScript 5 only for `moduleResolution: node`, which TypeScript 7 does not support.
  for (const [name, mode] of MODES.slice(0, effort(5, MODES.length)))
    test(`a program that uses the client compiles (${name}), and runs on the Node installed on the machine and on the Node that runs the tests`, async () => {
      const program = await compile(name, mode);
      const [older = '', newest = ''] = [await output('node', program), await output(process.execPath, program)];
      assert.match(older, /^[\d.]+ 100 true 107\n$/);
      assert.equal(newest, `${process.versions.node} 100 true 107\n`);
    });
});

test('import finds the ES modules of the client, and require finds the CommonJS modules', async () => {
  await writeFile(join(user, 'found.mjs'), "console.log(import.meta.resolve('scrip-client'));\n");
  await writeFile(join(user, 'found.cjs'), "console.log(require.resolve('scrip-client'));\n");
  assert.match(await runNode(user, 'found.mjs'), /scrip-client\/dist\/scrip\.js\n$/);
  assert.match(await runNode(user, 'found.cjs'), /scrip-client\/dist\/cjs\/scrip\.js\n$/);
});
