// Signing up and joining: what it makes, what it refuses, and what it tells nobody.

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

onBothStores('sign-up', (start) => {
  test('makes an account and its owner, who then signs in', async () => {
    const { scrip, sql } = await start();
    const visitor = new Visitor(scrip);
    const page = await visitor.get('/console/sign-up');
    for (const text of [
      '>Name</label>',
      '>Email</label>',
      '>Password</label>',
      '<button class="button">Sign up</button>',
    ])
      assert(page.text.includes(text), text);
    const email = someEmail();
    assertGoesTo(await visitor.signUp({ email: ` ${email.toUpperCase()} `, name: ' Lovelace Ltd ' }), SIGNED_UP);
    assert.equal(visitor.cookies.size, 0, 'signing up does not sign in');
    assert.match((await visitor.get(SIGNED_UP)).text, /Thank you/);
    assertGoesTo(await visitor.signIn(email), '/console/overview');
    assert.match((await visitor.get('/console/members')).text, /<p class="account">Lovelace Ltd</);
    assert.equal((await sql("SELECT * FROM accounts WHERE name = 'Lovelace Ltd'")).length, 1);
    assert.deepEqual(await sql('SELECT email, role FROM console_members JOIN console_users ON id = user_id'), [
      { email, role: 'owner' },
    ]);
  });

  test('with a name that is taken makes another account, called a little differently', async () => {
    const { scrip, sql } = await start();
    await Promise.all([newOwner(scrip, 'Acme'), newOwner(scrip, 'Acme'), newOwner(scrip, 'Acme')]);
    const rows = await sql('SELECT account, name FROM accounts ORDER BY account');
    assert.deepEqual(
      rows.map(({ account }) => account),
      [1, 2, 3, 4],
    );
    assert.equal(rows[0]?.name, 'Acme', 'made by the API keys of these tests');
    for (const { name } of rows.slice(1)) assert.match(String(name), /^Acme [0-9a-f]{6}$/);
  });

  test('with an address that is known answers the same, in the same time, and changes nothing', async () => {
    const { scrip, sql } = await start();
    const owner = await newOwner(scrip);
    const before = await sql('SELECT * FROM console_credentials');
    const stranger = new Visitor(scrip);
    const answers: unknown[] = [];
    for (const email of [owner.email, someEmail()]) {
      const startedAt = performance.now();
      const { status, text, headers } = await stranger.signUp({ email, password: 'nine white swans by a lake' });
      assert(performance.now() - startedAt >= 299, 'both take longer than either needs');
      answers.push({ status, text, headers: { ...headers, date: '' } });
    }
    assert.deepEqual(answers[0], answers[1]);
    assert.deepEqual((await sql('SELECT * FROM console_credentials ORDER BY created_at')).slice(0, 1), before);
    assert.equal((await stranger.signIn(owner.email, 'nine white swans by a lake')).status, 200);
    assertGoesTo(await stranger.signIn(owner.email), '/console/overview');
  });

  test('twice at once with one address makes one user', async () => {
    const { scrip, sql } = await start();
    const email = someEmail();
    const replies = await Promise.all([1, 2, 3].map(() => new Visitor(scrip).signUp({ email })));
    for (const reply of replies) assertGoesTo(reply, SIGNED_UP);
    assert.equal((await sql('SELECT * FROM console_users')).length, 1);
    assert.equal((await sql('SELECT * FROM console_members')).length, 1);
  });

  const refused: readonly (readonly [what: string, fields: Record<string, string>, says: RegExp])[] = [
    ['a short password', { password: 'x7#kQ2!pL9' }, /id="password-error">The password needs at least 15 characters/],
    ['an endless password', { password: 'ab7 '.repeat(40) }, /id="password-error">The password may have at most 128/],
    ['a password of everybody', { password: 'password12345678' }, /id="password-error">This password is made of words/],
    ['a password of one letter', { password: 'aaaaaaaaaaaaaaaa' }, /id="password-error">This password is one of those/],
    ['no password', { password: '' }, /id="password-error">/],
    ['no address', { email: 'ada' }, /id="email-error">Email must be an address/],
    ['no name', { name: ' ' }, /id="name-error">Name must say something/],
    ['an endless name', { name: 'x'.repeat(101) }, /id="name-error">Name may have at most 100 characters/],
  ];
  test('is refused at the field, with what was typed kept, but never the password', async () => {
    const { scrip, sql } = await start();
    for (const [what, fields, says] of refused) {
      const typed = { email: 'ada@example.com', name: 'Ada & <b>', password: PASSWORD, ...fields };
      const reply = await new Visitor(scrip).signUp(typed);
      assert.equal(reply.status, 200, what);
      assert.match(reply.text, says, what);
      assert.match(reply.text, /aria-invalid="true"/);
      assert(decode(reply.text).includes(`value="${typed.email}"`), what);
      if (typed.name.startsWith('Ada')) {
        assert(decode(reply.text).includes('value="Ada & <b>"'), what);
        assert(!reply.text.includes('<b>'), 'nothing typed is markup');
      }
      if (typed.password) assert(!decode(reply.text).includes(typed.password), what);
    }
    assert.equal((await sql('SELECT * FROM console_users')).length, 0);
  });

  test('is open to the first alone when it is so set, also when several are first at once', async () => {
    const { scrip, sql } = await start({ signUp: 'first' });
    const replies = await Promise.all([1, 2, 3].map(() => new Visitor(scrip).signUp({ email: someEmail() })));
    assert.deepEqual(replies.map(({ status }) => status).sort(), [303, 403, 403]);
    assert.equal((await sql('SELECT * FROM console_users')).length, 1);
    assert.equal((await new Visitor(scrip).get('/console/sign-up')).status, 403);
    assert(!(await new Visitor(scrip).get('/console/sign-in')).text.includes('/console/sign-up'));
  });

  test('is closed when it is so set', async () => {
    const { scrip, sql } = await start({ signUp: 'closed' });
    const visitor = new Visitor(scrip);
    assert.match((await visitor.get('/console/sign-up')).text, /Signing up is closed/);
    assert.equal((await visitor.signUp({ email: someEmail() })).status, 403);
    assert.equal((await sql('SELECT * FROM console_users')).length, 0);
  });
});

