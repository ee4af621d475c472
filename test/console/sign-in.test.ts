// Tests signing in and out, rate limits, sessions and the session cookie.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PasswordHasher } from '../../src/console/identity/password-hasher.ts';
import {
  assertGoesTo,
  decode,
  newMember,
  newOwner,
  OTHER_PASSWORD,
  onBothStores,
  onOneStore,
  PASSWORD,
  someEmail,
  Visitor,
} from './visitor.ts';

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

onBothStores('sign-in', (start) => {
  test('after ten failed sign-ins with one email address, the client cannot sign in with this address for 15 minutes, whether or not the address belongs to a user', async () => {
    const { scrip, clock } = await start();
    const { email } = await newOwner(scrip);
    for (const entered of [email, someEmail()]) {
      const failures = await Promise.all(
        Array.from({ length: 12 }, () => new Visitor(scrip).signIn(entered, OTHER_PASSWORD)),
      );
      assert.deepEqual(failures.map(({ status }) => status).sort(), [...Array(10).fill(200), 429, 429]);
      const refused = await new Visitor(scrip).signIn(entered.toUpperCase());
      assert.equal(refused.status, 429, 'the right password is refused too');
      assert.equal(refused.headers['retry-after'], '900');
      assert.match(refused.text, /Too many attempts[\s\S]*Try again in 15 minutes/);
    }
    assertGoesTo(await new Visitor(scrip).signIn((await newOwner(scrip)).email), '/console/overview');
    clock.advance(15 * MINUTE_MS - 1);
    assert.equal((await new Visitor(scrip).signIn(email)).status, 429);
    clock.advance(1);
    assertGoesTo(await new Visitor(scrip).signIn(email), '/console/overview');
  });
});

