// Tests webhook secrets, and verifies signatures with the Standard Webhooks library.

import assert from 'node:assert/strict';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { newSecret, openSecretBox, SecretBox, UnusableSecret } from '../../src/events/webhooks/secrets.ts';
import { signatureHeaders } from '../../src/events/webhooks/signature.ts';
import { temporaryFolder } from '../store/temporary-ledger.ts';
import { KEY } from './webhook-fixture.ts';

test('Scrip computes the signature that Standard Webhooks publishes for its example', () => {
  const content = { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', timestamp: 1_614_265_330, body: '{"test": 2432232314}' };
  assert.deepEqual(signatureHeaders(content, ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw']), {
    'webhook-id': content.id,
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  });
});

test('the Standard Webhooks library accepts a signature only with the right secret, body and ID', () => {
  const secret = newSecret();
  const content = { id: 'evt_1', timestamp: Math.floor(Date.now() / 1_000), body: '{"a":"é"}' };
  const headers = signatureHeaders(content, [secret]);
  assert.deepEqual(new Webhook(secret).verify(content.body, headers), { a: 'é' });
  assert.throws(() => new Webhook(newSecret()).verify(content.body, headers), /No matching signature/);
  assert.throws(() => new Webhook(secret).verify('{"a":"e"}', headers), /No matching signature/);
  assert.throws(() => new Webhook(secret).verify(content.body, { ...headers, 'webhook-id': 'evt_2' }), /No matching/);
});

test('a webhook that is signed with two secrets can be verified with either of them', () => {
  const [first, second] = [newSecret(), newSecret()];
  const content = { id: 'evt_1', timestamp: Math.floor(Date.now() / 1_000), body: '{}' };
  const headers = signatureHeaders(content, [first, second]);
  assert.equal(headers['webhook-signature']?.split(' ').length, 2);
  for (const secret of [first, second]) new Webhook(secret).verify('{}', headers);
});

test('a new webhook secret has the prefix whsec_ and 24 random bytes in base64', () => {
  const secret = newSecret();
  assert.match(secret, /^whsec_[A-Za-z0-9+/]{32}$/);
  assert.notEqual(newSecret(), secret);
});

test('an encrypted webhook secret can be decrypted only with the same key, and only if it is unchanged', () => {
  const box = new SecretBox(KEY);
  const sealed = box.seal('whsec_text');
  assert.equal(box.open(sealed), 'whsec_text');
  assert.notEqual(box.seal('whsec_text'), sealed);
  assert.throws(() => new SecretBox('1'.repeat(64)).open(sealed), UnusableSecret);
  const bytes = Buffer.from(sealed, 'base64');
  for (let index = 0; index < bytes.length; index++) {
    const changed = Buffer.from(bytes);
    changed[index] = (changed[index] as number) ^ 1;
    assert.throws(() => box.open(changed.toString('base64')), UnusableSecret);
  }
  assert.throws(() => box.open(''), UnusableSecret);
});

test('without a configured key, Scrip creates a key file that only its owner can read, and then reads the key from this file', () => {
  const file = join(temporaryFolder(), 'data', 'scrip.key');
  const sealed = openSecretBox({ key: null, file }).seal('text');
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.match(readFileSync(file, 'utf8'), /^[0-9a-f]{64}\n$/);
  assert.equal(openSecretBox({ key: null, file }).open(sealed), 'text');
  writeFileSync(file, 'nothing');
  assert.throws(() => openSecretBox({ key: null, file }), /scrip\.key must contain a key/);
  assert.throws(() => openSecretBox({ key: KEY, file }).open(sealed), UnusableSecret);
});
