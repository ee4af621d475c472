// Tests a list of 100,000 transactions: the response is complete, and memory use stays bounded. If the client stops
// reading the response, the server stops reading transactions.

import assert from 'node:assert/strict';
import { after, before, mock, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { READ_TRANSACTIONS } from '../../../src/http/api/list-source.ts';
import { STREAM_BYTES } from '../../../src/http/api/replies.ts';
import type { Command } from '../../../src/ledger/command.ts';
import { StoreFault } from '../../../src/store/store-fault.ts';
import { postText, RawConnection } from '../raw-connection.ts';
import { assertProblem, eventually, type Scrip, someone, startScrip } from '../running-service.ts';
import { stallWrites } from '../stalled-writes.ts';

const TRANSACTIONS = 100_000;
const PER_BATCH = 5_000;
const SLOW_READERS = 10;

/** One account may use half of each limit: here, 2 requests in flight and 1 unsent list per slow reader. */
const LIMITS = { inFlightMax: 4 * SLOW_READERS, unsentBytesMax: 2 * SLOW_READERS * STREAM_BYTES };

/**
 * The server would read 1,000,000 transactions if it read the lists of all slow readers completely. Up to 270,000 fit
 * into the kernel's socket buffers, so even a correct server can read that many.
 */
const READ_AHEAD_MAX = 650_000;

let scrip: Scrip;
const user = someone();
/** How many transactions of `user` are stored: one of the tests adds a transaction. */
let stored = TRANSACTIONS;

/**
 * Measured: memory use grows by 0 MiB, or by 148 MiB if the server builds each list completely before it sends the
 * first byte.
 */
const MEMORY_GROWTH_MIB_MAX = 48;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

before(async () => {
  scrip = await startScrip({ limits: LIMITS });
  const { ledger, keys } = scrip.service.stores;
  const [key] = await keys.list();
  assert(key);
  const write = (commands: readonly Command[]) => ledger.write(commands, () => {});
  const whose = { account: key.account, endUser: user, actor: `key:${key.id}` };
  await write([{ kind: 'add', ...whose, amount: 2 ** 50, validityDays: 31 }]);
  let amount = 0;
  while (amount < TRANSACTIONS - 1) {
    const batch = Array.from({ length: Math.min(PER_BATCH, TRANSACTIONS - 1 - amount) }, () => {
      amount += 1;
      return { kind: 'subtract', ...whose, amount } as const;
    });
    await write(batch);
  }
});
after(() => scrip.stop());

const requestText = () =>
  `GET /get-all-user-transactions?end_user_id=${user} HTTP/1.1\r\nHost: scrip\r\nAuthorization: Bearer ${scrip.writeKey}\r\n\r\n`;

async function slowReader(): Promise<RawConnection> {
  const connection = await RawConnection.open(scrip);
  connection.send(requestText());
  await new Promise((resolve) => connection.socket.once('data', resolve));
  connection.socket.pause();
  return connection;
}

const look = () => scrip.get('/get-active-balance', { end_user_id: someone() });

function memoryInUse(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Counts the pages that the server reads, without `mock.method`, which would keep every page in memory. */
function countPages(test: TestContext): () => number {
  const { ledger: store } = scrip.service.stores;
  const transactions = store.transactions.bind(store);
  let count = 0;
  store.transactions = (user, page) => {
    count += 1;
    return transactions(user, page);
  };
  test.after(() => Reflect.deleteProperty(store, 'transactions'));
  return () => count;
}

test('a list contains each of 100,000 transactions once, newest first', async () => {
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

test('if clients stop reading, the server does not read their whole lists from the store', async (t) => {
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
  assert(growth < MEMORY_GROWTH_MIB_MAX, `memory grew by ${growth} MiB`);
  for (const { socket } of readers) socket.destroy();
});

test('a request for a list counts as in flight until the client has read the list or has disconnected', async (t) => {
  const { resume, waiting } = stallWrites(t, scrip);
  const readers = await Promise.all(Array.from({ length: SLOW_READERS }, slowReader));
  const writers = await Promise.all(Array.from({ length: SLOW_READERS }, () => RawConnection.open(scrip)));
  for (const writer of writers) writer.send(postText(scrip, '/subtract', { end_user_id: someone(), amount: 1 }));
  await waiting(SLOW_READERS);
  assertProblem(await look(), 'Overloaded', 503);
  for (const { socket } of readers) socket.destroy();
  await eventually(async () => (await look()).status === 200, 'a new request is accepted');
  resume();
  for (const writer of writers) assert.equal((await writer.answer())?.status, 402);
});

test('the unsent bytes of long lists are limited: beyond the limit, a request for another list gets Overloaded, but a request with a short response is still answered', async () => {
  const readers = await Promise.all(Array.from({ length: SLOW_READERS }, slowReader));
  assertProblem(await scrip.get('/get-all-user-transactions', { end_user_id: user }), 'Overloaded', 503);
  assert.equal((await look()).status, 200);
  for (const { socket } of readers) socket.destroy();
  await eventually(
    async () => (await scrip.get('/get-all-user-transactions', { end_user_id: user })).status === 200,
    'a new list request is accepted',
  );
});

test('a list does not contain transactions that are stored while the client reads the list', async () => {
  const connection = await slowReader();
  const other = someone();
  await scrip.post('/subtract', { end_user_id: user, amount: 1 });
  stored += 1;
  await scrip.post('/add', { end_user_id: other, amount: 5 });
  connection.socket.resume();
  connection.send('GET /healthz HTTP/1.1\r\nHost: scrip\r\nConnection: close\r\n\r\n');
  const text = await connection.untilClosed();
  const amounts = text.match(/"amount":-?\d+/g) ?? [];
  assert.equal(amounts.length, TRANSACTIONS);
  assert.equal(amounts[0], `"amount":-${TRANSACTIONS - 1}`);
});

test('if a client disconnects in the middle of a list, the server reads no more pages for that client and processes other requests', async (t) => {
  const readers = await Promise.all(Array.from({ length: SLOW_READERS }, slowReader));
  const pages = countPages(t);
  for (const { socket } of readers) socket.destroy();
  await eventually(async () => {
    const seen = pages();
    await sleep(100);
    return pages() === seen;
  }, 'no pages are read for disconnected clients');
  const someoneElse = someone();
  assert.equal((await scrip.post('/add', { end_user_id: someoneElse, amount: 5 })).status, 200);
  assert.equal((await scrip.balance(someoneElse)).active_balance, 5);
  assert.equal((await scrip.transactions(user)).length, stored);
});

function failInTheMiddle(): StoreFault {
  const { ledger: store } = scrip.service.stores;
  const transactions = store.transactions.bind(store);
  const fault = new StoreFault('StoreUnavailable', `the disk went away for ${someone()}`);
  let pages = 0;
  mock.method(store, 'transactions', (...asked: Parameters<typeof transactions>) =>
    ++pages > 3 ? Promise.reject(fault) : transactions(...asked),
  );
  return fault;
}

test('if the store fails in the middle of a list, the connection is reset, so that a client cannot mistake a partial list for a complete list', async () => {
  failInTheMiddle();
  await assert.rejects(scrip.get('/get-all-user-transactions', { end_user_id: user }), { code: 'ECONNRESET' });
  mock.restoreAll();
  assert.equal((await scrip.transactions(user)).length, stored, 'the next list is complete');
});

test('if the store fails in the middle of a list, the reason is logged', async () => {
  const fault = failInTheMiddle();
  await scrip.get('/get-all-user-transactions', { end_user_id: user }).catch(() => {});
  mock.restoreAll();
  assert(
    scrip.log.some((line) => line.includes(fault.message)),
    'the log contains the reason',
  );
});
