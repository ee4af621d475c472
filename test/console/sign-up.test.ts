// Tests signing up and joining an account: which users and accounts are created, and which requests are refused.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sha256Of } from '../../src/console/identity/secret-token.ts';
import { DAY_MS } from '../../src/ledger/instant.ts';
import {
  assertGoesTo,
  decode,
  invite,
  newMember,
  newOwner,
  onBothStores,
  onOneStore,
  PASSWORD,
  someEmail,
  Visitor,
} from './visitor.ts';

const OVERVIEW = '/console/overview';
/** A request with this header does not count as a request from the server's own machine. */
const BY_PROXY = { 'x-forwarded-for': '192.0.2.7' };

onBothStores('sign-up', (start) => {
  test("the first person to sign up on the server's own machine becomes the owner of the existing account and sees its API keys", async () => {
    const { scrip, sql } = await start({ signUp: 'first' });
    await scrip.createKey('Second', 'write');
    const visitor = new Visitor(scrip);
    assertGoesTo(await visitor.get('/console'), '/console/sign-up');
    const page = decode((await visitor.get('/console/sign-up')).text);
    assert.match(
      page,
      /The account <strong>Acme<\/strong> has no members yet\. When you sign up, you become the owner/,
    );
    assert.match(page, /name="name" type="text" value="Acme"/);
    assert.match(
      page,
      /<code>scrip key create --account NAME<\/code>, then need the new name, which the Account page shows\./,
    );
    const email = someEmail();
    assertGoesTo(await visitor.signUp({ email: ` ${email.toUpperCase()} `, name: ' Lovelace Ltd ' }), OVERVIEW);
    assert(await visitor.isSignedIn(), 'signing up also signs in');
    assert.match((await visitor.get('/console/api-keys')).text, /scrip_write_/);
    assert.match((await visitor.get('/console/members')).text, /<p class="account">Lovelace Ltd</);
    assert.deepEqual(await sql('SELECT account, name FROM accounts ORDER BY account'), [
      { account: 1, name: 'Lovelace Ltd' },
      { account: 2, name: 'Second' },
    ]);
    assert.deepEqual(await sql('SELECT account, email, role FROM console_members JOIN console_users ON id = user_id'), [
      { account: 1, email, role: 'owner' },
    ]);
    assertGoesTo(await new Visitor(scrip).get('/console'), '/console/sign-in');
    assertGoesTo(await new Visitor(scrip).signIn(email), OVERVIEW);
  });

  test('if a new user chooses an account name that already exists, random digits are appended to the name', async () => {
    const { scrip, sql } = await start();
    await newOwner(scrip, 'Acme');
    await Promise.all([newOwner(scrip, 'Acme'), newOwner(scrip, 'Acme'), newOwner(scrip, 'Acme')]);
    const rows = await sql('SELECT account, name FROM accounts ORDER BY account');
    assert.deepEqual(
      rows.map(({ account }) => account),
      [1, 2, 3, 4],
    );
    assert.equal(rows[0]?.name, 'Acme', 'the existing account keeps its name');
    for (const { name } of rows.slice(1)) assert.match(String(name), /^Acme [0-9a-f]{6}$/);
  });

  test('concurrent sign-ups with the same address create one user', async () => {
    const { scrip, sql } = await start();
    const email = someEmail();
    const replies = await Promise.all([1, 2, 3].map(() => new Visitor(scrip).signUp({ email })));
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 200, 303]);
    assert.equal((await sql('SELECT * FROM console_users')).length, 1);
    assert.equal((await sql('SELECT * FROM console_members')).length, 1);
    assert.equal((await sql('SELECT * FROM accounts')).length, 1);
  });

  test('when the first member of an account joins, all other links to join the account as an owner stop working', async () => {
    for (const joins of ['by sign-up', 'by link'] as const) {
      const { scrip, sql } = await start({ signUp: 'first' });
      const [used, unused, forMember] = ['used', 'unused', 'for-member'] as const;
      for (const [token, role] of [
        [used, 'owner'],
        [unused, 'owner'],
        [forMember, 'member'],
      ] as const)
        await sql(
          `INSERT INTO console_invitations (token_sha256, account, role, created_at, expires_at)
           VALUES ('${sha256Of(token)}', 1, '${role}', 1, ${Date.now() + DAY_MS})`,
        );
      const credentials = { email: someEmail(), password: PASSWORD };
      const first = new Visitor(scrip);
      const joined =
        joins === 'by sign-up'
          ? await first.signUp(credentials)
          : await first.post(`/console/join/${used}`, credentials);
      assertGoesTo(joined, OVERVIEW);
      assert.equal((await new Visitor(scrip).get(`/console/join/${unused}`)).status, 404, joins);
      assert.equal((await new Visitor(scrip).get(`/console/join/${forMember}`)).status, 200, joins);
      const later = await invite(first, 'owner');
      await newMember(scrip, first);
      assert.equal((await new Visitor(scrip).get(later)).status, 200, 'later invitations stay valid');
    }
  });

  test('with SIGN_UP=first, only one user can sign up, even if several people try at the same time', async () => {
    const { scrip, sql } = await start({ signUp: 'first' });
    const replies = await Promise.all([1, 2, 3].map(() => new Visitor(scrip).signUp({ email: someEmail() })));
    assert.deepEqual(replies.map(({ status }) => status).sort(), [303, 403, 403]);
    assert.equal((await sql('SELECT * FROM console_users')).length, 1);
    assert.equal((await new Visitor(scrip).get('/console/sign-up')).status, 403);
    assert(!(await new Visitor(scrip).get('/console/sign-in')).text.includes('/console/sign-up'));
  });
});

