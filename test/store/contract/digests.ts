// Contract tests for digests: a digest covers all postings up to its instant, and later postings do not change it.

import assert from 'node:assert/strict';
import type { WriteCommand } from '../../../src/ledger/command.ts';
import { DAY_MS } from '../../../src/ledger/instant.ts';
import { lastIdAt } from '../../../src/ledger/transaction-id.ts';
import { digestsIn, lineOf, type PostingsDigest } from '../../../src/store/tools/ledger-digest.ts';
import type { Contract, ContractLedger } from '../store-contract.ts';
import { EndUser, noted } from '../temporary-ledger.ts';

const EMPTY = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

export function digestContract(contract: Contract): void {
  stability(contract);
  difference(contract);
}

async function digestOf(ledger: ContractLedger): Promise<PostingsDigest> {
  return (await ledger.digest())[0] as PostingsDigest;
}

function stability({ it, itInTime, itOnRealClock }: Contract): void {
  it('a ledger without postings has a digest', async (ledger) => {
    const digest = await digestOf(ledger);
    assert.deepEqual([digest.endUsers, digest.postings, digest.sha256], [0, 0, EMPTY]);
  });

  it('a digest covers all postings up to its instant, and no later postings', async (ledger) => {
    const [ada, bob, eve] = [1, 2, 3].map((index) => new EndUser(ledger.account, index)) as [EndUser, EndUser, EndUser];
    await ledger.write([ada.add(10), ada.add(20), ada.startCycle(5), bob.add(1)]);
    await ledger.write([ada.subtract(32), noted(ada.add(2), 'goodwill')]);
    const first = await digestOf(ledger);
    assert.deepEqual([first.endUsers, first.postings], [2, 8]);
    ledger.wall += 1;
    await ledger.write([ada.subtract(2), ada.stopCycle(), eve.add(9)]);
    const second = await digestOf(ledger);
    assert.deepEqual([second.endUsers, second.postings], [3, 11]);
    assert.notEqual(second.sha256, first.sha256);
    ledger.wall += 1;
    await ledger.write([bob.subtract(1), ada.startCycle(3)]);
    await ledger.reopen();
    assert.deepEqual(await ledger.digest([second.through, first.through]), [second, first]);
    assert.deepEqual(
      digestsIn([first, second].map(lineOf).join('\n')),
      [first, second],
      'digests can be read back from a file',
    );
  });

  itOnRealClock(
    'a digest that is computed while writes are running has the same value when it is computed again',
    async (ledger) => {
      const users = Array.from({ length: 20 }, (_, index) => new EndUser(ledger.account, index));
      await ledger.write(users.map((user) => user.add(100_000)));
      const digests: PostingsDigest[] = [];
      for (let round = 0; round < 6; round++) {
        const writes = Array.from({ length: 4 }, () => ledger.write(users.map((user) => user.subtract(1))));
        digests.push(await digestOf(ledger));
        await Promise.all(writes);
      }
      assert.deepEqual(await ledger.digest(digests.map(({ through }) => through)), digests);
    },
  );

  itInTime('storing due renewals does not change a digest that already counts them', async (ledger) => {
    const [ada, bob] = [new EndUser(ledger.account, 1), new EndUser(ledger.account, 2)];
    await ledger.write([ada.startCycle(10, 1), bob.startCycle(7, 2)]);
    ledger.wall += 3 * DAY_MS + 1;
    await ledger.write([new EndUser(ledger.account, 3).add(1)]);
    ledger.wall += 1;
    const digest = await digestOf(ledger);
    assert.equal(digest.postings, 2 + 3 + 1 + 1, 'due renewals count');
    ledger.wall += 2 * DAY_MS;
    await ledger.write([ada.stopCycle(), bob.subtract(3)]);
    assert.deepEqual(await ledger.digest([digest.through]), [digest]);
  });

  itInTime('a digest up to an instant has the same value no matter when it is computed', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    await ledger.write([ada.startCycle(10, 2), ada.subtract(3)]);
    const instants = [ledger.wall, ledger.wall + DAY_MS, ledger.wall + 2 * DAY_MS, ledger.wall + 2 * DAY_MS + 1];
    ledger.wall += 3 * DAY_MS;
    const through = instants.map(lastIdAt);
    const early = await ledger.digest(through);
    assert.deepEqual(
      early.map(({ postings }) => postings),
      [2, 2, 3, 3],
    );
    await ledger.write([ada.settle(), ada.add(5)]);
    assert.deepEqual(await ledger.digest(through), early);
  });
}

function difference({ it }: Contract): void {
  it('each transaction changes the digest, but a refusal does not', async (ledger) => {
    const ada = new EndUser(ledger.account, 1);
    const commands: WriteCommand[] = [
      ada.add(10),
      ada.subtract(3),
      ada.startCycle(5),
      ada.stopCycle(),
      ada.startCycle(6),
      ada.startCycle(7, 9, 'replace'),
      noted(ada.add(1), 'a note'),
    ];
    const seen = new Set([(await digestOf(ledger)).sha256]);
    for (const command of commands) {
      await ledger.write([command]);
      seen.add((await digestOf(ledger)).sha256);
    }
    assert.equal(seen.size, 1 + commands.length);
    await ledger.write([ada.subtract(1_000), ada.startCycle(1)]);
    assert(seen.has((await digestOf(ledger)).sha256));
  });
}
