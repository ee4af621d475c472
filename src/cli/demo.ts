// `scrip demo`: fills a new ledger with a made-up account, so that you can try the console and the API immediately.

import { randomBytes } from 'node:crypto';
import { type Command, InvalidArgumentError } from 'commander';
import { SECRET_BYTES } from '../accounts/api-key.ts';
import { readConfig } from '../config.ts';
import { copyInto } from '../open-tools.ts';
import { invitationPath, linkOrigin } from './console-people.ts';
import { ACCOUNT_NAME, DemoLedger } from './demo/demo-ledger.ts';
import { DAYS } from './demo/history.ts';
import { counted, withProgress } from './output.ts';
import { type CreateOption, createOption, prepareFolder } from './with-ledger.ts';

const DEFAULT_SEED = 1;
const SEED_MAX = 2 ** 32 - 1;

export function addDemoCommand(program: Command): void {
  program
    .command('demo')
    .description('fill a new ledger with sample data: an account with 200 end users and two months of activity')
    .option(
      '--seed <number>',
      'seed for the random numbers; each seed generates a different account',
      seedOf,
      DEFAULT_SEED,
    )
    .addOption(createOption())
    .action(demo);
}

async function demo({ seed, create }: CreateOption & { seed: number }): Promise<void> {
  const config = readConfig(process.env);
  const { database } = config;
  await prepareFolder(database, { create });
  const made = new DemoLedger({ seed, until: Date.now(), randomness: randomBytes(SECRET_BYTES) });
  const { endUsers, postings } = await withProgress((show) => copyInto(made, database, show));
  const path = await invitationPath(database, { accountName: ACCOUNT_NAME, role: 'owner', onlyFirst: true });
  const { origin, note } = linkOrigin(config);
  process.stdout.write(`Created the account "${ACCOUNT_NAME}" with ${counted(endUsers, 'end user')} and ${counted(postings, 'posting')} over ${DAYS} days.

Start the server with the same DATABASE_URL:

  scrip serve    (in a clone of the repository: npm start)

Then open this link to become the owner of the account in the console (works once, expires in 7 days${note}):

  ${origin}${path}

API key of the account (shown only once):

${made.secret}
`);
}

function seedOf(text: string): number {
  if (/^\d{1,10}$/.test(text) && Number(text) <= SEED_MAX) return Number(text);
  throw new InvalidArgumentError(`Must be a whole number from 0 to ${SEED_MAX}.`);
}
