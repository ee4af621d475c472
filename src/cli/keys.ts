// `scrip key`: creates, lists and revokes API keys. The secret of a new key is the last line of the output, so that a
// script can read it.

import { type Command, InvalidArgumentError, Option } from 'commander';
import { KEY_NAME_CHARACTERS_MAX, SCOPES, type Scope } from '../accounts/api-key.ts';
import { ACCOUNT_NAME_MAX } from '../accounts/membership.ts';
import { isVisible } from '../accounts/visible-text.ts';
import { createApiKey, type ListedKey } from '../store/key-store.ts';
import { CannotOpen } from '../store/store-fault.ts';
import { minute, table } from './output.ts';
import { type CreateOption, createOption, withLedger, withNewLedger } from './with-ledger.ts';

export function addKeyCommands(program: Command): void {
  const key = program.command('key').description('create, list and revoke API keys');
  key
    .command('create')
    .description('create an API key and print it; it cannot be shown again')
    .requiredOption('--account <name>', 'account that owns the key; created if it does not exist', accountName)
    .addOption(new Option('--scope <scope>', 'permissions; write includes read').choices(SCOPES).default('write'))
    .option('--name <name>', 'label shown in the list of keys', keyName, '')
    .addOption(createOption())
    .action(createKey);
  key.command('list').description('list all API keys, without their secrets').action(listKeys);
  key
    .command('revoke')
    .description('revoke an API key; it stops working within one second')
    .argument('<id>', 'ID from `scrip key list`', keyId)
    .action(revokeKey);
}

interface NewKeyArguments extends CreateOption {
  readonly account: string;
  readonly scope: Scope;
  readonly name: string;
}

async function createKey({ account, scope, name, create }: NewKeyArguments): Promise<void> {
  await withNewLedger({ create }, async ({ keys }) => {
    const secret = await createApiKey(keys, { accountName: account, scope, name });
    process.stdout.write(`API key for ${account} with scope ${scope} (shown only once):\n${secret}\n`);
  });
}

async function listKeys(): Promise<void> {
  await withLedger(async ({ keys }) => {
    const lines = (await keys.list()).map(rowOf);
    const header = ['ID', 'ACCOUNT', 'NAME', 'SCOPE', 'KEY', 'CREATED', 'LAST USED', 'REVOKED'];
    process.stdout.write(`${table([header, ...lines])}\n`);
  });
}

async function revokeKey(id: number): Promise<void> {
  await withLedger(async ({ keys }) => {
    if (!(await keys.revoke(id))) throw new CannotOpen(`API key ${id} does not exist; see \`scrip key list\`.`);
    process.stdout.write(`API key ${id} revoked.\n`);
  });
}

export function accountName(text: string): string {
  const name = text.trim();
  if (!isVisible(name) || name.length > ACCOUNT_NAME_MAX)
    throw new InvalidArgumentError(`Must be 1 to ${ACCOUNT_NAME_MAX} characters.`);
  refuseControlCharacters(name);
  return name;
}

function keyName(text: string): string {
  const name = text.trim();
  if ([...name].length > KEY_NAME_CHARACTERS_MAX)
    throw new InvalidArgumentError(`Must be at most ${KEY_NAME_CHARACTERS_MAX} characters.`);
  refuseControlCharacters(name);
  return name;
}

/** Control characters would break the tables that commands print. */
function refuseControlCharacters(name: string): void {
  if (!/^[^\p{Cc}\p{Cs}\u2028\u2029]*$/u.test(name))
    throw new InvalidArgumentError('Must not contain control characters.');
}

function keyId(text: string): number {
  if (!/^[1-9]\d{0,14}$/.test(text)) throw new InvalidArgumentError('Must be an ID from `scrip key list`.');
  return Number(text);
}

function rowOf({ id, accountName, name, scope, hint, createdAt, lastUsedAt, revokedAt }: ListedKey): string[] {
  const [used, revoked] = [lastUsedAt, revokedAt].map((at) => (at === null ? '' : minute(at))) as [string, string];
  return [String(id), accountName, name, scope, hint, minute(createdAt), used, revoked];
}
