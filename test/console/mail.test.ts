// Tests the emails of the console, which confirm addresses, reset passwords, and inform users if another person signs
// up with their address.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { SMTPServer } from 'smtp-server';
import { eventually } from '../http/running-service.ts';
import {
  assertGoesTo,
  invite,
  OTHER_PASSWORD,
  onBothStores,
  onOneStore,
  PASSWORD,
  type Start,
  someEmail,
  Visitor,
} from './visitor.ts';

const PUBLIC_URL = 'http://localhost:4321';
const HOUR_MS = 3_600_000;
const CHECK_INBOX = '/console/sign-in?notice=check-inbox';

interface Mail {
  readonly to: string;
  readonly text: string;
}

const mails: Mail[] = [];
const server = new SMTPServer({
  disabledCommands: ['STARTTLS'],
  authOptional: true,
  onRcptTo: ({ address }, _session, done) => done(address.startsWith('unknown') ? new Error(`no ${address}`) : null),
  onData(stream, { envelope }, done) {
    text(stream).then((source) => {
      const to = envelope.rcptTo.map(({ address }) => address).join(' ');
      mails.push({ to, text: source.replaceAll(/=\r\n/g, '').replaceAll('=3D', '=') });
      done();
    }, done);
  },
});
before(async () => {
  server.listen(0, '127.0.0.1');
  if (!server.server.listening) await once(server.server, 'listening');
});
after(() => new Promise<void>((resolve) => server.close(resolve)));

async function mailsTo(email: string, count: number): Promise<readonly Mail[]> {
  const found = (): Mail[] => mails.filter(({ to }) => to === email);
  await eventually(() => found().length >= count, `${count} mails to ${email}`);
  assert.equal(found().length, count);
  return found();
}

function linkIn(mail: Mail | undefined, page: string): string {
  const link = new RegExp(`${PUBLIC_URL}(/console/${page}/[\\w-]{43})\\r?\\n`).exec(mail?.text ?? '')?.[1];
  assert(link, mail?.text ?? 'no mail');
  return link;
}

const withMail =
  (start: Start): Start =>
  (settings) => {
    const { port } = server.server.address() as AddressInfo;
    const mail = { smtpUrl: `smtp://127.0.0.1:${port}`, from: 'Scrip <scrip@example.com>' };
    return start({ publicUrl: PUBLIC_URL, mail, ...settings });
  };

onBothStores('the console with a mail server', (start) => {
  test('a mailed link can reset the password only once, and the reset ends all sessions of the user', async () => {
    const { scrip } = await withMail(start)();
    const [email, visitor] = [someEmail(), new Visitor(scrip)];
    await visitor.signUp({ email });
    await visitor.post(linkIn((await mailsTo(email, 1))[0], 'verify'), { password: PASSWORD });
    const stranger = new Visitor(scrip);
    for (const entered of [email, someEmail()])
      assertGoesTo(
        await stranger.post('/console/forgot-password', { email: entered }),
        '/console/sign-in?notice=reset-sent',
      );
    const link = linkIn((await mailsTo(email, 2))[1], 'reset-password');
    assert.equal((await stranger.get(link)).status, 200);
    const common = await stranger.post(link, { password: 'passwordpassword' });
    assert.match(common.text, /id="password-error">This password is too common/);
    assert(await visitor.isSignedIn());
    assertGoesTo(await stranger.post(link, { password: OTHER_PASSWORD }), '/console/sign-in?notice=password-set');
    assert(!(await visitor.isSignedIn()));
    assert.equal((await stranger.post(link, { password: PASSWORD })).status, 404);
    assert.equal((await stranger.signIn(email)).status, 200);
    assertGoesTo(await stranger.signIn(email, OTHER_PASSWORD), '/console/overview');
  });
});

