// More than a server can do, in brief, and no more of it than holds on any machine: whoever is not served is told so,
// nothing is lost or done twice, and afterwards all is as before. Figures: `npm run overload`.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { findingsOf, newKey, ServerProcess } from '../load/server-process.ts';
import { temporaryFile } from '../store/temporary-ledger.ts';
import { Crowd, faultsOf, fund, type Loaded, othersWait, overload, pipelined, readOf } from './pressure.ts';

const TEST_MS_MAX = 120_000;
/** As `IN_FLIGHT_MAX` of the service. */
const AT_ONCE_MAX = 5_000;
const STORM = { times: 10, seconds: 2, connections: 1_024, connectionsMax: 7_000 };

const scriptOf = (name: string) => join(import.meta.dirname, name);

async function loaded(t: test.TestContext, script: string | null): Promise<Loaded & { readonly url: string }> {
  const url = `file:${temporaryFile()}`;
  const key = await newKey(url);
  const server = await ServerProcess.start(url, {}, script);
  t.after(() => server.end('SIGKILL'));
  return { ...(await fund(server, key)), url };
}

/** Credits that were taken from all end users. */
async function taken({ server, key, endUsers }: Loaded): Promise<number> {
  const headers = { authorization: `Bearer ${key}` };
  let sum = 0;
  for (const endUser of endUsers) {
    const response = await fetch(`${server.url}/get-active-balance?end_user_id=${endUser}`, { headers });
    sum += 1_000_000_000 - ((await response.json()) as { active_balance: number }).active_balance;
  }
  return sum;
}

test('ten times what it can do: some are served, the others told 503, and what was told is what was done', {
  timeout: TEST_MS_MAX,
}, async (t) => {
  const under = await loaded(t, scriptOf('slow-server.ts'));
  const before = await taken(under);
  const found = await overload(under, { ...STORM, connections: 512 });
  t.diagnostic(JSON.stringify(found));
  assert.deepEqual(faultsOf(found, AT_ONCE_MAX), []);
  assert.equal((await taken(under)) - before, found.done200, 'what was done is what was answered 200');
  await under.server.end();
  assert.deepEqual(await findingsOf(under.url), []);
});

test('control: a server that takes in everything is caught', { timeout: TEST_MS_MAX }, async (t) => {
  const server = await ServerProcess.start('', {}, scriptOf('unbounded-server.ts'));
  t.after(() => server.end('SIGKILL'));
  const under = await fund(server, '');
  const found = await overload(under, { ...STORM, connections: 512 });
  assert.notDeepEqual(faultsOf(found, AT_ONCE_MAX), []);
  t.diagnostic(faultsOf(found, AT_ONCE_MAX).join('; '));
});

test('beside 2,000 idle sockets, and 500 that never come to an end of their headers, others are served', {
  timeout: TEST_MS_MAX,
}, async (t) => {
  const under = await loaded(t, null);
  const idle = await Crowd.of(under.server, 2_000);
  const slow = await Crowd.of(under.server, 500);
  t.after(() => [idle, slow].map((crowd) => crowd.leave()));
  // Who never asked for anything is closed as well; these did, and may stay.
  for (const socket of idle.sockets)
    socket.write(readOf(under.key, '/get-active-balance', under.endUsers[0] as string));
  slow.every(1_000, (socket) => socket.write('X'));
  for (const socket of slow.sockets) socket.write('POST /add HTTP/1.1\r\nHost: scrip\r\nX-Slow: ');
  for (let tries = 0; tries < 80 && slow.closed < 500; tries++) await othersWait(under, 5).then(() => pause(500));
  assert.equal(slow.closed, 500, 'who takes too long is closed');
  assert.equal(idle.closed, 0);
});

test('500 clients that ask for lists and read nothing leave room for others', { timeout: TEST_MS_MAX }, async (t) => {
  const under = await loaded(t, null);
  const crowd = await Crowd.of(under.server, 500);
  t.after(() => crowd.leave());
  for (const socket of crowd.sockets)
    socket.pause().write(readOf(under.key, '/get-all-user-transactions', under.endUsers[0] as string).repeat(5));
  await othersWait(under, 20);
  const { answers } = await pipelined(under.server, [
    readOf(under.key, '/get-active-balance', under.endUsers[1] as string),
  ]);
  assert.deepEqual([...answers], [[200, 1]]);
});

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
