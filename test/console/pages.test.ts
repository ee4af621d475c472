// Tests the account pages of the console: forms and their errors, lists of transactions, and isolation of accounts.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mock, test } from 'node:test';
import type { WriteCommand } from '../../src/ledger/command.ts';
import { DAY_MS } from '../../src/ledger/instant.ts';
import type { AccountTransaction } from '../../src/store/console-store.ts';
import { StoreFault } from '../../src/store/store-fault.ts';
import { MemoryConsole } from './memory-console.ts';

const USER = '5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23';
const PATH = `/console/end-users/${USER}`;

function add(console: MemoryConsole, amount: number, { account = 1, endUser = USER, days = 31 } = {}): void {
  console.ledger.submit({ kind: 'add', account, endUser, actor: 'key:1', amount, validityDays: days });
}

function transactionsOf(console: MemoryConsole): AccountTransaction[] {
  return console.ledger.transactions(1);
}

function idempotencyKeyIn(text: string, form: string): string {
  const pattern = new RegExp(`action="[^"]*/${form}"[\\s\\S]*?name="idempotency_key" value="([^"]+)"`);
  const [, key] = pattern.exec(text) ?? [];
  assert(key, `the form ${form} has an idempotency key`);
  return key;
}

test('the form to add credits records the signed-in user and the note, and redirects to the page of the end user', async () => {
  const console = await MemoryConsole.start();
  const sent = await console.post(`${PATH}/add`, {
    amount: '50',
    validity: '7',
    note: ' Ticket\r\n4711 <b>',
    idempotency_key: 'a',
  });
  assert.deepEqual([sent.status, sent.location], [303, `${PATH}?notice=add`]);
  const recorded = transactionsOf(console).map(({ endUser, kind, amount, actor, note, createdAt, expiresAt }) => {
    return { endUser, kind, amount, actor, note, days: (expiresAt - createdAt) / DAY_MS };
  });
  assert.deepEqual(recorded, [
    { endUser: USER, kind: 'add', amount: 50, actor: 'user:u1', note: 'Ticket 4711 <b>', days: 7 },
  ]);
  const { text } = await console.get(`${PATH}?notice=add`);
  assert.match(text, /role="status">Credits added\.</);
  assert.match(text, /<p class="value"><span class="large-number">50</);
  assert.match(text, /owner1@example\.com[\s\S]*Ticket 4711 &#60;b&#62;/);
});

test('if a double click sends a console form twice, the form takes effect once', async () => {
  const console = await MemoryConsole.start();
  const form = { amount: '50', idempotency_key: idempotencyKeyIn((await console.get(PATH)).text, 'add') };
  const [first, second] = await Promise.all([console.post(`${PATH}/add`, form), console.post(`${PATH}/add`, form)]);
  assert.deepEqual([first.status, first.location], [second.status, second.location]);
  assert.equal(transactionsOf(console).length, 1);
  await console.post(`${PATH}/add`, {
    amount: '50',
    idempotency_key: idempotencyKeyIn((await console.get(PATH)).text, 'add'),
  });
  assert.equal(transactionsOf(console).length, 2, 'a reloaded form takes effect again');
});

test('the idempotency key of an API request is never the key of a console form', async () => {
  const console = await MemoryConsole.start();
  const submit = mock.method(console.ledger, 'submit');
  await console.post(`${PATH}/add`, { amount: '50', idempotency_key: 'a' });
  const command = submit.mock.calls[0]?.arguments[0] as WriteCommand;
  assert.match(command.idempotency?.key ?? '', /[^\x20-\x7e].*a$/, 'the API accepts only printable ASCII characters');
});

test('a console form with invalid input changes nothing and is shown again with the input and an error next to each invalid field', async () => {
  const console = await MemoryConsole.start();
  const { status, text } = await console.post(`${PATH}/add`, {
    amount: '1,000',
    validity: '0',
    note: 'Why "not"',
    idempotency_key: 'a',
  });
  // The status is 200, because the browser would log an error status in its developer tools.
  assert.equal(status, 200);
  assert.match(text, /value="1,000"[^>]*aria-invalid="true"/);
  assert.match(text, /id="add-amount-error">Enter digits only, without separators: 1000\.</);
  assert.match(text, /id="add-validity-error">Enter at least 1 day\.</);
  assert.match(text, /value="Why &#34;not&#34;"/);
  assert.match(text, /<details class="action" name="adjust" open><summary>Add credits</);
  assert.deepEqual(transactionsOf(console), []);
});

test('the console refuses a subtraction that exceeds the balance, and the error states the balance', async () => {
  const console = await MemoryConsole.start();
  add(console, 12);
  const { status, text } = await console.post(`${PATH}/subtract`, { amount: '13', idempotency_key: 'a' });
  assert.equal(status, 200);
  assert.match(text, /The balance is 12 credits, less than the 13 requested\. Nothing was subtracted\./);
  assert.equal((await console.post(`${PATH}/subtract`, { amount: '12', idempotency_key: 'b' })).status, 303);
});

const NO_ROOM =
  /^No more credits fit within this end user(?:'|&#39;)s maximum balance, now or at .*\. Nothing was changed\.$/;

test("the console's errors about the balance are grammatical for zero credits and for one credit", async () => {
  const console = await MemoryConsole.start();
  const errorFor = async (form: string, amount: number) => {
    const { text } = await console.post(`${PATH}/${form}`, { amount: String(amount), idempotency_key: randomUUID() });
    return /id="[a-z-]+-amount-error">([^<]+)</.exec(text)?.[1];
  };
  assert.equal(
    await errorFor('subtract', 5),
    'The balance is 0 credits, less than the 5 requested. Nothing was subtracted.',
  );
  add(console, 1);
  assert.equal(
    await errorFor('subtract', 5),
    'The balance is 1 credit, less than the 5 requested. Nothing was subtracted.',
  );
  add(console, Number.MAX_SAFE_INTEGER - 2);
  assert.match(
    (await errorFor('add', 5)) ?? '',
    /^Only 1 more credit fits within .*, but the request needs room for 5\. Nothing was changed\.$/,
  );
  add(console, 1);
  assert.match((await errorFor('add', 5)) ?? '', NO_ROOM);
});

test('if an addition fits now but would exceed the maximum balance at the next renewal, the error mentions the renewal', async () => {
  const console = await MemoryConsole.start();
  const amount = Number.MAX_SAFE_INTEGER;
  console.run({ kind: 'start-cycle', amount, validityDays: 1, onActive: 'refuse' });
  console.run({ kind: 'subtract', amount });
  const { text } = await console.post(`${PATH}/add`, { amount: '5', validity: '2', idempotency_key: 'a' });
  assert.match(/id="add-amount-error">([^<]+)</.exec(text)?.[1] ?? '', NO_ROOM);
  assert.equal((await console.post(`${PATH}/add`, { amount: '5', validity: '1', idempotency_key: 'b' })).status, 303);
});

test('the forms on the page of an end user start and stop a cycle, but do not start a second cycle while one is active', async () => {
  const console = await MemoryConsole.start();
  assert.doesNotMatch((await console.get(PATH)).text, /Stop the cycle/);
  assert.equal((await console.post(`${PATH}/start-cycle`, { amount: '1000', idempotency_key: 'a' })).status, 303);
  const started = (await console.get(PATH)).text;
  assert.match(started, /renews with 1,000/);
  assert.doesNotMatch(started, /<summary>Start a cycle</);
  assert.match(
    (await console.post(`${PATH}/start-cycle`, { amount: '5', idempotency_key: 'b' })).text,
    /id="start-cycle-on_active-error">A cycle is already active\. Choose when the new plan starts\./,
  );
  assert.equal((await console.post(`${PATH}/stop-cycle`, { note: 'Canceled', idempotency_key: 'c' })).status, 303);
  const stopped = (await console.get(PATH)).text;
  assert.match(stopped, /Recurring, stopped/);
  assert.match(stopped, /Cycle stopped[\s\S]*“Canceled”/);
});

test('if the outcome of a console form is unknown, the form is shown again with its input and the same idempotency key', async () => {
  const console = await MemoryConsole.start();
  console.fault = new StoreFault('OutcomeUnknown', 'secret reason');
  const { text } = await console.post(`${PATH}/add`, { amount: '77', idempotency_key: 'a' });
  assert.match(text, /Outcome unknown: .*\. Submit the form again without changes/);
  assert.match(text, /value="77"/);
  assert.equal(idempotencyKeyIn(text, 'add'), 'a', 'a resubmitted form takes effect once');
  assert.doesNotMatch(text, /secret reason/);
});

test('if the outcome of a console form is unknown and the end user cannot be read, an error page has a button that sends the same form again', async () => {
  const console = await MemoryConsole.start();
  const form = { validity: '31', unit: 'days', amount: '77', note: '"Sorry"', idempotency_key: 'a' };
  const sent = { ...form, user: 'u1' };
  const load = mock.method(console.ledger, 'load', () => Promise.reject(new StoreFault('OutcomeUnknown', 'full disk')));
  console.fault = new StoreFault('OutcomeUnknown', 'full disk');
  const { status, text } = await console.post(`${PATH}/add`, sent);
  assert.equal(status, 503);
  assert.match(text, /<body class="signed-in">[\s\S]*the change may or may not have been made/);
  assert.doesNotMatch(text, /full disk|Nothing was changed|Sign in/);
  const [, resent] = text.split(`<form method="post" action="${PATH}/add">`);
  assert(resent);
  const again = [...resent.matchAll(/type="hidden" name="([^"]+)" value="([^"]*)"/g)].map(([, ...field]) => field);
  assert.deepEqual(again, Object.entries({ user: 'u1', ...form, note: '&#34;Sorry&#34;' }));
  load.mock.restore();
  assert.equal((await console.post(`${PATH}/add`, form)).status, 303);
  assert.equal((await console.get(PATH)).status, 200);
});

test('the transactions of an end user are paginated, and show from which cycles credits were spent', async () => {
  const console = await MemoryConsole.start();
  add(console, 30);
  console.advance(DAY_MS);
  add(console, 100);
  console.ledger.submit({ kind: 'subtract', account: 1, endUser: USER, actor: 'key:1', amount: 40 });
  const { text } = await console.get(PATH);
  assert.match(text, /−40[\s\S]*−30<\/span>[\s\S]*−10<\/span>/);
  for (let made = 0; made < 60; made++) {
    console.advance(1_000);
    add(console, 1);
  }
  const first = (await console.get(PATH)).text;
  const [, older] = /href="([^"]+)"[^>]*>Older</.exec(first) ?? [];
  assert(older, 'there is a link to older transactions');
  const second = (await console.get(older.replace('#transactions', '').replaceAll('&#61;', '='))).text;
  assert.match(second, /Older transactions/);
  assert.match(second, /−40/);
  assert.doesNotMatch(second, />Older</);
  assert.deepEqual((await console.get(`${PATH}?page=invented`)).location, PATH);
});