onOneStore('the console with a mail server', (start) => {
  test('a person who has not confirmed an address can sign up with that address again, even with another password', async () => {
    const { scrip, sql } = await withMail(start)({ signUp: 'first', publicUrl: null });
    const email = someEmail();
    for (const password of [OTHER_PASSWORD, PASSWORD])
      assertGoesTo(await new Visitor(scrip).signUp({ email, password }), CHECK_INBOX);
    for (const table of ['console_users', 'console_members'])
      assert.equal((await sql(`SELECT * FROM ${table}`)).length, 0, table);
    assertGoesTo(await new Visitor(scrip).get('/console'), '/console/sign-up');
    const visitor = new Visitor(scrip);
    const links = (await mailsTo(email, 2)).map(
      ({ text }) => new URL(/http\S+\/verify\/\S+/.exec(text)?.[0] ?? '').pathname,
    );
    const statuses = [];
    for (const link of links) statuses.push((await visitor.post(link, { password: PASSWORD })).status);
    assert.deepEqual(statuses.sort(), [200, 303], 'each link works only with the password of its sign-up');
    assert(await visitor.isSignedIn());
    assert.equal((await sql('SELECT * FROM accounts')).length, 1, 'the user gets the first account');
    assert.equal(
      (await new Visitor(scrip).signUp({ email: someEmail() })).status,
      403,
      'sign-up is closed after the first user',
    );
  });

  test('a new user can sign in only after confirming the address with the mailed link and the password', async () => {
    const { scrip } = await withMail(start)();
    const [email, visitor] = [someEmail(), new Visitor(scrip)];
    assertGoesTo(await visitor.signUp({ email }), CHECK_INBOX);
    const [mail] = await mailsTo(email, 1);
    assert.match(mail?.text as string, /^From: Scrip <scrip@example\.com>/m);
    const link = linkIn(mail, 'verify');
    const refused = await visitor.signIn(email);
    assert.deepEqual([refused.status, visitor.cookies.size], [200, 0]);
    const page = await visitor.get(link);
    assert.match(page.text, /Enter the password you chose/);
    const wrong = await visitor.post(link, { password: OTHER_PASSWORD });
    assert.deepEqual(
      [wrong.status, visitor.cookies.size],
      [200, 0],
      'the link does not confirm the address without the password',
    );
    assertGoesTo(await visitor.post(link, { password: PASSWORD }), '/console/overview');
    assert(await visitor.isSignedIn());
    assert.equal((await visitor.get(link)).status, 404, 'a link works only once');
    assertGoesTo(await new Visitor(scrip).signIn(email), '/console/overview');
  });

  test('sign-in shows the same page for a wrong password, an unknown address and an unconfirmed address', async () => {
    const { scrip } = await withMail(start)();
    const email = someEmail();
    await new Visitor(scrip).signUp({ email });
    await mailsTo(email, 1);
    const visitor = new Visitor(scrip);
    const unknown = someEmail();
    const replies = [
      [email, await visitor.signIn(email)],
      [email, await visitor.signIn(email, OTHER_PASSWORD)],
      [unknown, await visitor.signIn(unknown)],
    ] as const;
    const pages = new Set(replies.map(([entered, { status, text }]) => `${status} ${text.replace(entered, '')}`));
    assert.equal(pages.size, 1);
  });

  test('several people can sign up with one invitation, but only the first person to confirm an address joins the account', async () => {
    const { scrip } = await withMail(start)();
    const [owner, ownerEmail] = [new Visitor(scrip), someEmail()];
    await owner.signUp({ email: ownerEmail });
    await owner.post(linkIn((await mailsTo(ownerEmail, 1))[0], 'verify'), { password: PASSWORD });
    const invitation = await invite(owner, 'member');
    const [first, second] = [someEmail(), someEmail()];
    for (const email of [first, second])
      assertGoesTo(await new Visitor(scrip).post(invitation, { email, password: PASSWORD }), CHECK_INBOX);
    const join = async (email: string) => {
      const visitor = new Visitor(scrip);
      return visitor.post(linkIn((await mailsTo(email, 1))[0], 'verify'), { password: PASSWORD });
    };
    assertGoesTo(await join(second), '/console/overview');
    assert.equal((await join(first)).status, 404);
    assertGoesTo(await new Visitor(scrip).signUp({ email: first }), CHECK_INBOX);
  });

  test('signing up with the address of another user returns the usual response and sends an email to that user', async () => {
    const { scrip } = await withMail(start)();
    const [email, visitor] = [someEmail(), new Visitor(scrip)];
    await visitor.signUp({ email });
    await visitor.post(linkIn((await mailsTo(email, 1))[0], 'verify'), { password: PASSWORD });
    assertGoesTo(await new Visitor(scrip).signUp({ email, password: OTHER_PASSWORD }), CHECK_INBOX);
    assert.match((await mailsTo(email, 2))[1]?.text ?? '', /is already in use/);
    assert.equal((await new Visitor(scrip).signIn(email, OTHER_PASSWORD)).status, 200);
  });

  test("a sign-up with someone else's address does not prevent the owner of the address from signing up", async () => {
    const { scrip } = await withMail(start)();
    const email = someEmail();
    await new Visitor(scrip).signUp({ email, password: OTHER_PASSWORD });
    const foreign = linkIn((await mailsTo(email, 1))[0], 'verify');
    const owner = new Visitor(scrip);
    await owner.signUp({ email });
    const own = linkIn((await mailsTo(email, 2))[1], 'verify');
    assert.match((await owner.post(foreign, { password: PASSWORD })).text, /Wrong password/);
    assertGoesTo(await owner.post(own, { password: PASSWORD }), '/console/overview');
    const late = await new Visitor(scrip).post(foreign, { password: OTHER_PASSWORD });
    assert.match(late.text, /This email address is already in use/);
    assert.equal((await new Visitor(scrip).signIn(email, OTHER_PASSWORD)).status, 200);
  });

  test('the token of a confirmation link cannot reset a password, and the database stores only the hash of the token', async () => {
    const { scrip, sql } = await withMail(start)();
    const [email, visitor] = [someEmail(), new Visitor(scrip)];
    await visitor.signUp({ email });
    const secret = linkIn((await mailsTo(email, 1))[0], 'verify')
      .split('/')
      .at(-1) as string;
    assert.equal((await visitor.post(`/console/reset-password/${secret}`, { password: OTHER_PASSWORD })).status, 404);
    const stored = JSON.stringify(await sql('SELECT * FROM console_pending_users'));
    assert(!stored.includes(secret));
  });

  test('a link to confirm an address works for 24 hours, and a link to reset a password for one hour', async () => {
    const { scrip, clock } = await withMail(start)();
    const [email, pending, visitor] = [someEmail(), someEmail(), new Visitor(scrip)];
    await visitor.signUp({ email });
    await visitor.post(linkIn((await mailsTo(email, 1))[0], 'verify'), { password: PASSWORD });
    await visitor.signUp({ email: pending });
    const confirmation = linkIn((await mailsTo(pending, 1))[0], 'verify');
    await visitor.post('/console/forgot-password', { email });
    const reset = linkIn((await mailsTo(email, 2))[1], 'reset-password');
    for (const [link, lifetimeMs] of [
      [reset, HOUR_MS],
      [confirmation, 24 * HOUR_MS - HOUR_MS],
    ] as const) {
      clock.advance(lifetimeMs - 1);
      assert.equal((await visitor.get(link)).status, 200, 'the link works until a millisecond before it expires');
      clock.advance(1);
      assert.equal((await visitor.get(link)).status, 404, 'the link does not work when it has expired');
    }
    assert.equal((await visitor.post(reset, { password: OTHER_PASSWORD })).status, 404);
    assert.equal((await visitor.post(confirmation, { password: PASSWORD })).status, 404);
  });

  test('over plain HTTP from another machine, mailed links show no form, and a password cannot be reset', async () => {
    const { scrip } = await withMail(start)();
    const email = someEmail();
    await new Visitor(scrip).signUp({ email });
    const confirmation = linkIn((await mailsTo(email, 1))[0], 'verify');
    const remote = new Visitor(scrip, { host: '192.168.0.4:8080' });
    const assertRefused = ({ status, text }: { status: number; text: string }) => {
      assert.equal(status, 403);
      assert.match(text, /Serve Scrip over HTTPS and set PUBLIC_URL/);
      assert.doesNotMatch(text, /type="password"/);
    };
    assertRefused(await remote.get(confirmation));
    assertGoesTo(await new Visitor(scrip).post(confirmation, { password: PASSWORD }), '/console/overview');
    await new Visitor(scrip).post('/console/forgot-password', { email });
    const reset = linkIn((await mailsTo(email, 2))[1], 'reset-password');
    assertRefused(await remote.get(reset));
    assertRefused(await remote.post(reset, { password: OTHER_PASSWORD }));
    assertGoesTo(await new Visitor(scrip).signIn(email), '/console/overview');
  });

  test('a password reset invalidates all password reset links that were mailed to the user earlier', async () => {
    const { scrip } = await withMail(start)();
    const [email, visitor] = [someEmail(), new Visitor(scrip)];
    await visitor.signUp({ email });
    await visitor.post(linkIn((await mailsTo(email, 1))[0], 'verify'), { password: PASSWORD });
    for (let sent = 2; sent <= 3; sent++) {
      await visitor.post('/console/forgot-password', { email });
      await mailsTo(email, sent);
    }
    const [, first, second] = await mailsTo(email, 3);
    await visitor.post(linkIn(second, 'reset-password'), { password: OTHER_PASSWORD });
    assert.equal((await visitor.get(linkIn(first, 'reset-password'))).status, 404);
  });

  test('at most five emails are sent to an address in 15 minutes, and other clients can still use the address', async () => {
    const { scrip, clock } = await withMail(start)({ publicUrl: 'https://scrip.example' });
    const [email, owner] = [someEmail(), new Visitor(scrip, { 'x-forwarded-for': '192.0.2.1' })];
    await owner.signUp({ email });
    await mailsTo(email, 1);
    const attacker = new Visitor(scrip, { 'x-forwarded-for': '192.0.2.66' });
    for (let index = 0; index < 10; index++) await attacker.signUp({ email });
    assert.equal((await attacker.signUp({ email })).status, 429);
    await mailsTo(email, 5);
    assert.equal((await owner.signUp({ email })).status, 303);
    clock.advance(15 * 60_000);
    await owner.signUp({ email });
    await mailsTo(email, 6);
  });

  test('requests for password resets are rate-limited, whether or not the address belongs to a user', async () => {
    const { scrip } = await withMail(start)();
    for (const email of [someEmail(), someEmail()]) {
      const ask = () => new Visitor(scrip).post('/console/forgot-password', { email });
      for (let index = 0; index < 10; index++) assert.equal((await ask()).status, 303);
      assert.equal((await ask()).status, 429);
    }
  });

  test('a client that may not make further attempts does not use up the attempts of an email address', async () => {
    const { scrip, sql } = await withMail(start)({ publicUrl: 'https://scrip.example' });
    const askFrom = (address: string) => {
      const visitor = new Visitor(scrip, { 'x-forwarded-for': address });
      return async (email: string) => (await visitor.post('/console/forgot-password', { email })).status;
    };
    const [ask, email] = [askFrom('192.0.2.66'), someEmail()];
    for (let index = 0; index < 100; index++) assert.equal(await ask(someEmail()), 303);
    const counts = () => sql('SELECT * FROM console_attempts');
    await eventually(
      async () => (await counts()).length === 201,
      'the client, the subjects and their emails are counted',
    );
    for (let index = 0; index < 11; index++) assert.equal(await ask(email), 429);
    assert.equal((await counts()).length, 201, 'refused attempts need no storage');
    assert.equal(await askFrom('192.0.2.7')(email), 303);
  });
});

