// A form that is sent twice takes effect once, even across restarts and processes, because the ledger stores the
// idempotency key of the form together with its effect.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Scrip, startScrip } from '../http/running-service.ts';
import { PostgresServer } from '../store/postgres/postgres-server.ts';
import { temporaryFile } from '../store/temporary-ledger.ts';
import { decode, newOwner, Visitor } from './visitor.ts';

const PATH = '/console/end-users/5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23';

/** Each adjustment with its fields and the balance afterwards. In this order, all of them are accepted. */
const ADJUSTMENTS = [
  ['add', { amount: '100', validity_days: '31', note: 'Sent twice' }, '100'],
  ['subtract', { amount: '30', note: 'Sent twice' }, '70'],
  ['start-cycle', { amount: '500', validity_days: '31', note: 'Sent twice' }, '570'],
  ['stop-cycle', { note: 'Sent twice' }, '570'],
] as const;

async function idempotencyKeyOf(visitor: Visitor, adjustment: string): Promise<string> {
  const { text } = await visitor.get(PATH);
  const pattern = new RegExp(`action="${PATH}/${adjustment}"[\\s\\S]*?name="idempotency_key" value="([^"]+)"`);
  const [, key] = pattern.exec(text) ?? [];
  assert(key, `the page has no form to ${adjustment}`);
  return key;
}

function balanceIn(text: string): string | undefined {
  return /class="large-number">([\d,]+)</.exec(text)?.[1];
}

/** Creates a visitor with the same session at another process. */
function sameSessionAt(scrip: Scrip, visitor: Visitor): Visitor {
  const other = new Visitor(scrip);
  for (const [name, value] of visitor.cookies) other.cookies.set(name, value);
  return other;
}

function assertTookEffectOnce(text: string, adjustment: string, balance: string): void {
  assert.equal(balanceIn(text), balance, adjustment);
  const notes = decode(text).match(/“Sent twice”/g)?.length;
  assert.equal(notes, ADJUSTMENTS.findIndex(([one]) => one === adjustment) + 1, `${adjustment} is in the history once`);
}

test('on SQLite, a console form that is sent again after a restart takes effect once', async () => {
  const file = temporaryFile();
  let scrip = await startScrip({ file });
  try {
    let visitor: Visitor = await newOwner(scrip);
    for (const [adjustment, fields, balance] of ADJUSTMENTS) {
      const form = { ...fields, idempotency_key: await idempotencyKeyOf(visitor, adjustment) };
      assert.equal((await visitor.post(`${PATH}/${adjustment}`, form)).status, 303);
      await scrip.stop();
      scrip = await startScrip({ file });
      visitor = sameSessionAt(scrip, visitor);
      assert.equal(
        (await visitor.post(`${PATH}/${adjustment}`, form)).headers.location,
        `${PATH}?notice=${adjustment}`,
      );
      assertTookEffectOnce((await visitor.get(PATH)).text, adjustment, balance);
    }
    const reused = { amount: '7', validity_days: '31', idempotency_key: await idempotencyKeyOf(visitor, 'add') };
    assert.equal((await visitor.post(`${PATH}/add`, reused)).status, 303);
    const { status, text } = await visitor.post(`${PATH}/add`, { ...reused, amount: '8' });
    assert.equal(status, 200);
    assert.match(text, /submitted before with other values/);
    assert.equal(balanceIn(text), '577');
  } finally {
    await scrip.stop();
  }
});

describe('Two processes on PostgreSQL', () => {
  let server: PostgresServer;
  before(async () => {
    server = await PostgresServer.start();
  });
  after(() => server.remove());

  test('on PostgreSQL, a console form that is sent to two processes at once takes effect once', async () => {
    const url = await server.createDatabase();
    const database = { kind: 'postgres', url, lanes: 1, prepared: true, citus: null, acceptUnsafe: false } as const;
    const processes = [await startScrip({ database }), await startScrip({ database })] as const;
    try {
      const visitor = await newOwner(processes[0]);
      const both = processes.map((scrip) => sameSessionAt(scrip, visitor));
      for (const [adjustment, fields, balance] of ADJUSTMENTS) {
        const form = { ...fields, idempotency_key: await idempotencyKeyOf(visitor, adjustment) };
        const replies = await Promise.all([...both, ...both].map((one) => one.post(`${PATH}/${adjustment}`, form)));
        for (const { status, headers } of replies)
          assert.deepEqual([status, headers.location], [303, `${PATH}?notice=${adjustment}`]);
        assertTookEffectOnce((await visitor.get(PATH)).text, adjustment, balance);
      }
    } finally {
      await Promise.all(processes.map((scrip) => scrip.stop()));
    }
  });
});
