// Tests how the rate limits of the console distinguish clients.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clientNetwork } from './client-network.ts';

test('an IPv4 address is one client, whether or not it is mapped to IPv6 or has a port', () => {
  for (const address of ['192.0.2.1', '::ffff:192.0.2.1', '::FFFF:c000:201', '192.0.2.1:443'])
    assert.equal(clientNetwork(address), '192.0.2.1', address);
  assert.notEqual(clientNetwork('192.0.2.2'), '192.0.2.1');
});

test('all addresses of an IPv6 /64 network are one client', () => {
  const network = clientNetwork('2001:db8::1');
  for (const address of [
    '2001:db8:0:0:a:b:c:d',
    '2001:db8::5:0:0:1',
    '2001:DB8::2',
    '[2001:db8::3]:443',
    '[2001:db8::3]',
  ])
    assert.equal(clientNetwork(address), network, address);
  assert.notEqual(clientNetwork('2001:db8:0:1::1'), network);
});

test('the rate limits of the console use a client address unchanged if it is not an IP address', () => {
  for (const text of ['', 'unknown', '_hidden', '300.1.1.1', ':::']) assert.equal(clientNetwork(text), text);
});
