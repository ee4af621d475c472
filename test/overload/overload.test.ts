// Sends more requests than a server can process. The assertions hold on any machine; `npm run overload` measures speed.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { SERVER_LIMITS } from '../../src/http/limits.ts';
import { control } from '../effort.ts';
import { auditProblems, newKey, ServerProcess } from '../load/server-process.ts';
import { temporaryFile } from '../store/temporary-ledger.ts';
import { historyOf } from './list-readers.ts';
import { Crowd, fund, type Loaded, othersWait, overload, readOf, refusalFaultsOf, sendAll } from './pressure.ts';

const TEST_MS_MAX = 120_000;
/** One account may use only half of `inFlightMax`, even if no other account sends requests. */
const AT_ONCE_MAX = SERVER_LIMITS.inFlightMax / 2;
const STORM = { times: 10, seconds: 2, connections: 512, connectionsMax: 2_000 };
const MAX_CONNECTIONS = '3000';
/** Five lists of this length are more than the kernel buffers for a connection whose client does not read. */
const LISTED = 4_000;

const scriptOf = (name: string) => join(import.meta.dirname, name);

async function loaded(
  environment: Readonly<Record<string, string>>,
  script: string | null,
): Promise<Loaded & { readonly url: string }> {
  const url = `file:${temporaryFile()}`;
  const key = await newKey(url);
  const server = await ServerProcess.start(url, { MAX_CONNECTIONS, ...environment }, script);
  return { ...(await fund(server, key)), url };
}

async function taken({ server, key, endUsers }: Loaded): Promise<number> {
  const headers = { authorization: `Bearer ${key}` };
  let sum = 0;
  for (const endUser of endUsers) {
    const response = await fetch(`${server.url}/get-active-balance?end_user_id=${endUser}`, { headers });
    sum += 1_000_000_000 - ((await response.json()) as { active_balance: number }).active_balance;
  }
  return sum;
}

test('under a load of ten times its peak throughput, a server processes as many requests as before and quickly refuses the others with 503, and the ledger matches the responses', {
  timeout: TEST_MS_MAX,
}, async (t) => {
  const under = await loaded({}, scriptOf('slow-server.ts'));
  t.after(() => under.server.end('SIGKILL'));
  const before = await taken(under);
  const found = await overload(under, STORM);
  t.diagnostic(JSON.stringify(found));
  assert.deepEqual(refusalFaultsOf(found, AT_ONCE_MAX), []);
  assert.equal((await taken(under)) - before, found.done200, 'exactly the requests with a 200 took effect, once each');
  await under.server.end();
  assert.deepEqual(await auditProblems(under.url), []);
});

control(
  'control: the overload test catches a server that accepts every request',
  { timeout: TEST_MS_MAX },
  async (t) => {
    const server = await ServerProcess.start('', {}, scriptOf('unbounded-server.ts'));
    t.after(() => server.end('SIGKILL'));
    const under = await fund(server, '');
    const found = await overload(under, STORM);
    assert.match(refusalFaultsOf(found, AT_ONCE_MAX).join('; '), /no request was refused/);
  },
);

describe('a server with idle or stalled clients', () => {
  let under: Loaded;
  before(async () => {
    under = await loaded({ NODE_OPTIONS: `--import=${scriptOf('short-timeouts.ts')}` }, null);
  });
  after(() => under.server.end('SIGKILL'));

  test('a server processes requests while 2,000 connections are idle and 500 connections never finish sending their headers', {
    timeout: TEST_MS_MAX,
  }, async (t) => {
    const idle = await Crowd.of(under.server, 2_000);
    // Each socket sends a request, because the server closes connections that never send one.
    for (const socket of idle.sockets)
      socket.write(readOf(under.key, '/get-active-balance', under.endUsers[0] as string));
    const slow = await Crowd.of(under.server, 500);
    t.after(() => [idle, slow].map((crowd) => crowd.leave()));
    slow.every(1_000, (socket) => socket.write('X'));
    for (const socket of slow.sockets) socket.write('POST /add HTTP/1.1\r\nHost: scrip\r\nX-Slow: ');
    for (let tries = 0; tries < 80 && slow.closed < 500; tries++) await othersWait(under, 5).then(() => pause(500));
    assert.equal(slow.closed, 500, 'connections that never finish their headers are closed');
    assert.equal(idle.closed, 0);
  });

  test('a server processes other requests while 500 clients request lists and do not read the responses', {
    timeout: TEST_MS_MAX,
  }, async (t) => {
    const crowd = await Crowd.of(under.server, 500);
    t.after(() => crowd.leave());
    const list = readOf(under.key, '/get-all-user-transactions', await historyOf(under, LISTED));
    for (const socket of crowd.sockets) socket.pause().write(list.repeat(5));
    await othersWait(under, 20);
    const { answers } = await sendAll(under.server, [
      readOf(under.key, '/get-active-balance', under.endUsers[1] as string),
    ]);
    assert.deepEqual([...answers], [[200, 1]]);
  });
});

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
