// Tests that a user who guesses IDs of another account gets the same responses as for IDs that do not exist.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventsOf } from '../http/read-events.ts';
import { eventually, type Reply } from '../http/running-service.ts';
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

const CREDITS = 4_242;
const TRANSACTIONS = 60;
const END_USERS = 55;

interface TwoAccounts {
  readonly owner: Visitor;
  readonly eve: Visitor;
  readonly endUser: string;
  readonly keyId: string;
  readonly memberId: string;
  readonly secret: string;
  readonly endpoint: string;
}

function endUserAt(index: number): string {
  return `5f2b1c9e-3a70-4d2e-9b61-${String(index).padStart(12, '0')}`;
}

async function twoAccounts({ scrip, sql }: Started): Promise<TwoAccounts> {
  const [owner, eve] = [await newOwner(scrip, 'Victim Ltd'), await newOwner(scrip, 'Eve')];
  const member = await newMember(scrip, owner);
  const created = await owner.post('/console/api-keys', { name: 'Secret name', scope: 'write', idempotency_key: 'a' });
  const secret = /id="secret"[^>]*>([^<]+)</.exec(created.text)?.[1];
  assert(secret);
  const list = await owner.get('/console/api-keys');
  const keyId = /\/console\/api-keys\/(\d+)\/revoke/.exec(list.text)?.[1];
  const [row] = await sql(`SELECT id FROM console_users WHERE email = '${member.email}'`);
  assert(keyId && row);
  const endUser = endUserAt(0);
  const add = (end_user_id: string, amount: number) => scrip.post('/add', { end_user_id, amount }, { key: secret });
  await add(endUser, CREDITS);
  await Promise.all(Array.from({ length: TRANSACTIONS }, () => add(endUser, 1)));
  await Promise.all(Array.from({ length: END_USERS }, (_, index) => add(endUserAt(index + 1), 1)));
  // The endpoint would also get events of these additions that are derived later.
  await eventsOf(scrip, 1 + TRANSACTIONS + END_USERS, secret);
  const endpoint = await victimEndpointPath(owner, sql);
  return { owner, eve, endUser, keyId, memberId: String(row.id), secret, endpoint };
}

async function victimEndpointPath(owner: Visitor, sql: Started['sql']): Promise<string> {
  const added = await owner.post('/console/webhooks', { url: 'https://victim.example/hooks' });
  const endpoint = firstMatch(added, /href="(\/console\/webhooks\/\d+)"/);
  await owner.post(`${endpoint}/pause`);
  await owner.post(`${endpoint}/test`);
  await owner.post('/console/thresholds', { below: '4242' });
  await sql(`INSERT INTO webhook_deliveries
    (delivery_id, endpoint_id, event_id, type, body, attempt, at, duration_ms, status, error, answer)
    VALUES ('dlv_1', ${endpoint.split('/').at(-1)}, 'evt_1', 'balance.low', '{"data":{"end_user_id":"Victim"}}', 1, 0, 0, 500, 'x', '')
    RETURNING delivery_id`);
  return endpoint;
}

function assertRevealsNothing({ text }: Reply, what: string): void {
  // The pattern skips random IDs, which can contain the digits of an amount.
  const amounts = /(?<!\w-?)(?:4,?242|4,302)(?!-?\w)/;
  const names = /Secret name|Victim|victim|9b61-0{9}\d[1-9]</;
  for (const pattern of [amounts, names]) assert.doesNotMatch(decode(text), pattern, what);
}

function firstMatch({ text }: Reply, pattern: RegExp): string {
  const link = pattern.exec(decode(text))?.[1];
  assert(link, `${pattern} in the page`);
  return link.replaceAll('&amp;', '&');
}

