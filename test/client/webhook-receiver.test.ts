// Tests that the webhook-receiver.ts example processes events in order, ignores events that it has already processed,
// even after a restart, and refuses requests that Scrip did not send.

import assert from 'node:assert/strict';
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import type { Readable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { CLIENT } from './client-package.ts';
import { headersOf } from './sign-webhook.ts';

const PROGRAM = join(CLIENT, 'examples/webhook-receiver.ts');
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const END_USER = '5f2b1c9e-3a70-4d2e-9b61-0c8f4e7a1d23';

class Receiver {
  readonly #program: ChildProcessByStdio<null, Readable, null>;
  readonly #lines: AsyncIterator<string>;
  #url = '';

  private constructor(program: ChildProcessByStdio<null, Readable, null>, lines: Interface) {
    this.#program = program;
    this.#lines = lines[Symbol.asyncIterator]();
  }

  static async start(database: string): Promise<Receiver> {
    const env = { ...process.env, PORT: '0', WEBHOOK_SECRET: SECRET, WEBHOOKS: database };
    const program = spawn(process.execPath, ['--conditions=scrip-source', '--no-warnings', PROGRAM], {
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
      timeout: 60_000,
    });
    const receiver = new Receiver(program, createInterface(program.stdout));
    const [, port] = /^Listening on port (\d+)$/.exec(await receiver.line()) ?? assert.fail();
    receiver.#url = `http://127.0.0.1:${port}/`;
    return receiver;
  }

  async line(): Promise<string> {
    return String((await this.#lines.next()).value);
  }

  async send(event: object, id: string, secret = SECRET): Promise<number> {
    const body = JSON.stringify(event);
    const headers = headersOf({ id, timestamp: Math.floor(Date.now() / 1_000), body }, secret);
    return (await fetch(this.#url, { method: 'POST', headers, body })).status;
  }

  async kill(): Promise<void> {
    this.#program.kill('SIGKILL');
    if (this.#program.exitCode === null && this.#program.signalCode === null) await once(this.#program, 'exit');
  }
}

function eventOf(number: number, type: string, balance: number) {
  return {
    id: `evt_${String(number).padStart(32, '0')}`,
    type,
    timestamp: '2026-11-20T08:00:14.123Z',
    data: { end_user_id: END_USER, balance },
  };
}

async function newDatabase(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'scrip-receiver-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return join(folder, 'webhooks.db');
}

test('the example receiver processes events in order and ignores events that it has already processed, even after it was killed and restarted', async (t) => {
  const database = await newDatabase(t);
  const added = eventOf(1, 'credits.added', 100);
  const low = eventOf(2, 'balance.low', 15);
  let receiver = await Receiver.start(database);
  t.after(() => receiver.kill());
  for (const event of [added, added, low, added]) assert.equal(await receiver.send(event, event.id), 204);
  assert.deepEqual(
    [await receiver.line(), await receiver.line(), await receiver.line()],
    ['credits.added', 'balance.low', `Mail to ${END_USER}: 15 credits are left.`],
  );
  await receiver.kill();
  receiver = await Receiver.start(database);
  const recovered = eventOf(3, 'balance.recovered', 40);
  for (const event of [low, recovered]) assert.equal(await receiver.send(event, event.id), 204);
  assert.equal(await receiver.line(), 'balance.recovered');
});

test('the example receiver refuses an event with a wrong signature, and does not process it', async (t) => {
  const receiver = await Receiver.start(await newDatabase(t));
  t.after(() => receiver.kill());
  const forged = eventOf(1, 'balance.low', 0);
  assert.equal(await receiver.send(forged, forged.id, 'whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'), 400);
  const valid = eventOf(2, 'webhook.test', 0);
  assert.equal(await receiver.send(valid, valid.id), 204);
  assert.equal(await receiver.line(), 'webhook.test');
});
