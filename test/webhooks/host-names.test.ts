// Tests the resolution of the host names of webhook endpoints, with a DNS server that does not answer all queries.

import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { HostNames } from '../../src/events/webhooks/host-names.ts';

const TYPE_A = 1;

/** The header of a query has 12 bytes. The name, the type and the class of the question follow. */
function answerTo(query: Buffer): Buffer | null {
  const end = query.indexOf(0, 12);
  const name = query.toString('latin1', 12, end);
  if (name.includes('slow') || (name.includes('ipv4') && query.readUInt16BE(end + 1) !== TYPE_A)) return null;
  const isFound = name.includes('fast') && query.readUInt16BE(end + 1) === TYPE_A;
  const header = Buffer.from(query.subarray(0, 12));
  header.writeUInt16BE(isFound ? 0x8180 : 0x8183, 2);
  header.writeUInt16BE(isFound ? 1 : 0, 6);
  header.writeUInt32BE(0, 8);
  // A record for the name of the question: class IN, no TTL, 4 bytes.
  const record = Buffer.from([0xc0, 12, 0, TYPE_A, 0, 1, 0, 0, 0, 0, 0, 4, 1, 2, 3, 4]);
  return Buffer.concat([header, query.subarray(12, end + 5), ...(isFound ? [record] : [])]);
}

/**
 * Starts a DNS server that knows the names with `fast`. It never answers queries for names with `slow`, or queries for
 * the IPv6 addresses of names with `ipv4`.
 */
async function nameServer(t: TestContext): Promise<string> {
  const socket = createSocket('udp4', (query, { port, address }) => {
    const answer = answerTo(query);
    if (answer !== null) socket.send(answer, port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  t.after(() => socket.close());
  return `127.0.0.1:${socket.address().port}`;
}

test('host names whose DNS servers do not answer do not delay other host names', async (t) => {
  const names = new HostNames({ allowPrivate: false }, [await nameServer(t)]);
  const slow = Array.from({ length: 50 }, (_, index) => names.addressesOf(`h${index}.slow.example`));
  const failed = Promise.allSettled(slow);
  const second = new AbortController();
  const late = setTimeout(2_000, 'late', second);
  assert.deepEqual(await Promise.race([names.addressesOf('fast.example'), late]), ['1.2.3.4']);
  assert.notEqual(await Promise.race([names.addressesOf('localhost'), late]), 'late');
  second.abort();
  names.close();
  assert.deepEqual([...new Set((await failed).map(({ status }) => status))], ['rejected']);
});

test('a host name without an address is not resolved', async (t) => {
  const names = new HostNames({ allowPrivate: false }, [await nameServer(t)]);
  await assert.rejects(names.addressesOf('missing.example'), { code: 'ENOTFOUND' });
});

test('a DNS server that answers only queries for IPv4 addresses does not delay a webhook for long', async (t) => {
  const names = new HostNames({ allowPrivate: false }, [await nameServer(t)]);
  const late = new AbortController();
  const addresses = await Promise.race([names.addressesOf('ipv4.fast.example'), setTimeout(4_000, 'late', late)]);
  late.abort();
  assert.deepEqual(addresses, ['1.2.3.4']);
});
