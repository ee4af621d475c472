// Receives webhooks: verifies each request, stores the event, and responds. Events are then processed one at a time, in
// the order in which they arrived. The same event can arrive more than once, so the program stores the IDs of events,
// and ignores an event whose ID is already stored. If the process is killed, the next process continues with the first
// unprocessed event.

import { createServer, type IncomingMessage } from 'node:http';
import { DatabaseSync } from 'node:sqlite';
import { buffer } from 'node:stream/consumers';
import { verifyWebhook, type WebhookEvent, WebhookVerificationError } from 'scrip-client';

const { PORT = '4000', WEBHOOK_SECRET = '', WEBHOOKS = 'webhooks.db' } = process.env;
if (WEBHOOK_SECRET === '') throw new Error('Set WEBHOOK_SECRET to the secret of the endpoint.');

const db = new DatabaseSync(WEBHOOKS);
db.exec(`CREATE TABLE IF NOT EXISTS events
  (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, event TEXT NOT NULL, is_done INTEGER NOT NULL DEFAULT 0)`);
const store = db.prepare('INSERT INTO events (id, event) VALUES (?, ?) ON CONFLICT (id) DO NOTHING');
const next = db.prepare('SELECT number, event FROM events WHERE is_done = 0 ORDER BY number LIMIT 1');
const finish = db.prepare('UPDATE events SET is_done = 1 WHERE number = ?');

/** A stand-in for a mail provider. With the idempotency key, the provider sends the mail only once. */
async function sendMail(endUser: string, text: string, _idempotencyKey: string): Promise<void> {
  console.log(`Mail to ${endUser}: ${text}`);
}

async function handle(event: WebhookEvent): Promise<void> {
  console.log(event.type);
  if (event.type === 'balance.low')
    await sendMail(event.data.end_user_id, `${event.data.balance} credits are left.`, event.id);
}

/** Longer than any webhook of Scrip. */
const BODY_BYTES_MAX = 64 * 1024;

let working = Promise.resolve();

/** Processes the stored events. If processing an event fails, the process exits, so that no event is skipped. */
async function work(): Promise<void> {
  for (let row = next.get(); row !== undefined; row = next.get()) {
    await handle(JSON.parse(row.event as string));
    finish.run(row.number as number);
  }
}

/** @returns the HTTP status of the response */
async function receive(request: IncomingMessage): Promise<number> {
  // A request without this header gets the same response, because Scrip always sends it.
  if (!(Number(request.headers['content-length']) <= BODY_BYTES_MAX)) return 413;
  try {
    const event = await verifyWebhook(request.headers, await buffer(request), WEBHOOK_SECRET);
    store.run(event.id, JSON.stringify(event));
    working = working.then(work);
    return 204;
  } catch (error) {
    if (error instanceof WebhookVerificationError) return 400;
    console.error(error);
    return 500;
  }
}

working = work();
const server = createServer(async (request, response) => response.writeHead(await receive(request)).end());
server.listen(Number(PORT), () => console.log(`Listening on port ${(server.address() as { port: number }).port}`));
