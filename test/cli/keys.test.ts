// Tests `scrip key` and `scrip serve --first-key`, and that a running server applies changes to API keys.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openTools } from '../../src/open-tools.ts';
import { PASSWORD } from '../console/visitor.ts';
import { eventually } from '../http/running-service.ts';
import { temporaryFile } from '../store/temporary-ledger.ts';
import { post, signIn } from './console-forms.ts';
import { add, assertOneLine, COMMANDS_AT_ONCE, createKey, ledgerAt, SECRET, scrip, serve } from './scrip-command.ts';
import { createKeyHere, serveHere } from './served-here.ts';

describe('API keys on the command line', { concurrency: COMMANDS_AT_ONCE }, () => {
  test('scrip key create --create creates a missing ledger and prints the secret by itself on the last line', async () => {
    const file = join(dirname(temporaryFile()), 'new', 'folder', 'scrip.db');
    const secret = await createKey(file, '--create');
    assert.match(secret, /^scrip_write_[0-9A-Za-z]{33}_[0-9A-Za-z]{6}$/);
    assert(existsSync(file));
  });

  test('scrip key revoke fails if the API key does not exist', async () => {
    const file = temporaryFile();
    await createKeyHere(ledgerAt(file));
    await assertOneLine(
      ['key', 'revoke', '999'],
      ledgerAt(file),
      /^API key 999 does not exist; see `scrip key list`\.$/,
    );
  });

  test('scrip key list shows every API key without its secret', async () => {
    const file = temporaryFile();
    const { tools } = await openTools({ kind: 'file', path: file });
    await tools.close();
    assert.deepEqual((await scrip(['key', 'list'], ledgerAt(file))).stdout.trim().split(/\s+/), [
      'ID',
      'ACCOUNT',
      'NAME',
      'SCOPE',
      'KEY',
      'CREATED',
      'LAST',
      'USED',
      'REVOKED',
    ]);
    const secrets = [await createKeyHere(ledgerAt(file)), await createKey(file, '--scope', 'read')];
    assert.equal((await scrip(['key', 'revoke', '1'], ledgerAt(file))).stdout, 'API key 1 revoked.\n');
    const { code, stdout, stderr } = await scrip(['key', 'list'], ledgerAt(file));
    const [, first, second] = stdout.split('\n');
    const day = String.raw`\d{4}-\d\d-\d\d \d\d:\d\d`;
    assert.match(first ?? '', new RegExp(`^1 +Lovelace Ltd +write +scrip_write_\\w{6}… +${day} +${day}$`));
    assert.match(second ?? '', new RegExp(`^2 +Lovelace Ltd +read +scrip_read_\\w{6}… +${day}$`));
    for (const secret of secrets) assert(!stdout.includes(secret.slice(-20)));
    assert.doesNotMatch(stdout, SECRET);
    assert.deepEqual([code, stderr], [0, '']);
  });

  test('scrip key list shows the name of an API key and, after a few seconds, when the key was last used', async (t) => {
    const file = temporaryFile();
    const { url, stores } = await serveHere(t, ledgerAt(file));
    const [used] = [await createKey(file, '--name', ' Backend, Köln '), await createKeyHere(ledgerAt(file))];
    assert.equal((await add(url, used)).status, 200);
    await eventually(async () => (await stores.keys.list())[0]?.lastUsedAt !== null, 'the use of the key is stored');
    const day = String.raw`\d{4}-\d\d-\d\d \d\d:\d\d`;
    const wasUsed = new RegExp(`^1 +Lovelace Ltd +Backend, Köln +write +scrip_write_\\w{6}… +${day} +${day}$`);
    const [, first, second] = (await scrip(['key', 'list'], ledgerAt(file))).stdout.split('\n');
    assert.match(first ?? '', wasUsed);
    assert.match(second ?? '', new RegExp(`^2 +Lovelace Ltd +write +scrip_write_\\w{6}… +${day}$`));
  });

  test('an API key name of more than 100 characters is rejected', async () => {
    const file = temporaryFile();
    await createKey(file, '--name', '𝒂'.repeat(100));
    const args = ['key', 'create', '--account', 'Lovelace Ltd', '--name', 'a'.repeat(101)];
    await assertOneLine(args, ledgerAt(file), /Must be at most 100 characters\.$/);
  });

  test('before a server stops, it stores the time at which each API key was last used', async (t) => {
    const file = temporaryFile();
    const secret = await createKeyHere(ledgerAt(file));
    const server = await serveHere(t, ledgerAt(file));
    assert.equal((await add(server.url, secret)).status, 200);
    await server.stop();
    const { stdout } = await scrip(['key', 'list'], ledgerAt(file));
    assert.match(stdout.split('\n')[1] ?? '', /…( +\d{4}-\d\d-\d\d \d\d:\d\d){2}$/);
  });

  test('a running server accepts a new API key immediately and rejects a revoked key within a second', async (t) => {
    const file = temporaryFile();
    const { url } = await serveHere(t, ledgerAt(file));
    const [kept, revoked] = [await createKey(file), await createKeyHere(ledgerAt(file))];
    for (const secret of [kept, revoked]) assert.equal((await add(url, secret)).status, 200);
    const { code } = await scrip(['key', 'revoke', '2'], ledgerAt(file));
    assert.equal(code, 0);
    await sleep(1_000);
    assert.equal((await add(url, revoked)).status, 401);
    assert.equal((await add(url, kept)).status, 200);
  });

  test('scrip serve --first-key creates an API key only once, and prints a curl command that works; while the account has no owner, the command also prints a link to join as the owner', async (t) => {
    const file = temporaryFile();
    const first = await serve(t, file, ['--first-key']);
    const [command] = await first.says(/^ {2}(curl .*)$/m);
    if (spawnSync('curl', ['--version']).error) t.diagnostic('curl is not installed; the curl command was not run');
    else {
      const { stdout } = spawnSync('sh', ['-c', String(command)], { encoding: 'utf8' });
      assert.deepEqual(JSON.parse(stdout).amount, 100);
    }
    await first.says(/^Console: (http:\/\/127\.0\.0\.1:\d+\/console)$/m);
    const [link] = await first.says(/^ {2}(http:\S+\/console\/join\/[\w-]{43})$/m);
    const joined = await post(String(link), { email: 'ada@example.com', password: PASSWORD });
    assert.equal(joined.headers.get('location'), '/console/overview');
    assert.equal(await signIn(first.url, 'ada@example.com', PASSWORD), '/console/overview');
    first.kill('SIGTERM');
    const ended = await first.ended;
    assert.equal(ended.code, 0);
    assert.equal(new Set(ended.stdout.match(SECRET)).size, 1);
    assert.equal(ended.stdout.match(/Your first API key/g)?.length, 1);
    const second = await serve(t, file, ['--first-key']);
    await second.says(/^Console: /m);
    second.kill('SIGTERM');
    const { stdout, stderr } = await second.ended;
    assert.match(stdout, /^Scrip is listening on \S+\nAPI docs: \S+\/docs\nConsole: \S+\n$/);
    assert.doesNotMatch(stdout + stderr + ended.stderr, SECRET);
  });
});
