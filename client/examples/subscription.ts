// A subscription renews the credits every period until it is canceled. The credits of a paid period stay usable until
// the period ends.

import { CycleAlreadyActive, CycleNotFound, Scrip } from 'scrip-client';

const { SCRIP_URL = 'http://127.0.0.1:8080', SCRIP_KEY = '' } = process.env;
const scrip = new Scrip({ baseUrl: SCRIP_URL, apiKey: SCRIP_KEY });

const BASIC = { amount: 1000, validity_days: 31 };
const PRO = { amount: 5000, validity_days: 31 };

interface PaymentEvent {
  readonly id: string;
  readonly user: string;
}

/** The idempotency key contains the ID of the event, so that a repeated event does not start a second cycle. */
async function onSubscribed({ id, user }: PaymentEvent): Promise<void> {
  try {
    const cycle = await scrip.startCycle({ end_user_id: user, ...BASIC }, { idempotencyKey: `event ${id}` });
    console.log(`${cycle.amount} credits now and every ${BASIC.validity_days} days.`);
  } catch (error) {
    if (!(error instanceof CycleAlreadyActive)) throw error;
    console.log(`Already subscribed to ${error.cycle.amount} credits.`);
  }
}

/** Replaces the cycle in one step. The remaining credits of the old cycle stay usable until that cycle ends. */
async function onUpgraded({ id, user }: PaymentEvent): Promise<void> {
  const upgrade = { end_user_id: user, ...PRO, on_active: 'replace' } as const;
  const cycle = await scrip.startCycle(upgrade, { idempotencyKey: `event ${id}` });
  console.log(`${cycle.amount} credits now and every ${PRO.validity_days} days.`);
}

async function onCanceled({ id, user }: PaymentEvent): Promise<void> {
  try {
    const { status } = await scrip.stopCycle({ end_user_id: user }, { idempotencyKey: `event ${id}` });
    console.log(`The subscription is ${status}.`);
  } catch (error) {
    if (!(error instanceof CycleNotFound)) throw error;
    console.log('There is no subscription.');
  }
}

const user = crypto.randomUUID();
await onCanceled({ id: 'evt_1', user });
await onSubscribed({ id: 'evt_2', user });
await onSubscribed({ id: 'evt_3', user });
await scrip.subtract({ end_user_id: user, amount: 300 });
await onUpgraded({ id: 'evt_4', user });
await onCanceled({ id: 'evt_5', user });

const { active_balance } = await scrip.getActiveBalance({ end_user_id: user });
console.log(`${active_balance} credits are left until the end of the period.`);
