// Tests how the console's rate limits distinguish clients.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clientNetwork } from './client-network.ts';

test("the console's rate limits treat all notations of an IPv4 address as one client, with or without a port", () => {
  for (const address of ['192.0.2.1', '::ffff:192.0.2.1', '::FFFF:c000:201', '192.0.2.1:443'])
    assert.equal(clientNetwork(address), '192.0.2.1', address);
  assert.notEqual(clientNetwork('192.0.2.2'), '192.0.2.1');
});

test("the console's rate limits treat all addresses of an IPv6 /64 network as one client", () => {
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

test("the console's rate limits treat each address that is not a valid IP address as a separate client", () => {
  for (const text of ['', 'unknown', '_hidden', '300.1.1.1', ':::']) assert.equal(clientNetwork(text), text);
});
