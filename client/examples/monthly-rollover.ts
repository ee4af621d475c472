// Tests a monthly plan with rollover on a ledger with a test clock. The plan grants 1000 credits a month, and up to 500
// unused credits roll over to the next month.

import { Scrip } from 'scrip-client';

const { SCRIP_URL = 'http://127.0.0.1:8080', SCRIP_KEY = '' } = process.env;
const scrip = new Scrip({ baseUrl: SCRIP_URL, apiKey: SCRIP_KEY });

const PLAN = { amount: 1000, validity_months: 1, rollover_max: 500 };

/** Moves the test clock to the end of the month. Returns the new balance. */
async function passMonth(end_user_id: string): Promise<number> {
  const { active_balance_by_cycle } = await scrip.getActiveBalance({ end_user_id });
  const [month] = active_balance_by_cycle;
  if (month === undefined) throw new Error('There is no plan.');
  await scrip.testClock.advance({ to: month.cycle_end });
  return (await scrip.getActiveBalance({ end_user_id })).active_balance;
}

const end_user_id = crypto.randomUUID();
await scrip.startCycle({ end_user_id, ...PLAN });

await scrip.subtract({ end_user_id, amount: 700 });
console.log(`After a month with 300 unused credits: ${await passMonth(end_user_id)}.`);
console.log(`After a month with 1300 unused credits: ${await passMonth(end_user_id)}.`);
await scrip.subtract({ end_user_id, amount: 1500 });
console.log(`After a month without unused credits: ${await passMonth(end_user_id)}.`);

await scrip.stopCycle({ end_user_id });
console.log(`After the plan was canceled: ${await passMonth(end_user_id)}.`);
