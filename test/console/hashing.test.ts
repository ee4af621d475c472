// Tests the parameters of password hashing. The number of hashes that a request computes must not depend on whether
// the email address belongs to a user; otherwise, response times would reveal which addresses belong to users.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { databaseOf } from '../../src/config.ts';
import { type Identity, openIdentity } from '../../src/console/identity/identity.ts';
import { PasswordHasher, PasswordHasherBusy } from '../../src/console/identity/password-hasher.ts';
import { byInvitation } from '../../src/console/identity/registration.ts';
import type { Credentials } from '../../src/console/identity/users.ts';
import { openAccountDatabase } from '../../src/open-store.ts';
import { openTools } from '../../src/open-tools.ts';
import type { AccountDatabase } from '../../src/store/account-database.ts';
import { IS_LONG } from '../effort.ts';
import { PostgresServer } from '../store/postgres/postgres-server.ts';
import { temporaryFile } from '../store/temporary-ledger.ts';
import { countHashes, makeHashesCheap } from './argon2-wrapper.ts';
import { OTHER_PASSWORD, PASSWORD } from './visitor.ts';

const registered = { email: 'ada@example.com', password: PASSWORD };
const unknown = { email: 'eve@example.com', password: PASSWORD };

function hashCountTests(newUrl: () => Promise<string>): void {
  let identity: Identity;
  let database: AccountDatabase;
  const signUp = (credentials: Credentials) =>
    identity.registrations.register(credentials, { by: 'sign-up', accountName: 'Acme', claimed: null });
  before(async () => {
    const ledger = databaseOf({ DATABASE_URL: await newUrl() });
    await (await openTools(ledger)).tools.close();
    database = await openAccountDatabase(ledger);
    identity = openIdentity({
      database,
      signUp: 'open',
      mailer: null,
      now: Date.now,
      onMailError: (error) => assert.fail(String(error)),
    });
    await signUp(registered);
  });
  after(async () => {
    await identity.close();
    await database[Symbol.asyncDispose]();
  });

  test('signing in computes one hash, whether or not the address and the password are correct', async () => {
    const wrong = { ...registered, password: OTHER_PASSWORD };
    for (const credentials of [registered, wrong, unknown, { ...registered, password: '' }])
      assert.equal(await countHashes(() => identity.users.authenticate(credentials)), 1);
  });

  test('signing up computes one hash, whether or not the address belongs to a user', async () => {
    for (const credentials of [registered, unknown, { ...unknown, email: 'new@example.com' }])
      assert.equal(await countHashes(() => signUp(credentials)), 1);
  });

  test('joining an account by invitation computes one hash, whether or not the address belongs to a user', async () => {
    for (const credentials of [registered, { ...unknown, email: 'newer@example.com' }]) {
      const invitation = { account: 1, role: 'member', inviterId: null, formSha256: null } as const;
      const created = await identity.members.invite(invitation);
      assert(typeof created === 'object');
      const { token } = created;
      assert.equal(await countHashes(() => identity.registrations.register(credentials, byInvitation(token))), 1);
    }
  });

  test('requesting a password reset computes no hash, whether or not the address belongs to a user', async () => {
    for (const { email } of [registered, unknown])
      assert.equal(await countHashes(async () => identity.users.requestPasswordReset(email)), 0);
  });
}

describe('password hashing (SQLite)', () => {
  hashCountTests(async () => `file:${temporaryFile()}`);
});

// The number of hashes does not depend on the store, so `npm test` counts them only on SQLite.
if (IS_LONG)
  describe('password hashing (PostgreSQL)', () => {
    let server: PostgresServer;
    before(async () => {
      server = await PostgresServer.start({ fsync: 'off' });
    });
    after(() => server.remove());
    hashCountTests(() => server.createDatabase());
  });

test('passwords are salted and hashed with argon2id and the parameters that OWASP recommends', async () => {
  const hasher = new PasswordHasher();
  const [one, other] = await Promise.all([hasher.hash(PASSWORD), hasher.hash(PASSWORD)]);
  assert.match(one, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$[0-9A-Za-z+/]{22}\$[0-9A-Za-z+/]{43}$/);
  assert.notEqual(one, other);
  assert(await hasher.verify(PASSWORD, one));
  assert(!(await hasher.verify(OTHER_PASSWORD, one)));
});

test('a password is accepted in every Unicode normalization form', async () => {
  const hasher = new PasswordHasher();
  assert(await hasher.verify('\u00e9'.repeat(15), await hasher.hash('e\u0301'.repeat(15))));
});

test('a password can be verified against a stored hash that has other argon2id parameters', async () => {
  const hasher = new PasswordHasher();
  // This hash is from the tests of the argon2 reference implementation.
  const old = '$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4';
  assert(await hasher.verify('password', old));
  assert(!(await hasher.verify('Password', old)));
  assert(!(await hasher.verify('password', 'password')), 'text that is not a hash matches no password');
  assert(!(await hasher.verify('password', old.replace('argon2id', 'argon2i'))));
});

test('passwords are hashed outside the main thread, two at a time; up to 100 further passwords wait in a queue, and any more are refused', async () => {
  const hasher = new PasswordHasher();
  const startedAt = performance.now();
  const all = Promise.allSettled(Array.from({ length: 110 }, () => hasher.hash(PASSWORD)));
  await new Promise((resolve) => setImmediate(resolve));
  assert(performance.now() - startedAt < 1_000, 'no hash is computed on this thread');
  // The queued passwords do not need expensive hashes.
  makeHashesCheap();
  const refused = (await all).filter((result) => result.status === 'rejected');
  assert.equal(refused.length, 8);
  for (const { reason } of refused) assert(reason instanceof PasswordHasherBusy);
  await hasher.hash(PASSWORD);
});