test('the page of an end user gives each cycle a descriptive name, such as "Added 1,500" or "Weekly cycle of 5, period 0"', async () => {
  const console = await MemoryConsole.start();
  const start = { kind: 'start-cycle', account: 1, endUser: USER, actor: 'key:1', onActive: 'refuse' } as const;
  add(console, 1_500);
  console.ledger.submit({ ...start, amount: 1_000, validityDays: 31 });
  console.advance(65 * DAY_MS);
  const { text } = await console.get(PATH);
  assert.match(text, />Monthly cycle of 1,000, period 2</);
  assert.match(text, />Added 1,500</, 'a cycle that has ended has a name too');
  for (const [days, name] of [
    [1, 'Daily cycle of 5, period 0'],
    [7, 'Weekly cycle of 5, period 0'],
    [45, '45-day cycle of 5, period 0'],
    [365, 'Yearly cycle of 5, period 0'],
  ] as const) {
    const endUser = randomUUID();
    console.ledger.submit({ ...start, endUser, amount: 5, validityDays: days });
    assert.match((await console.get(`/console/end-users/${endUser}`)).text, new RegExp(`>${name}<`));
  }
});

test('the console rounds the remaining time of a cycle up to days, or to hours on the last day', async () => {
  const console = await MemoryConsole.start();
  add(console, 5, { days: 31 });
  const timeLeft = async () =>
    /data-label="Time left" class="when"><span>([^<]+)</.exec((await console.get(PATH)).text)?.[1];
  assert.equal(await timeLeft(), '31 days');
  console.advance(1);
  assert.equal(await timeLeft(), '31 days');
  console.advance(30 * DAY_MS - 2);
  assert.equal(await timeLeft(), '2 days');
  console.advance(1);
  assert.equal(await timeLeft(), '1 day');
  console.advance(1);
  assert.equal(await timeLeft(), '24 hours');
});

