// Tests that only one of several processes delivers events to an endpoint at a time.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { LoadMeter } from '../../src/batching/load.ts';
import { Leases } from '../../src/events/webhooks/leases.ts';
import { SendingGate } from '../../src/events/webhooks/sending-gate.ts';
import type { WebhookJob } from '../../src/events/webhooks/webhook-job.ts';
import { addEndpoint, Receiver, type Setting, ticks, until, webhookSetting } from './webhook-fixture.ts';

const looks = Leases.prototype.look;
const LEASES = { leaseMs: 400, renewMs: 50, safeMs: 250 };

/** If a test stops running the job, the job behaves as if its process had crashed. */
function sharingJob(setting: Setting): WebhookJob {
  return setting.job({ leases: LEASES });
}

/** Returns a job that has leased an endpoint at the receiver. */
async function leasedBy(t: TestContext, receiver: Receiver): Promise<{ setting: Setting; job: WebhookJob }> {
  const setting = await webhookSetting(t);
  await addEndpoint(setting, receiver.url());
  const job = sharingJob(setting);
  await until(async () => (await holders(setting)).length === 1, job);
  await ticks(2, job);
  return { setting, job };
}

async function holders({ database }: Setting): Promise<string[]> {
  const rows = await database.queries.selectFrom('webhook_endpoints').select('leased_by').execute();
  return rows.flatMap((row) => (row.leased_by === null ? [] : [row.leased_by]));
}

test('processes that start together share the webhook endpoints, and each event is delivered once', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await webhookSetting(t);
  for (let endpoint = 0; endpoint < 8; endpoint++) await addEndpoint(setting, receiver.url(`/${endpoint}`));
  const [first, second] = [sharingJob(setting), sharingJob(setting)];
  await until(async () => (await holders(setting)).length === 8, first, second);
  const counts = Map.groupBy(await holders(setting), (holder) => holder);
  assert.equal(counts.size, 2);
  for (const each of counts.values()) assert(each.length >= 2, `${each.length} of 8`);
  setting.events.add('u1', 20);
  await until(() => receiver.received.length >= 160, first, second);
  await ticks(10, first, second);
  assert.equal(receiver.received.length, 160);
  assert.equal(first.attempts.delivered + second.attempts.delivered, 160);
  await Promise.all([first.stop(), second.stop()]);
  assert.deepEqual(await holders(setting), [], 'the leases are released');
});

test('an endpoint that cannot be opened does not keep others from being opened', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await webhookSetting(t);
  const { secret } = await addEndpoint(setting, receiver.url('/bad'));
  for (const path of ['/good', '/also-good']) await addEndpoint(setting, receiver.url(path));
  setting.events.add('u1');
  const open = (sealed: string) => {
    const opened = setting.secrets.open(sealed);
    if (opened === secret) throw new Error('the key cannot be read');
    return opened;
  };
  const job = setting.job({ leases: LEASES, secrets: { open } });
  await until(() => receiver.received.length === 2, job);
});

test('a process that cannot open an endpoint leaves it to other processes', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await webhookSetting(t);
  await addEndpoint(setting, receiver.url());
  setting.events.add('u1');
  const open = () => {
    throw new Error('the key cannot be read');
  };
  const unable = setting.job({ leases: LEASES, secrets: { open } });
  await ticks(3, unable);
  assert.match(setting.log.join(), /webhooks could not be processed/);
  const able = sharingJob(setting);
  await until(() => receiver.received.length === 1, able, unable);
  assert(able.stalledMs() < unable.stalledMs(), 'the process that cannot open the endpoint is stalled');
});

test('after a process disappears, another process takes over its endpoints when their leases expire', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await webhookSetting(t);
  for (let endpoint = 0; endpoint < 3; endpoint++) await addEndpoint(setting, receiver.url(`/${endpoint}`));
  const [first, second] = [sharingJob(setting), sharingJob(setting)];
  await until(async () => (await holders(setting)).length === 3, first);
  await ticks(3, second, first);
  setting.events.add('u1', 5);
  await until(() => second.attempts.delivered === 15, second);
  assert.equal(receiver.received.length, 15);
});

test('a process whose lease was not renewed in time stops sending webhooks', async (t) => {
  await using receiver = await Receiver.start();
  const { setting, job } = await leasedBy(t, receiver);
  // During this pause, the job does not run, to simulate a database that does not respond.
  await setTimeout(LEASES.safeMs + 50);
  setting.events.add('u1', 5);
  job.nudge();
  await setTimeout(50);
  assert.equal(receiver.received.length, 0);
  await until(() => receiver.received.length === 5, job);
});

test('a process sends nothing after another process has leased its endpoint between two of its statements', async (t) => {
  await using receiver = await Receiver.start();
  const { setting, job } = await leasedBy(t, receiver);
  await setTimeout(LEASES.leaseMs + 50);
  const lease = { leased_by: 'another process', leased_until: Date.now() + LEASES.leaseMs };
  t.mock.method(Leases.prototype, 'look', async function (this: Leases) {
    const seen = await looks.call(this);
    await setting.database.queries.updateTable('webhook_endpoints').set(lease).execute();
    return seen;
  });
  await job.tick();
  setting.events.add('u1', 5);
  job.nudge();
  await setTimeout(100);
  assert.equal(receiver.received.length, 0);
});

