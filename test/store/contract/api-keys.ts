// Contract tests for API keys: creation, lookup, lists, revocation, and the time of the last use.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { apiKeySecret, hashOf, SECRET_BYTES } from '../../../src/accounts/api-key.ts';

import { OPERATOR } from '../../../src/store/key-store.ts';
import type { Contract } from '../store-contract.ts';

const secretOf = (scope: 'read' | 'write') => apiKeySecret(scope, randomBytes(SECRET_BYTES));

export function apiKeyContract({ it }: Contract): void {
  it('looking up the hash of an API key returns the ID, account and scope of the key', async ({ keys }) => {
    for (const scope of ['read', 'write'] as const) {
      const secret = secretOf(scope);
      const key = await keys.create({ accountName: 'Lovelace Ltd', scope, secret });
      assert.deepEqual(await keys.find(hashOf(secret)), key);
      assert.equal(key.scope, scope);
    }
  });

  it('API keys with the same account name belong to the same account', async ({ keys, account, other }) => {
    const key = (accountName: string) => keys.create({ accountName, scope: 'write', secret: secretOf('write') });
    const [one, two, third] = [await key('Lovelace Ltd'), await key('Lovelace Ltd'), await key('lovelace ltd')];
    assert.equal(two.account, one.account);
    assert.notEqual(two.id, one.id);
    assert.equal(new Set([account, other, one.account, third.account]).size, 4);
  });

  it('a hash that belongs to no API key is not found', async ({ keys }) => {
    assert.equal(await keys.find(hashOf(secretOf('write'))), null);
    assert.equal(await keys.find(''), null);
  });

  it('a revoked API key is no longer found, but the other API keys of its account still are', async ({ keys }) => {
    const [revoked, kept] = [secretOf('write'), secretOf('write')];
    const { id } = await keys.create({ accountName: 'Lovelace Ltd', scope: 'write', secret: revoked });
    const beside = await keys.create({ accountName: 'Lovelace Ltd', scope: 'write', secret: kept });
    assert.equal(await keys.revoke(id), true);
    assert.equal(await keys.find(hashOf(revoked)), null);
    assert.deepEqual(await keys.find(hashOf(kept)), beside);
  });

  it('revoking an API key again changes nothing, and an unknown API key cannot be revoked', async (ledger) => {
    const { keys } = ledger;
    const { id } = await keys.create({ accountName: 'Lovelace Ltd', scope: 'write', secret: secretOf('write') });
    await keys.revoke(id);
    const before = (await keys.list()).find((key) => key.id === id);
    assert(before?.revokedAt != null && before.revokedAt >= before.createdAt);
    ledger.wall += 60_000;
    assert.equal(await keys.revoke(id), true);
    assert.deepEqual(
      (await keys.list()).find((key) => key.id === id),
      before,
    );
    assert.equal(await keys.revoke(id + 1), false);
  });

  it('the list of API keys includes revoked keys and contains no secret', async ({ keys }) => {
    const given = (await keys.list()).length;
    const [first, second] = [secretOf('read'), secretOf('write')];
    const one = await keys.create({ accountName: 'Lovelace Ltd', scope: 'read', secret: first });
    const two = await keys.create({ accountName: 'Babbage & Co', scope: 'write', secret: second });
    await keys.revoke(one.id);
    const listed = (await keys.list()).slice(given);
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
    assert(first.startsWith((listed[0]?.hint ?? '?').slice(0, -1)), 'the hint is the beginning of the key');
    for (const secret of [first, second]) assert(!JSON.stringify(listed).includes(secret.slice(-20)));
  });

  it('API keys and revocations are still stored after the ledger is reopened', async (ledger) => {
    const [kept, revoked] = [secretOf('read'), secretOf('write')];
    const key = await ledger.keys.create({ accountName: 'Lovelace Ltd', scope: 'read', secret: kept });
    const { id } = await ledger.keys.create({ accountName: 'Lovelace Ltd', scope: 'write', secret: revoked });
    await ledger.keys.revoke(id);
    await ledger.reopen();
    assert.deepEqual(await ledger.keys.find(hashOf(kept)), key);
    assert.equal(await ledger.keys.find(hashOf(revoked)), null);
  });

  it('a second API key with the same secret cannot be created', async ({ keys }) => {
    const secret = secretOf('write');
    const key = await keys.create({ accountName: 'Lovelace Ltd', scope: 'write', secret });
    await assert.rejects(keys.create({ accountName: 'Babbage & Co', scope: 'write', secret }));
    assert.deepEqual(await keys.find(hashOf(secret)), key);
    const names = (await keys.list()).map(({ accountName }) => accountName);
    assert(!names.includes('Babbage & Co'));
    const another = secretOf('write');
    await keys.create({ accountName: 'Babbage & Co', scope: 'write', secret: another });
    assert.notEqual((await keys.find(hashOf(another)))?.account, key.account, 'the failed attempt stored nothing');
  });

  it('an API key has the name that it was created with, or an empty name by default', async ({ keys }) => {
    const name = 'Backend „Köln“, 2026'.padEnd(100, '·');
    const { id } = await keys.create({
      accountName: 'Lovelace Ltd',
      scope: 'read',
      secret: secretOf('read'),
      name,
    });
    const nameless = await keys.create({
      accountName: 'Lovelace Ltd',
      scope: 'read',
      secret: secretOf('read'),
    });
    const names = new Map((await keys.list()).map((key) => [key.id, key.name]));
    assert.deepEqual([names.get(id), names.get(nameless.id)], [name, '']);
  });

  it('an API key can be created for an existing account number, but not for an unknown one', async ({
    keys,
    account,
  }) => {
    const secret = secretOf('write');
    const key = await keys.createFor(account, { scope: 'write', secret, name: 'second' });
    assert.equal(key?.account, account);
    assert.deepEqual(await keys.find(hashOf(secret)), key);
    const before = await keys.list();
    const orphan = secretOf('write');
    assert.equal(await keys.createFor(4_040, { scope: 'write', secret: orphan }), null);
    assert.equal(await keys.find(hashOf(orphan)), null);
    assert.deepEqual(await keys.list(), before);
  });

  it('a console form creates only one API key, even if it is submitted twice at the same time', async ({
    keys,
    account,
  }) => {
    const send = async (formSha256: string | null) => {
      const secret = secretOf('write');
      const key = await keys.createFor(account, { scope: 'write', secret, formSha256 });
      assert.deepEqual(await keys.find(hashOf(secret)), key);
      return key !== null;
    };
    const formSha256 = hashOf('a form');
    assert.deepEqual((await Promise.all([send(formSha256), send(formSha256)])).sort(), [false, true]);
    assert.equal(await send(formSha256), false);
    assert.equal(await send(hashOf('another form')), true);
    assert.deepEqual([await send(null), await send(null)], [true, true], 'without a form, each call creates a key');
  });

  it('an account can list and revoke only its own API keys', async ({ keys, account, other }) => {
    const secret = secretOf('write');
    const key = await keys.createFor(account, { scope: 'write', secret });
    assert(key !== null);
    const listed = await keys.list(account);
    assert(listed.length > 0 && listed.every((each) => each.account === account));
    assert(listed.some(({ id }) => id === key.id));
    assert(!(await keys.list(other)).some(({ id }) => id === key.id));
    assert.deepEqual(await keys.list(4_040), []);
    assert.equal(await keys.revoke(key.id, { account: other, by: 'user:2' }), false);
    assert.deepEqual(await keys.find(hashOf(secret)), key);
    assert.equal(await keys.revoke(key.id, { account, by: 'user:1' }), true);
    assert.equal(await keys.find(hashOf(secret)), null);
  });

  it('the list of API keys shows who created each key, and who revoked it first', async (ledger) => {
    const { account, keys } = ledger;
    const made = async (by?: string) =>
      (await keys.createFor(account, { scope: 'read', secret: secretOf('read'), ...(by ? { by } : {}) }))?.id ?? 0;
    const [own, foreign] = [await made('user:1'), await made()];
    await keys.revoke(own, { account, by: 'user:2' });
    await keys.revoke(own, { account, by: 'user:3' });
    await keys.revoke(foreign);
    await ledger.reopen();
    const listed = new Map((await ledger.keys.list(account)).map((key) => [key.id, [key.createdBy, key.revokedBy]]));
    assert.deepEqual(listed.get(own), ['user:1', 'user:2']);
    assert.deepEqual(listed.get(foreign), [OPERATOR, OPERATOR]);
    assert.equal((await ledger.keys.list(account))[0]?.revokedBy, null);
  });

  it('one call records the last use of several API keys, and changes no other API key', async (ledger) => {
    const { account } = ledger;
    const keys = await Promise.all(
      [1, 2, 3].map(() => ledger.keys.createFor(account, { scope: 'read', secret: secretOf('read') })),
    );
    const [first, second, third] = keys.map((key) => key?.id ?? assert.fail());
    const used = async () => {
      const listed = await ledger.keys.list(account);
      return [first, second, third].map((id) => listed.find((key) => key.id === id)?.lastUsedAt ?? null);
    };
    assert.deepEqual(await used(), [null, null, null]);
    await ledger.keys.recordUses([first as number, third as number, 4_040]);
    const [at, none, alike] = await used();
    assert(at != null && at >= ((await ledger.keys.list(account))[0]?.createdAt ?? Number.NaN));
    assert.deepEqual([none, alike], [null, at]);
    ledger.wall += 60_000;
    await ledger.keys.recordUses([second as number, third as number]);
    const later = await used();
    assert.equal(later[0], at);
    assert(later[1] != null && later[1] >= at && later[2] === later[1]);
    await ledger.keys.recordUses([]);
    await ledger.reopen();
    assert.deepEqual(await used(), later);
  });
}
