// `scrip webhook`: manages the endpoints to which events are sent. A secret is printed only once, alone on the last
// line, so that a script can read it.

import assert from 'node:assert/strict';
import { type Command, InvalidArgumentError } from 'commander';
import { readConfig } from '../config.ts';
import { urlProblem } from '../events/webhooks/addresses.ts';
import {
  type EndpointSummary,
  Endpoints,
  endpointIdIn,
  InvalidEndpoint,
  type ListedEndpoint,
} from '../events/webhooks/endpoints.ts';
import type { Instant } from '../ledger/instant.ts';
import { instantIn } from '../ledger/instant-text.ts';
import { addressRulesOf, openWebhookSecrets } from '../open-webhooks.ts';
import { EVENT_TYPES, type EventType } from '../store/event-log.ts';
import { OPERATOR } from '../store/key-store.ts';
import { CannotOpen } from '../store/store-fault.ts';
import { accountName } from './keys.ts';
import { counted, minute, table } from './output.ts';
import { existingAccount, withAccountDatabase } from './with-account-database.ts';

export function addWebhookCommands(program: Command): void {
  const webhook = program.command('webhook').description('manage the endpoints to which events are sent');
  webhook
    .command('add')
    .description('add an endpoint and print its secret, which cannot be shown again')
    .requiredOption('--account <name>', 'account whose events are sent', accountName)
    .requiredOption('--url <url>', 'URL that receives the events, https://…')
    .option('--types <types>', 'event types, separated by commas; all types if absent', eventTypes, [])
    .action(addEndpoint);
  webhook
    .command('list')
    .description('list the endpoints, without their secrets')
    .option('--account <name>', 'list only the endpoints of this account', accountName)
    .action(listEndpoints);
  onEndpoint(
    webhook,
    'rotate',
    'replace the secret and print the new one; for 24 hours, Scrip signs with both secrets',
  ).action(rotate);
  onEndpoint(
    webhook,
    'pause',
    'stop sending events to an endpoint; the events wait until you resume the endpoint',
  ).action((id: number) =>
    change(
      id,
      (endpoints) => endpoints.pause(null, id),
      `Webhook endpoint ${id} paused; its events wait until you resume the endpoint.`,
    ),
  );
  onEndpoint(webhook, 'resume', 'resume sending events to an endpoint, and send the waiting events now').action(
    (id: number) => change(id, (endpoints) => endpoints.resume(null, id), `Webhook endpoint ${id} resumed.`),
  );
  onEndpoint(webhook, 'remove', 'remove an endpoint, its secret and its pending events').action((id: number) =>
    change(id, (endpoints) => endpoints.remove(null, id), `Webhook endpoint ${id} removed.`),
  );
  onEndpoint(webhook, 'test', 'send a test event').action((id: number) =>
    change(id, (endpoints) => endpoints.sendTest(null, id), 'Test event queued; the server will send it.'),
  );
  onEndpoint(webhook, 'resend', 'resend an event, or all events in a time range')
    .option('--event <id>', 'ID of the event to resend, evt_…')
    .option('--from <instant>', 'start of the time range, such as 2026-11-20T08:00:00Z', instant)
    .option('--to <instant>', 'end of the time range (exclusive)', instant)
    .action(resend);
}

function onEndpoint(webhook: Command, name: string, description: string): Command {
  return webhook.command(name).description(description).argument('<id>', 'ID from `scrip webhook list`', endpointId);
}

async function withEndpoints(
  work: (endpoints: Endpoints, accountNamed: (name: string) => Promise<number>) => Promise<void>,
): Promise<void> {
  await withAccountDatabase(async (database, config) => {
    const secrets = openWebhookSecrets(config);
    const endpoints = new Endpoints({ database, secrets, now: Date.now, rules: addressRulesOf(config) });
    await work(endpoints, (name) => existingAccount(database, name)).catch((error: Error) => {
      throw error instanceof InvalidEndpoint ? new CannotOpen(error.message) : error;
    });
  });
}

interface NewEndpointArguments {
  readonly account: string;
  readonly url: string;
  readonly types: readonly EventType[];
}

