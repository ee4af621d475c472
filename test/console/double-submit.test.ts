// Tests that a form that is sent twice takes effect once, even if the second request is sent after a restart or to
// another process.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Scrip, startScrip } from '../http/running-service.ts';
import { PostgresServer } from '../store/postgres/postgres-server.ts';
import { newDatabaseOn } from '../store/postgres/scrip-on-postgres.ts';
import { temporaryFile } from '../store/temporary-ledger.ts';
import { decode, newOwner, Visitor } from './visitor.ts';

const END_USER = '5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23';
const PATH = `/console/end-users/${END_USER}`;

/** The tests send the forms in this order. The last column is the balance after each form. */
const FORMS = [
  ['add', { amount: '100', validity: '31', unit: 'days', note: 'Sent twice' }, '100'],
  ['subtract', { amount: '30', note: 'Sent twice' }, '70'],
  ['start-cycle', { amount: '500', validity: '31', unit: 'days', note: 'Sent twice' }, '570'],
  ['stop-cycle', { note: 'Sent twice' }, '570'],
  ['refund', { amount: '30', note: 'Sent twice' }, '600'],
  ['release', { note: 'Sent twice' }, '600'],
] as const;

/** The responses to these forms show a new secret. */
const SECRET_FORMS = [
  {
    path: '/console/api-keys',
    fields: { name: 'Key sent twice', scope: 'write' },
    redirect: '/console/api-keys?notice=created',
    created: /class="strong">Key sent twice</g,
  },
  {
    path: '/console/webhooks',
    fields: { url: 'https://receiver.example/' },
    redirect: '/console/webhooks?notice=added',
    created: /receiver\.example/g,
  },
  {
    path: '/console/members/invite',
    fields: { role: 'member' },
    redirect: '/console/members?notice=invited',
    created: null,
  },
  { path: '/console/webhooks/1/rotate', fields: {}, redirect: '/console/webhooks/1?notice=rotated', created: null },
] as const;

interface LoadedForm {
  readonly path: string;
  readonly idempotencyKey: string;
}

async function load(visitor: Visitor, form: string): Promise<LoadedForm> {
  const button = { refund: 'Refund', release: 'Release' }[form];
  const page = await visitor.get(PATH);
  const link = new RegExp(`href="([^"]+)"[^>]*>${button}<`).exec(page.text)?.[1];
  const path = `${button === undefined ? PATH : link}/${form}`;
  const { text } = button === undefined ? page : await visitor.get(link ?? '');
  const pattern = new RegExp(`action="${path}"[\\s\\S]*?name="idempotency_key" value="([^"]+)"`);
  const [, idempotencyKey] = pattern.exec(text) ?? [];
  assert(idempotencyKey, `the page has no form to ${form}`);
  return { path, idempotencyKey };
}

async function holdFor(form: string, scrip: Scrip, key = scrip.writeKey): Promise<void> {
  if (form !== 'release') return;
  const { status } = await scrip.post('/hold', { end_user_id: END_USER, amount: 40 }, { key });
  assert.equal(status, 200);
}

function balanceIn(text: string): string | undefined {
  return /class="large-number">([\d,]+)</.exec(text)?.[1];
}

function sameSessionAt(scrip: Scrip, visitor: Visitor): Visitor {
  const other = new Visitor(scrip);
  for (const [name, value] of visitor.cookies) other.cookies.set(name, value);
  return other;
}

function assertTookEffectOnce(text: string, form: string, balance: string): void {
  assert.equal(balanceIn(text), balance, form);
  const notes = decode(text).match(/“Sent twice”/g)?.length;
  assert.equal(notes, FORMS.findIndex(([one]) => one === form) + 1, `${form} is in the history once`);
}

test('on SQLite, a console form that is sent again after a restart takes effect once', async () => {
  const file = temporaryFile();
  let scrip = await startScrip({ file });
  const { writeKey } = scrip;
  try {
    let visitor: Visitor = await newOwner(scrip);
    const sent: { path: string; fields: Record<string, string>; location: string | undefined }[] = [];
    for (const [form, fields, balance] of FORMS) {
      await holdFor(form, scrip, writeKey);
      const { path, idempotencyKey } = await load(visitor, form);
      const withKey = { ...fields, idempotency_key: idempotencyKey };
      const { status, headers } = await visitor.post(path, withKey);
      assert.equal(status, 303);
      assert(headers.location?.startsWith(`${PATH}?notice=${form}`));
      assertTookEffectOnce((await visitor.get(PATH)).text, form, balance);
      sent.push({ path, fields: withKey, location: headers.location });
    }
    await scrip.stop();
    scrip = await startScrip({ file });
    visitor = sameSessionAt(scrip, visitor);
    for (const { path, fields, location } of sent)
      assert.equal((await visitor.post(path, fields)).headers.location, location);
    assertTookEffectOnce((await visitor.get(PATH)).text, 'release', '600');
    const { idempotencyKey } = await load(visitor, 'add');
    const reused = { amount: '7', validity: '31', idempotency_key: idempotencyKey };
    assert.equal((await visitor.post(`${PATH}/add`, reused)).status, 303);
    const { status, text } = await visitor.post(`${PATH}/add`, { ...reused, amount: '8' });
    assert.equal(status, 200);
    assert.match(text, /already submitted with different values/);
    assert.equal(balanceIn(text), '607');
  } finally {
    await scrip.stop();
  }
});

describe('console forms with two processes on PostgreSQL', () => {
  let server: PostgresServer;
  before(async () => {
    server = await PostgresServer.start();
  });
  after(() => server.remove());

  test('on PostgreSQL, a console form that is sent to two processes at once takes effect once', async () => {
    const database = await newDatabaseOn(server, { acceptUnsafe: false });
    const processes = [await startScrip({ database }), await startScrip({ database })] as const;
    try {
      const visitor = await newOwner(processes[0]);
      const both = processes.map((scrip) => sameSessionAt(scrip, visitor));
      for (const [form, fields, balance] of FORMS) {
        await holdFor(form, processes[0]);
        const { path, idempotencyKey } = await load(visitor, form);
        const sent = { ...fields, idempotency_key: idempotencyKey };
        const replies = await Promise.all([...both, ...both].map((one) => one.post(path, sent)));
        const location = replies[0]?.headers.location;
        assert(location?.startsWith(`${PATH}?notice=${form}`));
        for (const { status, headers } of replies) assert.deepEqual([status, headers.location], [303, location]);
        assertTookEffectOnce((await visitor.get(PATH)).text, form, balance);
      }
      for (const { path, fields, redirect, created } of SECRET_FORMS) {
        const sent = { ...fields, idempotency_key: 'sent twice' };
        const replies = await Promise.all([...both, ...both].map((one) => one.post(path, sent)));
        assert.deepEqual(
          replies.map(({ status, headers }) => headers.location ?? status).sort(),
          [redirect, redirect, redirect, 200].sort(),
          'one response shows the secret, and the others redirect',
        );
        if (created !== null) assert.equal((await visitor.get(path)).text.match(created)?.length, 1);
      }
    } finally {
      await Promise.all(processes.map((scrip) => scrip.stop()));
    }
  });
});
