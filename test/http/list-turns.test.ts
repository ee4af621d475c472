// Many who read long lists, and what becomes of everybody else: counted in pages that are read in between, not in
// milliseconds. And that a list which is made a page at a time is the same document, byte for byte.

import assert from 'node:assert/strict';
import { after, before, type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { transactionText } from '../../src/http/objects.ts';
import { FIRST_TRANSACTIONS, READ_TRANSACTIONS } from '../../src/http/transaction-list.ts';
import type { Store } from '../../src/store/store.ts';
import { RawConnection } from './raw-connection.ts';
import { eventually, type Scrip, someone, startScrip } from './running-service.ts';

/** Five times as many pages. */
const TRANSACTIONS = FIRST_TRANSACTIONS + 5 * READ_TRANSACTIONS;
const READERS = 40;
/** Of what is written of an end user in one batch, a read has to redo all until it is posted. */
const PER_BATCH = 50;

let scrip: Scrip;
const user = someone();

before(async () => {
  scrip = await startScrip();
  await give(user, TRANSACTIONS);
});
after(() => scrip.stop());

async function give(endUser: string, transactions: number): Promise<void> {
  const { store } = scrip.service;
  const [key] = await store.apiKeys.list();
  assert(key);
  const whose = { account: key.account, endUser, actor: `key:${key.id}` };
  await store.write([{ kind: 'add', ...whose, amount: 2 ** 50, validityDays: 31 }]);
  const spent = Array.from(
    { length: transactions - 1 },
    (_, index) => ({ kind: 'subtract', ...whose, amount: index + 1 }) as const,
  );
  for (let done = 0; done < spent.length; done += PER_BATCH) await store.write(spent.slice(done, done + PER_BATCH));
}

const asked = (path: string, endUser: string, header = '') =>
  `GET ${path}?end_user_id=${endUser} HTTP/1.1\r\nHost: scrip\r\nAuthorization: Bearer ${scrip.writeKey}\r\n${header}\r\n`;
const list = (header = '') => asked('/get-all-user-transactions', user, header);

/** Connections that are known already: of new ones Node takes one in a turn. */
async function connections(count: number): Promise<RawConnection[]> {
  const opened = await Promise.all(Array.from({ length: count }, () => RawConnection.open(scrip)));
  for (const connection of opened) {
    connection.send(asked('/get-active-balance', user));
    await connection.answer();
  }
  return opened;
}

/** Where the pages begin that are read, in order; those with which lists begin are left out. */
function watchPages(t: TestContext): string[] {
  const { store } = scrip.service;
  const transactions = store.transactions.bind(store);
  const pages: string[] = [];
  store.transactions = async (...[whose, page]: Parameters<Store['transactions']>) => {
    const read = await transactions(whose, page);
    if (page.from !== null) pages.push(page.from);
    return read;
  };
  t.after(() => Reflect.deleteProperty(store, 'transactions'));
  return pages;
}

test('a balance that is asked for while many read long lists waits for a page or two', async (t) => {
  const [asking, ...readers] = await connections(1 + READERS);
  assert(asking);
  const pages = watchPages(t);
  const { store } = scrip.service;
  const cycles = store.cycles.bind(store);
  const waits: number[] = [];
  t.mock.method(store, 'cycles', async (...whose: Parameters<typeof cycles>) => {
    const before = pages.length;
    const read = await cycles(...whose);
    waits.push(pages.length - before);
    return read;
  });
  for (const reader of readers) reader.send(list('Connection: close\r\n'));
  while (pages.length < READERS) {
    asking.send(asked('/get-active-balance', user));
    assert.equal((await asking.answer())?.status, 200);
  }
  const during = waits.slice();
  await Promise.all(readers.map((reader) => reader.untilClosed()));
  assert(Math.max(...during) <= 4, `pages that were read before a balance was: ${during}`);
  assert(during.length >= READERS / 4, `balances were read between the pages: ${during.length}`);
});

test('of lists that are pipelined the next goes on when the one before is sent', async (t) => {
  const pages = watchPages(t);
  const connection = await RawConnection.open(scrip);
  connection.send(list().repeat(4) + list('Connection: close\r\n'));
  const text = await connection.untilClosed();
  assert.equal(text.match(/"transaction_id"/g)?.length, 5 * TRANSACTIONS);
  const once = pages.slice(0, pages.length / 5);
  assert.equal(new Set(once).size, 5, 'all pages of a list');
  assert.deepEqual(pages, [once, once, once, once, once].flat());
});

test('nothing more is read for clients that leave while their lists wait, and it is no failure', async (t) => {
  const pages = watchPages(t);
  const readers = await connections(READERS);
  for (const reader of readers) reader.send(list().repeat(3));
  while (pages.length === 0) await nextTurn();
  for (const { socket } of readers) socket.resetAndDestroy();
  const inFlight = async () => /scrip_requests_in_flight (\d+)/.exec((await scrip.get('/metrics')).text)?.[1];
  await eventually(async () => (await inFlight()) === '0', 'nothing is in flight', Number.POSITIVE_INFINITY);
  assert(pages.length < READERS, `${pages.length} pages of ${READERS * 3 * 5} were read`);
  const complaints = scrip.log.filter((line) => JSON.parse(line).level >= 50);
  assert.deepEqual(complaints, []);
});

test('wherever a list is put together from pages, it is the same document', async () => {
  const ends = [0, 1, 2].map((pages) => FIRST_TRANSACTIONS + pages * READ_TRANSACTIONS);
  for (const count of [1, ...ends.flatMap((end) => [end - 1, end, end + 1])]) {
    const endUser = someone();
    await give(endUser, count);
    const [key] = await scrip.service.store.apiKeys.list();
    assert(key);
    const whole = await scrip.service.store.transactions(
      { account: key.account, endUser },
      { from: null, limit: 1_000 },
    );
    assert.equal(whole.transactions.length, count);
    const expected = `{"end_user_id":"${endUser}","transactions":[${whole.transactions.map(transactionText)}]}`;
    assert.equal((await scrip.get('/get-all-user-transactions', { end_user_id: endUser })).text, expected);
  }
});
