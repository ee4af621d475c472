// A form that is sent twice is done once, whichever process gets it and whatever that process remembers: what a form
// carries is kept in the ledger with its effect.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Scrip, startScrip } from '../http/running-service.ts';
import { PostgresServer } from '../postgres/postgres-server.ts';
import { temporaryFile } from '../store/temporary-ledger.ts';
import { decode, newOwner, Visitor } from './visitor.ts';

const PATH = '/console/end-users/5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23';

/** In an order in which each can be done; with what all of them have left behind. */
const CHANGES = [
  ['add', { amount: '100', validity_days: '31', note: 'once' }, '100'],
  ['subtract', { amount: '30', note: 'once' }, '70'],
  ['start-cycle', { amount: '500', validity_days: '31', note: 'once' }, '570'],
  ['stop-cycle', { note: 'once' }, '570'],
] as const;

async function onceOf(visitor: Visitor, change: string): Promise<string> {
  const { text } = await visitor.get(PATH);
  const [, once] = new RegExp(`action="${PATH}/${change}"[\\s\\S]*?name="once" value="([^"]+)"`).exec(text) ?? [];
  assert(once, `there is a form for ${change}`);
  return once;
}

function balanceIn(text: string): string | undefined {
  return /class="large-figure">([\d,]+)</.exec(text)?.[1];
}

/** Somebody with the same cookies, at another process. */
function at(scrip: Scrip, visitor: Visitor): Visitor {
  const other = new Visitor(scrip);
  for (const [name, value] of visitor.cookies) other.cookies.set(name, value);
  return other;
}

function assertDoneOnce(text: string, change: string, balance: string): void {
  assert.equal(balanceIn(text), balance, change);
  const notes = decode(text).match(/“once”/g)?.length;
  assert.equal(notes, CHANGES.findIndex(([one]) => one === change) + 1, `${change} is in the history once`);
}

test('a form that is sent again after a restart was done once, in a file', async () => {
  const file = temporaryFile();
  let scrip = await startScrip({ file });
  try {
    let visitor: Visitor = await newOwner(scrip);
    for (const [change, fields, balance] of CHANGES) {
      const form = { ...fields, once: await onceOf(visitor, change) };
      assert.equal((await visitor.post(`${PATH}/${change}`, form)).status, 303);
      await scrip.stop();
      scrip = await startScrip({ file });
      visitor = at(scrip, visitor);
      assert.equal((await visitor.post(`${PATH}/${change}`, form)).headers.location, `${PATH}?done=${change}`);
      assertDoneOnce((await visitor.get(PATH)).text, change, balance);
    }
    const reused = { amount: '7', validity_days: '31', once: await onceOf(visitor, 'add') };
    assert.equal((await visitor.post(`${PATH}/add`, reused)).status, 303);
    const { status, text } = await visitor.post(`${PATH}/add`, { ...reused, amount: '8' });
    assert.equal(status, 200);
    assert.match(text, /sent before with other values/);
    assert.equal(balanceIn(text), '577');
  } finally {
    await scrip.stop();
  }
});

describe('on PostgreSQL', () => {
  let server: PostgresServer;
  before(async () => {
    server = await PostgresServer.start();
  });
  after(() => server.remove());

  test('a form that reaches two processes at once is done once', async () => {
    const url = await server.createDatabase();
    const database = { kind: 'postgres', url, lanes: 1, prepared: true, citus: null, acceptUnsafe: false } as const;
    const processes = [await startScrip({ database }), await startScrip({ database })] as const;
    try {
      const visitor = await newOwner(processes[0]);
      const both = processes.map((scrip) => at(scrip, visitor));
      for (const [change, fields, balance] of CHANGES) {
        const form = { ...fields, once: await onceOf(visitor, change) };
        const replies = await Promise.all([...both, ...both].map((one) => one.post(`${PATH}/${change}`, form)));
        for (const { status, headers } of replies)
          assert.deepEqual([status, headers.location], [303, `${PATH}?done=${change}`]);
        assertDoneOnce((await visitor.get(PATH)).text, change, balance);
      }
    } finally {
      await Promise.all(processes.map((scrip) => scrip.stop()));
    }
  });
});
