// Generates a client from the OpenAPI document, and tests that a program that uses this client compiles and gets
// typed responses and errors.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { type Scrip, someone, startScrip } from '../running-service.ts';
import { documentOf } from './described-service.ts';

const MODULES = join(import.meta.dirname, '../../../node_modules');
const GENERATOR = join(MODULES, '@redocly/cli/bin/cli.js');
const COMPILER = join(MODULES, 'typescript/bin/tsc');
const OFFLINE = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true', CI: 'true' };

const PROGRAM = `
import { ApiError, client, type Balance, type Problem } from './client.ts';

const { SCRIP_URL = '', SCRIP_KEY = '', END_USER = '' } = process.env;
client.configure({ serverUrl: SCRIP_URL, auth: { bearer: SCRIP_KEY } });
const end_user_id = END_USER;
const added = await client.add({ body: { end_user_id, amount: 100, validity_days: 14 } });
const subtracted = await client.subtract({ body: { end_user_id, amount: 30 } });
const balance: Balance = await client.getActiveBalance({ query: { end_user_id } });
const left: number = balance.active_balance;
const cycle = await client.startCycle({ body: { end_user_id, amount: 1000 } });
const stopped = await client.stopCycle({ body: { end_user_id } });
const { transactions } = await client.getAllUserTransactions({ query: { end_user_id } });
let refusal: Partial<Problem> = {};
try {
  await client.subtract({ body: { end_user_id, amount: 5000 } });
} catch (error) {
  if (error instanceof ApiError) refusal = error.body as Problem;
}
const { error, status, requested, available, shortfall } = refusal;
console.log(JSON.stringify({
  added, subtracted, left, statuses: [cycle.status, stopped.status], amounts: transactions.map(({ amount }) => amount),
  refusal: { error, status, requested, available, shortfall },
}));
`;

let scrip: Scrip;
let folder: string;
before(async () => {
  scrip = await startScrip();
  folder = await mkdtemp(join(tmpdir(), 'scrip-generated-'));
  await writeFile(join(folder, 'openapi.json'), JSON.stringify(await documentOf(scrip)));
  await writeFile(join(folder, 'package.json'), '{"type":"module"}');
  await writeFile(join(folder, 'program.ts'), PROGRAM);
  await run(GENERATOR, ['generate-client', 'openapi.json', '--output', 'client.ts', '--import-ext', 'ts']);
});
after(async () => {
  await scrip.stop();
  await rm(folder, { recursive: true, force: true });
});

async function run(program: string, args: readonly string[] = [], env: NodeJS.ProcessEnv = {}): Promise<string> {
  const options = { cwd: folder, env: { ...process.env, ...OFFLINE, ...env }, timeout: 60_000 };
  const { stdout } = await promisify(execFile)(process.execPath, [program, ...args], options).catch((error) =>
    assert.fail(`${program}: ${error.stdout}${error.stderr}`),
  );
  return stdout;
}

test('a program that uses a generated client compiles in strict mode', async () => {
  const options = '--noEmit --strict --target esnext --module nodenext --allowImportingTsExtensions --skipLibCheck';
  const types = ['--typeRoots', join(MODULES, '@types'), '--types', 'node'];
  await run(COMPILER, [...options.split(' '), ...types, 'program.ts']);
});

test('a program that uses a generated client can add, subtract and read credits, start and stop a cycle, and read the details of a refusal', async () => {
  const endUser = someone();
  const stdout = await run('program.ts', [], {
    SCRIP_URL: scrip.url,
    SCRIP_KEY: scrip.writeKey,
    END_USER: endUser,
  });
  assert.deepEqual(JSON.parse(stdout), {
    added: { end_user_id: endUser, amount: 100 },
    subtracted: { end_user_id: endUser, amount: 30 },
    left: 70,
    statuses: ['active', 'canceled'],
    amounts: [1000, -30, 100],
    refusal: { error: 'InsufficientFunds', status: 402, requested: 5000, available: 1070, shortfall: 3930 },
  });
  const { active_balance } = await scrip.balance(endUser);
  assert.equal(active_balance, 1070, 'the requests of the client took effect');
});
