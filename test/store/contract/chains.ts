// The contract of the chains: a digest that was taken once still stands, whatever happens afterwards.

import assert from 'node:assert/strict';
import type { Finding } from '../../../src/ledger/audit.ts';
import { DAY_MS } from '../../../src/ledger/instant.ts';
import type { PostingsDigest } from '../../../src/store/ledger-digest.ts';
import type { Store } from '../../../src/store/store.ts';
import type { Contract } from '../store-contract.ts';
import { EndUser, noted } from '../temporary-ledger.ts';

const EMPTY = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

export function chainContract({ it, itInTime }: Contract): void {
  it('a ledger in which nothing has happened has a digest', async ({ store }) => {
    const digest = await digestOf(store);
    assert.deepEqual([digest.endUsers, digest.postings, digest.sha256], [0, 0, EMPTY]);
  });

  it('a digest stands for what had happened, and not for what has happened since', async (ledger) => {
    const [ada, bob, eve] = [1, 2, 3].map((index) => new EndUser(ledger.account, index)) as [EndUser, EndUser, EndUser];
    await ledger.store.write([ada.add(10), ada.add(20), ada.startCycle(5), bob.add(1)]);
    await ledger.store.write([ada.subtract(32), noted(ada.add(2), 'goodwill')]);
    const first = await digestOf(ledger.store);
    assert.deepEqual([first.endUsers, first.postings], [2, 8]);
    ledger.wall += 1;
    await ledger.store.write([ada.subtract(2), ada.stopCycle(), eve.add(9)]);
    const second = await digestOf(ledger.store);
    assert.deepEqual([second.endUsers, second.postings], [3, 11]);
    assert.notEqual(second.sha256, first.sha256);
    ledger.wall += 1;
    await ledger.store.write([bob.subtract(1), ada.startCycle(3)]);
    await ledger.reopen();
    assert.deepEqual(await digestsOf(ledger.store, [second.through, first.through]), [second, first]);
  });

  itInTime('a digest is the same before and after the renewals that were due are entered', async (ledger) => {
    const [ada, bob] = [new EndUser(ledger.account, 1), new EndUser(ledger.account, 2)];
    await ledger.store.write([ada.startCycle(10, 1), bob.startCycle(7, 2)]);
    ledger.wall += 3 * DAY_MS + 1;
    await ledger.store.write([new EndUser(ledger.account, 3).add(1)]);
    ledger.wall += 1;
    const digest = await digestOf(ledger.store);
    assert.equal(digest.postings, 2 + 3 + 1 + 1, 'renewals that are due count');
    ledger.wall += 2 * DAY_MS;
    await ledger.store.write([ada.stopCycle(), bob.subtract(3)]);
    assert.deepEqual(await digestsOf(ledger.store, [digest.through]), [digest]);
  });
}

/** Of all that has happened. */
async function digestOf(store: Store): Promise<PostingsDigest> {
  return (await proved(store, null))[0] as PostingsDigest;
}

async function digestsOf(store: Store, through: readonly string[]): Promise<readonly PostingsDigest[]> {
  return proved(store, through);
}

async function proved(store: Store, through: readonly string[] | null): Promise<readonly PostingsDigest[]> {
  const findings: Finding[] = [];
  const { digests } = await store.prove(through, (finding) => findings.push(finding));
  assert.deepEqual(findings, []);
  return digests;
}
