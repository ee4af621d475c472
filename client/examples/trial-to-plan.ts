// Tests a trial that becomes a plan, on a ledger with a test clock. The trial grants 50 credits for 14 days; then the
// plan grants 1000 credits a month.

import { InsufficientFunds, Scrip } from 'scrip-client';

const { SCRIP_URL = 'http://127.0.0.1:8080', SCRIP_KEY = '' } = process.env;
const scrip = new Scrip({ baseUrl: SCRIP_URL, apiKey: SCRIP_KEY });

const TRIAL = { amount: 50, validity_days: 14 };
const PLAN = { amount: 1000, validity_months: 1 };

const balance = async (end_user_id: string) => (await scrip.getActiveBalance({ end_user_id })).active_balance;

const [ada, bob] = [crypto.randomUUID(), crypto.randomUUID()];
for (const end_user_id of [ada, bob]) await scrip.add({ end_user_id, ...TRIAL });
await scrip.subtract({ end_user_id: ada, amount: 20 });

// Ada subscribes during the trial. Her trial credits are spent first, because they were added first.
await scrip.testClock.advance({ days: 13 });
const { current_cycle_end } = await scrip.startCycle({ end_user_id: ada, ...PLAN });
console.log(`On day 13, Ada has ${await balance(ada)} credits, and Bob has ${await balance(bob)}.`);

await scrip.testClock.advance({ days: 1 });
console.log(`On day 14, Ada has ${await balance(ada)} credits, and Bob has ${await balance(bob)}.`);
try {
  await scrip.subtract({ end_user_id: bob, amount: 1 });
} catch (error) {
  if (!(error instanceof InsufficientFunds)) throw error;
  console.log("Bob's trial is over.");
}

await scrip.subtract({ end_user_id: ada, amount: 600 });
await scrip.testClock.advance({ to: current_cycle_end });
console.log(`After the first month, Ada has ${await balance(ada)} credits.`);