onOneStore('sign-in', (start) => {
  test('signing in sets an HttpOnly cookie, and the database stores only the hash of its token', async () => {
    const { scrip, sql } = await start();
    const { email } = await newOwner(scrip);
    const visitor = new Visitor(scrip);
    const reply = await visitor.signIn(email);
    const cookie = String(reply.headers['set-cookie']);
    assert.match(cookie, /^scrip_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax$/);
    assert(await visitor.isSignedIn());
    const secret = visitor.cookies.get('scrip_session') as string;
    const sessions = await sql('SELECT * FROM console_sessions');
    assert.equal(sessions.length, 2);
    assert(!JSON.stringify(sessions).includes(secret));
    const stolen = new Visitor(scrip, { cookie: `scrip_session=${sessions[0]?.token_sha256}` });
    assert(!(await stolen.isSignedIn()), 'the stored hash is not a session token');
    assertGoesTo(await visitor.get('/console'), '/console/overview');
    assertGoesTo(await visitor.get('/console/sign-in'), '/console/overview');
    assertGoesTo(await new Visitor(scrip).get('/console'), '/console/sign-in');
    assertGoesTo(await new Visitor(scrip).get('/'), '/console');
  });

  test('sign-in shows the same page for a wrong password, an unknown address and malformed input', async () => {
    const { scrip } = await start();
    const { email } = await newOwner(scrip);
    const pages = new Set<string>();
    for (const [entered, password] of [
      [email, OTHER_PASSWORD],
      [someEmail(), PASSWORD],
      ['not-an-address', PASSWORD],
      [email, ''],
      [email, 'x'.repeat(5_000)],
    ] as const) {
      const visitor = new Visitor(scrip);
      const { status, text } = await visitor.signIn(entered, password);
      pages.add(`${status} ${text.replaceAll(entered.replaceAll('-', '&#45;'), '').replaceAll(entered, '')}`);
      assert.equal(visitor.cookies.size, 0);
    }
    assert.equal(pages.size, 1, [...pages].join('\n'));
    assert.match([...pages][0] as string, /^200 [\s\S]*Wrong email or password\./);
  });

  test('failed sign-ins from one client do not prevent the user from signing in from another client', async () => {
    const { scrip } = await start({ publicUrl: 'https://scrip.example' });
    const { email } = await newOwner(scrip);
    const guesser = new Visitor(scrip, { 'x-forwarded-for': '192.0.2.66' });
    const failures = await Promise.all(Array.from({ length: 11 }, () => guesser.signIn(email, OTHER_PASSWORD)));
    assert.deepEqual(failures.map(({ status }) => status).sort(), [...Array(10).fill(200), 429]);
    assertGoesTo(await new Visitor(scrip, { 'x-forwarded-for': '192.0.2.7' }).signIn(email), '/console/overview');
  });

  test('a successful sign-in resets the count of failed sign-ins with the same address', async () => {
    const { scrip } = await start();
    const { email } = await newOwner(scrip);
    for (let round = 0; round < 2; round++) {
      for (let failure = 0; failure < 9; failure++) await new Visitor(scrip).signIn(email, OTHER_PASSWORD);
      assertGoesTo(await new Visitor(scrip).signIn(email), '/console/overview');
    }
  });

  test('the number of failed sign-ins from one client is limited, even if each sign-in uses a different email address', async () => {
    const { scrip } = await start({ publicUrl: 'https://scrip.example' });
    const client = new Visitor(scrip, { 'x-forwarded-for': '10.9.9.9, 192.0.2.7' });
    const statuses = new Set<number>();
    for (let batch = 0; batch < 21; batch++) {
      const replies = await Promise.all(Array.from({ length: 5 }, () => client.signIn(someEmail())));
      for (const { status } of replies) statuses.add(status);
      if (batch < 20) assert(!statuses.has(429), `a hundred attempts are allowed; refused in batch ${batch}`);
    }
    assert(statuses.has(429), 'the next attempt is refused');
    const other = new Visitor(scrip, { 'x-forwarded-for': '192.0.2.7, 192.0.2.8' });
    assert.equal((await other.signIn(someEmail())).status, 200, 'another client is not affected');
  });

  test('failed sign-ins from one IPv6 /64 network count together, regardless of how the addresses are written', async () => {
    const { scrip } = await start({ publicUrl: 'https://scrip.example' });
    const { email } = await newOwner(scrip);
    const from = (address: string) => new Visitor(scrip, { 'x-forwarded-for': address }).signIn(email, OTHER_PASSWORD);
    const network = [
      '2001:db8::1',
      '2001:db8:0:0:a:b:c:d',
      ...Array.from({ length: 9 }, (_, i) => `2001:db8::${i + 1}:0:0:1`),
    ];
    const failures = await Promise.all(network.map(from));
    assert.deepEqual(failures.map(({ status }) => status).sort(), [...Array(10).fill(200), 429]);
    assert.equal((await from('2001:db8:0:1::1')).status, 200, 'another network is another client');
  });

  test('signing in ends the previous session of the browser', async () => {
    const { scrip, sql } = await start();
    const owner = await newOwner(scrip);
    const [before] = await sql('SELECT token_sha256 FROM console_sessions');
    await owner.signIn(owner.email);
    const after = await sql('SELECT token_sha256 FROM console_sessions');
    assert.equal(after.length, 1);
    assert.notEqual(after[0]?.token_sha256, before?.token_sha256);
  });
});