onOneStore('sign-up', (start) => {
  test('with SIGN_UP=first, sign-up is refused if the request comes through a proxy or PUBLIC_URL is set', async () => {
    for (const [settings, headers] of [
      [{ signUp: 'first' }, BY_PROXY],
      [{ signUp: 'first' }, { forwarded: 'for=192.0.2.7' }],
      [{ signUp: 'first', publicUrl: 'https://scrip.example' }, {}],
    ] as const) {
      const { scrip, sql } = await start(settings);
      const visitor = new Visitor(scrip, headers);
      assertGoesTo(await visitor.get('/console'), '/console/sign-in');
      const page = await visitor.get('/console/sign-up');
      assert.equal(page.status, 403);
      assert.match(page.text, /open the link that Scrip printed when it started/);
      assert.equal((await visitor.signUp({ email: someEmail() })).status, 403);
      assert.equal((await sql('SELECT * FROM console_users')).length, 0);
      assert.equal((await sql('SELECT * FROM accounts')).length, 1);
    }
  });

  test("with SIGN_UP=open, the first user to sign up on the server's own machine gets the existing account, and all others get new accounts", async () => {
    const { scrip, sql } = await start();
    const [remote, local, later] = [new Visitor(scrip, BY_PROXY), new Visitor(scrip), new Visitor(scrip)];
    for (const [visitor, name] of [
      [remote, 'Remote'],
      [local, 'Local'],
      [later, 'Later'],
    ] as const)
      assertGoesTo(await visitor.signUp({ email: someEmail(), name }), OVERVIEW);
    const rows = await sql(
      `SELECT accounts.account, name FROM accounts JOIN console_members ON accounts.account = console_members.account
       ORDER BY accounts.account`,
    );
    assert.deepEqual(rows, [
      { account: 1, name: 'Local' },
      { account: 2, name: 'Remote' },
      { account: 3, name: 'Later' },
    ]);
  });

  test('signing up or joining an account over plain HTTP from another machine is refused', async () => {
    const { scrip, sql } = await start();
    const link = await invite(await newOwner(scrip), 'member');
    const visitor = new Visitor(scrip, { host: 'scrip.internal' });
    const fields = { email: someEmail(), name: 'Ada', password: PASSWORD };
    for (const path of ['/console/sign-up', link]) {
      for (const reply of [await visitor.get(path), await visitor.post(path, fields)]) {
        assert.equal(reply.status, 403);
        assert.match(reply.text, /HTTPS required/);
      }
    }
    assert.equal((await sql('SELECT * FROM console_users')).length, 1);
  });

  test('signing up with the address of an existing user is refused and changes nothing', async () => {
    const { scrip, sql } = await start();
    const owner = await newOwner(scrip);
    const tables = async () => [await sql('SELECT * FROM console_users'), await sql('SELECT * FROM accounts')];
    const before = await tables();
    const stranger = new Visitor(scrip);
    const { status, text } = await stranger.signUp({ email: owner.email, password: 'nine white swans by a lake' });
    assert.deepEqual([status, stranger.cookies.size], [200, 0]);
    assert.match(text, /id="email-error">This address is already in use/);
    assert.deepEqual(await tables(), before);
    assert.equal((await stranger.signIn(owner.email, 'nine white swans by a lake')).status, 200);
    assertGoesTo(await stranger.signIn(owner.email), OVERVIEW);
  });

  const refused: readonly (readonly [input: string, fields: Record<string, string>, error: RegExp])[] = [
    ['a short password', { password: 'x7#kQ2!pL9' }, /id="password-error">Use at least 15 characters/],
    ['a long password', { password: 'ab7 '.repeat(40) }, /id="password-error">Use at most 128/],
    ['a predictable password', { password: 'password12345678' }, /id="password-error">This password is easy to guess/],
    ['a repeated letter', { password: 'aaaaaaaaaaaaaaaa' }, /id="password-error">This password is too common/],
    ['no password', { password: '' }, /id="password-error">/],
    ['no address', { email: 'ada' }, /id="email-error">Enter an email address/],
    ['no name', { name: ' ' }, /id="name-error">Enter a name/],
    ['a name of invisible characters', { name: '\u200b\u3164' }, /id="name-error">Enter a name/],
    ['a name with a control character', { name: 'Lumen\tGames' }, /id="name-error">Use only printable characters\./],
    ['a long name', { name: '🎈'.repeat(101) }, /id="name-error">Use at most 100 characters/],
  ];
  test('sign-up shows each error next to its field and keeps the input, except for the password', async () => {
    const { scrip, sql } = await start();
    for (const [input, fields, error] of refused) {
      const entered = { email: 'ada@example.com', name: 'Ada & <b>', password: PASSWORD, ...fields };
      const reply = await new Visitor(scrip).signUp(entered);
      assert.equal(reply.status, 200, input);
      assert.match(reply.text, error, input);
      assert.match(reply.text, /aria-invalid="true"/);
      assert(decode(reply.text).includes(`value="${entered.email}"`), input);
      if (entered.name.startsWith('Ada')) {
        assert(decode(reply.text).includes('value="Ada & <b>"'), input);
        assert(!reply.text.includes('<b>'), 'input is escaped');
      }
      if (entered.password) assert(!decode(reply.text).includes(entered.password), input);
    }
    assert.equal((await sql('SELECT * FROM console_users')).length, 0);
  });

  test('with SIGN_UP=closed, every sign-up is refused', async () => {
    const { scrip, sql } = await start({ signUp: 'closed' });
    const visitor = new Visitor(scrip);
    assert.match((await visitor.get('/console/sign-up')).text, /Sign-up is closed/);
    assert.equal((await visitor.signUp({ email: someEmail() })).status, 403);
    assert.equal((await sql('SELECT * FROM console_users')).length, 0);
  });
});

