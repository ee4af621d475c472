// Runs essentials.ts in a worker thread and in a Node process.

import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { runNode } from './client-package.ts';
import { RuntimeRun } from './runtime-run.ts';
import { unpackClient } from './unpacked-client.ts';

let folder: string;
let user: string;
let runtimeRun: RuntimeRun;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'scrip-worker-'));
  user = await unpackClient(folder);
  runtimeRun = await RuntimeRun.prepare();
});
after(async () => {
  await runtimeRun?.stop();
  await rm(folder, { recursive: true, force: true });
});

test('the client works in a worker thread', async () => {
  const worker = new Worker(await runtimeRun.writeProgram(user), { stdout: true, env: {} });
  const output = text(worker.stdout);
  // `once` rejects if the worker fails.
  await once(worker, 'exit');
  await runtimeRun.assertPassed(await output);
});

test('the client works in a Node process', async () => {
  await runtimeRun.assertPassed(await runNode(user, await runtimeRun.writeProgram(user)));
});