onBothStores('isolation of accounts', (start) => {
  test('a user who knows IDs and links of another account can neither see nor change anything in that account', async () => {
    const started = await start();
    const { owner, eve, endUser, keyId, memberId, secret, endpoint } = await twoAccounts(started);
    const page = `/console/end-users/${endUser}`;
    const older = firstMatch(await owner.get(page), /href="([^"]+\?page=[^"]+)"/).replace(/#.*/, '');
    const hasNext = async () => / rel="next"/.test((await owner.get('/console/end-users')).text);
    await eventually(hasNext, 'the list has a second page');
    const next = firstMatch(await owner.get('/console/end-users'), /href="([^"]+\?after=[^"]+)"/);
    const call = (path: string, amount: number) =>
      started.scrip.post(path, { end_user_id: endUser, amount }, { key: secret });
    const spent = `${page}/transactions/${(await call('/subtract', 2)).headers['transaction-id']}`;
    const held = `${page}/transactions/${(await call('/hold', 3)).body.hold_id}`;
    assert.match((await owner.get(spent)).text, /Refund/);
    assert.match((await owner.get(held)).text, /Release hold/);
    assert.match((await owner.get(older)).text, /4,242/, 'the owner sees older transactions at this link');
    assert.match((await owner.get(next)).text, /9b61-0{9}\d/, 'the owner sees more end users at this link');

    const pending = async () => firstMatch(await owner.get(endpoint), /<dt>Pending events<\/dt><dd>(\d+)/);
    const pendingBefore = await pending();

    for (const path of [
      page,
      older,
      next,
      '/console/overview',
      '/console/end-users',
      '/console/end-users?search=5f2b1c9e',
      '/console/end-users.csv',
      `${page}/transactions.csv`,
      spent,
      held,
      `${page}?notice=refund&transaction=${spent.slice(-36)}`,
      next.replace('end-users', 'end-users.csv'),
      '/console/api-keys',
      `/console/api-keys/${keyId}/revoke`,
      '/console/webhooks',
      endpoint,
      `${endpoint}?before=dlv_9`,
      `${endpoint}/rotate`,
      `${endpoint}/remove`,
      `${endpoint}/deliveries/dlv_1`,
      '/console/thresholds',
      '/console/members',
      `/console/members/${memberId}/remove`,
    ])
      assertRevealsNothing(await eve.get(path), path);

    const foreign = [
      await eve.get(`/console/api-keys/${keyId}/revoke`),
      await eve.post(`/console/api-keys/${keyId}/revoke`),
      await eve.get(`/console/members/${memberId}/remove`),
      await eve.post(`/console/members/${memberId}/remove`),
      await eve.post(`/console/members/${memberId}/role`, { role: 'owner' }),
    ];
    foreign.push(
      await eve.get(spent),
      await eve.post(`${spent}/refund`, { amount: '1' }),
      await eve.post(`${held}/release`),
    );
    const range = { from: '2020-01-01T00:00', to: '2100-01-01T00:00' };
    for (const form of ['types', 'pause', 'resume', 'test', 'resend', 'rotate', 'remove', 'deliveries/dlv_1/resend'])
      foreign.push(await eve.post(`${endpoint}/${form}`, range));
    for (const reply of foreign) {
      assert.equal(reply.status, 404);
      assertRevealsNothing(reply, 'a refusal');
    }
    await eve.post('/console/thresholds/remove', { below: '4242' });
    assert.match((await owner.get('/console/thresholds')).text, /4,242 credits/);
    const endpointPage = (await owner.get(endpoint)).text;
    assert.match(endpointPage, />Paused</);
    assert.equal(await pending(), pendingBefore);
    assert.doesNotMatch(endpointPage, /Previous secret/);
    const unknown = await eve.get('/console/api-keys/999999/revoke');
    assert.equal(
      unknown.text,
      foreign[0]?.text,
      'revoking a key of another account and revoking a key that does not exist get the same response',
    );

    const refused = await eve.post(`${page}/subtract`, { amount: '1' });
    assert.match(refused.text, /The balance is 0 credits/);
    await eve.post(`${page}/stop-cycle`);
    await eve.post(`${page}/add`, { amount: '9', validity: '31' });
    const balance = await started.scrip.get('/get-active-balance', { end_user_id: endUser }, { key: secret });
    assert.equal(
      balance.body.active_balance,
      CREDITS + TRANSACTIONS - 5,
      'the same UUID in another account is another end user',
    );
  });
});

onOneStore('isolation of accounts', (start) => {
  test('a form that was loaded while another user was signed in changes nothing', async () => {
    const { scrip } = await start();
    const [owner, other] = [await newOwner(scrip), await newOwner(scrip, 'Babbage Ltd')];
    const page = `/console/end-users/${endUserAt(0)}`;
    const loaded = await owner.get(page);
    const user = firstMatch(loaded, /<form [^>]+\/add"[^>]*><input type="hidden" name="user" value="([^"]+)">/);
    assert.equal(loaded.text.split('method="post"').length, loaded.text.split('name="user"').length, 'in every form');
    const form = { amount: '42', validity: '31', unit: 'days', user };
    const refused = await other.post(`${page}/add`, form);
    assert.equal(refused.status, 409);
    assert.match(decode(refused.text), /Nothing was changed, .* a member of \u2068Babbage Ltd\u2069\./);
    assert.match((await other.get(page)).text, /No transactions yet/);
    assertGoesTo(await owner.post(`${page}/add`, form), `${page}?notice=add`);
  });

  test('two accounts can use the same idempotency key in a form, and both forms take effect', async () => {
    const { owner, eve, endUser } = await twoAccounts(await start());
    const form = { amount: '5', validity: '31', idempotency_key: 'guessed' };
    const path = `/console/end-users/${endUser}`;
    await owner.post(`${path}/add`, form);
    await eve.post(`${path}/add`, form);
    assert.match((await eve.get(path)).text, /class="large-number">5</);
    assert.match((await owner.get(path)).text, /class="large-number">4,307</);
  });
});
