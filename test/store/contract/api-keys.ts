// The contract of API keys: whose they are, what is kept of them, and that a revoked one opens nothing.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { apiKeySecret, hashOf, SECRET_BYTES } from '../../../src/accounts/api-key.ts';
import type { Contract } from '../store-contract.ts';

const secretOf = (scope: 'read' | 'write') => apiKeySecret(scope, randomBytes(SECRET_BYTES));

export function apiKeyContract({ it }: Contract): void {
  it('a key is found by its hash, with its account and scope', async ({ store }) => {
    for (const scope of ['read', 'write'] as const) {
      const secret = secretOf(scope);
      const key = await store.apiKeys.create({ accountName: 'Lovelace Ltd', scope, secret });
      assert.deepEqual(await store.apiKeys.find(hashOf(secret)), key);
      assert.equal(key.scope, scope);
    }
  });

  it('an account is made once by name', async ({ store, account, other }) => {
    const key = (accountName: string) =>
      store.apiKeys.create({ accountName, scope: 'write', secret: secretOf('write') });
    const [one, two, third] = [await key('Lovelace Ltd'), await key('Lovelace Ltd'), await key('lovelace ltd')];
    assert.equal(two.account, one.account);
    assert.notEqual(two.id, one.id);
    assert.equal(new Set([account, other, one.account, third.account]).size, 4);
  });

  it('a hash that nobody was given is not found', async ({ store }) => {
    assert.equal(await store.apiKeys.find(hashOf(secretOf('write'))), null);
    assert.equal(await store.apiKeys.find(''), null);
  });

  it('a revoked key is not found, and those beside it are', async ({ store }) => {
    const [revoked, kept] = [secretOf('write'), secretOf('write')];
    const { id } = await store.apiKeys.create({ accountName: 'Lovelace Ltd', scope: 'write', secret: revoked });
    const beside = await store.apiKeys.create({ accountName: 'Lovelace Ltd', scope: 'write', secret: kept });
    assert.equal(await store.apiKeys.revoke(id), true);
    assert.equal(await store.apiKeys.find(hashOf(revoked)), null);
    assert.deepEqual(await store.apiKeys.find(hashOf(kept)), beside);
  });

  it('a key is revoked once: a second time changes nothing, and one that is not there cannot be', async (ledger) => {
    const { apiKeys } = ledger.store;
    const { id } = await apiKeys.create({ accountName: 'Lovelace Ltd', scope: 'write', secret: secretOf('write') });
    await apiKeys.revoke(id);
    const before = (await apiKeys.list()).find((key) => key.id === id);
    assert(before?.revokedAt != null && before.revokedAt >= before.createdAt);
    ledger.wall += 60_000;
    assert.equal(await apiKeys.revoke(id), true);
    assert.deepEqual(
      (await apiKeys.list()).find((key) => key.id === id),
      before,
    );
    assert.equal(await apiKeys.revoke(id + 1), false);
  });

  it('the list shows all keys, revoked ones too, and no secret', async ({ store }) => {
    const given = (await store.apiKeys.list()).length;
    const [first, second] = [secretOf('read'), secretOf('write')];
    const one = await store.apiKeys.create({ accountName: 'Lovelace Ltd', scope: 'read', secret: first });
    const two = await store.apiKeys.create({ accountName: 'Babbage & Co', scope: 'write', secret: second });
    await store.apiKeys.revoke(one.id);
    const listed = (await store.apiKeys.list()).slice(given);
    assert.deepEqual(
      listed.map(({ id, account, scope, accountName, revokedAt }) => [
        id,
        account,
        scope,
        accountName,
        revokedAt === null,
      ]),
      [
        [one.id, one.account, 'read', 'Lovelace Ltd', false],
        [two.id, two.account, 'write', 'Babbage & Co', true],
      ],
    );
    assert(first.startsWith((listed[0]?.hint ?? '?').slice(0, -1)), 'the hint is how the key begins');
    for (const secret of [first, second]) assert(!JSON.stringify(listed).includes(secret.slice(-20)));
  });

  it('a key outlives the store that made it, and so does its end', async (ledger) => {
    const [kept, revoked] = [secretOf('read'), secretOf('write')];
    const key = await ledger.store.apiKeys.create({ accountName: 'Lovelace Ltd', scope: 'read', secret: kept });
    const { id } = await ledger.store.apiKeys.create({ accountName: 'Lovelace Ltd', scope: 'write', secret: revoked });
    await ledger.store.apiKeys.revoke(id);
    await ledger.reopen();
    assert.deepEqual(await ledger.store.apiKeys.find(hashOf(kept)), key);
    assert.equal(await ledger.store.apiKeys.find(hashOf(revoked)), null);
  });

  it('a secret belongs to one key', async ({ store }) => {
    const secret = secretOf('write');
    const key = await store.apiKeys.create({ accountName: 'Lovelace Ltd', scope: 'write', secret });
    await assert.rejects(store.apiKeys.create({ accountName: 'Babbage & Co', scope: 'write', secret }));
    assert.deepEqual(await store.apiKeys.find(hashOf(secret)), key);
    const names = (await store.apiKeys.list()).map(({ accountName }) => accountName);
    assert(!names.includes('Babbage & Co'));
    const another = secretOf('write');
    await store.apiKeys.create({ accountName: 'Babbage & Co', scope: 'write', secret: another });
    assert.notEqual((await store.apiKeys.find(hashOf(another)))?.account, key.account, 'a refusal is in nobody’s way');
  });

  it('a key has the name that it was given, or none', async ({ store }) => {
    const name = 'Backend „Köln“, 2026';
    const { id } = await store.apiKeys.create({
      accountName: 'Lovelace Ltd',
      scope: 'read',
      secret: secretOf('read'),
      name,
    });
    const nameless = await store.apiKeys.create({
      accountName: 'Lovelace Ltd',
      scope: 'read',
      secret: secretOf('read'),
    });
    const names = new Map((await store.apiKeys.list()).map((key) => [key.id, key.name]));
    assert.deepEqual([names.get(id), names.get(nameless.id)], [name, '']);
  });

  it('a key is made for an account by its number, and for none that is not there', async ({ store, account }) => {
    const secret = secretOf('write');
    const key = await store.apiKeys.createFor(account, { scope: 'write', secret, name: 'second' });
    assert.equal(key?.account, account);
    assert.deepEqual(await store.apiKeys.find(hashOf(secret)), key);
    const before = await store.apiKeys.list();
    const orphan = secretOf('write');
    assert.equal(await store.apiKeys.createFor(4_040, { scope: 'write', secret: orphan }), null);
    assert.equal(await store.apiKeys.find(hashOf(orphan)), null);
    assert.deepEqual(await store.apiKeys.list(), before);
  });

  it('an account lists its own keys, and revokes no other’s', async ({ store, account, other }) => {
    const secret = secretOf('write');
    const key = await store.apiKeys.createFor(account, { scope: 'write', secret });
    assert(key !== null);
    const listed = await store.apiKeys.list(account);
    assert(listed.length > 0 && listed.every((each) => each.account === account));
    assert(listed.some(({ id }) => id === key.id));
    assert(!(await store.apiKeys.list(other)).some(({ id }) => id === key.id));
    assert.deepEqual(await store.apiKeys.list(4_040), []);
    assert.equal(await store.apiKeys.revoke(key.id, other), false);
    assert.deepEqual(await store.apiKeys.find(hashOf(secret)), key);
    assert.equal(await store.apiKeys.revoke(key.id, account), true);
    assert.equal(await store.apiKeys.find(hashOf(secret)), null);
  });

  it('when keys were last used is kept, of many at once, and of those alone', async (ledger) => {
    const { account } = ledger;
    const keys = await Promise.all(
      [1, 2, 3].map(() => ledger.store.apiKeys.createFor(account, { scope: 'read', secret: secretOf('read') })),
    );
    const [first, second, third] = keys.map((key) => key?.id ?? assert.fail());
    const used = async () => {
      const listed = await ledger.store.apiKeys.list(account);
      return [first, second, third].map((id) => listed.find((key) => key.id === id)?.lastUsedAt ?? null);
    };
    assert.deepEqual(await used(), [null, null, null]);
    await ledger.store.apiKeys.noteUses([first as number, third as number, 4_040]);
    const [at, none, alike] = await used();
    assert(at != null && at >= ((await ledger.store.apiKeys.list(account))[0]?.createdAt ?? Number.NaN));
    assert.deepEqual([none, alike], [null, at]);
    ledger.wall += 60_000;
    await ledger.store.apiKeys.noteUses([second as number, third as number]);
    const later = await used();
    assert.equal(later[0], at);
    assert(later[1] != null && later[1] >= at && later[2] === later[1]);
    await ledger.store.apiKeys.noteUses([]);
    await ledger.reopen();
    assert.deepEqual(await used(), later);
  });
}
