// Tests the pages for holds and refunds, and the forms that release a hold or refund credits.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DAY_MS } from '../../src/ledger/instant.ts';
import { StoreFault } from '../../src/store/store-fault.ts';
import { END_USER, MemoryConsole } from './memory-console.ts';

const PATH = `/console/end-users/${END_USER}`;
const MINUTE_MS = 60_000;

function add(console: MemoryConsole, amount: number, validityDays = 31): string {
  return console.run({ kind: 'add', amount, validityDays });
}

function subtract(console: MemoryConsole, amount: number): string {
  return console.run({ kind: 'subtract', amount });
}

function hold(console: MemoryConsole, amount: number, { seconds = 900, note = null as string | null } = {}): string {
  return console.run({ kind: 'hold', amount, expiresInSeconds: seconds, note });
}

function transactionPath(id: string): string {
  return `${PATH}/transactions/${id}`;
}

async function balanceOn(console: MemoryConsole): Promise<string | undefined> {
  return /<p class="value"><span class="large-number">([^<]+)</.exec((await console.get(PATH)).text)?.[1];
}

function noticeIn(text: string): string | undefined {
  return /class="notice" role="status">([^<]+)</.exec(text)?.[1];
}

async function send(
  console: MemoryConsole,
  { id, action, ...fields }: { id: string; action: 'refund' | 'release' } & Record<string, string>,
): Promise<string> {
  const { text } = await console.get(transactionPath(id));
  const [, key = ''] = /name="idempotency_key" value="([^"]+)"/.exec(text) ?? [];
  const [, amount = ''] = /name="amount" type="text" value="([^"]*)"/.exec(text) ?? [];
  const path = `${transactionPath(id)}/${action}`;
  const reply = await console.post(path, { amount, idempotency_key: key, ...fields });
  return reply.status === 303 ? (await console.get(reply.location)).text : reply.text;
}

test('the page of an end user shows the held credits, and each open hold with its remaining time, actor and note', async () => {
  const console = await MemoryConsole.start();
  await console.post('/console/api-keys', { name: 'Backend', scope: 'write' });
  add(console, 100);
  assert.doesNotMatch((await console.get(PATH)).text, /<h2>Holds|held<\/a>/);
  hold(console, 40, { note: 'Job 8812 <b>' });
  console.advance(MINUTE_MS);
  hold(console, 15, { seconds: 3_600 });
  const { text } = await console.get(PATH);
  assert.equal(await balanceOn(console), '45');
  assert.match(text, /55 more <a href="#holds">held</);
  assert.match(text, /45 of 100[\s\S]*55 held/, 'the cycle says how much of it is held');
  const [first, second] = [...text.matchAll(/data-label="Held"[\s\S]*?<\/tr>/g)].map(([row]) => row);
  assert.match(
    first ?? '',
    />40<[\s\S]*14:05:31[\s\S]*14:20:31[\s\S]*14 minutes left[\s\S]*Backend[\s\S]*“Job 8812 &#60;b&#62;”/,
  );
  assert.match(second ?? '', />15<[\s\S]*1 hour left/);
});

test('a lapsed hold is no longer in the list of holds, and its lapse is in the list of transactions even before the lapse is stored', async () => {
  const console = await MemoryConsole.start();
  add(console, 100);
  const held = hold(console, 40);
  console.advance(15 * MINUTE_MS - 1);
  assert.equal(await balanceOn(console), '60');
  console.advance(1);
  assert.equal(await balanceOn(console), '100');
  const { text } = await console.get(PATH);
  assert.doesNotMatch(text, /<h2>Holds/);
  assert.match(text, /kind-lapse">Hold lapsed<[\s\S]*40 released[\s\S]*Hold of[\s\S]*kind-hold">Held</);
  assert(text.includes(`href="${transactionPath(held)}"`), 'the lapse refers to its hold');
  assert.match((await console.get(transactionPath(held))).text, /Closed: the hold was captured or released/);
});

test('the page of an end user lists at most the 20 oldest open holds, and the list of transactions has a release button for every open hold', async () => {
  const console = await MemoryConsole.start();
  add(console, 100);
  for (let made = 0; made < 25; made++) hold(console, 1);
  const { text } = await console.get(PATH);
  assert.match(text, /Showing the oldest 20 of 25/);
  assert.equal(text.match(/data-label="Held"/g)?.length, 20);
  const [, history = ''] = text.split('id="transactions"');
  assert.equal(history.match(/>Release</g)?.length, 25);
});

