// Resends a pending event at different moments of an attempt to deliver it. Each time, the event must be sent again,
// and its retries must start from the beginning. Both stores must pass these cases.

import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import type { TestContext } from 'node:test';
import { Leases } from '../../src/events/webhooks/leases.ts';
import type { WebhookJob } from '../../src/events/webhooks/webhook-job.ts';
import { ACCOUNT, addEndpoint, Receiver, type Setting, ticks, until, withStatus } from './webhook-fixture.ts';

interface Attempt {
  readonly t: TestContext;
  readonly job: WebhookJob;
  /** Ends the attempt, and waits until the sender has the result, which is not stored yet. */
  respond(status: number): Promise<void>;
  resend(): Promise<void>;
}

type ResendCase = readonly [moment: string, work: (attempt: Attempt) => Promise<void>];

const CASES: readonly ResendCase[] = [
  [
    'while an attempt that fails is in flight',
    async ({ respond, resend }) => {
      await resend();
      await respond(500);
    },
  ],
  [
    'while an attempt is in flight, and the attempt fails after the job has seen the resend',
    async ({ job, respond, resend }) => {
      await resend();
      await ticks(1, job);
      await respond(500);
    },
  ],
  [
    'while an attempt that succeeds is in flight',
    async ({ respond, resend }) => {
      await resend();
      await respond(200);
    },
  ],
  [
    'before the failure of an attempt is stored',
    async ({ respond, resend }) => {
      await respond(500);
      await resend();
    },
  ],
  [
    'before the success of an attempt is stored',
    async ({ respond, resend }) => {
      await respond(200);
      await resend();
    },
  ],
  [
    'after a run of the job has read the endpoints, and before it stores the failure of an attempt',
    async ({ t, job, respond, resend }) => {
      await respond(500);
      const { look } = Leases.prototype;
      const mocked = t.mock.method(Leases.prototype, 'look', async function (this: Leases) {
        const seen = await look.call(this);
        await resend();
        return seen;
      });
      await job.tick();
      mocked.mock.restore();
    },
  ],
  [
    'after the failure of an attempt is stored',
    async ({ job, respond, resend }) => {
      await respond(500);
      await ticks(2, job);
      await resend();
    },
  ],
];

/** @param settingFor creates a ledger for a test */
export function testResending(
  test: (name: string, work: (t: TestContext) => Promise<void>) => void,
  settingFor: (t: TestContext) => Promise<Setting>,
): void {
  for (const [moment, work] of CASES)
    test(`a pending event that is resent ${moment} is sent again, with retries from the beginning`, async (t) => {
      await using receiver = await Receiver.start();
      const setting = await settingFor(t);
      const [eventId] = setting.events.add('u1') as [string];
      const { id } = await addEndpoint(setting, receiver.url());
      const resend = async () => assert.equal(await setting.endpoints.resend(ACCOUNT, id, eventId), true);
      const job = setting.job({ retryDelay: () => 3_600_000 });
      receiver.answer = withStatus(500);
      await until(async () => (await setting.endpoints.summary(ACCOUNT, id)).pending === 1, job);
      let response: ServerResponse | null = null;
      receiver.answer = (_request, held) => {
        response = held;
      };
      await resend();
      await until(() => response !== null, job);
      receiver.answer = withStatus(200);
      const respond = async (status: number) => {
        withStatus(status)({} as never, response as unknown as ServerResponse);
        await until(() => job.attempts.failed + job.attempts.delivered === 2);
      };
      await work({ t, job, respond, resend });
      await until(() => receiver.received.length === 3, job);
      await until(async () => (await setting.endpoints.summary(ACCOUNT, id)).pending === 0, job);
      const { deliveries } = await setting.endpoints.deliveries(ACCOUNT, id, { before: null, limit: 10 });
      assert.deepEqual([deliveries.length, deliveries[0]?.attempt], [3, 1]);
      assert.equal(receiver.received.length, 3);
    });
}
