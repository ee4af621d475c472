// A client that asks for much and reads nothing: what is made for it and not taken is bounded, and the rest is refused.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { UNSENT_BYTES_MAX } from '../../src/http/unsent-answers.ts';
import { RawConnection } from './raw-connection.ts';
import { eventually, type Scrip, someone, startScrip } from './running-service.ts';

const CYCLES = 2_000;
/** As many as Node takes from a socket at once, and hands over before the first is answered. */
const REQUESTS = 300;

let scrip: Scrip;
const user = someone();

before(async () => {
  scrip = await startScrip();
  const { store } = scrip.service;
  const [key] = await store.apiKeys.list();
  assert(key);
  const add = {
    kind: 'add',
    account: key.account,
    endUser: user,
    actor: 'key:1',
    amount: 1,
    validityDays: 31,
  } as const;
  for (let done = 0; done < CYCLES; done += 500) await store.write(Array(500).fill(add));
});
after(() => scrip.stop());

test('large balances that nobody reads are made as far as there is room, and refused beyond it', {
  timeout: 60_000,
}, async (t) => {
  const { store } = scrip.service;
  const cycles = store.cycles.bind(store);
  let read = 0;
  store.cycles = (whose) => cycles(whose).finally(() => (read += 1));
  const balance = `GET /get-active-balance?end_user_id=${user} HTTP/1.1\r\nHost: scrip\r\nAuthorization: Bearer ${scrip.writeKey}\r\n\r\n`;
  const connection = await RawConnection.open(scrip);
  connection.socket.pause();
  connection.send(balance.repeat(REQUESTS));
  await eventually(() => read === REQUESTS, 'all of them are read');
  connection.socket.resume();
  let bytes = 0;
  const statuses: Record<number, number> = {};
  for (let request = 0; request < REQUESTS; request++) {
    const answer = await connection.answer();
    assert(answer);
    statuses[answer.status] = (statuses[answer.status] ?? 0) + 1;
    if (answer.status === 200) bytes += answer.text.length;
    else assert.deepEqual([answer.body.error, answer.headers.get('retry-after')], ['Overloaded', '1']);
  }
  t.diagnostic(JSON.stringify(statuses));
  assert.deepEqual(Object.keys(statuses), ['200', '503']);
  // What the kernel had taken of the first ones had made room for others.
  assert(bytes > UNSENT_BYTES_MAX / 4 && bytes < UNSENT_BYTES_MAX, `${bytes} bytes`);
  connection.send(balance);
  assert.equal((await connection.answer())?.status, 200, 'what has been read makes room');
});
