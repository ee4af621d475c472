// The console from the command line: the way in for accounts that were made there, a new password for who forgot it, and
// the settings.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ledgerAt, scrip, serve } from '../store/scrip-command.ts';
import { temporaryFile } from '../store/temporary-ledger.ts';
import { OTHER_PASSWORD, PASSWORD } from './visitor.ts';

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

function post(url: string, fields: Record<string, string>): Promise<Response> {
  return fetch(url, { method: 'POST', redirect: 'manual', headers: FORM, body: String(new URLSearchParams(fields)) });
}

async function signIn(url: string, email: string, password: string): Promise<string | null> {
  const reply = await post(`${url}/console/sign-in`, { email, password });
  await reply.text();
  return reply.headers.get('location');
}

describe('the console', { concurrency: 3 }, () => {
  test('is opened to the owner of the first key by a link, until it is used', async (t) => {
    const file = temporaryFile();
    const first = await serve(t, file, ['--first-key']);
    await first.says(/^The console is at (http:\/\/127\.0\.0\.1:\d+\/console)$/m);
    const [link] = await first.says(/^ {2}(http:\S+\/console\/join\/[\w-]{32})$/m);
    const joined = await post(String(link), { email: 'ada@example.com', password: PASSWORD });
    assert.equal(joined.headers.get('location'), '/console/sign-in?notice=signed-up');
    assert.equal(await signIn(first.url, 'ada@example.com', PASSWORD), '/console/overview');
    first.kill('SIGTERM');
    assert.equal((await first.ended).code, 0);
    const again = await serve(t, file, ['--first-key']);
    await again.says(/^The console is at /m);
    again.kill('SIGTERM');
    assert.doesNotMatch((await again.ended).stdout, /join/);
  });

  test('lets in whom an operator invites, beside a running server', async (t) => {
    const file = temporaryFile();
    const server = await serve(t, file);
    await scrip(['key', 'create', '--account', 'Lovelace Ltd'], ledgerAt(file));
    const environment = { ...ledgerAt(file), PORT: '9', PUBLIC_URL: 'https://scrip.example/' };
    const { code, stdout, stderr } = await scrip(
      ['invite', '--account', 'Lovelace Ltd', '--role', 'member'],
      environment,
    );
    assert.deepEqual([code, stderr], [0, '']);
    const link = stdout.trimEnd().split('\n').at(-1) as string;
    assert.match(link, /^https:\/\/scrip\.example\/console\/join\/[\w-]{32}$/);
    const page = await (await fetch(new URL(new URL(link).pathname, server.url))).text();
    assert.match(page, /invited to <strong>Lovelace Ltd<\/strong>, as a member/);
    const nobody = await scrip(['invite', '--account', 'Nobody'], environment);
    assert.deepEqual([nobody.code, nobody.stdout], [1, '']);
    assert.equal(nobody.stderr, 'There is no account Nobody; see `scrip key list`.\n');
  });

  test('gets a new password from the operator, beside a running server, and forgets all sessions', async (t) => {
    const file = temporaryFile();
    const server = await serve(t, file);
    const email = 'ada@example.com';
    await post(`${server.url}/console/sign-up`, { email, name: 'Ada', password: PASSWORD });
    const signedIn = await post(`${server.url}/console/sign-in`, { email, password: PASSWORD });
    const cookie = signedIn.headers.get('set-cookie')?.split(';')[0] as string;
    const look = async () =>
      (await fetch(`${server.url}/console/password`, { headers: { cookie }, redirect: 'manual' })).status;
    assert.equal(await look(), 200);
    const { code, stdout, stderr } = await scrip(['password', 'reset', '--email', ' Ada@Example.com'], ledgerAt(file));
    assert.deepEqual([code, stderr], [0, '']);
    const password = stdout.trimEnd().split('\n').at(-1) as string;
    assert.match(password, /^[\w-]{32}$/);
    assert.equal(await look(), 303);
    assert.equal(await signIn(server.url, email, PASSWORD), null);
    assert.equal(await signIn(server.url, email, password), '/console/overview');
    const nobody = await scrip(['password', 'reset', '--email', 'eve@example.com'], ledgerAt(file));
    assert.deepEqual([nobody.code, nobody.stderr], [1, 'Nobody has signed up with eve@example.com.\n']);
  });

  test('is closed where it is so set', async (t) => {
    const server = await serve(t, temporaryFile(), [], { SIGN_UP: 'closed' });
    const reply = await post(`${server.url}/console/sign-up`, {
      email: 'a@b.example',
      name: 'A',
      password: OTHER_PASSWORD,
    });
    assert.equal(reply.status, 403);
  });

  const wrong: readonly (readonly [environment: Record<string, string>, says: RegExp])[] = [
    [{ SIGN_UP: 'maybe' }, /^SIGN_UP is "maybe"; it must be one of open, first, closed\.$/],
    [{ PUBLIC_URL: 'http://scrip.example' }, /^PUBLIC_URL must be https:/],
    [{ PUBLIC_URL: 'https://scrip.example/console' }, /^PUBLIC_URL must be https:/],
    [{ PUBLIC_URL: 'scrip.example' }, /^PUBLIC_URL must be https:/],
    [{ SMTP_URL: 'mail.example', MAIL_FROM: 'a@b.example' }, /^SMTP_URL must be smtp:/],
    [{ SMTP_URL: 'smtp://a:hunter2@mail.example' }, /^MAIL_FROM must be an address/],
    [{ SMTP_URL: 'smtp://a:hunter2@mail.example', MAIL_FROM: 'nobody' }, /^MAIL_FROM must be an address/],
  ];
  for (const [environment, says] of wrong) {
    test(`does not start with ${JSON.stringify(environment)}`, async () => {
      const { code, stdout, stderr } = await scrip(['serve'], { ...ledgerAt(temporaryFile()), ...environment });
      assert.deepEqual([code, stdout], [1, '']);
      assert.match(stderr.trimEnd(), says);
      assert.doesNotMatch(stderr, /hunter2/);
    });
  }
});
