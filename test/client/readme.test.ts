// Tests that the client's README shows the programs in `client/examples`, and that the programs run.

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { after, before, test } from 'node:test';
import * as client from '../../client/src/scrip.ts';
import { type Scrip, startScrip } from '../http/running-service.ts';
import { CLIENT, runNode, TSC } from './client-package.ts';

const README = readFileSync(join(CLIENT, 'README.md'), 'utf8');
const PROGRAMS = [...README.matchAll(/```ts\n(\/\/ [\s\S]*?)```/g)].map(([, program]) => program as string);

let scrip: Scrip;
before(async () => {
  scrip = await startScrip();
});
after(() => scrip.stop());

/** docs/subscriptions.md shows these examples, and stories.test.ts tests them. */
const STORIES = ['monthly-rollover.ts', 'plan-changes.ts', 'trial-to-plan.ts'];

test("the client's README shows each example verbatim, except the stories that use the test clock", () => {
  const files = globSync('*.ts', { cwd: join(CLIENT, 'examples') }).filter((file) => !STORIES.includes(file));
  assert.deepEqual(files.map((file) => basename(file, '.ts')).sort(), [
    'ai-usage',
    'bundles',
    'subscription',
    'trial',
    'webhook-receiver',
  ]);
  const shown = new Set(PROGRAMS);
  for (const file of files)
    assert(shown.has(readFileSync(join(CLIENT, 'examples', file), 'utf8')), `the README shows ${file}`);
  assert.equal(shown.size, files.length, 'the README shows no other program');
});

test("the client's examples compile in strict mode", async () => {
  await runNode(CLIENT, TSC, '-p', 'examples');
});

test("the client's README lists only methods and errors that exist", () => {
  const methods = [...README.matchAll(/^\| `(\w+)\(/gm)].map(([, name]) => name as string);
  assert.equal(methods.length, 17);
  for (const name of methods) assert(name in client.Scrip.prototype, name);
  const rows = [...README.matchAll(/^\| ((?:`[A-Z]\w+`(?:, )?)+) /gm)].flatMap(([, names]) => names?.split(', ') ?? []);
  assert(rows.length >= 16, `${rows.length} errors`);
  for (const name of rows) assert(name.slice(1, -1) in client, name);
});

const OUTPUTS: Readonly<Record<string, readonly string[]>> = {
  trial: [
    'Here is your image.',
    'Here is your image.',
    'The trial is over: an image costs 40 credits, but only 20 are left.',
    '20 credits are left, in 1 cycle.',
  ],
  subscription: [
    'There is no subscription.',
    '1000 credits now and every 31 days.',
    'Already subscribed to 1000 credits.',
    '5000 credits now and every 31 days.',
    'The subscription is canceled.',
    '5700 credits are left until the end of the period.',
  ],
};

for (const [example, lines] of Object.entries(OUTPUTS)) {
  test(`the ${example}.ts example prints the expected lines`, async () => {
    const program = join(CLIENT, 'examples', `${example}.ts`);
    const env = { SCRIP_URL: scrip.url, SCRIP_KEY: scrip.writeKey };
    const output = await runNode({ cwd: CLIENT, env }, '--conditions=scrip-source', program);
    assert.deepEqual(output.trimEnd().split('\n'), lines);
  });
}