onOneStore('the console with a mail server that knows only some addresses', (start) => {
  test('if the mail server refuses an address, the log does not contain the address', async () => {
    const { scrip } = await withMail(start)();
    assertGoesTo(await new Visitor(scrip).signUp({ email: 'unknown@example.org' }), CHECK_INBOX);
    const failures = () => scrip.log.filter((line) => line.includes('could not send an email'));
    await eventually(() => failures().length > 0, 'the failure is logged');
    assert.match(failures().join(''), /"responseCode":550/);
    assert(!scrip.log.join('').includes('unknown@'));
  });
});

onOneStore('the console with an unreachable mail server', (start) => {
  test('if the mail server is unreachable, sign-up returns the usual response, and the log does not contain the password of the mail server', async () => {
    const { scrip } = await start({
      publicUrl: PUBLIC_URL,
      mail: { smtpUrl: 'smtp://user:hunter2@127.0.0.1:1', from: 'scrip@example.com' },
    });
    assertGoesTo(await new Visitor(scrip).signUp({ email: someEmail() }), CHECK_INBOX);
    await eventually(() => scrip.log.some((line) => line.includes('could not send an email')), 'the failure is logged');
    assert.match(scrip.log.join(''), /"originalCode":"ECONNREFUSED"/);
    assert(!scrip.log.join('').includes('hunter2'));
  });
});

onOneStore('the console without a mail server', (start) => {
  test('without a mail server, there are no pages for mailed links, and the sign-in page tells users to ask their administrator to reset a password', async () => {
    const { scrip } = await start();
    const visitor = new Visitor(scrip);
    for (const path of ['forgot-password', 'reset-password/x', 'verify/x'])
      assert.equal((await visitor.get(`/console/${path}`)).status, 404);
    const { text } = await visitor.get('/console/sign-in');
    assert(!text.includes('forgot-password'), 'the page does not link to the reset form');
    assert(text.includes('Ask your administrator to reset it.'));
  });
});
