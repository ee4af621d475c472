// `scrip threshold` and `scrip expiring-notice`: configure an account's `balance.low` and `credits.expiring` events.

import { type Command, InvalidArgumentError } from 'commander';
import { Thresholds } from '../events/thresholds.ts';
import { EXPIRING_DAYS_MAX, THRESHOLDS_MAX, type Threshold, thresholdOf, thresholdText } from '../store/event-log.ts';
import { CannotOpen } from '../store/store-fault.ts';
import { accountName } from './keys.ts';
import { counted, minute, table } from './output.ts';
import { existingAccount, withAccountDatabase } from './with-account-database.ts';

const BELOW = 'an amount of credits, such as 20, or a percentage of the latest grant, such as 20%';

export function addThresholdCommands(program: Command): void {
  const threshold = program.command('threshold').description('manage the thresholds for the balance.low event');
  threshold
    .command('add')
    .description('add a threshold')
    .requiredOption('--account <name>', 'account that the threshold applies to', accountName)
    .requiredOption('--below <threshold>', BELOW, readThreshold)
    .action(addThreshold);
  threshold
    .command('list')
    .description('list the thresholds')
    .option('--account <name>', 'list only the thresholds of this account', accountName)
    .action(listThresholds);
  threshold
    .command('remove')
    .description('remove a threshold')
    .requiredOption('--account <name>', 'account that the threshold applies to', accountName)
    .requiredOption('--below <threshold>', 'threshold to remove, as shown by `scrip threshold list`', readThreshold)
    .action(removeThreshold);
  program
    .command('expiring-notice')
    .description('show or set how many days before expiry the credits.expiring event happens')
    .requiredOption('--account <name>', 'account that the notice applies to', accountName)
    .option('--days <days>', `1 to ${EXPIRING_DAYS_MAX}; if absent, the command shows the current value`, expiringDays)
    .action(expiringNotice);
}

interface ThresholdArguments {
  readonly account: string;
  readonly below: Threshold;
}

async function addThreshold({ account, below }: ThresholdArguments): Promise<void> {
  await withAccountDatabase(async (database) => {
    const added = await new Thresholds(database, Date.now).add(await existingAccount(database, account), below);
    if (added === 'too-many')
      throw new CannotOpen(
        `Account ${account} already has ${THRESHOLDS_MAX} thresholds; remove one with \`scrip threshold remove\`.`,
      );
    const result = added === 'exists' ? 'already exists' : 'added';
    process.stdout.write(`Threshold ${thresholdText(below)} of ${account} ${result}.\n`);
  });
}

async function listThresholds({ account }: { account?: string }): Promise<void> {
  await withAccountDatabase(async (database) => {
    const of = account === undefined ? null : await existingAccount(database, account);
    const rows = (await new Thresholds(database, Date.now).list(of)).map(({ accountName, below, createdAt }) => [
      accountName,
      below,
      minute(createdAt),
    ]);
    process.stdout.write(`${table([['ACCOUNT', 'BELOW', 'CREATED'], ...rows])}\n`);
  });
}

async function removeThreshold({ account, below }: ThresholdArguments): Promise<void> {
  await withAccountDatabase(async (database) => {
    const text = thresholdText(below);
    if (!(await new Thresholds(database, Date.now).remove(await existingAccount(database, account), below)))
      throw new CannotOpen(`Account ${account} has no threshold ${text}; see \`scrip threshold list\`.`);
    process.stdout.write(`Threshold ${text} of ${account} removed.\n`);
  });
}

async function expiringNotice({ account, days }: { account: string; days?: number }): Promise<void> {
  await withAccountDatabase(async (database) => {
    const thresholds = new Thresholds(database, Date.now);
    const number = await existingAccount(database, account);
    if (days !== undefined) await thresholds.setExpiringDays(number, days);
    const current = days ?? (await thresholds.expiringDays(number));
    process.stdout.write(
      `For end users of ${account}, the credits.expiring event happens ${counted(current, 'day')} before credits expire.\n`,
    );
  });
}

function readThreshold(text: string): Threshold {
  const threshold = thresholdOf(text);
  if (threshold === null) throw new InvalidArgumentError(`Must be ${BELOW}.`);
  return threshold;
}

function expiringDays(text: string): number {
  const days = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (days < 1 || days > EXPIRING_DAYS_MAX)
    throw new InvalidArgumentError(`Must be a whole number from 1 to ${EXPIRING_DAYS_MAX}.`);
  return days;
}
