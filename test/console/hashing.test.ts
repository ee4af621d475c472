// How many password hashes an answer costs. Each takes longer than all else together: where the number does not
// depend on whether an address is known, neither does the time. Times themselves are too noisy to test.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Identity, openIdentity } from '../../src/console/identity/identity.ts';
import { PasswordHash, TooBusy } from '../../src/console/identity/password-hash.ts';
import { openPostgresConsoleDatabase } from '../../src/store/postgres/console-database.ts';
import { openPostgresStoreBeside } from '../../src/store/postgres/postgres-store.ts';
import { openSqliteConsoleDatabase } from '../../src/store/sqlite/console-database.ts';
import { openSqliteStoreBeside } from '../../src/store/sqlite/sqlite-store.ts';
import { PostgresServer } from '../postgres/postgres-server.ts';
import { temporaryFile } from '../store/temporary-ledger.ts';
import { OTHER_PASSWORD, PASSWORD } from './visitor.ts';

const known = { email: 'ada@example.com', password: PASSWORD };
const unknown = { email: 'eve@example.com', password: PASSWORD };

function identityTests(database: () => Promise<Parameters<typeof openIdentity>[0]['database']>): void {
  let identity: Identity;
  before(async () => {
    identity = await openIdentity({
      database: await database(),
      signUp: 'open',
      letters: null,
      now: Date.now,
      onTrouble: (error) => assert.fail(String(error)),
    });
    await identity.people.signUp(known, 'Ada');
  });
  after(() => identity.close());

  async function hashesOf(work: (identity: Identity) => Promise<unknown>): Promise<number> {
    const { password } = identity.people;
    const before = password.computed;
    await work(identity);
    return password.computed - before;
  }

  test('signing in costs one, whoever it is', async () => {
    for (const credentials of [known, { ...known, password: OTHER_PASSWORD }, unknown, { ...known, password: '' }])
      assert.equal(await hashesOf(({ people }) => people.authenticate(credentials)), 1);
  });

  test('signing up costs one, whoever it is', async () => {
    for (const credentials of [known, unknown, { ...unknown, email: 'new@example.com' }])
      assert.equal(await hashesOf(({ people }) => people.signUp(credentials, 'Acme')), 1);
  });

  test('joining costs one, whoever it is', async () => {
    for (const credentials of [known, { ...unknown, email: 'newer@example.com' }]) {
      const link = await identity.members.invite(1, 'member');
      assert.equal(await hashesOf(({ people }) => people.join(credentials, link)), 1);
    }
  });

  test('asking for a reset costs none', async () => {
    for (const { email } of [known, unknown])
      assert.equal(await hashesOf(async ({ people }) => people.requestReset(email)), 0);
    await identity.people.settled();
  });

  test('the library finds in our tables all that it wants', async () => {
    const { checkSchema } = identity.people.library;
    assert(checkSchema, 'it can tell');
    assert.equal(await checkSchema(), undefined);
  });

  test('an old hash with other parameters still lets in', async () => {
    const { password } = identity.people;
    // Of "password", from the reference implementation's own tests.
    const old = '$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4';
    assert(await password.verify('password', old));
    assert(!(await password.verify('Password', old)));
    assert(!(await password.verify('password', 'password')), 'what is no hash lets nobody in');
    assert(!(await password.verify('password', old.replace('argon2id', 'argon2i'))));
  });
}

describe('hashes, in a file', () => {
  identityTests(async () => {
    const file = temporaryFile();
    await openSqliteStoreBeside(file).close();
    return openSqliteConsoleDatabase(file);
  });
});

describe('hashes, on PostgreSQL', () => {
  let server: PostgresServer;
  before(async () => {
    server = await PostgresServer.start({ fsync: 'off' });
  });
  after(() => server.remove());
  identityTests(async () => {
    const url = await server.createDatabase();
    const options = { url, lanes: 1, prepared: true, citus: null, acceptUnsafe: true };
    await (await openPostgresStoreBeside(options, { create: true })).close();
    return openPostgresConsoleDatabase(url);
  });
});

test('a hash is argon2id, salted, with the parameters that OWASP recommends', async () => {
  const password = new PasswordHash();
  const [one, other] = await Promise.all([password.hash(PASSWORD), password.hash(PASSWORD)]);
  assert.match(one, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$[0-9A-Za-z+/]{22}\$[0-9A-Za-z+/]{43}$/);
  assert.notEqual(one, other);
  assert(await password.verify('\u00e9'.repeat(15), await password.hash('e\u0301'.repeat(15))), 'however it is typed');
});

test('hashing keeps nothing else waiting, and refuses more than can wait', async () => {
  const password = new PasswordHash();
  const all = Promise.allSettled(Array.from({ length: 110 }, () => password.hash(PASSWORD)));
  const startedAt = performance.now();
  await new Promise((resolve) => setImmediate(resolve));
  assert(performance.now() - startedAt < 1_000, 'none is computed on this thread');
  const refused = (await all).filter((result) => result.status === 'rejected');
  assert.equal(refused.length, 8, 'two at once, a hundred waiting');
  for (const { reason } of refused) assert(reason instanceof TooBusy);
  await password.hash(PASSWORD);
});