test('the transactions of an end user can be filtered by kind and by day, on the page and in the CSV file', async () => {
  const console = await MemoryConsole.start();
  for (let day = 0; day < 10; day++) {
    add(console, 10 + day);
    console.ledger.submit({ kind: 'subtract', account: 1, endUser: USER, actor: 'user:u1', amount: 1, note: '=1+1' });
    console.advance(DAY_MS);
  }
  const amountsAt = async (query: string) => {
    const { text } = await console.get(`${PATH}?${query}`);
    return [...text.matchAll(/data-label="Amount" class="number">([^<]+)</g)].map(([, amount]) => amount);
  };
  assert.equal((await amountsAt('')).length, 20);
  assert.deepEqual(await amountsAt('kind=add&from=2026-11-22&to=2026-11-24'), ['+14', '+13', '+12']);
  assert.deepEqual(await amountsAt('kind=stop-cycle'), []);
  assert.equal((await amountsAt('to=2026-11-20')).length, 2);
  assert.equal((await amountsAt('from=2026-11-29')).length, 2);
  const csv = (await console.get(`${PATH}/transactions.csv?kind=subtract&from=2026-11-29`)).text.split('\r\n');
  assert.deepEqual(csv.slice(1), [
    `${transactionsOf(console)[0]?.id},2026-11-29T14:05:31.204Z,subtract,-1,0,2026-12-21T14:05:31.204Z,,owner1@example.com,'=1+1`,
    '',
  ]);
  assert.match(
    (await console.get(`${PATH}?from=2026-11-24&to=2026-11-23`)).text,
    /type="date" value="2026-11-23"[^>]*>\s*<p class="error" id="to-error">Enter a date that is not before “From”\./,
  );
  assert.equal((await amountsAt('from=2026-11-24&to=2026-11-24')).length, 2);
  const { text } = await console.get(`${PATH}?from=yesterday`);
  assert.match(text, /id="from-error">Enter a date/);
  assert.equal((await console.get(`${PATH}/transactions.csv?from=yesterday`)).location, PATH);
});