async function addEndpoint({ account, url, types }: NewEndpointArguments): Promise<void> {
  await withEndpoints(async (endpoints, accountNamed) => {
    const problem = urlProblem(url, addressRulesOf(readConfig(process.env)));
    if (problem !== null) throw new CannotOpen(`--url: ${problem}`);
    const owner = { account: await accountNamed(account), createdBy: OPERATOR };
    const added = await endpoints.add({ ...owner, url, types });
    assert(added, '`add` returns null only if a console form is submitted twice');
    process.stdout.write(
      `Webhook endpoint ${added.endpoint.id} added to ${account}. Secret (shown only once):\n${added.secret}\n`,
    );
  });
}

async function listEndpoints({ account }: { account?: string }): Promise<void> {
  await withEndpoints(async (endpoints, accountNamed) => {
    const listed = await endpoints.list(account === undefined ? null : await accountNamed(account));
    const rows = await Promise.all(
      listed.map(async (endpoint) => rowOf(endpoint, await endpoints.summary(null, endpoint.id))),
    );
    const header = ['ID', 'ACCOUNT', 'URL', 'TYPES', 'CREATED', 'LAST DELIVERED', 'PENDING', 'PAUSED'];
    process.stdout.write(`${table([header, ...rows])}\n`);
  });
}

function rowOf(
  { id, accountName, url, types, createdAt, paused }: ListedEndpoint,
  { pending, lastDeliveredAt }: EndpointSummary,
): string[] {
  const delivered = lastDeliveredAt === null ? '' : minute(lastDeliveredAt);
  const reason = paused === null ? '' : `${minute(paused.at)} ${paused.because}`;
  const shownTypes = types.length === 0 ? 'all' : types.join(',');
  return [String(id), accountName, url, shownTypes, minute(createdAt), delivered, String(pending), reason];
}

async function rotate(id: number): Promise<void> {
  await withEndpoints(async (endpoints) => {
    const secret = await endpoints.rotate(null, id);
    if (secret === null) throw unknownEndpoint(id);
    process.stdout.write(
      `New secret of webhook endpoint ${id} (shown only once; for 24 hours, Scrip signs with both secrets):\n${secret}\n`,
    );
  });
}

async function change(id: number, work: (endpoints: Endpoints) => Promise<boolean>, done: string): Promise<void> {
  await withEndpoints(async (endpoints) => {
    if (!(await work(endpoints))) throw unknownEndpoint(id);
    process.stdout.write(`${done}\n`);
  });
}

interface ResendArguments {
  readonly event?: string;
  readonly from?: Instant;
  readonly to?: Instant;
}

async function resend(id: number, { event, from, to }: ResendArguments): Promise<void> {
  const isRange = from !== undefined && to !== undefined;
  if (isRange === (event !== undefined) || (from === undefined) !== (to === undefined))
    throw new CannotOpen('Pass either --event, or both --from and --to.');
  if (isRange && to <= from) throw new CannotOpen('--to must be after --from.');
  await withEndpoints(async (endpoints) => {
    if ((await endpoints.find(null, id)) === null) throw unknownEndpoint(id);
    const count = isRange
      ? await endpoints.resendRange(null, id, from, to)
      : Number(await endpoints.resend(null, id, event ?? ''));
    if (count === 0 && !isRange)
      throw new CannotOpen(
        `Event ${event} is neither pending nor among the latest deliveries of webhook endpoint ${id}. To resend it by time, use --from and --to.`,
      );
    process.stdout.write(`${counted(count, 'event')} queued for the server to resend.\n`);
  });
}

function unknownEndpoint(id: number): CannotOpen {
  return new CannotOpen(`Webhook endpoint ${id} does not exist; see \`scrip webhook list\`.`);
}

function endpointId(text: string): number {
  const id = endpointIdIn(text);
  if (id === null) throw new InvalidArgumentError('Must be an ID from `scrip webhook list`.');
  return id;
}

function eventTypes(text: string): readonly EventType[] {
  const names = text.split(',').map((name) => name.trim());
  const types = EVENT_TYPES.filter((type) => names.includes(type));
  if (new Set(names).size !== types.length)
    throw new InvalidArgumentError(
      `Must be one or more of these event types, separated by commas: ${EVENT_TYPES.join(', ')}.`,
    );
  return types;
}

function instant(text: string): Instant {
  const at = instantIn(text);
  if (at === null)
    throw new InvalidArgumentError('Must be a date and time with a time zone, such as 2026-11-20T08:00:00Z.');
  return at;
}
