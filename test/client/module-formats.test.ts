// Compiles and runs programs that use the packed client, as ES modules and as CommonJS, with each module resolution.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { type Scrip, someone, startScrip } from '../http/running-service.ts';
import { pathWithoutNodeModules, runNode, TSC, TSC_5 } from './client-package.ts';
import { unpackClient } from './unpacked-client.ts';

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
  await scrip.add({ end_user_id: END_USER, amount: 100 });
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

const MODES: Readonly<Record<string, Mode>> = {
  'TypeScript 5, moduleResolution node, to CommonJS': {
    compiler: TSC_5,
    options: '--module commonjs --moduleResolution node',
    type: 'commonjs',
  },
  'TypeScript 5, moduleResolution node, to ES modules': {
    compiler: TSC_5,
    options: '--module es2022 --moduleResolution node',
    type: 'module',
  },
  'TypeScript 5, node16, in CommonJS': { compiler: TSC_5, options: '--module node16', type: 'commonjs' },
  'TypeScript 5, node16, in an ES module': { compiler: TSC_5, options: '--module node16', type: 'module' },
  'TypeScript 5, bundler': {
    compiler: TSC_5,
    options: '--module esnext --moduleResolution bundler',
    type: 'module',
  },
  'TypeScript 7, nodenext, in CommonJS': { compiler: TSC, options: '--module nodenext', type: 'commonjs' },
  'TypeScript 7, nodenext, in an ES module': { compiler: TSC, options: '--module nodenext', type: 'module' },
  'TypeScript 7, bundler': { compiler: TSC, options: '--module esnext --moduleResolution bundler', type: 'module' },
};

const STRICT = '--strict --exactOptionalPropertyTypes --noUncheckedIndexedAccess --target es2022 --lib es2022,dom';

let folder: string;
let user: string;
let scrip: Scrip;
before(async () => {
  scrip = await startScrip();
  folder = await mkdtemp(join(tmpdir(), 'scrip-formats-'));
  user = await unpackClient(folder);
});
after(async () => {
  await scrip.stop();
  await rm(folder, { recursive: true, force: true });
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

describe("a program that uses the client compiles, and runs on the machine's own Node and on the Node that runs the tests", () => {
  for (const [name, mode] of Object.entries(MODES))
    test(name, async () => {
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
