// Tests that the packed client has no dependencies, and uses only features that every JavaScript runtime has.

import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type Scrip, someone, startScrip } from '../http/running-service.ts';
import { CLIENT, runNode } from './client-package.ts';
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