onBothStores('joining an account', (start) => {
  test('an invitation link lets one person join, even if several requests use the link at the same time', async () => {
    const { scrip, sql } = await start();
    const link = await invite(await newOwner(scrip), 'owner');
    const replies = await Promise.all(
      [1, 2, 3].map(() => new Visitor(scrip).post(link, { email: someEmail(), password: PASSWORD })),
    );
    assert.deepEqual(replies.map(({ status }) => status).sort(), [303, 404, 404]);
    assert.equal((await sql('SELECT * FROM console_members')).length, 2);
  });

  test('an owner can withdraw one invitation without affecting others, but cannot withdraw an invitation of another account', async () => {
    const { scrip } = await start();
    const [owner, other] = [await newOwner(scrip, 'One'), await newOwner(scrip, 'Other')];
    const links = [await invite(owner, 'member'), await invite(owner, 'owner')] as const;
    const { text } = await owner.get('/console/members');
    const [, ofMember] = /id="invitation-\d">member<[\s\S]*?name="invitation" value="([0-9a-f]{64})"/.exec(text) ?? [];
    assert(ofMember);
    const withdraw = (visitor: Visitor) =>
      visitor.post('/console/members/withdraw-invitations', { invitation: ofMember });
    const statuses = async () => [
      (await new Visitor(scrip).get(links[0])).status,
      (await new Visitor(scrip).get(links[1])).status,
    ];
    await withdraw(other);
    assert.deepEqual(await statuses(), [200, 200]);
    assertGoesTo(await withdraw(owner), '/console/members?notice=withdrawn');
    assert.match((await withdraw(owner)).text, /Nothing was changed, because the invitation has already been used/);
    assert.deepEqual(await statuses(), [404, 200]);
  });

  test('withdrawing all invitations invalidates their links', async () => {
    const { scrip } = await start();
    const owner = await newOwner(scrip);
    const link = await invite(owner, 'member');
    assert.match((await owner.get('/console/members')).text, /Pending invitations/);
    assertGoesTo(await owner.post('/console/members/withdraw-invitations'), '/console/members?notice=all-withdrawn');
    assert.equal((await new Visitor(scrip).get(link)).status, 404);
  });
});

