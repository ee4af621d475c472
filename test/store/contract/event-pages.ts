// Contract tests for the pages of the event log, for positions in the log, and for the retention of events.

import assert from 'node:assert/strict';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { DAY_MS } from '../../../src/ledger/instant.ts';
import { EVENT_TYPES } from '../../../src/store/event-log.ts';
import { InvalidCursor } from '../../../src/store/store-fault.ts';
import { effort } from '../../effort.ts';
import { Random } from '../../load/random.ts';
import type { Contract, ContractLedger } from '../store-contract.ts';
import { EndUser } from '../temporary-ledger.ts';
import { logOf, randomCommand } from './events.ts';

export function eventPageContract(contract: Contract): void {
  pages(contract);
  retention(contract);
}

async function passMoment(ledger: ContractLedger): Promise<void> {
  ledger.wall += 10;
  await sleep(10);
}

function pages({ it }: Contract): void {
  it('for any page length and any event types, the pages of the event log show each event once and in order', async (ledger) => {
    const random = new Random(22);
    const people = Array.from({ length: 5 }, (_, index) => new EndUser(ledger.account, index));
    for (let round = 0; round < 10; round++) {
      await ledger.write(Array.from({ length: 12 }, () => randomCommand(random.pick(people), random)));
      await ledger.write([new EndUser(ledger.other, 1).add(1)]);
      await ledger.deriveEvents();
    }
    const all = await logOf(ledger);
    assert(all.length > 50);
    for (const limit of [1, 2, 7, all.length, all.length + 1]) {
      assert.deepEqual(await logOf(ledger, { limit }), all);
      // Compares only IDs, because a type filter can give an event an earlier position than it has in the unfiltered
      // list.
      for (const types of [['credits.added'], ['cycle.started', 'credits.subtracted'], EVENT_TYPES] as const)
        assert.deepEqual(
          (await logOf(ledger, { limit, types })).map(({ id }) => id),
          all.filter(({ type }) => (types as readonly string[]).includes(type)).map(({ id }) => id),
        );
    }
    for (const [index, { position }] of all.entries())
      if (index % 9 === 0) assert.deepEqual(await logOf(ledger, { after: position }), all.slice(index + 1));
    assert.equal((await ledger.events.page(ledger.account, { after: null, limit: all.length })).hasMore, false);
    assert.equal((await ledger.events.page(ledger.account, { after: null, limit: all.length - 1 })).hasMore, true);
  });

  const ROUNDS = effort(5, 15);
  it('a reader that continues from the latest position misses no event that is stored in the meantime', async (ledger) => {
    const people = Array.from({ length: 9 }, (_, index) => new EndUser(ledger.account, index));
    const seen: string[] = [];
    let after: string | null = null;
    let isOver = false;
    const read = async () => {
      const page = await ledger.events.page(ledger.account, { after, limit: 5, types: ['credits.added'] });
      seen.push(...page.events.map(({ id }) => id));
      after = page.position;
      return page.hasMore;
    };
    const reading = (async () => {
      for (; !isOver; await turn()) await read();
    })();
    for (let round = 0; round < ROUNDS; round++) {
      await ledger.write(people.flatMap((user) => [user.add(2), user.subtract(1)]));
      await ledger.deriveEvents();
    }
    isOver = true;
    await reading;
    while (await read());
    const all = await logOf(ledger, { types: ['credits.added'] });
    assert.equal(all.length, ROUNDS * 9);
    assert.deepEqual(seen.toSorted(), all.map(({ id }) => id).toSorted());
  });

  it('a page without events also has a position, and the next event comes after this position', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const empty = await ledger.events.page(ledger.account, { after: null, limit: 10 });
    assert.deepEqual([empty.events, empty.hasMore], [[], false]);
    await ledger.write([ada.add(1)]);
    await ledger.deriveEvents();
    const types = ['credits.subtracted'] as const;
    const none = await ledger.events.page(ledger.account, { after: empty.position, limit: 10, types });
    assert.deepEqual([none.events, none.hasMore], [[], false]);
    assert.equal((await logOf(ledger, { after: empty.position })).length, 1);
    assert.equal((await logOf(ledger, { after: none.position })).length, 0);
    await ledger.write([ada.subtract(1)]);
    await ledger.deriveEvents();
    assert.equal((await logOf(ledger, { after: none.position, types })).length, 1);
  });

  it('a position in the event log that is invalid or beyond the latest event is refused', async (ledger) => {
    await ledger.write([new EndUser(ledger.account, 1).add(1)]);
    await ledger.deriveEvents();
    for (const after of ['', 'x', '-1', '1e3', ' 1', '0x1', '999999', '9'.repeat(30), "1' OR 1=1"])
      await assert.rejects(ledger.events.page(ledger.account, { after, limit: 1 }), InvalidCursor, after);
    assert.equal(ledger.trouble(), null);
  });
}

function retention({ it }: Contract): void {
  it('events are deleted after the retention time, and their positions stay valid', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const remove = async (retentionMs: number) => {
      while (await ledger.events.deleteExpired(retentionMs));
    };
    for (let batch = 0; batch < 4; batch++) await ledger.write(Array.from({ length: 300 }, () => ada.add(1)));
    await ledger.deriveEvents();
    const all = await logOf(ledger);
    assert.equal(all.length, 1_200);
    await passMoment(ledger);
    await remove(DAY_MS);
    assert.equal((await logOf(ledger)).length, 1_200);
    await remove(1);
    assert.deepEqual(await logOf(ledger), []);
    const [first, last] = [all[0]?.position, all.at(-1)?.position] as [string, string];
    for (const after of [first, last]) assert.deepEqual(await logOf(ledger, { after }), []);
    await ledger.reopen();
    await ledger.write([ada.subtract(1)]);
    await ledger.deriveEvents();
    for (const after of [null, first, last])
      assert.deepEqual(
        (await logOf(ledger, { after })).map(({ type }) => type),
        ['credits.subtracted'],
      );
  });

  it('reading events from the position before an instant returns exactly the events since that instant', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const { now: begin } = await ledger.load(ada.key);
    const instants: number[] = [];
    for (let round = 0; round < 6; round++) {
      await ledger.write([ada.add(1), ada.add(1)]);
      await ledger.deriveEvents();
      await passMoment(ledger);
      instants.push((await ledger.load(ada.key)).now);
      await passMoment(ledger);
    }
    const all = await logOf(ledger);
    const after = async (instant: number) => logOf(ledger, { after: await ledger.events.positionBefore(instant) });
    assert.deepEqual(await after(begin - DAY_MS), all);
    for (const [index, instant] of instants.entries()) assert.deepEqual(await after(instant), all.slice(2 * index + 2));
    assert.deepEqual(await after((instants.at(-1) as number) + DAY_MS), []);
  });
}
