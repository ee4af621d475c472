// In a free trial, a new user gets credits for two weeks, and each image costs some of these credits. The trial is over
// when the credits are used up or have expired.

import { InsufficientFunds, Scrip } from 'scrip-client';

const { SCRIP_URL = 'http://127.0.0.1:8080', SCRIP_KEY = '' } = process.env;
const scrip = new Scrip({ baseUrl: SCRIP_URL, apiKey: SCRIP_KEY });

const TRIAL = { amount: 100, validity_days: 14 };
const CREDITS_PER_IMAGE = 40;

/** The idempotency key prevents a second trial if the sign-up is retried after an error. */
async function signUp(user: string): Promise<void> {
  await scrip.add({ end_user_id: user, ...TRIAL }, { idempotencyKey: 'trial' });
}

/** Subtracts the credits first, so that two simultaneous requests cannot spend the same credits. */
async function drawImage(user: string): Promise<string> {
  try {
    await scrip.subtract({ end_user_id: user, amount: CREDITS_PER_IMAGE });
  } catch (error) {
    if (error instanceof InsufficientFunds)
      return `The trial is over: an image costs ${error.requested} credits, but only ${error.available} are left.`;
    throw error;
  }
  return 'Here is your image.';
}

// Any UUID works. Store the UUID with the user in your own database before you call Scrip.
const user = crypto.randomUUID();
await signUp(user);
console.log(await drawImage(user));
console.log(await drawImage(user));
console.log(await drawImage(user));

const { active_balance, active_balance_by_cycle } = await scrip.getActiveBalance({ end_user_id: user });
console.log(`${active_balance} credits are left, in ${active_balance_by_cycle.length} cycle.`);
