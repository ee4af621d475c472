// Charges for a model's answers. The cost of an answer is known only when the answer is complete: a hold sets aside the
// maximum cost, and the capture spends the actual cost. If the process is killed in the middle of an answer, the next
// process captures the cost of the delivered part. If no process starts before the hold lapses, the user gets the
// credits back. Only one process may use the same file of jobs.

import { DatabaseSync } from 'node:sqlite';
import { type Hold, HoldNotFound, InsufficientFunds, Scrip } from 'scrip-client';

const { SCRIP_URL = 'http://127.0.0.1:8080', SCRIP_KEY = '', JOBS = 'jobs.db' } = process.env;
const scrip = new Scrip({ baseUrl: SCRIP_URL, apiKey: SCRIP_KEY });

const CREDITS_PER_TOKEN = 2;
const TOKENS_MAX = 50;
const CREDITS_MAX = TOKENS_MAX * CREDITS_PER_TOKEN;
/** Longer than an answer and a restart take together, so that the next process can still capture the hold. */
const HOLD_SECONDS = 3600;

/** Your own database stores the holds of unfinished answers, and how many tokens of each answer were delivered. */
const db = new DatabaseSync(JOBS);
db.exec('CREATE TABLE IF NOT EXISTS jobs (hold_id TEXT PRIMARY KEY, user TEXT, tokens INTEGER)');
const begin = db.prepare('INSERT INTO jobs VALUES (?, ?, 0)');
const count = db.prepare('UPDATE jobs SET tokens = tokens + 1 WHERE hold_id = ?');
const end = db.prepare('DELETE FROM jobs WHERE hold_id = ?');

/** A stand-in for a model's API. The model streams an answer of unknown length. */
async function* askModel(question: string): AsyncGenerator<string> {
  const words = `You ask: ${question} Air scatters blue light more than red, so that it reaches you from everywhere.`;
  for (const word of words.split(' ')) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    yield `${word} `;
  }
}

/** Streams an answer to the user and returns its cost. If this function throws, the hold is released. */
async function writeAnswer(user: string, question: string, { hold_id }: Hold): Promise<number> {
  begin.run(hold_id, user);
  let tokens = 0;
  for await (const token of askModel(question)) {
    process.stdout.write(token);
    count.run(hold_id);
    tokens += 1;
    if (tokens === TOKENS_MAX) break;
  }
  return tokens * CREDITS_PER_TOKEN;
}

/** Holds the maximum cost of an answer, and captures the actual cost. */
async function answer(user: string, question: string): Promise<void> {
  const write = (hold: Hold) => writeAnswer(user, question, hold);
  const paid = await scrip.withHold(user, CREDITS_MAX, write, { expires_in_seconds: HOLD_SECONDS });
  end.run(paid.hold_id);
  const cost = paid.status === 'captured' ? paid.amount : 0;
  console.log(`\nThe answer cost ${cost} credits; ${paid.returned} held credits were returned.`);
}

interface Job {
  readonly hold_id: string;
  readonly user: string;
  readonly tokens: number;
}

/** Charges for the delivered parts of answers that a killed process did not finish. */
async function recover(): Promise<void> {
  for (const { hold_id, user: end_user_id, tokens } of db.prepare('SELECT * FROM jobs').all() as unknown as Job[]) {
    const amount = tokens * CREDITS_PER_TOKEN;
    try {
      if (amount > 0) await scrip.capture({ end_user_id, hold_id, amount, note: 'interrupted' });
      else await scrip.release({ end_user_id, hold_id });
      console.log(`An interrupted answer of ${tokens} tokens cost ${amount} credits.`);
    } catch (error) {
      // The killed process had already captured or released the hold, or the hold has lapsed.
      if (!(error instanceof HoldNotFound)) throw error;
    }
    end.run(hold_id);
  }
}

await recover();
const user = crypto.randomUUID();
await scrip.add({ end_user_id: user, amount: 130 });
for (const question of ['Why is the sky blue?', 'And at night?']) {
  try {
    await answer(user, question);
  } catch (error) {
    if (!(error instanceof InsufficientFunds)) throw error;
    console.log(`An answer can cost ${error.requested} credits, but only ${error.available} are left.`);
  }
}

const { active_balance } = await scrip.getActiveBalance({ end_user_id: user });
console.log(`${active_balance} credits are left.`);
