// Tests how `scrip invite`, `scrip password reset` and `scrip serve --first-key` give access to the console, and tests
// invalid console settings.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { InvalidSetting, readConfig } from '../../src/config.ts';
import { OTHER_PASSWORD, PASSWORD } from '../console/visitor.ts';
import { temporaryFile } from '../store/temporary-ledger.ts';
import { post, signIn } from './console-forms.ts';
import { assertOneLine, ledgerAt, scrip, serve } from './scrip-command.ts';
import { createKeyHere, serveHere } from './served-here.ts';

describe('console access from the command line', { concurrency: 3 }, () => {
  test('scrip invite prints an invitation link that works on a running server', async (t) => {
    const file = temporaryFile();
    const server = await serveHere(t, ledgerAt(file));
    await createKeyHere(ledgerAt(file));
    const environment = { ...ledgerAt(file), PORT: '9', PUBLIC_URL: 'https://scrip.example/' };
    const { code, stdout, stderr } = await scrip(
      ['invite', '--account', 'Lovelace Ltd', '--role', 'member'],
      environment,
    );
    assert.deepEqual([code, stderr], [0, '']);
    const link = stdout.trimEnd().split('\n').at(-1) as string;
    assert.match(link, /^https:\/\/scrip\.example\/console\/join\/[\w-]{43}$/);
    const page = await (await fetch(new URL(new URL(link).pathname, server.url))).text();
    assert.match(page, /invited to join <strong>Lovelace Ltd<\/strong> as a member/);
    const unknown = await scrip(['invite', '--account', 'Unknown'], environment);
    assert.deepEqual([unknown.code, unknown.stdout], [1, '']);
    assert.equal(
      unknown.stderr,
      'Account Unknown does not exist. Check the name: `scrip key list` shows the accounts that have API keys.\n',
    );
  });

  test('with PORT=0 and no PUBLIC_URL, scrip invite prints only the path of the link, and says that the address of the server goes before it', async () => {
    const environment = ledgerAt(temporaryFile());
    await createKeyHere(environment);
    const invite = async (settings: Record<string, string>) =>
      (await scrip(['invite', '--account', 'Lovelace Ltd'], { ...environment, ...settings })).stdout;
    assert.match(
      await invite({ PORT: '0' }),
      /^[^\n]+; PORT is 0, so put the address of the server before this path\):\n\/console\/join\/[\w-]{43}\n$/,
    );
    const settings = { PORT: '0', PUBLIC_URL: 'https://scrip.example' };
    assert.match(await invite(settings), /^[^\n;]+:\nhttps:\/\/scrip\.example\/console\/join\/[\w-]{43}\n$/);
    assert.match(await invite({ PORT: '9' }), /^[^\n;]+:\nhttp:\/\/127\.0\.0\.1:9\/console\/join\/[\w-]{43}\n$/);
  });

  test('while a server is running, scrip password reset sets a new password and ends all sessions of the user', async (t) => {
    const file = temporaryFile();
    const server = await serveHere(t, ledgerAt(file));
    const email = 'ada@example.com';
    const signedIn = await post(`${server.url}/console/sign-up`, { email, name: 'Ada', password: PASSWORD });
    const cookie = signedIn.headers.get('set-cookie')?.split(';')[0] as string;
    const passwordPageStatus = async () =>
      (await fetch(`${server.url}/console/account`, { headers: { cookie }, redirect: 'manual' })).status;
    assert.equal(await passwordPageStatus(), 200);
    const { code, stdout, stderr } = await scrip(['password', 'reset', '--email', ' Ada@Example.com'], ledgerAt(file));
    assert.deepEqual([code, stderr], [0, '']);
    const password = stdout.trimEnd().split('\n').at(-1) as string;
    assert.match(password, /^[\w-]{32}$/);
    assert.equal(await passwordPageStatus(), 303);
    assert.equal(await signIn(server.url, email, PASSWORD), null);
    assert.equal(await signIn(server.url, email, password), '/console/overview');
    const unknown = await scrip(['password', 'reset', '--email', 'eve@example.com'], ledgerAt(file));
    assert.deepEqual([unknown.code, unknown.stderr], [1, 'No console user has the email address eve@example.com.\n']);
  });

  test("after scrip serve --first-key, the first person to sign up on the server's own machine gets the account of the first API key", async (t) => {
    const file = temporaryFile();
    const server = await serve(t, file, ['--first-key']);
    await server.says(/^Console: /m);
    const fields = { email: 'ada@example.com', name: 'default', password: PASSWORD };
    const signedUp = await post(`${server.url}/console/sign-up`, fields);
    assert.equal(signedUp.headers.get('location'), '/console/overview');
    const { stdout } = await scrip(['key', 'list'], ledgerAt(file));
    assert.equal(stdout.trimEnd().split('\n').length, 2, 'no second account or key is created');
    const cookie = signedUp.headers.get('set-cookie')?.split(';')[0] as string;
    const keys = await (await fetch(`${server.url}/console/api-keys`, { headers: { cookie } })).text();
    assert.match(keys, /First key/);
    const second = await post(`${server.url}/console/sign-up`, { ...fields, email: 'eve@example.com' });
    assert.equal(second.status, 403, 'SIGN_UP defaults to first');
  });

  test('with SIGN_UP=closed, a sign-up gets status 403', async (t) => {
    const server = await serveHere(t, { ...ledgerAt(temporaryFile()), SIGN_UP: 'closed' });
    const reply = await post(`${server.url}/console/sign-up`, {
      email: 'a@b.example',
      name: 'A',
      password: OTHER_PASSWORD,
    });
    assert.equal(reply.status, 403);
  });

  const wrong: readonly (readonly [environment: Record<string, string>, message: RegExp])[] = [
    [{ SIGN_UP: 'maybe' }, /^SIGN_UP is "maybe"; it must be one of open, first, closed\.$/],
    [{ PUBLIC_URL: 'http://scrip.example' }, /^PUBLIC_URL must be https:/],
    [{ PUBLIC_URL: 'https://scrip.example/console' }, /^PUBLIC_URL must be https:/],
    [{ PUBLIC_URL: 'scrip.example' }, /^PUBLIC_URL must be https:/],
    [{ SMTP_URL: 'mail.example', MAIL_FROM: 'a@b.example' }, /^SMTP_URL must be a URL that begins with smtp:/],
    [{ SMTP_URL: 'smtp://a:hunter2@mail.example' }, /^MAIL_FROM must be an email address/],
    [{ SMTP_URL: 'smtp://a:hunter2@mail.example', MAIL_FROM: 'scrip' }, /^MAIL_FROM must be an email address/],
  ];
  for (const [environment, message] of wrong) {
    test(`the settings ${JSON.stringify(environment)} are refused with an error that does not contain a password`, () => {
      assert.throws(
        () => readConfig(environment),
        (error) => error instanceof InvalidSetting && message.test(error.message) && !error.message.includes('hunter2'),
      );
    });
  }

  test('scrip serve with an invalid console setting exits with code 1 and prints the reason', () =>
    assertOneLine(
      ['serve'],
      { ...ledgerAt(temporaryFile()), SMTP_URL: 'smtp://a:hunter2@mail.example' },
      /^MAIL_FROM must be an email address/,
    ));
});
