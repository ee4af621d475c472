// Signing up and joining an account: what they create, what they refuse, and what they do not reveal.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  assertGoesTo,
  decode,
  invite,
  newMember,
  newOwner,
  onBothStores,
  PASSWORD,
  someEmail,
  Visitor,
} from './visitor.ts';

const SIGNED_UP = '/console/sign-in?notice=signed-up';

onBothStores('Sign-up', (start) => {
  test('signing up creates an account and its owner, who can then sign in', async () => {
    const { scrip, sql } = await start();
    const visitor = new Visitor(scrip);
    const page = await visitor.get('/console/sign-up');
    for (const text of [
      '>Account name</label>',
      '>Email</label>',
      '>Password</label>',
      '<button class="button">Sign up</button>',
    ])
      assert(page.text.includes(text), text);
    const email = someEmail();
    assertGoesTo(await visitor.signUp({ email: ` ${email.toUpperCase()} `, name: ' Lovelace Ltd ' }), SIGNED_UP);
    assert.equal(visitor.cookies.size, 0, 'signing up does not sign in');
    assert.match((await visitor.get(SIGNED_UP)).text, /You can now sign in/);
    assertGoesTo(await visitor.signIn(email), '/console/overview');
    assert.match((await visitor.get('/console/members')).text, /<p class="account">Lovelace Ltd</);
    assert.equal((await sql("SELECT * FROM accounts WHERE name = 'Lovelace Ltd'")).length, 1);
    assert.deepEqual(await sql('SELECT email, role FROM console_members JOIN console_users ON id = user_id'), [
      { email, role: 'owner' },
    ]);
  });

  test('signing up with an account name that is taken appends random digits to it', async () => {
    const { scrip, sql } = await start();
    await Promise.all([newOwner(scrip, 'Acme'), newOwner(scrip, 'Acme'), newOwner(scrip, 'Acme')]);
    const rows = await sql('SELECT account, name FROM accounts ORDER BY account');
    assert.deepEqual(
      rows.map(({ account }) => account),
      [1, 2, 3, 4],
    );
    assert.equal(rows[0]?.name, 'Acme', 'the account that the tests create for API keys');
    for (const { name } of rows.slice(1)) assert.match(String(name), /^Acme [0-9a-f]{6}$/);
  });

  test('signing up with an address that has an account gets the same response in the same time, and changes nothing', async () => {
    const { scrip, sql } = await start();
    const owner = await newOwner(scrip);
    const before = await sql('SELECT * FROM console_users');
    const stranger = new Visitor(scrip);
    const responses: unknown[] = [];
    for (const email of [owner.email, someEmail()]) {
      const startedAt = performance.now();
      const { status, text, headers } = await stranger.signUp({ email, password: 'nine white swans by a lake' });
      assert(performance.now() - startedAt >= 299, 'both take the same minimum time');
      responses.push({ status, text, headers: { ...headers, date: '' } });
    }
    assert.deepEqual(responses[0], responses[1]);
    assert.deepEqual((await sql('SELECT * FROM console_users ORDER BY created_at')).slice(0, 1), before);
    assert.equal((await stranger.signIn(owner.email, 'nine white swans by a lake')).status, 200);
    assertGoesTo(await stranger.signIn(owner.email), '/console/overview');
  });

  test('signing up several times at once with one address creates one user', async () => {
    const { scrip, sql } = await start();
    const email = someEmail();
    const replies = await Promise.all([1, 2, 3].map(() => new Visitor(scrip).signUp({ email })));
    for (const reply of replies) assertGoesTo(reply, SIGNED_UP);
    assert.equal((await sql('SELECT * FROM console_users')).length, 1);
    assert.equal((await sql('SELECT * FROM console_members')).length, 1);
  });

  const refused: readonly (readonly [input: string, fields: Record<string, string>, error: RegExp])[] = [
    ['a short password', { password: 'x7#kQ2!pL9' }, /id="password-error">Use at least 15 characters/],
    ['a long password', { password: 'ab7 '.repeat(40) }, /id="password-error">Use at most 128/],
    ['a predictable password', { password: 'password12345678' }, /id="password-error">This password is easy to guess/],
    ['a repeated letter', { password: 'aaaaaaaaaaaaaaaa' }, /id="password-error">This password is too common/],
    ['no password', { password: '' }, /id="password-error">/],
    ['no address', { email: 'ada' }, /id="email-error">Enter an email address/],
    ['no name', { name: ' ' }, /id="name-error">Enter a name/],
    ['a long name', { name: 'x'.repeat(101) }, /id="name-error">Use at most 100 characters/],
  ];
  test('sign-up shows errors at their fields and keeps the input, except for the password', async () => {
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

  test('SIGN_UP=first lets one user sign up, also when several try at once', async () => {
    const { scrip, sql } = await start({ signUp: 'first' });
    const replies = await Promise.all([1, 2, 3].map(() => new Visitor(scrip).signUp({ email: someEmail() })));
    assert.deepEqual(replies.map(({ status }) => status).sort(), [303, 403, 403]);
    assert.equal((await sql('SELECT * FROM console_users')).length, 1);
    assert.equal((await new Visitor(scrip).get('/console/sign-up')).status, 403);
    assert(!(await new Visitor(scrip).get('/console/sign-in')).text.includes('/console/sign-up'));
  });

  test('SIGN_UP=closed refuses everyone', async () => {
    const { scrip, sql } = await start({ signUp: 'closed' });
    const visitor = new Visitor(scrip);
    assert.match((await visitor.get('/console/sign-up')).text, /Sign-up is closed/);
    assert.equal((await visitor.signUp({ email: someEmail() })).status, 403);
    assert.equal((await sql('SELECT * FROM console_users')).length, 0);
  });
});

onBothStores('Joining an account', (start) => {
  test('an invitation link creates one member of the account', async () => {
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
    assertGoesTo(await visitor.post(link, { email, password: PASSWORD }), SIGNED_UP);
    assertGoesTo(await visitor.signIn(email), '/console/overview');
    assert.match((await visitor.get('/console/password')).text, /<p class="account">Hopper Inc</);
    assert.equal((await new Visitor(scrip).get(link)).status, 404);
    assert.equal((await new Visitor(scrip).post(link, { email: someEmail(), password: PASSWORD })).status, 404);
    assert.equal((await sql('SELECT * FROM console_members')).length, 2);
    const stored = JSON.stringify(await sql('SELECT * FROM console_invitations'));
    assert(!stored.includes(link.split('/').at(-1) as string), 'the database stores only the hash of the token');
  });

  test('an invitation link that is used several times at once creates one member', async () => {
    const { scrip, sql } = await start();
    const link = await invite(await newOwner(scrip), 'owner');
    const replies = await Promise.all(
      [1, 2, 3].map(() => new Visitor(scrip).post(link, { email: someEmail(), password: PASSWORD })),
    );
    assert.deepEqual(replies.map(({ status }) => status).sort(), [303, 404, 404]);
    assert.equal((await sql('SELECT * FROM console_members')).length, 2);
  });

  test('an invitation works where sign-up is closed, and expires after exactly seven days', async () => {
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

  test('joining with an address of another account gets the same response and changes no membership', async () => {
    const { scrip, sql } = await start();
    const [owner, other] = [await newOwner(scrip, 'One'), await newOwner(scrip, 'Other')];
    const before = await sql('SELECT * FROM console_members ORDER BY account');
    const link = await invite(owner, 'member');
    assertGoesTo(await new Visitor(scrip).post(link, { email: other.email, password: PASSWORD }), SIGNED_UP);
    assert.deepEqual(await sql('SELECT * FROM console_members ORDER BY account'), before);
    assert.equal(
      (await new Visitor(scrip).get(link)).status,
      404,
      'the invitation is used up, as after any other join',
    );
  });

  test('a withdrawn invitation no longer works', async () => {
    const { scrip } = await start();
    const owner = await newOwner(scrip);
    const link = await invite(owner, 'member');
    assert.match((await owner.get('/console/members')).text, /Pending invitations/);
    assertGoesTo(await owner.post('/console/members/withdraw-invitations'), '/console/members?notice=withdrawn');
    assert.equal((await new Visitor(scrip).get(link)).status, 404);
  });
});
