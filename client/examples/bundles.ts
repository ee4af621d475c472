// A shop with pay-as-you-go prices sells bundles of credits, each with its own price and validity. The payment provider
// calls a webhook for each paid bundle, sometimes more than once.

import { Scrip } from 'scrip-client';

const { SCRIP_URL = 'http://127.0.0.1:8080', SCRIP_KEY = '' } = process.env;
const scrip = new Scrip({ baseUrl: SCRIP_URL, apiKey: SCRIP_KEY });

/** The shop stores the prices, because Scrip stores only credits and their validity. */
const BUNDLES = {
  small: { euros: 5, amount: 500, validity_days: 90 },
  large: { euros: 40, amount: 5000, validity_days: 365 },
};

interface Payment {
  readonly id: string;
  readonly user: string;
  readonly bundle: keyof typeof BUNDLES;
}

/** The idempotency key contains the payment ID, so that a repeated webhook does not add the credits again. */
async function onPaid({ id, user, bundle }: Payment): Promise<void> {
  const { amount, validity_days } = BUNDLES[bundle];
  await scrip.add({ end_user_id: user, amount, validity_days }, { idempotencyKey: `payment ${id}` });
}

const user = crypto.randomUUID();
await onPaid({ id: 'pay_1', user, bundle: 'small' });
await onPaid({ id: 'pay_2', user, bundle: 'large' });
await onPaid({ id: 'pay_2', user, bundle: 'large' });
await scrip.subtract({ end_user_id: user, amount: 700 });

const { active_balance } = await scrip.getActiveBalance({ end_user_id: user });
console.log(`${active_balance} credits are left.`);

// Lists all transactions of the user, newest first.
for await (const { amount } of scrip.transactions({ end_user_id: user })) {
  console.log(amount > 0 ? `bought ${amount}` : `spent ${-amount}`);
}
