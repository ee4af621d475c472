// Tests how long other requests wait while many clients read long lists. The tests do not measure the time. Instead,
// they count the list pages that the server reads during each wait.

import assert from 'node:assert/strict';
import { after, before, type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { READ_TRANSACTIONS } from '../../../src/http/api/list-source.ts';
import { transactionText } from '../../../src/http/api/replies.ts';
import { PAGES_AT_ONCE } from '../../../src/http/limits.ts';
import type { Command } from '../../../src/ledger/command.ts';
import type { LedgerStore } from '../../../src/store/ledger-store.ts';
import { EVERYTHING } from '../../store/temporary-ledger.ts';
import { RawConnection } from '../raw-connection.ts';
import { eventually, type Scrip, someone, startScrip } from '../running-service.ts';

const PAGES = 5;
const TRANSACTIONS = (1 + PAGES) * READ_TRANSACTIONS;
const READERS = 40;
const PER_BATCH = 50;

let scrip: Scrip;
const user = someone();

before(async () => {
  scrip = await startScrip();
  await give(user, TRANSACTIONS);
});
after(() => scrip.stop());

async function give(endUser: string, transactions: number): Promise<void> {
  const { ledger, keys } = scrip.service.stores;
  const [key] = await keys.list();
  assert(key);
  const write = (commands: readonly Command[]) => ledger.write(commands, () => {});
  const whose = { account: key.account, endUser, actor: `key:${key.id}` };
  await write([{ kind: 'add', ...whose, amount: 2 ** 50, validityDays: 31 }]);
  const spent = Array.from(
    { length: transactions - 1 },
    (_, index) => ({ kind: 'subtract', ...whose, amount: index + 1 }) as const,
  );
  for (let done = 0; done < spent.length; done += PER_BATCH) await write(spent.slice(done, done + PER_BATCH));
}

const asked = (path: string, endUser: string, header = '') =>
  `GET ${path}?end_user_id=${endUser} HTTP/1.1\r\nHost: scrip\r\nAuthorization: Bearer ${scrip.writeKey}\r\n${header}\r\n`;
const list = (header = '') => asked('/get-all-user-transactions', user, header);

/**
 * Node accepts only one connection per turn of the event loop, so this function waits until all connections are
 * accepted.
 */
async function connections(count: number): Promise<RawConnection[]> {
  const opened = await Promise.all(Array.from({ length: count }, () => RawConnection.open(scrip)));
  for (const connection of opened) {
    connection.send(asked('/get-active-balance', user));
    await connection.answer();
  }
  return opened;
}

function watchPages(t: TestContext): string[] {
  const { ledger } = scrip.service.stores;
  const transactions = ledger.transactions.bind(ledger);
  const pages: string[] = [];
  ledger.transactions = async (...[whose, page]: Parameters<LedgerStore['transactions']>) => {
    const read = await transactions(whose, page);
    if (page.from !== null) pages.push(page.from);
    return read;
  };
  t.after(() => Reflect.deleteProperty(ledger, 'transactions'));
  return pages;
}

test('a HEAD request for a long list has no body and reads only the first page of the list', async (t) => {
  const pages = watchPages(t);
  const { status, text } = await scrip.call('HEAD', `/get-all-user-transactions?end_user_id=${user}`);
  assert.deepEqual([status, text], [200, '']);
  await eventually(
    async () => (await scrip.call('GET', '/metrics')).text.includes('\nscrip_requests_in_flight 0\n'),
    'nothing is in flight',
  );
  assert.deepEqual(pages, []);
});

test('while many clients read long lists, a balance request waits for only a few pages of these lists', async (t) => {
  const [asking, ...readers] = await connections(1 + READERS);
  assert(asking);
  const pages = watchPages(t);
  const { ledger } = scrip.service.stores;
  const load = ledger.load.bind(ledger);
  const waits: number[] = [];
  t.mock.method(ledger, 'load', async (...whose: Parameters<typeof load>) => {
    const before = pages.length;
    const read = await load(...whose);
    waits.push(pages.length - before);
    return read;
  });
  for (const reader of readers) reader.send(list('Connection: close\r\n'));
  while (pages.length < 4 * READERS) {
    asking.send(asked('/get-active-balance', user));
    assert.equal((await asking.answer())?.status, 200);
  }
  const during = waits.slice();
  await Promise.all(readers.map((reader) => reader.untilClosed()));
  assert(Math.max(...during) <= 3 * PAGES_AT_ONCE, `pages read before each balance: ${during}`);
  assert(during.length >= READERS / 4, `only ${during.length} balances were read between the pages`);
});

test('if a client pipelines several list requests, Scrip reads each list only after it has sent the previous list', async (t) => {
  const pages = watchPages(t);
  const connection = await RawConnection.open(scrip);
  connection.send(list().repeat(4) + list('Connection: close\r\n'));
  const text = await connection.untilClosed();
  assert.equal(text.match(/"transaction_id"/g)?.length, 5 * TRANSACTIONS);
  const once = pages.slice(0, pages.length / 5);
  assert.equal(new Set(once).size, 5, 'each list has five pages after the first');
  assert.deepEqual(pages, [once, once, once, once, once].flat());
});

test('after clients that requested long lists disconnect, Scrip reads no further pages of their lists and logs no error', async (t) => {
  const pages = watchPages(t);
  const readers = await connections(READERS);
  for (const reader of readers) reader.send(list());
  while (pages.length === 0) await nextTurn();
  for (const { socket } of readers) socket.resetAndDestroy();
  const inFlight = async () => /scrip_requests_in_flight (\d+)/.exec((await scrip.get('/metrics')).text)?.[1];
  await eventually(async () => (await inFlight()) === '0', 'nothing is in flight', Number.POSITIVE_INFINITY);
  assert(pages.length < READERS, `${pages.length} pages of ${READERS * PAGES} were read`);
  const complaints = scrip.log.filter((line) => JSON.parse(line).level >= 50);
  assert.deepEqual(complaints, []);
});

test('the response to a list request does not depend on how the server divides the list into pages', async () => {
  const ends = [1, 2, 3].map((pages) => pages * READ_TRANSACTIONS);
  for (const count of [1, ...ends.flatMap((end) => [end - 1, end, end + 1])]) {
    const endUser = someone();
    await give(endUser, count);
    const [key] = await scrip.service.stores.keys.list();
    assert(key);
    const whole = await scrip.service.stores.ledger.transactions(
      { account: key.account, endUser },
      { from: null, limit: 1_000, within: EVERYTHING },
    );
    assert.equal(whole.transactions.length, count);
    const expected = `{"end_user_id":"${endUser}","transactions":[${whole.transactions.map(transactionText)}]}`;
    assert.equal((await scrip.get('/get-all-user-transactions', { end_user_id: endUser })).text, expected);
  }
});
