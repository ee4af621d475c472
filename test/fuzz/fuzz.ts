// `npm run fuzz -- --seed N --requests N`: sends many hostile requests to a real server.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { auditProblems, newKey, ServerProcess } from '../load/server-process.ts';
import { targetAt } from './fuzz-target.ts';
import { fuzz } from './fuzzing.ts';

const { values } = parseArgs({ options: { seed: { type: 'string' }, requests: { type: 'string' } } });
const seed = Number(values.seed ?? Date.now() % 1_000_000);
const requests = Number(values.requests ?? 200_000);
const print = (line: string) => process.stdout.write(`${line}\n`);

const folder = await mkdtemp(join(tmpdir(), 'scrip-fuzz-'));
const url = `file:${join(folder, 'ledger.db')}`;
const server = await ServerProcess.start(url);
try {
  const target = await targetAt(server.url, () => newKey(url));
  const started = performance.now();
  const found = await fuzz(target, seed, requests);
  const seconds = Math.round((performance.now() - started) / 1_000);
  const statuses = [...found.statuses]
    .toSorted(([a], [b]) => a - b)
    .map(([status, count]) => `${count} × ${status || 'closed'}`);
  print(`${found.requests} requests in ${seconds} s: ${statuses.join(', ')}; ${found.faults.length} faults`);
  for (const { what, bytes, before } of found.faults) {
    for (const earlier of before) print(`earlier request: ${shown(earlier)}`);
    print(`\n${what}\nnpm run fuzz -- --seed ${seed} --requests ${requests}\n${shown(bytes)}`);
  }
  const complaints = server.complaints;
  if (complaints !== '') print(`the server logged errors:\n${complaints}`);
  await server.end();
  const findings = await auditProblems(url);
  for (const finding of findings) print(finding);
  if (found.faults.length > 0 || complaints !== '' || findings.length > 0) process.exitCode = 1;
} finally {
  await server.end('SIGKILL');
  await rm(folder, { recursive: true, force: true });
}

function shown(bytes: Buffer): string {
  return JSON.stringify(bytes.toString('latin1').slice(0, 3_000));
}