test('the transactions of an end user can be filtered by the beginning of the note, white space included', async () => {
  const console = await MemoryConsole.start();
  for (const note of ['  Ticket 4711', 'Ticket 4712']) console.run({ kind: 'add', amount: 5, validityDays: 31, note });
  const notesAt = async (note: string) => {
    const { text } = await console.get(`${PATH}?${new URLSearchParams({ note })}`);
    return [...text.matchAll(/class="note">“([^<]+)”</g)].map(([, found]) => found);
  };
  assert.deepEqual(await notesAt('  Ticket'), ['  Ticket 4711']);
  assert.deepEqual(await notesAt('Ticket'), ['Ticket 4712']);
  assert.deepEqual(await notesAt('x'.repeat(501)), []);
});

test('the page of an end user lists renewals that are due but not stored yet', async () => {
  const console = await MemoryConsole.start();
  console.ledger.submit({
    kind: 'start-cycle',
    account: 1,
    endUser: USER,
    actor: 'key:1',
    amount: 1_000,
    validityDays: 7,
    onActive: 'refuse',
  });
  console.advance(15 * DAY_MS);
  const { text } = await console.get(PATH);
  assert.equal(text.match(/kind-renew">Cycle renewed</g)?.length, 2);
  assert.match(text, /period 2/);
  console.advance(3_650 * DAY_MS);
  assert.equal((await console.get(PATH)).status, 200);
});

test('while renewals are due but not stored yet, the overview and the lists of end users say that they are missing', async () => {
  const console = await MemoryConsole.start();
  console.run({ kind: 'start-cycle', amount: 9, validityDays: 7, onActive: 'refuse' });
  const missing = /Renewals and lapses that were due earlier are still being stored, and are not included yet\./;
  for (const path of ['/console/overview', '/console/end-users']) {
    assert.doesNotMatch((await console.get(path)).text, missing);
    console.advance(7 * DAY_MS);
    assert.match((await console.get(path)).text, missing);
    console.run({ kind: 'subtract', amount: 1 });
  }
});

test('the overview can be filtered by time span, and by an API key or a member', async () => {
  const console = await MemoryConsole.start();
  await console.post('/console/api-keys', { name: 'Backend', scope: 'write' });
  add(console, 100, { days: 400 });
  console.advance(40 * DAY_MS);
  add(console, 20, { days: 400 });
  console.ledger.submit({ kind: 'subtract', account: 1, endUser: USER, actor: 'user:u1', amount: 5 });
  const tilesAt = async (query: string) => {
    const { text } = await console.get(`/console/overview?${query}`);
    return [
      ...text.matchAll(/<div class="tile"><p class="label">([^<]+)<\/p><p class="value"><span[^>]*>([^<]+)</g),
    ].map(([, label, value]) => `${label}: ${value}`);
  };
  assert.deepEqual(await tilesAt(''), [
    'Credits outstanding: 115',
    'End users with credits: 1',
    'Spent in the last 30 days: 5',
    'Expired in the last 30 days: 0',
  ]);
  assert.deepEqual(await tilesAt('by=key:1'), ['Granted: 20', 'Spent: 0', 'Transactions: 1']);
  assert.deepEqual(await tilesAt('by=key:1&period=90'), ['Granted: 120', 'Spent: 0', 'Transactions: 2']);
  assert.deepEqual(await tilesAt('by=user:u1'), ['Granted: 0', 'Spent: 5', 'Transactions: 1']);
  assert.deepEqual(await tilesAt('by=key:99'), await tilesAt(''), 'an API key of another account is ignored');
  const year = (await console.get('/console/overview?period=12m')).text;
  assert.match(year, /Credits per month, last 12 months/);
  const months = [...year.matchAll(/<th scope="row">([^<]+)<\/th>/g)].map(([, month]) => month);
  assert.deepEqual([months.length, months[0], months.at(-1)], [12, 'Dec 2026', 'Jan 2026']);
  assert.match((await console.get('/console/overview?period=week')).text, /last 30 days/);
});

test('the overview says up to which instant both its totals and its recent activity are complete', async () => {
  const console = await MemoryConsole.start();
  add(console, 100);
  const asOf = console.ledger.now - 5_000;
  mock.method(console.ledger, 'endUsers', async () => ({ asOf, endUsers: [], next: null }));
  const { text } = await console.get('/console/overview');
  assert(text.includes(`As of <time datetime="${new Date(asOf).toISOString()}"`));
});

test('the console never shows text from the notice parameter of a URL', async () => {
  const console = await MemoryConsole.start();
  for (const path of [PATH, '/console/api-keys']) {
    const { text } = await console.get(`${path}?notice=Your+account+is+closed`);
    assert.doesNotMatch(text, /Your account is closed|class="notice"/);
  }
});

test('a user of one account sees no data of another account and cannot revoke its API keys', async () => {
  const console = await MemoryConsole.start();
  add(console, 4_242);
  await console.post('/console/api-keys', { name: 'Victim', scope: 'write' });
  for (const path of ['/console/overview', '/console/end-users', PATH, '/console/api-keys']) {
    const { text } = await console.get(path, 2);
    assert.doesNotMatch(text, /4,242|Victim/, path);
  }
  assert.doesNotMatch((await console.get('/console/end-users', 2)).text, new RegExp(USER));
  assert.equal((await console.get('/console/api-keys/1/revoke', 2)).status, 404);
  assert.equal((await console.post('/console/api-keys/1/revoke', {}, 2)).status, 404);
  assert.equal(console.keys[0]?.revokedAt, null);
});