test('a process that has lost the lease of an endpoint stores nothing more for the endpoint', async (t) => {
  await using receiver = await Receiver.start();
  const { setting, job } = await leasedBy(t, receiver);
  setting.events.add('u1', 5);
  job.nudge();
  await until(() => receiver.received.length === 5);
  const lease = { leased_by: 'another process', leased_until: Date.now() + LEASES.leaseMs };
  await setting.database.queries.updateTable('webhook_endpoints').set(lease).execute();
  await ticks(5, job);
  await job.stop();
  const [row] = await setting.database.queries.selectFrom('webhook_endpoints').selectAll().execute();
  assert.deepEqual([row?.leased_by, row?.position], ['another process', '0']);
  assert.deepEqual(await setting.database.queries.selectFrom('webhook_deliveries').selectAll().execute(), []);
});

test('the only process that serves a ledger takes over all endpoints when it starts', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await webhookSetting(t);
  for (let endpoint = 0; endpoint < 8; endpoint++) await addEndpoint(setting, receiver.url(`/${endpoint}`));
  await setting.job().tick();
  const before = new Set(await holders(setting));
  const second = setting.job();
  await second.tick();
  assert.notDeepEqual(new Set(await holders(setting)), before);
  assert.equal(new Set(await holders(setting)).size, 1);
  setting.events.add('u1');
  await until(() => receiver.received.length === 8, second);
});

test('new events are sent immediately, without waiting for the next run of the webhook job', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await webhookSetting(t);
  await addEndpoint(setting, receiver.url());
  const job = setting.job();
  await ticks(2, job);
  setting.events.add('u1', 3);
  job.nudge();
  await until(() => receiver.received.length === 3);
});

test('when a process stops, it waits less than five seconds for requests in flight', async (t) => {
  await using receiver = await Receiver.start();
  receiver.answer = () => {};
  const setting = await webhookSetting(t);
  setting.events.add('u1');
  await addEndpoint(setting, receiver.url());
  const job = setting.job();
  await until(() => receiver.received.length === 1, job);
  const start = performance.now();
  await job.stop();
  assert(performance.now() - start < 5_000);
  assert.deepEqual(await holders(setting), []);
});

test('after a process has stopped, events that it had delivered before an unanswered one are not delivered again', async (t) => {
  await using receiver = await Receiver.start();
  const setting = await webhookSetting(t);
  await addEndpoint(setting, receiver.url());
  const first = sharingJob(setting);
  await until(async () => (await holders(setting)).length === 1, first);
  const unanswered = setting.events.add('u1', 3);
  const delivered = [...setting.events.add('u2', 5), ...setting.events.add('u3', 5)];
  receiver.answer = ({ id }, response) => {
    if (id !== unanswered[0]) response.end();
  };
  await until(() => first.attempts.delivered === delivered.length, first);
  await first.stop();
  receiver.received.length = 0;
  receiver.answer = (_request, response) => void response.end();
  const second = sharingJob(setting);
  await until(() => second.attempts.delivered === unanswered.length, second);
  await ticks(5, second);
  assert.deepEqual(
    receiver.received.map(({ id }) => id),
    unanswered,
  );
});

test('a process sends at most 500 webhooks at once, and sends the next one as soon as one of the 500 requests has ended', async () => {
  const gate = new SendingGate();
  let inside = 0;
  for (let count = 0; count < 600; count++) void gate.enter(1).then(() => inside++);
  await setTimeout(0);
  assert.equal(inside, 500);
  gate.leave();
  await setTimeout(0);
  assert.equal(inside, 501);
  gate.stop();
  await setTimeout(0);
  assert.equal(inside, 600);
});

test('an account with many slow endpoints does not delay the webhooks of other accounts', async () => {
  const gate = new SendingGate();
  const admitted: number[] = [];
  for (const account of [...Array.from({ length: 700 }, () => 1), 2])
    void gate.enter(account).then(() => admitted.push(account));
  await setTimeout(0);
  assert.equal(admitted.length, 500);
  for (let count = 0; count < 2; count++) gate.leave();
  await setTimeout(0);
  assert.deepEqual(admitted.slice(500).sort(), [1, 2]);
  gate.stop();
});

test('a process that is short of CPU time sends at most 100 webhooks a second', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  let isBusy = true;
  const gate = new SendingGate({ isBusy: () => isBusy });
  gate.start();
  let sent = 0;
  const second = async () => {
    const before = sent;
    for (let count = 0; count < 2_000; count++)
      void gate.enter(1).then(() => {
        sent += 1;
        gate.leave();
      });
    for (let step = 0; step < 10; step++) {
      t.mock.timers.tick(100);
      await new Promise(setImmediate);
    }
    return sent - before;
  };
  await second();
  await second();
  assert.equal(await second(), 100);
  isBusy = false;
  await second();
  assert(sent > 4_000, 'with CPU time to spare, the rate is not limited');
  gate.stop();
});

test('the webhooks of an idle process are not limited to 100 a second', async () => {
  const gate = new SendingGate(new LoadMeter());
  gate.start();
  let admitted = 0;
  const sendMany = async () => {
    const before = admitted;
    for (let count = 0; count < 300; count++)
      void gate.enter(1).then(() => {
        admitted += 1;
        gate.leave();
      });
    await setTimeout(0);
    return admitted - before;
  };
  // On a slow machine, the load can be unknown for a moment, so it is read several times.
  let atOnce = 0;
  for (let attempt = 0; attempt < 10 && atOnce < 300; attempt++) {
    await setTimeout(1_200);
    atOnce = await sendMany();
  }
  gate.stop();
  assert.equal(atOnce, 300);
});
