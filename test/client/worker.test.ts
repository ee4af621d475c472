// The client in a worker thread, and in a process of its own, by the same program that `npm run client:runtimes` gives
// to Bun and Deno.

import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { runNode } from './client-package.ts';
import { RuntimeTrial } from './runtime-trial.ts';
import { unpackClient } from './unpacked-client.ts';

let folder: string;
let user: string;
let trial: RuntimeTrial;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'scrip-worker-'));
  user = await unpackClient(folder);
  trial = await RuntimeTrial.prepare();
});
after(async () => {
  await trial?.stop();
  await rm(folder, { recursive: true, force: true });
});

test('the client does in a worker what it must', async () => {
  const worker = new Worker(await trial.writeProgram(user), { stdout: true, env: {} });
  const said = text(worker.stdout);
  // An error in the worker is thrown here.
  await once(worker, 'exit');
  await trial.assertHeld(await said);
});

test('the client does in Node what it must', async () => {
  await trial.assertHeld(await runNode(user, await trial.writeProgram(user)));
});
