// Tests the webhook pages and the threshold page of the console.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HOUR_MS } from '../../src/ledger/instant.ts';
import { eventsOf } from '../http/read-events.ts';
import { eventually, type Reply, someone } from '../http/running-service.ts';
import {
  assertGoesTo,
  decode,
  newMember,
  newOwner,
  onBothStores,
  onOneStore,
  type Started,
  type Visitor,
} from './visitor.ts';

const URL = 'https://receiver.example/hooks?tenant=<i>';
const SHOWN_URL = 'https://receiver.example/hooks?tenant=%3Ci%3E';
const LIST = '/console/webhooks';
const SECRET = /whsec_[A-Za-z0-9+/]{32}/g;

function secretIn({ text }: Reply): string {
  const [secret] = decode(text).match(SECRET) ?? [];
  assert(secret, text);
  return secret;
}

function textOf({ text }: Reply): string {
  return decode(text.replaceAll(/<[^>]*>/g, ' ')).replaceAll(/\s+/g, ' ');
}

function pathIn({ text }: Reply): string {
  const path = /href="(\/console\/webhooks\/\d+)"/.exec(text)?.[1];
  assert(path, text);
  return path;
}

async function pausedEndpoint(visitor: Visitor, fields: Record<string, string> = {}): Promise<string> {
  const path = pathIn(await visitor.post(LIST, { url: URL, ...fields }));
  assertGoesTo(await visitor.post(`${path}/pause`), `${path}?notice=paused`);
  return path;
}

async function storeDeliveries({ sql, clock }: Started, path: string, ids: string[], body: string): Promise<void> {
  const endpoint = path.split('/').at(-1);
  const event = `'evt_${'0'.repeat(32)}', 'balance.low', '${body}', 1`;
  const answer = "87, 503, 'The endpoint responded with status 503.', '<b>away</b>'";
  const rows = ids.map((id, index) => `('${id}', ${endpoint}, ${event}, ${clock.now + index}, ${answer})`);
  await sql(`INSERT INTO webhook_deliveries
    (delivery_id, endpoint_id, event_id, type, body, attempt, at, duration_ms, status, error, answer)
    VALUES ${rows.join()} RETURNING delivery_id`);
}

