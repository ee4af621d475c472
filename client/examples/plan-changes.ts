// Tests an upgrade that starts now and a downgrade at the end of the period, on a ledger with a test clock.

import { Scrip } from 'scrip-client';

const { SCRIP_URL = 'http://127.0.0.1:8080', SCRIP_KEY = '' } = process.env;
const scrip = new Scrip({ baseUrl: SCRIP_URL, apiKey: SCRIP_KEY });

const BASIC = { amount: 1000, validity_months: 1 };
const PRO = { amount: 5000, validity_months: 1 };

const end_user_id = crypto.randomUUID();
const balance = async () => (await scrip.getActiveBalance({ end_user_id })).active_balance;

await scrip.startCycle({ end_user_id, ...BASIC });
await scrip.subtract({ end_user_id, amount: 400 });
await scrip.testClock.advance({ days: 10 });

// The remaining credits of the old plan stay usable until its period ends, so the user loses no credits.
const upgrade = { end_user_id, ...PRO, on_active: 'replace' } as const;
const preview = await scrip.previewChange(upgrade);
console.log(`The upgrade will leave ${preview.active_balance_at_start} credits.`);
const pro = await scrip.startCycle(upgrade);
console.log(`After the upgrade: ${await balance()}.`);

// The user has paid for the period, so the downgrade waits until the period ends.
await scrip.startCycle({ end_user_id, ...BASIC, on_active: 'at_period_end' });
await scrip.testClock.advance({ days: 27 });
console.log(`Before the period ends: ${await balance()}.`);
await scrip.testClock.advance({ to: pro.current_cycle_end });
console.log(`After the downgrade: ${await balance()}.`);
