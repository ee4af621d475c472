// With a mail server: addresses are confirmed, forgotten passwords set anew, and what an answer must not tell is told by
// mail, to whom it concerns.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { SMTPServer } from 'smtp-server';
import { eventually } from '../http/running-service.ts';
import { assertGoesTo, OTHER_PASSWORD, onBothStores, PASSWORD, type Start, someEmail, Visitor } from './visitor.ts';

const PUBLIC_URL = 'http://localhost:4321';
const LOOK_FOR_MAIL = '/console/sign-in?notice=look-for-mail';

interface Mail {
  readonly to: string;
  readonly text: string;
}

const mails: Mail[] = [];
const server = new SMTPServer({
  disabledCommands: ['STARTTLS'],
  authOptional: true,
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

/** The mails to an address, once there are as many; and no more. */
async function mailsTo(email: string, count: number): Promise<readonly Mail[]> {
  const found = (): Mail[] => mails.filter(({ to }) => to === email);
  await eventually(() => found().length >= count, `${count} mails to ${email}`);
  assert.equal(found().length, count);
  return found();
}

function linkIn(mail: Mail | undefined, place: string): string {
  const link = new RegExp(`${PUBLIC_URL}(/console/${place}/[\\w-]{32})\\r?\\n`).exec(mail?.text ?? '')?.[1];
  assert(link, mail?.text ?? 'no mail');
  return link;
}

onBothStores('with a mail server', (start) => {
  const startWithMail: Start = (settings) => {
    const { port } = server.server.address() as AddressInfo;
    const mail = { smtpUrl: `smtp://127.0.0.1:${port}`, from: 'Scrip <scrip@example.com>' };
    return start({ publicUrl: PUBLIC_URL, mail, ...settings });
  };

  test('who has signed up comes in by the link of the mail and the password, and only then', async () => {
    const { scrip } = await startWithMail();
    const [email, visitor] = [someEmail(), new Visitor(scrip)];
    assertGoesTo(await visitor.signUp({ email }), LOOK_FOR_MAIL);
    const [mail] = await mailsTo(email, 1);
    assert.match(mail?.text as string, /^From: Scrip <scrip@example\.com>/m);
    const link = linkIn(mail, 'verify');
    const refused = await visitor.signIn(email);
    assert.deepEqual([refused.status, visitor.cookies.size], [200, 0]);
    const page = await visitor.get(link);
    assert.match(page.text, /Enter the password that you chose/);
    const wrong = await visitor.post(link, { password: OTHER_PASSWORD });
    assert.deepEqual([wrong.status, visitor.cookies.size], [200, 0], 'whose address it is did not choose the password');
    assertGoesTo(await visitor.post(link, { password: PASSWORD }), '/console/overview');
    assert(await visitor.isSignedIn());
    assert.equal((await visitor.get(link)).status, 404, 'a link works once');
    assertGoesTo(await new Visitor(scrip).signIn(email), '/console/overview');
  });

  test('a refusal is the same for a wrong password, an unknown address and an unconfirmed one', async () => {
    const { scrip } = await startWithMail();
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
    const answers = new Set(replies.map(([typed, { status, text }]) => `${status} ${text.replace(typed, '')}`));
    assert.equal(answers.size, 1);
    linkIn((await mailsTo(email, 2))[1], 'verify');
  });

  test('who signs up with the address of somebody else gets the same answer, and that somebody a mail', async () => {
    const { scrip } = await startWithMail();
    const [email, visitor] = [someEmail(), new Visitor(scrip)];
    await visitor.signUp({ email });
    await visitor.post(linkIn((await mailsTo(email, 1))[0], 'verify'), { password: PASSWORD });
    assertGoesTo(await new Visitor(scrip).signUp({ email, password: OTHER_PASSWORD }), LOOK_FOR_MAIL);
    assert.match((await mailsTo(email, 2))[1]?.text ?? '', /belongs to an account already/);
    assert.equal((await new Visitor(scrip).signIn(email, OTHER_PASSWORD)).status, 200);
  });

  test('a forgotten password is set anew by a link, which ends all sessions and works once', async () => {
    const { scrip } = await startWithMail();
    const [email, visitor] = [someEmail(), new Visitor(scrip)];
    await visitor.signUp({ email });
    await visitor.post(linkIn((await mailsTo(email, 1))[0], 'verify'), { password: PASSWORD });
    const stranger = new Visitor(scrip);
    for (const typed of [email, someEmail()])
      assertGoesTo(
        await stranger.post('/console/forgot-password', { email: typed }),
        '/console/sign-in?notice=reset-sent',
      );
    const link = linkIn((await mailsTo(email, 2))[1], 'reset-password');
    assert.equal((await stranger.get(link)).status, 200);
    const common = await stranger.post(link, { password: 'passwordpassword' });
    assert.match(common.text, /id="password-error">This password is one of those/);
    assert(await visitor.isSignedIn());
    assertGoesTo(await stranger.post(link, { password: OTHER_PASSWORD }), '/console/sign-in?notice=password-set');
    assert(!(await visitor.isSignedIn()));
    assert.equal((await stranger.post(link, { password: PASSWORD })).status, 404);
    assert.equal((await stranger.signIn(email)).status, 200);
    assertGoesTo(await stranger.signIn(email, OTHER_PASSWORD), '/console/overview');
  });

  test('who finds an address taken, by whomever, gets it back by a link to it', async () => {
    const { scrip } = await startWithMail();
    const email = someEmail();
    await new Visitor(scrip).signUp({ email, password: OTHER_PASSWORD });
    await mailsTo(email, 1);
    const owner = new Visitor(scrip);
    await owner.post('/console/forgot-password', { email });
    const link = linkIn((await mailsTo(email, 2))[1], 'reset-password');
    await owner.post(link, { password: PASSWORD });
    assertGoesTo(await owner.signIn(email), '/console/overview');
    assert.equal((await new Visitor(scrip).signIn(email, OTHER_PASSWORD)).status, 200);
  });

  test('a link of one kind is none of the other, and what is stored is no link', async () => {
    const { scrip, sql } = await startWithMail();
    const [email, visitor] = [someEmail(), new Visitor(scrip)];
    await visitor.signUp({ email });
    const secret = linkIn((await mailsTo(email, 1))[0], 'verify')
      .split('/')
      .at(-1) as string;
    assert.equal((await visitor.post(`/console/reset-password/${secret}`, { password: OTHER_PASSWORD })).status, 404);
    const stored = JSON.stringify(await sql('SELECT * FROM console_verifications'));
    assert(!stored.includes(secret));
  });

  test('asking for mail is throttled, known address or not', async () => {
    const { scrip } = await startWithMail();
    for (const email of [someEmail(), someEmail()]) {
      const ask = () => new Visitor(scrip).post('/console/forgot-password', { email });
      for (let index = 0; index < 10; index++) assert.equal((await ask()).status, 303);
      assert.equal((await ask()).status, 429);
    }
  });
});

onBothStores('a mail server that is not there', (start) => {
  test('changes no answer, and is in the log', async () => {
    const { scrip } = await start({
      publicUrl: PUBLIC_URL,
      mail: { smtpUrl: 'smtp://user:hunter2@127.0.0.1:1', from: 'scrip@example.com' },
    });
    assertGoesTo(await new Visitor(scrip).signUp({ email: someEmail() }), LOOK_FOR_MAIL);
    await eventually(() => scrip.log.some((line) => line.includes('could not finish what it began')), 'it is logged');
    assert(!scrip.log.join('').includes('hunter2'));
  });
});

onBothStores('without a mail server', (start) => {
  test('there is no page that promises a mail', async () => {
    const { scrip } = await start();
    const visitor = new Visitor(scrip);
    for (const path of ['forgot-password', 'reset-password/x', 'verify/x'])
      assert.equal((await visitor.get(`/console/${path}`)).status, 404);
    const { text } = await visitor.get('/console/sign-in');
    assert(!text.includes('forgot-password'), 'no link leads there');
    assert(text.includes('Whoever runs this Scrip can set a forgotten password anew.'));
  });
});