onBothStores('webhooks', (start) => {
  test('after the secret of an endpoint is rotated, the console shows the new secret once, and says until when Scrip signs with both secrets', async () => {
    const { scrip } = await start();
    const owner = await newOwner(scrip);
    const added = await owner.post(LIST, { url: URL });
    const path = pathIn(added);
    assert.match((await owner.get(`${path}/rotate`)).text, /name="idempotency_key"/);
    const rotated = await owner.post(`${path}/rotate`, { idempotency_key: 'a' });
    assert.notEqual(secretIn(rotated), secretIn(added));
    assertGoesTo(await owner.post(`${path}/rotate`, { idempotency_key: 'a' }), `${path}?notice=rotated`);
    assert.match(textOf(await owner.get(path)), /Previous secret Also signs requests until/);
  });

  test('a member chooses the event types of a new endpoint, and can change them later', async () => {
    const { scrip } = await start();
    const owner = await newOwner(scrip);
    const member = await newMember(scrip, owner);
    const path = await pausedEndpoint(member, { types: 'balance.low' });
    const types = async () =>
      [...(await owner.get(path)).text.matchAll(/value="([a-z.]+)" checked/g)].map(([, type]) => type);
    assert.deepEqual(await types(), ['balance.low']);
    const two = 'types=hold.lapsed&types=cycle.renewed';
    assertGoesTo(await member.postBody(`${path}/types`, two), `${path}?notice=types`);
    assert.deepEqual(await types(), ['cycle.renewed', 'hold.lapsed']);
    assert.match((await member.post(`${path}/types`, { types: 'x' })).text, /Choose event types from this list\./);
    assertGoesTo(await member.post(`${path}/types`), `${path}?notice=types`);
    assert.deepEqual(await types(), []);
    assert.match(textOf(await owner.get(path)), /Event types All types/);
  });

  test('while an endpoint is paused, a test event stays pending, and the page says when and why the endpoint was paused', async () => {
    const { scrip } = await start();
    const owner = await newOwner(scrip);
    const path = await pausedEndpoint(owner);
    assert.match(textOf(await owner.get(path)), /Status Paused Paused .* UTC \. The endpoint was paused/);
    assertGoesTo(await owner.post(`${path}/test`), `${path}?notice=queued`);
    const queued = textOf(await owner.get(`${path}?notice=queued`));
    assert.match(queued, /Event queued\. It will be sent after you resume the endpoint\./);
    assert.match(queued, /Pending events 1/);
    assertGoesTo(await owner.post(`${path}/resume`), `${path}?notice=resumed`);
    const resumed = textOf(await owner.get(`${path}?notice=resumed`));
    assert.match(resumed, /Endpoint resumed\./);
    assert.match(resumed, /Status Active/);
  });

  test('removing an endpoint requires a confirmation and deletes the deliveries of the endpoint', async () => {
    const started = await start();
    const owner = await newOwner(started.scrip);
    const path = await pausedEndpoint(owner);
    await owner.post(`${path}/test`);
    await storeDeliveries(started, path, ['dlv_1'], '{"data":{}}');
    assert.match(
      textOf(await owner.get(`${path}/remove`)),
      /1 pending event will not be delivered\. This can't be undone\./,
    );
    assert.equal((await owner.get(path)).status, 200, 'opening the page removes nothing');
    assertGoesTo(await owner.post(`${path}/remove`), `${LIST}?notice=removed`);
    for (const gone of [path, `${path}/remove`, `${path}/deliveries/dlv_1`])
      assert.equal((await owner.get(gone)).status, 404, gone);
    assert.equal((await started.sql('SELECT * FROM webhook_deliveries')).length, 0);
  });

  test('the page of a delivery shows the request (without its signature) and the response, and has a form that sends the event again', async () => {
    const started = await start();
    const owner = await newOwner(started.scrip);
    const path = await pausedEndpoint(owner);
    const body = `{"id":"evt_${'0'.repeat(32)}","data":{"end_user_id":"${someone()}"}}`;
    await storeDeliveries(started, path, ['dlv_1'], body);
    assert.match(textOf(await owner.get(path)), /balance\.low 503 1 87 ms/);
    const page = await owner.get(`${path}/deliveries/dlv_1`);
    const shown = decode(page.text);
    assert(shown.includes(body) && shown.includes('<code><b>away</b></code>'));
    assert(page.text.includes('&#60;b&#62;away'), 'the response is escaped');
    assert.match(shown, new RegExp(`webhook-timestamp: ${Math.floor(started.clock.now / 1_000)}\n`));
    assert.doesNotMatch(shown, /webhook-signature|whsec_/);
    assert.match(textOf(page), /The endpoint responded with status 503\./);
    assertGoesTo(await owner.post(`${path}/deliveries/dlv_1/resend`), `${path}?notice=queued`);
    assert.match(textOf(await owner.get(path)), /Pending events 1/);
    assert.equal((await owner.post(`${path}/deliveries/dlv_2/resend`)).status, 404);
  });

  test('the page of an endpoint lists its deliveries latest first, 50 per page', async () => {
    const started = await start();
    const owner = await newOwner(started.scrip);
    const path = await pausedEndpoint(owner);
    const id = (index: number) =>
      `dlv_${String(started.clock.now).padStart(15, '0')}${String(index).padStart(16, '0')}`;
    const ids = Array.from({ length: 51 }, (_, index) => id(index + 1));
    await storeDeliveries(started, path, ids, '{"data":{}}');
    const first = decode((await owner.get(path)).text);
    const listed = (text: string) => [...text.matchAll(/deliveries\/dlv_\d{15}0*(\d+)"/g)].map(([, at]) => Number(at));
    assert.deepEqual(
      listed(first),
      Array.from({ length: 50 }, (_, index) => 51 - index),
    );
    const older = /href="([^"]+\?before=[^"]+)" rel="next"/.exec(first)?.[1];
    assert(older);
    const last = decode((await owner.get(older)).text);
    assert.deepEqual(listed(last), [1]);
    assert.doesNotMatch(last, /rel="next"/);
  });

  test('by default, credits.expiring events happen 7 days before credits expire, and a form can change the number of days', async () => {
    const { scrip } = await start();
    const owner = await newOwner(scrip);
    const page = '/console/thresholds';
    const days = async () => {
      const { text } = await owner.get(page);
      const [, value] = /name="days"[^>]*value="(\d+)"/.exec(text) ?? [];
      assert(value, text);
      return value;
    };
    assert.equal(await days(), '7');
    assertGoesTo(await owner.post(`${page}/expiring`, { days: '365' }), `${page}?notice=expiring`);
    assert.equal(await days(), '365');
    for (const [entered, error] of [
      ['0', 'Enter at least 1 day.'],
      ['366', 'Enter at most 365 days.'],
      ['x', 'Enter a whole number of days, such as 31.'],
    ] as const)
      assert(
        (await owner.post(`${page}/expiring`, { days: entered })).text.includes(`id="days-error">${error}<`),
        entered,
      );
    assert.equal(await days(), '365');
  });
});

onOneStore('webhooks', (start) => {
  test('the secret of a new endpoint is shown once, even if the form is sent twice', async () => {
    const { scrip } = await start();
    const owner = await newOwner(scrip);
    const form = { url: URL, idempotency_key: 'a' };
    const secret = secretIn(await owner.post(LIST, form));
    assertGoesTo(await owner.post(LIST, form), `${LIST}?notice=added`);
    const list = await owner.get(`${LIST}?notice=added`);
    assert.equal(list.text.match(/receiver\.example/g)?.length, 1, 'there is one endpoint');
    assert(decode(list.text).includes(SHOWN_URL) && !list.text.includes('<i>'));
    assert.match(textOf(list), /All types Active 0 never/);
    for (const path of [LIST, `${LIST}/1`, `${LIST}/1/rotate`, `${LIST}/1/remove`])
      assert(!decode((await owner.get(path)).text).includes(secret), path);
    assert(!scrip.log.join('').includes(secret));
  });

  test('an invalid form for a new endpoint is shown again with the input and an error next to the field', async () => {
    const { scrip } = await start();
    const owner = await newOwner(scrip);
    for (const [url, error] of [
      ['', 'Enter a URL.'],
      ['http://receiver.example/', 'The URL must begin with https:// (or http:// for a loopback address).'],
      ['https://ada:secret@receiver.example/', 'The URL must not contain a user name or password.'],
      ['https://10.0.0.7/', 'The IP address of the endpoint is not public.'],
    ] as const) {
      const { text } = await owner.post(LIST, { url, types: 'balance.low' });
      assert(decode(text).includes(`id="url-error">${error}<`), `${url}: ${error}`);
      assert(decode(text).includes(`value="${url}"`), 'the entered URL');
      assert.match(text, /value="balance\.low" checked/);
    }
    const unknown = await owner.post(LIST, { url: URL, types: 'balance.high' });
    assert.match(unknown.text, /Choose event types from this list\./);
    assert.match((await owner.get(LIST)).text, /No endpoints yet/);
  });

  test('an account has at most 20 endpoints', async () => {
    const { scrip } = await start();
    const owner = await newOwner(scrip);
    for (let count = 0; count < 20; count++) secretIn(await owner.post(LIST, { url: URL }));
    assert.match(
      (await owner.post(LIST, { url: URL })).text,
      /id="url-error">An account can have at most 20 endpoints\./,
    );
    await owner.post(`${LIST}/1/remove`);
    secretIn(await owner.post(LIST, { url: URL }));
  });

  test('the events of a time span can be sent again, and an invalid time span shows errors next to its fields', async () => {
    const { scrip, clock } = await start();
    const owner = await newOwner(scrip);
    const created = await owner.post('/console/api-keys', { name: 'Backend', scope: 'write' });
    const key = /id="secret"[^>]*>([^<]+)</.exec(created.text)?.[1] as string;
    const path = await pausedEndpoint(owner, { types: 'credits.added' });
    const minute = (at: number) => new Date(at).toISOString().slice(0, 'YYYY-MM-DDTHH:MM'.length);
    const from = minute(clock.now);
    await scrip.post('/add', { end_user_id: someone(), amount: 5 }, { key });
    const send = async (from: string, to: string) =>
      (await owner.post(`${path}/resend`, { from, to })).headers.location;
    const to = minute(clock.now + HOUR_MS);
    await eventually(async () => (await send(from, to)) === `${path}?resent=1`, 'the event is recorded');
    assert.match(textOf(await owner.get(`${path}?resent=1`)), /1 event queued to be resent\./);
    assert.equal(await send('2020-01-01T00:00', '2020-01-02T00:00'), `${path}?resent=0`);
    const [event] = await eventsOf(scrip, 1, key);
    const at = String(event?.timestamp.slice(0, -'Z'.length));
    assert.equal(await send(from, at), `${path}?resent=0`, 'an event at exactly To is excluded');
    assert.equal(await send(at, to), `${path}?resent=1`, 'an event at exactly From is included');
    for (const [entered, error] of [
      [{ from: '', to: 'x' }, /id="from-error">Enter a date and a time.*id="to-error">Enter a date and a time/s],
      [{ from: to, to }, /id="to-error">Enter a time after “From”\./],
    ] as const) {
      const { text } = await owner.post(`${path}/resend`, entered);
      assert.match(text, error);
      assert(text.includes(`name="to" type="datetime-local" value="${entered.to}"`), 'the entered value');
    }
  });

  test('a GET request to the action URL of an endpoint or threshold form redirects to the page with the form', async () => {
    const { scrip } = await start();
    const owner = await newOwner(scrip);
    const path = await pausedEndpoint(owner);
    for (const form of ['types', 'pause', 'resume', 'test', 'resend'])
      assertGoesTo(await owner.get(`${path}/${form}`), path);
    assertGoesTo(await owner.get(`${path}/deliveries/dlv_1/resend`), `${path}/deliveries/dlv_1`);
    for (const form of ['remove', 'expiring'])
      assertGoesTo(await owner.get(`/console/thresholds/${form}`), '/console/thresholds');
    for (const id of ['0', '01', 'x', '2147483648', '99999999999999'])
      assert.equal((await owner.get(`${LIST}/${id}`)).status, 404, id);
  });

  test('an account can have up to ten thresholds, in credits or percent, and a threshold can be removed', async () => {
    const { scrip } = await start();
    const owner = await newOwner(scrip);
    const page = '/console/thresholds';
    assert.match(textOf(await owner.get(page)), /No thresholds yet/);
    assertGoesTo(await owner.post(page, { below: ' 20 % ' }), `${page}?notice=added`);
    assertGoesTo(await owner.post(page, { below: '20%' }), `${page}?notice=exists`);
    assertGoesTo(await owner.post(page, { below: '1500' }), `${page}?notice=added`);
    const listed = textOf(await owner.get(page));
    assert.match(listed, /20% of the latest grant/);
    assert.match(listed, /1,500 credits/);
    for (const [below, error] of [
      ...['', '101%', '1,5%', 'x'].map((below) => [below, 'Enter a number of credits, such as 20, or a percentage']),
      ['0', 'Enter at least 1.'],
      ['1,500', 'Enter digits only, without separators: 1500.'],
      ['9007199254740992', 'Enter at most 9,007,199,254,740,991.'],
    ] as [string, string][]) {
      const { text } = await owner.post(page, { below });
      assert(text.includes(`id="below-error">${error}`), below);
      assert(text.includes(`name="below" type="text" value="${below}"`), 'the entered value');
    }
    for (let below = 1; below <= 8; below++) await owner.post(page, { below: String(below) });
    assert.match((await owner.post(page, { below: '9' })).text, /at most 10 thresholds\. Remove one first\./);
    assertGoesTo(await owner.post(`${page}/remove`, { below: '20%' }), `${page}?notice=removed`);
    assert.doesNotMatch(textOf(await owner.get(page)), /20% of/);
    assertGoesTo(await owner.post(page, { below: '9' }), `${page}?notice=added`);
  });
});