test('a user can enter a note when releasing a hold, and the transaction records the user and the note', async () => {
  const console = await MemoryConsole.start();
  add(console, 100);
  const id = hold(console, 40);
  const link = `<a class="button secondary small" href="${transactionPath(id)}"`;
  assert((await console.get(PATH)).text.includes(link));
  const text = await send(console, { id, action: 'release', note: 'Job was canceled' });
  assert.equal(noticeIn(text), 'Hold released: 40 credits returned.');
  assert.match(text, /class="large-number">100</);
  const [released] = console.ledger.transactions(1);
  assert.deepEqual([released?.kind, released?.actor, released?.note], ['release', 'user:u1', 'Job was canceled']);
  assert.match(text, /kind-release">Hold released<[\s\S]*40 released[\s\S]*“Job was canceled”/);
});

test('the notice after a release says how many credits could not be returned because their cycles have ended', async () => {
  const console = await MemoryConsole.start();
  add(console, 30, 1);
  add(console, 100);
  const id = hold(console, 40, { seconds: 3 * 86_400 });
  console.advance(2 * DAY_MS);
  const text = await send(console, { id, action: 'release' });
  const notice = 'Hold released: 10 credits returned. 30 credits expired because the cycle or period had ended.';
  assert.equal(noticeIn(text), notice);
});

test('a release or refund form that is sent twice takes effect once, and both responses redirect to the same page', async () => {
  const console = await MemoryConsole.start();
  add(console, 100);
  const spent = subtract(console, 30);
  const held = hold(console, 40);
  for (const [path, fields] of [
    [`${transactionPath(held)}/release`, { idempotency_key: 'a' }],
    [`${transactionPath(spent)}/refund`, { amount: '20', idempotency_key: 'b' }],
  ] as const) {
    const before = console.ledger.transactions(1).length;
    const [first, second] = await Promise.all([console.post(path, fields), console.post(path, fields)]);
    assert.deepEqual([first.status, second.location], [303, first.location]);
    assert.equal(console.ledger.transactions(1).length, before + 1);
  }
  assert.equal(await balanceOn(console), '90');
});

test('releasing a captured hold in the console changes nothing, and an error says that the hold is no longer open', async () => {
  const console = await MemoryConsole.start();
  add(console, 100);
  const id = hold(console, 40);
  console.run({ kind: 'capture', holdId: id, amount: 25 });
  const { status, text } = await console.post(`${transactionPath(id)}/release`, { idempotency_key: 'a' });
  assert.equal(status, 200);
  assert.match(text, /role="alert">This hold is no longer open\. Nothing was changed\./);
  assert.doesNotMatch(text, /Release hold/);
  assert.equal(await balanceOn(console), '75');
});

test('subtractions and captures have a refund button until they are fully refunded, and other transactions have no refund button', async () => {
  const console = await MemoryConsole.start();
  add(console, 100);
  const subtracted = subtract(console, 30);
  const captured = console.run({ kind: 'capture', holdId: hold(console, 40), amount: 25 });
  const buttons = async () =>
    [...(await console.get(PATH)).text.matchAll(/href="([^"]+)"[^>]*>Refund</g)].map(([, path]) => path);
  assert.deepEqual(await buttons(), [captured, subtracted].map(transactionPath));
  assert.match((await console.get(transactionPath(captured))).text, /name="amount" type="text" value="25"/);
  assert.equal(noticeIn(await send(console, { id: subtracted, action: 'refund' })), '30 credits restored.');
  assert.deepEqual(await buttons(), [transactionPath(captured)]);
  const text = await send(console, { id: captured, action: 'refund', amount: '10', note: 'Half of it failed' });
  assert.match(text, /\+10<[\s\S]*“Half of it failed”/);
  const page = (await console.get(transactionPath(captured))).text;
  assert.match(page, /name="amount" type="text" value="15"/, 'the rest can be refunded');
  assert.match(page, /<h2>Refunds<\/h2>[\s\S]*class="number">10<[\s\S]*owner1@example\.com[\s\S]*“Half of it failed”/);
  assert.equal(await balanceOn(console), '85');
});

test('in the console, a refund that is too large shows an error next to the amount, and a refund of an addition shows an error on the page', async () => {
  const console = await MemoryConsole.start();
  const added = add(console, 100);
  const id = subtract(console, 30);
  const text = await send(console, { id, action: 'refund', amount: '31', note: 'Ticket 4711' });
  assert.match(text, /id="amount-error">[^<]*30 credits[^<]*31 requested/);
  assert.match(text, /value="31"[\s\S]*value="Ticket 4711"/);
  assert.match(await send(console, { id, action: 'refund', amount: '' }), /id="amount-error">Enter an amount\./);
  assert.match(await send(console, { id: added, action: 'refund', amount: '1' }), /role="alert">This transaction/);
  assert.equal(await balanceOn(console), '70');
});

test('in the console, a refund of a transaction that has been refunded completely in the meantime shows an error on the page', async () => {
  const console = await MemoryConsole.start();
  add(console, 100);
  const id = subtract(console, 30);
  await send(console, { id, action: 'refund', amount: '30' });
  const text = await send(console, { id, action: 'refund', amount: '30', idempotency_key: 'another form' });
  assert.match(text, /role="alert">All credits of this transaction have already been refunded\. Nothing was changed/);
  assert.equal(await balanceOn(console), '100');
});

test('the refund form of the console restores credits of ended cycles only if a validity in days is entered', async () => {
  const console = await MemoryConsole.start();
  add(console, 30, 1);
  add(console, 100);
  const id = subtract(console, 50);
  assert.doesNotMatch((await console.get(transactionPath(id))).text, /Valid for/);
  console.advance(2 * DAY_MS);
  assert.match(
    (await console.get(transactionPath(id))).text,
    /30 of these credits came from a cycle or period that has ended\. They expire immediately, and cannot be refunded again, unless/,
  );
  const partly = await send(console, { id, action: 'refund', amount: '35' });
  const notice = '20 credits restored. 15 credits expired because the cycle or period had ended.';
  assert.equal(noticeIn(partly), notice);
  assert.match(partly, /\+20 <br><span class="muted small">15 expired</);
  assert.match(await send(console, { id, action: 'refund', validity_days: '0' }), /Enter at least 1 day/);
  const none = await send(console, { id, action: 'refund', amount: '5' });
  assert.equal(noticeIn(none), 'Nothing restored: the 5 credits came from a cycle or period that has ended.');
  const again = await send(console, { id, action: 'refund', validity_days: '7' });
  assert.equal(noticeIn(again), '10 credits restored.');
  assert.match(again, />Added 10<[\s\S]*10 of 10[\s\S]*7 days/);
});

test('if the outcome of a refund is unknown, the form is shown again with its input and the same idempotency key', async () => {
  const console = await MemoryConsole.start();
  add(console, 100);
  const id = subtract(console, 30);
  console.fault = new StoreFault('OutcomeUnknown', 'secret reason');
  const form = { amount: '12', note: 'Ticket 4711', idempotency_key: 'a' };
  const { text } = await console.post(`${transactionPath(id)}/refund`, form);
  assert.match(
    text,
    /Submit the form again without changes[\s\S]*value="12"[\s\S]*value="Ticket 4711"[\s\S]*value="a"/,
  );
  assert.doesNotMatch(text, /secret reason/);
});

test('the list of transactions can be filtered by kind and by the beginning of the note', async () => {
  const console = await MemoryConsole.start();
  add(console, 100);
  const held = hold(console, 40, { note: 'Job 1' });
  console.run({ kind: 'capture', holdId: held, amount: 25, note: 'Job 1, done' });
  const released = hold(console, 10, { note: 'Job 2' });
  console.run({ kind: 'release', holdId: released, note: 'A job was canceled' });
  const badges = async (query: string) => {
    const { text } = await console.get(`${PATH}?${query}`);
    return [...text.matchAll(/class="badge kind-([a-z-]+)"/g)].map(([, kind]) => kind);
  };
  for (const kind of ['hold', 'capture', 'release']) {
    const expected = kind === 'hold' ? [kind, kind] : [kind];
    assert.deepEqual(await badges(`kind=${kind}`), expected);
  }
  assert.deepEqual(await badges('kind=lapse'), []);
  assert.deepEqual(await badges('note=Job+1'), ['capture', 'hold']);
  assert.deepEqual(await badges('note=Job+1&kind=hold'), ['hold']);
  assert.deepEqual(await badges('note=job'), [], 'the filter is case-sensitive');
  assert.match((await console.get(`${PATH}?note=Job+1`)).text, /name="note" type="text" value="Job 1"/);
  assert.match(
    (await console.get(`${PATH}?note=Job+1`)).text,
    /transactions\.csv\?note&#61;Job\+1"|transactions\.csv\?note=Job\+1"/,
  );
});

test('the CSV file of transactions contains the held credits, the references and the notes', async () => {
  const console = await MemoryConsole.start();
  add(console, 100);
  const held = hold(console, 40, { note: 'Job 1' });
  const captured = console.run({ kind: 'capture', holdId: held, amount: 25 });
  const refunded = console.run({ kind: 'refund', transactionId: captured, amount: 5, validityDays: null });
  const [header, ...lines] = (await console.get(`${PATH}/transactions.csv`)).text.trimEnd().split('\r\n');
  assert.equal(header, 'transaction_id,created_at,kind,amount,held,expires_at,reference,by,note');
  const shown = lines.map((line) => line.split(','));
  assert.deepEqual(
    shown
      .slice(0, 3)
      .map(([id, , kind, amount, heldChange, , reference, , note]) => [id, kind, amount, heldChange, reference, note]),
    [
      [refunded, 'refund', '5', '0', captured, ''],
      [captured, 'capture', '-25', '-40', held, ''],
      [held, 'hold', '0', '40', '', 'Job 1'],
    ],
  );
});

test('the CSV file of transactions contains every lapse that is not stored yet, and the page contains the latest 50 and says if others are missing', async () => {
  const console = await MemoryConsole.start();
  const missing = /still being stored, and are not included yet/;
  add(console, 100);
  for (let made = 0; made < 50; made++) hold(console, 1);
  hold(console, 1, { seconds: 172_800 });
  console.advance(DAY_MS);
  assert.doesNotMatch((await console.get(`${PATH}?kind=lapse`)).text, missing);
  console.advance(DAY_MS);
  assert.equal((await console.get(`${PATH}/transactions.csv?kind=lapse`)).text.trimEnd().split('\r\n').length, 1 + 51);
  const { text } = await console.get(`${PATH}?kind=lapse`);
  assert.equal(text.match(/class="badge kind-lapse"/g)?.length, 50);
  assert.match(text, missing);
});

test('the page of a transaction shows all its data, and only users of its account can see the page', async () => {
  const console = await MemoryConsole.start();
  add(console, 100);
  const held = hold(console, 40, { note: 'Job 1' });
  const captured = console.run({ kind: 'capture', holdId: held, amount: 25, note: 'Done' });
  const { text } = await console.get(transactionPath(captured));
  assert.match(text, /kind-capture">Captured<[\s\S]*−25[\s\S]*hold of 40[\s\S]*“Done”[\s\S]*>Added 100</);
  assert(text.includes(`<dt>Hold</dt><dd><a href="${transactionPath(held)}"`));
  for (const path of [transactionPath(captured), transactionPath(held)])
    assert.equal((await console.get(path, 2)).status, 404);
  for (const id of ['bob', '00000000-0000-4000-8000-000000000000'])
    assert.match((await console.get(transactionPath(id))).text, /This end user has no such transaction/);
  for (const [path, fields] of [
    [`${transactionPath(captured)}/refund`, { amount: '1' }],
    [`${transactionPath(held)}/release`, {}],
  ] as const)
    assert.equal((await console.post(path, fields, 2)).status, 404);
  assert.equal(console.ledger.transactions(1).length, 3, 'nothing was refunded or released');
});

test('the console shows no notice if the URL names a refund or release that did not happen', async () => {
  const console = await MemoryConsole.start();
  const added = add(console, 100);
  for (const query of [`notice=refund&transaction=${added}`, 'notice=release&transaction=x', 'notice=refund']) {
    assert.equal(noticeIn((await console.get(`${PATH}?${query}`)).text), undefined, query);
  }
});

test('the overview subtracts refunds from the credits spent', async () => {
  const console = await MemoryConsole.start();
  add(console, 100);
  const id = subtract(console, 30);
  console.run({ kind: 'capture', holdId: hold(console, 40), amount: 25 });
  await send(console, { id, action: 'refund', amount: '10' });
  const { text } = await console.get('/console/overview');
  assert.match(text, /Spent in the last 30 days<\/p><p class="value"><span class="large-number">45</);
  assert.match(text, /kind-refund">Refunded<[\s\S]*\+10</);
});

test('the overview shows the same amount for a transaction as the page of the end user, such as "20 held"', async () => {
  const console = await MemoryConsole.start();
  const latestOn = async (path: string) => {
    const [, cell = ''] =
      /data-label="Amount" class="number">([\s\S]*?)<\/td>/.exec((await console.get(path)).text) ?? [];
    return cell.replaceAll(/<[^>]+>/g, '').replaceAll(/\s+/g, ' ');
  };
  const assertLatest = async (amount: string) =>
    assert.deepEqual([await latestOn('/console/overview'), await latestOn(PATH)], [amount, amount]);
  add(console, 100, 1);
  await assertLatest('+100');
  const released = hold(console, 20);
  await assertLatest('20 held');
  console.run({ kind: 'release', holdId: released });
  await assertLatest('20 released');
  console.run({ kind: 'capture', holdId: hold(console, 30), amount: 25 });
  await assertLatest('−25 hold of 30');
  const spent = subtract(console, 60);
  await assertLatest('−60');
  console.advance(DAY_MS);
  console.run({ kind: 'refund', transactionId: spent, amount: 60, validityDays: null });
  await assertLatest('0 60 expired');
});
