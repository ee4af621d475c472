// Tests plans in the console: intervals in months, rollover, and changes of plan with a preview.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { DAY_MS, HOUR_MS, VALIDITY_DAYS_MAX } from '../../src/ledger/instant.ts';
import { StoreFault } from '../../src/store/store-fault.ts';
import { END_USER, MemoryConsole } from './memory-console.ts';

const PATH = `/console/end-users/${END_USER}`;
/** The clock starts on 20 November, so the first monthly period ends on 20 December. */
const DAYS_TO_RENEWAL = 30;

const MONTHLY = { validityDays: null, validityMonths: 1 };

function start(console: MemoryConsole, amount: number, rolloverMax = 0): void {
  console.run({ kind: 'start-cycle', amount, ...MONTHLY, rolloverMax, onActive: 'refuse' });
}

function schedule(console: MemoryConsole, amount: number, rolloverMax = 0): string {
  return console.run({ kind: 'start-cycle', amount, ...MONTHLY, rolloverMax, onActive: 'at_period_end' });
}

function textOf(page: string): string {
  return page
    .replaceAll(/<[^>]+>/g, ' ')
    .replaceAll(/&#(\d+);/g, (_, code) => String.fromCodePoint(Number(code)))
    .replaceAll(/\s+/g, ' ');
}

async function textAt(console: MemoryConsole, path = PATH): Promise<string> {
  return textOf((await console.get(path)).text);
}

async function sendChange(console: MemoryConsole, fields: Record<string, string>): Promise<string> {
  const { status, text } = await console.post(`${PATH}/start-cycle`, { idempotency_key: randomUUID(), ...fields });
  assert.equal(status, 200);
  return text;
}

function hiddenFieldsOf(page: string): Record<string, string> {
  const inputs = [...page.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)">/g)];
  return Object.fromEntries(inputs.map(([, name, value]) => [name, textOf(value as string)]));
}

async function confirm(console: MemoryConsole, page: string): Promise<string> {
  const sent = await console.post(`${PATH}/start-cycle`, hiddenFieldsOf(page));
  assert.equal(sent.status, 303, sent.text);
  return (await console.get(sent.location)).text;
}

function noticeIn(text: string): string | undefined {
  return /class="notice" role="status">([^<]+)</.exec(text)?.[1];
}

function kindsOf(console: MemoryConsole): string[] {
  return console.ledger.transactions(1).map(({ kind }) => kind);
}

test('a form starts a cycle that renews every 2 months with rollover, and the page of the end user shows the plan and the next renewal', async () => {
  const console = await MemoryConsole.start();
  const form = { amount: '1000', validity: '2', unit: 'months', rollover_max: '500', idempotency_key: 'a' };
  const sent = await console.post(`${PATH}/start-cycle`, form);
  assert.equal(sent.status, 303);
  assert.equal(noticeIn((await console.get(sent.location)).text), 'Cycle started.');
  const text = await textAt(console);
  assert.match(
    text,
    /Plan 1,000 credits every 2 months\. At each renewal, up to 500 unused credits can roll over to the new period\./,
  );
  assert.match(text, /The cycle renews with 1,000 plus up to 500 unused credits on 20 Jan 2027, 14:05:31 UTC \./);
  assert.match(text, /2-month cycle of 1,000, period 0/);
});

test('for a plan without rollover, the page of the end user says that unused credits expire, and shows the amount of the next renewal', async () => {
  const console = await MemoryConsole.start();
  console.run({ kind: 'start-cycle', amount: 100, validityDays: 31, onActive: 'refuse' });
  const text = await textAt(console);
  assert.match(text, /Plan 100 credits every 31 days\. Unused credits expire at the end of each period\./);
  assert.match(text, /The cycle renews with 100 credits on 21 Dec 2026, 14:05:31 UTC/);
  console.run({ kind: 'stop-cycle' });
  assert.doesNotMatch(await textAt(console), /Plan 100 credits/, 'a stopped cycle does not renew');
});

test('after a renewal, the page of the end user shows the balance with the credits that rolled over, and the next renewal', async () => {
  const console = await MemoryConsole.start();
  start(console, 100, 30);
  console.run({ kind: 'subtract', amount: 75 });
  console.advance(DAYS_TO_RENEWAL * DAY_MS);
  const text = await textAt(console);
  assert.match(text, /125 of 125/);
  assert.match(text, /The cycle renews with 100 plus up to 30 unused credits on 20 Jan 2027/);
  assert.match(text, /Cycle renewed \+125/);
});

test('the form to add credits accepts a validity in calendar months', async () => {
  const console = await MemoryConsole.start();
  const form = { amount: '50', validity: '1', unit: 'months', idempotency_key: 'a' };
  assert.equal((await console.post(`${PATH}/add`, form)).location, `${PATH}?notice=add`);
  assert.match(await textAt(console), /Expires 20 Dec 2026, 14:05/);
  const { text } = await console.post(`${PATH}/add`, { ...form, validity: '121' });
  assert.match(text, /id="add-validity-error">Enter at most 120 months\./);
  assert.match(text, /<option value="months" selected>/, 'the form keeps the unit');
  assert.deepEqual(kindsOf(console), ['add']);
});

test('a change of plan at the end of the period is previewed, scheduled after a confirmation, and shown until the new plan starts', async () => {
  const console = await MemoryConsole.start();
  start(console, 1_000);
  console.run({ kind: 'add', amount: 7, validityDays: 400 });
  console.run({ kind: 'subtract', amount: 400 });
  const change = { amount: '200', validity: '1', unit: 'months', rollover_max: '50', on_active: 'at_period_end' };
  const page = await sendChange(console, { ...change, note: 'Downgrade "now"' });
  assert.deepEqual(kindsOf(console), ['subtract', 'add', 'start-cycle'], 'the preview changes nothing');
  const preview = textOf(page);
  assert.match(
    preview,
    /Current plan 1,000 credits every month New plan 200 credits every month; up to 50 unused credits can roll over/,
  );
  assert.match(preview, /Starts 20 Dec 2026, 14:05:31 UTC Balance after you confirm 607 credits/);
  assert.match(
    preview,
    /Balance when the plan starts 207 credits.* Expires when the plan starts 600 credits of the current period, unless spent first/,
  );
  assert.match(preview, /“Downgrade "now"”/);
  const scheduled = await confirm(console, page);
  assert.equal(noticeIn(scheduled), 'Change of plan scheduled for 20 Dec 2026, 14:05:31 UTC.');
  const text = textOf(scheduled);
  assert.match(
    text,
    /On 20 Dec 2026, 14:05:31 UTC , the plan changes to 200 credits every month\. Unused credits of the current/,
  );
  assert.match(text, /600 of 1,000 30 days Changes to 200 20 Dec 2026, 14:05/);
  assert.match(
    text,
    /Plan scheduled Monthly cycle of 1,000, period 0 To 200 credits every month Rolls over up to 50 unused/,
  );
  assert.match(text, /owner1@example\.com “Downgrade "now"”/);
  console.advance(DAYS_TO_RENEWAL * DAY_MS - 1);
  assert.match(await textAt(console), /Current balance 607 /);
  console.advance(1);
  const begun = await textAt(console);
  assert.match(begun, /Current balance 207 credits/);
  assert.match(begun, /The cycle renews with 200 plus up to 50 unused credits on 20 Jan 2027/);
});

test('if the cycle is stopped after the preview of a change at the end of the period, the confirmation changes nothing and shows the preview of a plan that starts now', async () => {
  const console = await MemoryConsole.start();
  start(console, 100);
  const change = { amount: '40', validity: '1', unit: 'months', on_active: 'at_period_end' };
  const preview = await sendChange(console, change);
  console.run({ kind: 'stop-cycle' });
  const again = await sendChange(console, hiddenFieldsOf(preview));
  assert.match(textOf(again), /Nothing was changed, because the end user's plan has changed since the preview/);
  assert.match(textOf(again), /Starts Now Balance after you confirm 140 credits/);
  assert.deepEqual(kindsOf(console), ['stop-cycle', 'start-cycle']);
  assert.equal(noticeIn(await confirm(console, again)), 'Cycle started.');
  assert.deepEqual(kindsOf(console), ['start-cycle', 'stop-cycle', 'start-cycle']);
  assert.deepEqual(console.errors, []);
});

test('if a credit is spent after the preview of a change of plan, the change can still be confirmed', async () => {
  const console = await MemoryConsole.start();
  start(console, 100);
  const preview = await sendChange(console, { amount: '40', on_active: 'at_period_end' });
  console.run({ kind: 'subtract', amount: 1 });
  console.advance(HOUR_MS);
  assert.match(noticeIn(await confirm(console, preview)) ?? '', /^Change of plan scheduled/);
});

test('the page of an end user lists the start of a scheduled plan even before the start is stored, and links to the transaction that scheduled the plan', async () => {
  const console = await MemoryConsole.start();
  start(console, 1_000);
  const id = schedule(console, 200);
  console.advance((DAYS_TO_RENEWAL + 40) * DAY_MS);
  for (const isStored of [false, true]) {
    if (isStored) console.run({ kind: 'subtract', amount: 1 });
    const { text } = await console.get(`${PATH}?kind=change-plan`);
    const row = /<tr role="row">\s*<td[^>]*data-label="Time"[\s\S]*?<\/tr>/.exec(text)?.[0] ?? '';
    assert.match(
      textOf(row),
      /Plan changed \+200 Monthly cycle of 200, period 0 Expires .* Scheduled 20 Nov 2026.* Scrip /,
    );
    assert(row.includes(`href="${PATH}/transactions/${id}"`));
  }
  const csv = (await console.get(`${PATH}/transactions.csv?kind=change-plan`)).text.split('\r\n')[1]?.split(',') ?? [];
  assert.deepEqual(csv.slice(2), ['change-plan', '200', '0', '2027-01-20T14:05:31.204Z', id, 'Scrip', '']);
  const { text } = await console.get(`${PATH}/transactions/${id}`);
  assert.match(textOf(text), /Type Plan scheduled .* New plan 200 credits every month From 20 Dec 2026, 14:05/);
  const changed = console.ledger.transactions(1).find(({ kind }) => kind === 'change-plan')?.id;
  const changedPage = (await console.get(`${PATH}/transactions/${changed}`)).text;
  assert(changedPage.includes(`<dt>Scheduled</dt><dd><a href="${PATH}/transactions/${id}"`));
});

test('the list of transactions can be filtered by the kind schedule-plan, on the page and in the CSV file', async () => {
  const console = await MemoryConsole.start();
  start(console, 1_000);
  const id = schedule(console, 200);
  const { text } = await console.get(`${PATH}?kind=schedule-plan`);
  assert.deepEqual(
    [...text.matchAll(/class="badge kind-([a-z-]+)"/g)].map(([, kind]) => kind),
    ['schedule-plan'],
  );
  const csv = (await console.get(`${PATH}/transactions.csv?kind=schedule-plan`)).text.split('\r\n');
  assert.equal(csv.length, 3);
  assert.deepEqual(csv[1]?.split(',').slice(0, 1).concat(csv[1].split(',').slice(2, 5)), [
    id,
    'schedule-plan',
    '0',
    '0',
  ]);
});

test('a change of plan that starts now stops the current cycle, and the preview says that the credits of the stopped cycle can still be spent', async () => {
  const console = await MemoryConsole.start();
  start(console, 1_000);
  console.run({ kind: 'subtract', amount: 400 });
  const page = await sendChange(console, { amount: '5000', validity: '1', unit: 'months', on_active: 'replace' });
  const preview = textOf(page);
  assert.match(
    preview,
    /Starts Now Balance after you confirm 5,600 credits Current cycle Stops\. Its remaining 600 credits stay usable until 20 Dec 2026, 14:05 UTC \./,
  );
  assert.doesNotMatch(preview, /Expires when the plan starts/);
  const changed = await confirm(console, page);
  assert.equal(noticeIn(changed), 'Cycle started.');
  assert.match(textOf(changed), /Current balance 5,600 credits.* Plan 5,000 credits every month.* Recurring, stopped/);
});

test('the form to stop a cycle, the form to change the plan, and the preview of a change do not count held credits as credits that stay usable', async () => {
  const console = await MemoryConsole.start();
  start(console, 1_000);
  console.run({ kind: 'hold', amount: 999, expiresInSeconds: 900 });
  const forms = await textAt(console);
  assert.match(forms, /won't renew\. The remaining credits \(1 of 1,000\) stay usable until 20 Dec 2026 \./);
  assert.match(forms, /If the new plan starts now, the remaining credits \(1 of 1,000\) stay usable until that date\./);
  const preview = textOf(await sendChange(console, { amount: '5', on_active: 'replace' }));
  assert.match(
    preview,
    /Balance after you confirm 6 credits Current cycle Stops\. Its remaining 1 credit stays usable until/,
  );
});

test('a change of plan that is confirmed twice takes effect once', async () => {
  const console = await MemoryConsole.start();
  start(console, 1_000);
  const page = await sendChange(console, { amount: '5000', on_active: 'replace' });
  const [first, second] = [await confirm(console, page), await confirm(console, page)];
  assert.deepEqual([noticeIn(first), noticeIn(second)], ['Cycle started.', 'Cycle started.']);
  assert.match(textOf(second), /Current balance 6,000 credits/);
});

test('if two people confirm previews of the same cycle, only the first change takes effect, and the second person gets a new preview', async () => {
  for (const on_active of ['replace', 'at_period_end']) {
    const console = await MemoryConsole.start();
    start(console, 100);
    const change = { amount: '1000', validity: '1', unit: 'months', on_active };
    const [first, second] = [await sendChange(console, change), await sendChange(console, change)];
    const done = noticeIn(await confirm(console, first)) ?? '';
    const kinds = kindsOf(console);
    const again = await sendChange(console, hiddenFieldsOf(second));
    assert.match(textOf(again), /Nothing was changed, because the end user's plan has changed since the preview/);
    assert.match(textOf(again), /Current plan .*1,000 credits|Canceled The scheduled change to 1,000 credits/);
    assert.deepEqual(kindsOf(console), kinds);
    assert.equal(noticeIn(await confirm(console, again)), done);
    assert.equal(kindsOf(console).length, kinds.length + (on_active === 'replace' ? 2 : 1));
  }
});

test('a second change of plan replaces the scheduled change, and the form and the preview say so', async () => {
  const console = await MemoryConsole.start();
  start(console, 1_000);
  schedule(console, 200);
  assert.match(await textAt(console), /The new plan replaces the change that is scheduled for 20 Dec 2026 \./);
  const page = await sendChange(console, { amount: '300', on_active: 'at_period_end' });
  assert.match(textOf(page), /Canceled The scheduled change to 200 credits every month/);
  const scheduled = textOf(await confirm(console, page));
  assert.match(scheduled, /On 20 Dec 2026, 14:05:31 UTC , the plan changes to 300 credits every 31 days\./);
});

test('the form to stop a cycle says that stopping also cancels a scheduled change of plan', async () => {
  const console = await MemoryConsole.start();
  start(console, 1_000);
  assert.doesNotMatch(await textAt(console), /This also cancels/);
  schedule(console, 200);
  assert.match(await textAt(console), /This also cancels the scheduled change to 200 credits every month\./);
  assert.equal((await console.post(`${PATH}/stop-cycle`, { idempotency_key: 'a' })).status, 303);
  assert.doesNotMatch(await textAt(console), /the plan changes to 200 credits/);
  console.advance(DAYS_TO_RENEWAL * DAY_MS);
  assert.match(await textAt(console), /Current balance 0 credits/);
});

test('the form to change the plan initially contains the interval and the rollover of the current plan', async () => {
  const console = await MemoryConsole.start();
  console.run({
    kind: 'start-cycle',
    amount: 9,
    validityDays: null,
    validityMonths: 3,
    rolloverMax: 5,
    onActive: 'refuse',
  });
  const { text } = await console.get(PATH);
  assert.match(text, /<summary>Change the plan</);
  assert.match(
    text,
    /name="validity" type="text" value="3"[^>]*>\s*<select[^>]*>[^/]*<\/option><option value="months" selected>/,
  );
  assert.match(text, /name="rollover_max" type="text" value="5"/);
});

test('if a change of plan has invalid input, the form is shown again with the input, the chosen start, and an error next to each invalid field', async () => {
  const console = await MemoryConsole.start();
  start(console, 1_000);
  const fields = { amount: '1.5', validity: '0', unit: 'months', rollover_max: 'x', on_active: 'replace' };
  const text = await sendChange(console, fields);
  assert.match(text, /<details class="action" name="adjust" open><summary>Change the plan</);
  for (const [field, error] of [
    ['amount', 'Enter a whole number, without decimals.'],
    ['validity', 'Enter at least 1 month.'],
    ['rollover_max', 'Enter a whole number, such as 100.'],
  ] as const)
    assert(text.includes(`id="start-cycle-${field}-error">${error}<`), field);
  assert.match(text, /<option value="replace" selected>/);
});

test('the preview of a change at the end of the period mentions no expiring credits if all credits are spent', async () => {
  const console = await MemoryConsole.start();
  start(console, 10);
  console.run({ kind: 'subtract', amount: 10 });
  const preview = textOf(await sendChange(console, { amount: '5', on_active: 'at_period_end' }));
  assert.match(preview, /Balance after you confirm 0 credits Balance when the plan starts 5 credits/);
  assert.doesNotMatch(preview, /Expires when the plan starts/);
});

test('if the amount and the rollover of a plan together exceed the maximum balance, the form shows an error next to the rollover instead of a preview', async () => {
  const console = await MemoryConsole.start();
  const most = { amount: String(Number.MAX_SAFE_INTEGER), rollover_max: '1' };
  const error = /id="start-cycle-rollover_max-error">[^<]*maximum balance of 9,007,199,254,740,991 credits/;
  for (const fields of [most, { amount: '5', rollover_max: most.amount }])
    assert.match(await sendChange(console, fields), error);
  start(console, 1_000);
  const text = await sendChange(console, { ...most, on_active: 'at_period_end' });
  assert.match(text, error);
  assert.doesNotMatch(text, /amount-error/);
  assert.doesNotMatch(text, /Schedule change/);
});

test('if the current period never ends, a new plan can only start now', async () => {
  const console = await MemoryConsole.start();
  console.run({ kind: 'start-cycle', amount: 10, validityDays: VALIDITY_DAYS_MAX, onActive: 'refuse' });
  const { text } = await console.get(PATH);
  assert.match(textOf(text), /The current period never ends\./);
  assert.match(textOf(text), /won't renew\. The remaining credits \(10 of 10\) never expire\./);
  assert.match(textOf(text), /Cycle started \+10 .* Never expires/);
  assert.doesNotMatch(text, /<option value="at_period_end"/);
  const refused = await sendChange(console, { amount: '5', on_active: 'at_period_end' });
  assert.match(
    refused,
    /id="start-cycle-on_active-error">The current period never ends, so the new plan must start now\./,
  );
  const page = await sendChange(console, { amount: '5', on_active: 'replace' });
  assert.match(textOf(page), /Current cycle Stops\. Its remaining 10 credits never expire\./);
  assert.match(textOf(await confirm(console, page)), /Current balance 15 credits/);
});

test('if the outcome of starting a cycle is unknown, the form is shown again with only the fields of the first request, so that the user can repeat exactly that request', async () => {
  const console = await MemoryConsole.start();
  console.fault = new StoreFault('OutcomeUnknown', 'secret reason');
  const form = { amount: '77', idempotency_key: 'a' };
  assert.match(await sendChange(console, form), /Submit the form again without changes/);
  assert.equal((await console.post(`${PATH}/start-cycle`, form)).status, 303);
  console.fault = new StoreFault('OutcomeUnknown', 'secret reason');
  const text = await sendChange(console, form);
  assert.match(text, /Submit the form again without changes[\s\S]*name="idempotency_key" value="a"/);
  assert.doesNotMatch(text, /name="on_active"/);
  assert.equal((await console.post(`${PATH}/start-cycle`, form)).status, 303);
  assert.deepEqual(kindsOf(console), ['start-cycle']);
});

test('when a scheduled plan starts, the overview counts its credits as renewed credits', async () => {
  const console = await MemoryConsole.start();
  start(console, 1_000);
  schedule(console, 200);
  console.advance(DAYS_TO_RENEWAL * DAY_MS);
  console.run({ kind: 'subtract', amount: 1 });
  console.advance(HOUR_MS);
  const text = await textAt(console, '/console/overview');
  assert.match(text, /Renewed 200/);
  assert.match(text, /Credits outstanding 199/);
});

test("a preview never shows data of another account's end users", async () => {
  const console = await MemoryConsole.start();
  start(console, 4_242);
  const fields = { amount: '5', on_active: 'at_period_end', idempotency_key: 'a' };
  const { text } = await console.post(`${PATH}/start-cycle`, fields, 2);
  assert.match(textOf(text), /Current plan None: no cycle is active\./);
  assert.doesNotMatch(text, /4,242/);
});
