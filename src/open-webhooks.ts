// Starts the delivery of webhooks. The settings determine which addresses are allowed to receive webhooks, and where
// Scrip stores the key that encrypts webhook secrets.

import { type Config, DEFAULT_LEDGER } from './config.ts';
import type { AddressRules } from './events/webhooks/addresses.ts';
import { openSecretBox, type SecretBox } from './events/webhooks/secrets.ts';
import type { WebhookJob, WebhookLogger } from './events/webhooks/webhook-job.ts';
import type { SharedAccountDatabase } from './open-store.ts';
import type { EventLog } from './store/event-log.ts';
import { VERSION } from './version.ts';

/**
 * Opens the `SecretBox` for webhook secrets. If no key is set and the key file does not exist, creates the file.
 *
 * @throws UnusableSecret, CannotOpen
 */
export function openWebhookSecrets({ database, events }: Pick<Config, 'database' | 'events'>): SecretBox {
  const file = database.kind === 'file' ? `${database.path}.key` : DEFAULT_LEDGER.replace(/\.db$/, '.key');
  return openSecretBox({ key: events.key, file });
}

/** Without a public URL, Scrip allows loopback addresses, for development. */
export function addressRulesOf({ events, console }: Pick<Config, 'events' | 'console'>): AddressRules {
  return { allowPrivate: events.allowPrivate, allowLoopback: console.publicUrl === null };
}

/** Called after the server has begun to listen, because loading the query library takes a while. */
export async function startWebhooks(
  config: Config,
  accounts: SharedAccountDatabase,
  events: EventLog,
  logger: WebhookLogger,
): Promise<WebhookJob> {
  const [{ WebhookJob }, { SHARED_LEASES }, database] = await Promise.all([
    import('./events/webhooks/webhook-job.ts'),
    import('./events/webhooks/leases.ts'),
    accounts.open(),
  ]);
  let secrets: SecretBox | null = null;
  const job = new WebhookJob({
    database,
    events,
    secrets: {
      // `openWebhookSecrets` can create the key file, so it is called only when the first secret is needed.
      open(sealed) {
        secrets ??= openWebhookSecrets(config);
        return secrets.open(sealed);
      },
    },
    rules: addressRulesOf(config),
    now: Date.now,
    logger,
    userAgent: `Scrip/${VERSION}`,
    leases: config.database.kind === 'postgres' ? SHARED_LEASES : null,
  });
  job.start();
  return job;
}
