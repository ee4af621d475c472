// A free trial: whoever signs up gets credits for two weeks, and each use takes some. When they are used up or have
// expired, it is time to ask for money.

import { InsufficientFunds, Scrip } from '@scrip/client';

const { SCRIP_URL = 'http://127.0.0.1:8080', SCRIP_KEY = '' } = process.env;
const scrip = new Scrip({ baseUrl: SCRIP_URL, apiKey: SCRIP_KEY });

const TRIAL = { amount: 100, validity_days: 14 };
const CREDITS_PER_IMAGE = 40;

async function signUp(): Promise<string> {
  // Any UUID of yours: keep it with the user in your own database.
  const user = crypto.randomUUID();
  // A trial is given once, also if signing up is tried again after an error.
  await scrip.add({ end_user_id: user, ...TRIAL }, { idempotencyKey: 'trial' });
  return user;
}

/** Subtracts first and works then, so that two requests at once cannot spend the same credits. */
async function drawImage(user: string): Promise<string> {
  try {
    await scrip.subtract({ end_user_id: user, amount: CREDITS_PER_IMAGE });
  } catch (error) {
    if (error instanceof InsufficientFunds)
      return `The trial is over: ${error.available} of ${error.requested} credits.`;
    throw error;
  }
  return 'Here is your image.';
}

const user = await signUp();
console.log(await drawImage(user));
console.log(await drawImage(user));
console.log(await drawImage(user));

const { active_balance, active_balance_by_cycle } = await scrip.getActiveBalance({ end_user_id: user });
console.log(`${active_balance} credits are left, in ${active_balance_by_cycle.length} cycle.`);