onBothStores('sessions', (start) => {
  test('the expiry of a session in use is extended at most once every five minutes', async () => {
    const { scrip, clock, sql } = await start();
    const owner = await newOwner(scrip);
    const expiry = async () => String((await sql('SELECT expires_at FROM console_sessions'))[0]?.expires_at);
    const before = await expiry();
    clock.advance(5 * MINUTE_MS);
    await owner.isSignedIn();
    assert.equal(await expiry(), before);
    clock.advance(1_000);
    await owner.isSignedIn();
    assert.notEqual(await expiry(), before);
  });

  test('changing the password ends all other sessions of the user', async () => {
    const { scrip } = await start();
    const owner = await newOwner(scrip);
    const elsewhere = new Visitor(scrip);
    await elsewhere.signIn(owner.email);
    const old = owner.cookies.get('scrip_session');
    const wrong = await owner.post('/console/account/password', { current: OTHER_PASSWORD, password: OTHER_PASSWORD });
    assert.equal(wrong.status, 200);
    assert.match(wrong.text, /id="current-error">Wrong password/);
    const common = await owner.post('/console/account/password', { current: PASSWORD, password: '123456789012345' });
    assert.match(common.text, /id="password-error">This password/);
    assert(await elsewhere.isSignedIn());
    const changed = await owner.post('/console/account/password', { current: PASSWORD, password: OTHER_PASSWORD });
    assertGoesTo(changed, '/console/account?notice=password');
    assert(await owner.isSignedIn());
    assert.notEqual(owner.cookies.get('scrip_session'), old);
    assert(!(await elsewhere.isSignedIn()));
    assert(!(await new Visitor(scrip, { cookie: `scrip_session=${old}` }).isSignedIn()));
    assert.equal((await new Visitor(scrip).signIn(owner.email)).status, 200);
    assertGoesTo(await new Visitor(scrip).signIn(owner.email, OTHER_PASSWORD), '/console/overview');
  });

  test('a sign-in with the old password fails if the password changes while the old one is verified', async (t) => {
    const { scrip } = await start();
    const owner = await newOwner(scrip);
    const attacker = new Visitor(scrip);
    const { verify } = PasswordHasher.prototype;
    const change = { current: PASSWORD, password: OTHER_PASSWORD };
    const mocked = t.mock.method(
      PasswordHasher.prototype,
      'verify',
      async function (this: PasswordHasher, password: string, stored: string | undefined) {
        const isCorrect = await verify.call(this, password, stored);
        mocked.mock.restore();
        assertGoesTo(await owner.post('/console/account/password', change), '/console/account?notice=password');
        return isCorrect;
      },
    );
    const refused = await attacker.signIn(owner.email);
    assert.match(refused.text, /Wrong email or password/);
    assert(!attacker.cookies.has('scrip_session'));
    assert(!(await attacker.isSignedIn()));
    assert(await owner.isSignedIn());
  });
});

onOneStore('sessions', (start) => {
  test('a session ends exactly twelve hours after its expiry was last extended', async () => {
    const { scrip, clock, sql } = await start();
    const owner = await newOwner(scrip);
    for (let day = 0; day < 4; day++) {
      clock.advance(12 * HOUR_MS - 1);
      assert(await owner.isSignedIn());
    }
    clock.advance(12 * HOUR_MS);
    assert(!(await owner.isSignedIn()));
    assert.equal(owner.cookies.size, 0, 'the cookie is cleared');
    assert.deepEqual(await sql('SELECT * FROM console_sessions'), []);
  });

  test('a session ends exactly seven days after it began, even if it is used often', async () => {
    const { scrip, clock, sql } = await start();
    const owner = await newOwner(scrip);
    for (let hours = 0; hours < 7 * 24 - 8; hours += 8) {
      clock.advance(8 * HOUR_MS);
      assert(await owner.isSignedIn(), `after ${hours} hours`);
    }
    clock.advance(8 * HOUR_MS - 1);
    assert(await owner.isSignedIn());
    const [session] = await sql('SELECT used_at, created_at FROM console_sessions');
    const usedAfterMs = Number(session?.used_at) - Number(session?.created_at);
    assert.equal(usedAfterMs, 7 * 24 * HOUR_MS - 1, 'uses are recorded until the session ends');
    clock.advance(1);
    assert(!(await owner.isSignedIn()));
  });

  test('signing out deletes the session on the server', async () => {
    const { scrip, sql } = await start();
    const owner = await newOwner(scrip);
    const thief = new Visitor(scrip, { cookie: `scrip_session=${owner.cookies.get('scrip_session')}` });
    assert(await thief.isSignedIn());
    assertGoesTo(await owner.post('/console/sign-out'), '/console/sign-in?notice=signed-out');
    assert.equal(owner.cookies.size, 0);
    assert(!(await thief.isSignedIn()));
    assert.deepEqual(await sql('SELECT * FROM console_sessions'), []);
    assertGoesTo(await owner.post('/console/sign-out'), '/console/sign-in?notice=signed-out');
  });

  test('after the current password has been entered incorrectly ten times, a password change is refused', async () => {
    const { scrip } = await start();
    const owner = await newOwner(scrip);
    const guess = () => owner.post('/console/account/password', { current: OTHER_PASSWORD, password: OTHER_PASSWORD });
    for (let index = 0; index < 10; index++) assert.equal((await guess()).status, 200);
    const refused = await guess();
    assert.equal(refused.status, 429);
    assert.match(refused.text, /Sign out/, 'the page shows that the user is still signed in');
  });

  test('if the form to change the password is empty, both of its fields have an error', async () => {
    const { scrip } = await start();
    const owner = await newOwner(scrip);
    const { text } = await owner.post('/console/account/password', { current: '', password: '' });
    assert.match(text, /id="current-error">Enter your current password\.<[\s\S]*id="password-error">Use at least 15/);
  });

  test("removing a member ends the member's sessions", async () => {
    const { scrip } = await start();
    const owner = await newOwner(scrip);
    const member = await newMember(scrip, owner);
    assert(await member.isSignedIn());
    const page = decode((await owner.get('/console/members')).text);
    const id = new RegExp(`${member.email}<[\\s\\S]*?members/([^/"]+)/remove"`).exec(page)?.[1];
    assertGoesTo(await owner.post(`/console/members/${id}/remove`), '/console/members?notice=removed');
    assert(!(await member.isSignedIn()));
    assert.equal((await member.signIn(member.email)).status, 200);
  });
});