onBothStores('joining', (start) => {
  test('by a link makes a member of the account, once', async () => {
    const { scrip, sql } = await start();
    const owner = await newOwner(scrip, 'Hopper Inc');
    const link = await invite(owner, 'member');
    const visitor = new Visitor(scrip);
    const page = await visitor.get(link);
    assert.match(page.text, /invited to <strong>Hopper Inc<\/strong>, as a member/);
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
    assert(!stored.includes(link.split('/').at(-1) as string), 'only a hash is kept');
  });

  test('by one link at once from several sides makes one member', async () => {
    const { scrip, sql } = await start();
    const link = await invite(await newOwner(scrip), 'owner');
    const replies = await Promise.all(
      [1, 2, 3].map(() => new Visitor(scrip).post(link, { email: someEmail(), password: PASSWORD })),
    );
    assert.deepEqual(replies.map(({ status }) => status).sort(), [303, 404, 404]);
    assert.equal((await sql('SELECT * FROM console_members')).length, 2);
  });

  test('works where signing up is closed, and not a week later', async () => {
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

  test('with an address that is known answers the same, and takes nobody from another account', async () => {
    const { scrip, sql } = await start();
    const [owner, other] = [await newOwner(scrip, 'One'), await newOwner(scrip, 'Other')];
    const before = await sql('SELECT * FROM console_members ORDER BY account');
    const link = await invite(owner, 'member');
    assertGoesTo(await new Visitor(scrip).post(link, { email: other.email, password: PASSWORD }), SIGNED_UP);
    assert.deepEqual(await sql('SELECT * FROM console_members ORDER BY account'), before);
    assert.equal((await new Visitor(scrip).get(link)).status, 404, 'as it is after anybody joined');
  });

  test('no longer works once the invitation is withdrawn', async () => {
    const { scrip } = await start();
    const owner = await newOwner(scrip);
    const link = await invite(owner, 'member');
    assert.match((await owner.get('/console/members')).text, /Invitations not used yet/);
    assertGoesTo(await owner.post('/console/members/withdraw-invitations'), '/console/members?done=withdrawn');
    assert.equal((await new Visitor(scrip).get(link)).status, 404);
  });
});