onOneStore('joining an account', (start) => {
  test('an invitation link lets one person join the account', async () => {
    const { scrip, sql } = await start();
    const owner = await newOwner(scrip, 'Hopper Inc');
    const link = await invite(owner, 'member');
    const visitor = new Visitor(scrip);
    const page = await visitor.get(link);
    assert.match(page.text, /invited to join <strong>Hopper Inc<\/strong> as a member/);
    assert.match(
      (await visitor.post(link, { email: 'x', password: 'short' })).text,
      /email-error[\s\S]*password-error/,
    );
    const email = someEmail();
    assertGoesTo(await visitor.post(link, { email, password: PASSWORD }), OVERVIEW);
    assert.match((await visitor.get('/console/account')).text, /<p class="account">Hopper Inc</);
    assert.equal((await new Visitor(scrip).get(link)).status, 404);
    assert.equal((await new Visitor(scrip).post(link, { email: someEmail(), password: PASSWORD })).status, 404);
    assert.equal((await sql('SELECT * FROM console_members')).length, 2);
    const stored = JSON.stringify(await sql('SELECT * FROM console_invitations'));
    assert(!stored.includes(link.split('/').at(-1) as string), 'the database stores only the hash of the token');
  });

  test('an invitation works even if sign-up is closed, and expires after exactly seven days', async () => {
    const { scrip, clock } = await start({ signUp: 'first' });
    const owner = await newOwner(scrip);
    await newMember(scrip, owner);
    const link = await invite(owner, 'member');
    clock.advance(7 * 86_400_000 - 1);
    assert.equal((await new Visitor(scrip).get(link)).status, 200);
    clock.advance(1);
    assert.equal((await new Visitor(scrip).get(link)).status, 404);
    assert.equal((await new Visitor(scrip).post(link, { email: someEmail(), password: PASSWORD })).status, 404);
  });

  test('an invitation stays valid after a refused attempt to join', async () => {
    const { scrip, sql } = await start();
    const [owner, other] = [await newOwner(scrip, 'One'), await newOwner(scrip, 'Other')];
    const before = await sql('SELECT * FROM console_members ORDER BY account');
    const link = await invite(owner, 'member');
    const credentials = { email: other.email, password: PASSWORD };
    const taken = await new Visitor(scrip).post(link, credentials);
    assert.equal(taken.status, 200);
    assert.match(taken.text, /id="email-error">This address is already in use/);
    for (const reply of [await other.get(link), await other.post(link, { email: someEmail(), password: PASSWORD })]) {
      assert.equal(reply.status, 200);
      assert.match(decode(reply.text), new RegExp(`signed in as ${other.email}, a member of <strong>Other<`));
    }
    assert.match((await owner.get(link)).text, /are already a member of <strong>One<\/strong>/);
    assert.deepEqual(await sql('SELECT * FROM console_members ORDER BY account'), before);
    await other.post('/console/sign-out');
    assertGoesTo(await other.post(link, { email: someEmail(), password: PASSWORD }), OVERVIEW);
    assert.equal((await new Visitor(scrip).get(link)).status, 404);
  });
});
