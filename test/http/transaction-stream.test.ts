// An end user with 100,000 transactions: all of them, newest first, without the service holding them all at once, and
// without harm when the client leaves in the middle.

import assert from 'node:assert/strict';
import { after, before, mock, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { READ_TRANSACTIONS } from '../../src/http/transaction-list.ts';
import { IN_FLIGHT_ALONE_MAX } from '../../src/http/work-in-flight.ts';
import { StoreFault } from '../../src/store/store.ts';
import { postText, RawConnection } from './raw-connection.ts';
import { eventually, type Scrip, someone, startScrip } from './running-service.ts';
import { stallWrites } from './stalled-writes.ts';

const TRANSACTIONS = 100_000;
const PER_BATCH = 5_000;
const SLOW_READERS = 10;

/** 1,000,000 would be all of it for all readers; the buffers of the kernel were seen to take 270,000. */
const READ_AHEAD_MAX = 650_000;

let scrip: Scrip;
const user = someone();

/** MiB; measured: none, and 148 when each list was put together before it was sent. */
const MEMORY_GROWTH_MAX = 48;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** Written by way of the store: what is tested here is the reading. */
before(async () => {
  scrip = await startScrip();
  const { store } = scrip.service;
  const [key] = await store.apiKeys.list();
  assert(key);
  const whose = { account: key.account, endUser: user, actor: `key:${key.id}` };
  await store.write([{ kind: 'add', ...whose, amount: 2 ** 50, validityDays: 31 }]);
  let amount = 0;
  while (amount < TRANSACTIONS - 1) {
    const batch = Array.from({ length: Math.min(PER_BATCH, TRANSACTIONS - 1 - amount) }, () => {
      amount += 1;
      return { kind: 'subtract', ...whose, amount } as const;
    });
    await store.write(batch);
  }
});
after(() => scrip.stop());

const requestText = () =>
  `GET /get-all-user-transactions?end_user_id=${user} HTTP/1.1\r\nHost: scrip\r\nAuthorization: Bearer ${scrip.writeKey}\r\n\r\n`;

/** A reader that takes the beginning of the list, and then nothing more. */
async function slowReader(): Promise<RawConnection> {
  const connection = await RawConnection.open(scrip);
  connection.send(requestText());
  await new Promise((resolve) => connection.socket.once('data', resolve));
  connection.socket.pause();
  return connection;
}

/** What cannot be given back: garbage is collected first, so that only what somebody holds counts. */
function memoryInUse(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** How many pages the store is asked for. Not by a mock, which would keep every page that it has seen. */
function countPages(test: TestContext): () => number {
  const { store } = scrip.service;
  const transactions = store.transactions.bind(store);
  let count = 0;
  store.transactions = (user, page) => {
    count += 1;
    return transactions(user, page);
  };
  test.after(() => Reflect.deleteProperty(store, 'transactions'));
  return () => count;
}

test('100,000 transactions all come, newest first, each once', async () => {
  const reply = await scrip.get('/get-all-user-transactions', { end_user_id: user });
  assert.equal(reply.status, 200);
  const { transactions } = reply.body;
  assert.equal(transactions.length, TRANSACTIONS);
  transactions.forEach(({ amount }, index) => {
    if (index < TRANSACTIONS - 1) assert.equal(amount, index + 1 - TRANSACTIONS);
  });
  assert.equal(transactions.at(-1)?.amount, 2 ** 50);
  const ids = transactions.map(({ transaction_id }) => transaction_id);
  for (let index = 1; index < ids.length; index++) assert((ids[index - 1] as string) > (ids[index] as string));
});

test('readers that are slow make the service wait, not remember', async (t) => {
  const before = memoryInUse();
  const pages = countPages(t);
  const readers = await Promise.all(Array.from({ length: SLOW_READERS }, slowReader));
  let asked = -1;
  while (asked !== pages()) {
    asked = pages();
    await sleep(200);
  }
  const growth = Math.round((memoryInUse() - before) / 2 ** 20);
  assert(asked * READ_TRANSACTIONS < READ_AHEAD_MAX, `${asked} pages were read ahead`);
  assert(growth < MEMORY_GROWTH_MAX, `memory grew by ${growth} MiB`);
  for (const { socket } of readers) socket.destroy();
});

test('a list takes a place among the work in flight until it is read, or its reader leaves', async (t) => {
  const { goOn } = stallWrites(t, scrip);
  const held = await RawConnection.open(scrip);
  const count = IN_FLIGHT_ALONE_MAX - SLOW_READERS / 2;
  held.send(postText(scrip, '/subtract', { end_user_id: someone(), amount: 1 }).repeat(count));
  const readers = await Promise.all(Array.from({ length: SLOW_READERS }, () => RawConnection.open(scrip)));
  for (const reader of readers) {
    reader.send(requestText());
    reader.socket.once('data', () => reader.socket.pause());
  }
  const look = async () => (await scrip.get('/get-active-balance', { end_user_id: someone() })).status;
  // However long that takes on a busy machine.
  await eventually(async () => (await look()) === 503, 'it is full', Number.POSITIVE_INFINITY);
  for (const { socket } of readers) socket.destroy();
  await eventually(async () => (await look()) === 200, 'there is room again', Number.POSITIVE_INFINITY);
  goOn();
  await held.answers(count);
});

test('credits that move while a list is read are not in it, and do not disturb it', async () => {
  const connection = await slowReader();
  const other = someone();
  await scrip.post('/subtract', { end_user_id: user, amount: 1 });
  await scrip.post('/add', { end_user_id: other, amount: 5 });
  connection.socket.resume();
  connection.send('GET /healthz HTTP/1.1\r\nHost: scrip\r\nConnection: close\r\n\r\n');
  const text = await connection.untilClosed();
  const amounts = text.match(/"amount":-?\d+/g) ?? [];
  assert.equal(amounts.length, TRANSACTIONS);
  assert.equal(amounts[0], `"amount":-${TRANSACTIONS - 1}`);
});

test('a client that leaves in the middle is read for no longer, and the service goes on', async (t) => {
  const readers = await Promise.all(Array.from({ length: SLOW_READERS }, slowReader));
  const pages = countPages(t);
  for (const { socket } of readers) socket.destroy();
  await eventually(async () => {
    const seen = pages();
    await sleep(100);
    return pages() === seen;
  }, 'nothing is read for those who have left');
  const someoneElse = someone();
  assert.equal((await scrip.post('/add', { end_user_id: someoneElse, amount: 5 })).status, 200);
  assert.equal((await scrip.balance(someoneElse)).active_balance, 5);
  assert.equal((await scrip.transactions(user)).length, TRANSACTIONS + 1);
});

/** Lets the store fail once a list has begun. */
function failInTheMiddle(): StoreFault {
  const { store } = scrip.service;
  const transactions = store.transactions.bind(store);
  const fault = new StoreFault('StoreUnavailable', `the disk went away for ${someone()}`);
  let pages = 0;
  mock.method(store, 'transactions', (...asked: Parameters<typeof transactions>) =>
    ++pages > 3 ? Promise.reject(fault) : transactions(...asked),
  );
  return fault;
}

test('a store that fails in the middle of a list breaks it off, so that nobody takes a part for the whole', async () => {
  failInTheMiddle();
  await assert.rejects(scrip.get('/get-all-user-transactions', { end_user_id: user }), { code: 'ECONNRESET' });
  mock.restoreAll();
  assert.equal((await scrip.transactions(user)).length, TRANSACTIONS + 1, 'and the next list is whole');
});

test('why a list broke off is in the log', async () => {
  const fault = failInTheMiddle();
  await scrip.get('/get-all-user-transactions', { end_user_id: user }).catch(() => {});
  mock.restoreAll();
  assert(
    scrip.log.some((line) => line.includes(fault.message)),
    'the operator finds the reason',
  );
});