onOneStore('session cookie', (start) => {
  test('over HTTPS, the session cookie is Secure and has the prefix __Host-', async () => {
    const { scrip } = await start({ publicUrl: 'https://scrip.example' });
    const visitor = new Visitor(scrip, { host: 'scrip.example' });
    const email = someEmail();
    await visitor.signUp({ email });
    const cookie = String((await visitor.signIn(email)).headers['set-cookie']);
    assert.match(cookie, /^__Host-scrip_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure$/);
    assert(await visitor.isSignedIn());
    const plain = new Visitor(scrip, { cookie: `scrip_session=${visitor.cookies.get('__Host-scrip_session')}` });
    assert(
      !(await plain.isSignedIn()),
      'a cookie without the prefix is ignored, because another subdomain could have set it',
    );
    assert.match(String((await visitor.get('/console')).headers['strict-transport-security']), /max-age=/);
  });

  test('if PUBLIC_URL is an HTTPS address, sign-in is refused to a browser that uses plain HTTP', async () => {
    const { scrip } = await start({ publicUrl: 'https://scrip.example' });
    const { email } = await newOwner(scrip);
    const direct = { host: '192.168.0.4:8080', origin: 'http://192.168.0.4:8080' };
    const visitor = new Visitor(scrip, direct);
    assert.match((await visitor.get('/console/sign-in')).text, /Serve Scrip over HTTPS/);
    assert.equal((await visitor.signIn(email)).status, 403);
    const encrypted = [
      { host: 'scrip.example' },
      { host: '192.168.0.4:8080', 'sec-fetch-site': 'same-origin' },
      { host: '192.168.0.4:8080', 'x-forwarded-for': '192.0.2.7' },
    ];
    for (const headers of encrypted) assertGoesTo(await new Visitor(scrip, headers).signIn(email), '/console/overview');
  });

  test('over plain HTTP, the session cookie is set only on loopback addresses', async () => {
    const { scrip } = await start();
    const { email } = await newOwner(scrip);
    for (const host of ['localhost:8080', 'scrip.localhost', '127.0.0.1:9', '[::1]:8080'])
      assertGoesTo(await new Visitor(scrip, { host }).signIn(email), '/console/overview');
    for (const host of ['scrip.example', '192.168.0.4:8080', '127.0.0.1.evil.example', 'localhost.evil.example']) {
      const visitor = new Visitor(scrip, { host });
      const refused = await visitor.signIn(email);
      assert.equal(refused.status, 403, host);
      assert.match(refused.text, /Serve Scrip over HTTPS and set PUBLIC_URL/);
      assert.match((await visitor.get('/console/sign-in')).text, /Serve Scrip over HTTPS and set PUBLIC_URL/);
      assert.equal(visitor.cookies.size, 0);
    }
  });
});
