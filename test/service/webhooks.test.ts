// Tests that the client library verifies the webhooks of a running service, and that their bodies match the OpenAPI
// document and the list of events.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { verifyWebhook, WebhookVerificationError } from '../../client/src/scrip.ts';
import { readConfig } from '../../src/config.ts';
import { Endpoints } from '../../src/events/webhooks/endpoints.ts';
import { openAccountDatabase } from '../../src/open-store.ts';
import { addressRulesOf, openWebhookSecrets } from '../../src/open-webhooks.ts';
import { documentOf, validatorsOf } from '../http/openapi/described-service.ts';
import { eventsOf } from '../http/read-events.ts';
import { type Scrip, someone, startScrip } from '../http/running-service.ts';

interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

const received: Received[] = [];
let folder: string;
let scrip: Scrip;
let receiver: Server;
let secret: string;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'scrip-webhooks-'));
  const database = { kind: 'file', path: join(folder, 'ledger.db') } as const;
  scrip = await startScrip({ file: database.path });
  receiver = createServer(async (request, response) => {
    received.push({ headers: request.headers, body: await buffer(request) });
    receiver.emit('received');
    response.writeHead(204).end();
  });
  await once(receiver.listen(0, '127.0.0.1'), 'listening');
  const config = { ...readConfig({ WEBHOOK_KEY: '0'.repeat(64) }), database };
  await using tables = await openAccountDatabase(database);
  const endpoints = new Endpoints({
    database: tables,
    secrets: openWebhookSecrets(config),
    now: Date.now,
    rules: addressRulesOf(config),
  });
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
  const { account } = (await scrip.service.stores.keys.list())[0] ?? assert.fail();
  const added = await endpoints.add({ account, url, types: [], createdBy: 'operator' });
  assert(added);
  ({ secret } = added);
  await endpoints.sendTest(account, added.endpoint.id);
});
after(async () => {
  await scrip.stop();
  receiver.closeAllConnections();
  receiver.close();
  await rm(folder, { recursive: true, force: true });
});

async function webhooks(count: number): Promise<readonly Received[]> {
  while (received.length < count) await once(receiver, 'received', { signal: AbortSignal.timeout(20_000) });
  return received;
}

test('the client library verifies a webhook, and the body matches the OpenAPI document and is identical to the event in the list of events', async () => {
  const end_user_id = someone();
  await scrip.post('/add', { end_user_id, amount: 5 });
  await scrip.post('/subtract', { end_user_id, amount: 5 });
  const { text } = await eventsOf(scrip, 3).then(() => scrip.get('/get-events'));
  const { post } = (await documentOf(scrip)).webhooks.event ?? {};
  const validate = validatorsOf(await documentOf(scrip))(post?.requestBody?.content['application/json']?.schema);
  const types: string[] = [];
  for (const { headers, body } of await webhooks(4)) {
    const event = await verifyWebhook(headers, body, secret);
    assert.equal(headers['webhook-id'], event.id);
    assert(validate(event), JSON.stringify([event, validate.errors]));
    if (event.type !== 'webhook.test') assert(text.includes(`${body}`), `${body} is an item of ${text}`);
    await assert.rejects(verifyWebhook(headers, `${body} `, secret), WebhookVerificationError);
    types.push(event.type);
  }
  assert.deepEqual(types.sort(), ['balance.exhausted', 'credits.added', 'credits.subtracted', 'webhook.test']);
});
