// Reads and validates the settings, which are environment variables; see docs/settings.md. No error message repeats a
// value that can contain a secret.

import { isLoopback } from './accounts/loopback.ts';
import { SIGN_UP_POLICIES } from './accounts/membership.ts';
import type { RateLimitSettings } from './accounts/rate-limit.ts';
import type { ConsoleSettings } from './console/console-context.ts';
import type { MailSettings } from './console/identity/mailer.ts';
import { CONNECTIONS_MAX, SERVER_LIMITS } from './http/limits.ts';
import { DAY_MS, HOUR_MS } from './ledger/instant.ts';
import type { IdempotencyRetention } from './store/ledger-store.ts';
import type { TracingSettings } from './tracing/tracer.ts';

export interface PostgresDatabase {
  readonly kind: 'postgres';
  readonly url: string;
  /** The number of lanes, which write batches concurrently; null for the default. */
  readonly lanes: number | null;
  /** Whether each connection uses prepared statements. */
  readonly prepared: boolean;
  /** Whether Citus distributes the tables. If null, Scrip checks whether the database has Citus. */
  readonly citus: boolean | null;
  /** The number of shards of a new ledger, if Citus distributes the tables. */
  readonly shards: number;
  /** Whether to start even if the database server's settings mean that a crash could lose committed writes. */
  readonly acceptUnsafe: boolean;
}

export type Database = { readonly kind: 'file'; readonly path: string } | PostgresDatabase;

export interface Config {
  readonly host: string;
  readonly port: number;
  readonly database: Database;
  /** Whether the ledger must have a test clock; false if absent. Set by the `--test-clock` option of `scrip serve`. */
  readonly testClock?: boolean;
  readonly logLevel: string;
  readonly idempotency: IdempotencyRetention;
  readonly events: EventsSettings;
  readonly logRequests: boolean;
  /** The port for `/metrics`; null to serve `/metrics` on `port`. */
  readonly metricsPort: number | null;
  readonly maxConnections: number;
  /** The limit on requests per API key; null if unlimited. */
  readonly rateLimit: RateLimitSettings | null;
  /** Null if no traces are sent. */
  readonly tracing: TracingSettings | null;
  readonly console: ConsoleSettings;
}

interface EventsSettings {
  /** Events are stored for at least this long. */
  readonly retentionMs: number;
  /** Whether webhooks to private and loopback addresses are allowed. */
  readonly allowPrivate: boolean;
  /** The key that encrypts webhook secrets; null if Scrip keeps the key in a file. */
  readonly key: string | null;
}

/** Thrown if a setting has an invalid value. The message is a sentence that names the setting. */
export class InvalidSetting extends Error {
  override readonly name = 'InvalidSetting';
}

/** The path of the ledger file if `DATABASE_URL` is not set. */
export const DEFAULT_LEDGER = 'data/scrip.db';
const PORT_MAX = 65_535;
export const LANES_MAX = 64;

/** The ledger has 64 buckets, so with more than 64 shards, some shards would be empty. */
export const SHARDS_MAX = 64;
const MAIL_ADDRESS = /^(?:[^<>\s@]+@[^<>\s@]+|[^<>\r\n]+ <[^<>\s@]+@[^<>\s@]+>)$/;
/** Clients are allowed to retry a write for a day, so idempotency records are kept for at least a day. */
export const IDEMPOTENCY_HOURS_MIN = 24;
export const IDEMPOTENCY_HOURS_MAX = 8_760;
export const IDEMPOTENCY_GRANT_DAYS_MAX = 3_650;
/** Failed deliveries are retried for three days, so events must be kept for more than three days. */
export const EVENT_RETENTION_DAYS_MIN = 4;
export const EVENT_RETENTION_DAYS_MAX = 365;
/** No higher limit makes sense: one process cannot answer this many requests per second. */
export const RATE_LIMIT_MAX = 1_000_000;
const CONNECTIONS = String(SERVER_LIMITS.connectionsMax);
const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'];

export const SETTING_NAMES = [
  ...['PORT', 'HOST', 'LOG_LEVEL', 'REQUEST_LOG', 'METRICS_PORT', 'MAX_CONNECTIONS', 'RATE_LIMIT', 'RATE_LIMIT_BURST'],
  ...['DATABASE_URL', 'DATABASE_LANES', 'DATABASE_PREPARED', 'DATABASE_CITUS', 'DATABASE_SHARDS'],
  'DATABASE_ACCEPT_UNSAFE',
  ...['EVENT_RETENTION_DAYS', 'WEBHOOK_ALLOW_PRIVATE', 'WEBHOOK_KEY'],
  ...['IDEMPOTENCY_GRANT_DAYS', 'IDEMPOTENCY_HOURS', 'PUBLIC_URL', 'SIGN_UP', 'SMTP_URL', 'MAIL_FROM'],
  ...['OTEL_SDK_DISABLED', 'OTEL_SERVICE_NAME', 'OTEL_RESOURCE_ATTRIBUTES', 'OTEL_TRACES_EXPORTER'],
  ...['OTEL_TRACES_SAMPLER', 'OTEL_TRACES_SAMPLER_ARG', 'OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_HEADERS'],
  ...['OTEL_EXPORTER_OTLP_PROTOCOL', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_HEADERS'],
  'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL',
];

/** Returns each variable whose name is one typo away from a setting, with that setting. Does not read any values. */
export function misspelledSettings(environment: NodeJS.ProcessEnv): (readonly [name: string, setting: string])[] {
  return Object.keys(environment).flatMap((name) => {
    if (SETTING_NAMES.includes(name)) return [];
    const setting = SETTING_NAMES.find((known) => isOneErrorAway(name, known));
    return setting === undefined ? [] : [[name, setting] as const];
  });
}

function isOneErrorAway(a: string, b: string): boolean {
  const shorter = Math.min(a.length, b.length);
  let start = 0;
  while (start < shorter && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < shorter - start && a.at(-1 - end) === b.at(-1 - end)) end += 1;
  const [restA, restB] = [a.slice(start, a.length - end), b.slice(start, b.length - end)];
  if (restA.length <= 1 && restB.length <= 1) return true;
  return restA.length === 2 && restA === [...restB].reverse().join('');
}

/** @throws InvalidSetting */
export function readConfig(environment: NodeJS.ProcessEnv): Config {
  return {
    host: environment.HOST || '127.0.0.1',
    port: wholeNumber('PORT', environment.PORT || '8080', 0, PORT_MAX),
    database: databaseOf(environment),
    logLevel: oneOf('LOG_LEVEL', environment.LOG_LEVEL || 'info', LOG_LEVELS),
    idempotency: idempotencyOf(environment),
    events: eventsOf(environment),
    logRequests: isOn('REQUEST_LOG', environment.REQUEST_LOG || 'no'),
    metricsPort: environment.METRICS_PORT ? wholeNumber('METRICS_PORT', environment.METRICS_PORT, 0, PORT_MAX) : null,
    maxConnections: wholeNumber('MAX_CONNECTIONS', environment.MAX_CONNECTIONS || CONNECTIONS, 1, CONNECTIONS_MAX),
    rateLimit: rateLimitOf(environment),
    tracing: tracingSettings(environment),
    console: consoleOf(environment),
  };
}

/** The URL at which this machine reaches a server that listens on `host` and `port`. */
export function originAt(host: string, port: number): string {
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host;
  return `http://${name}:${port}`;
}

function consoleOf(environment: NodeJS.ProcessEnv): ConsoleSettings {
  return {
    publicUrl: environment.PUBLIC_URL ? publicUrlOf(environment.PUBLIC_URL) : null,
    signUp: oneOf('SIGN_UP', environment.SIGN_UP || 'first', SIGN_UP_POLICIES),
    mail: environment.SMTP_URL ? mailOf(environment.SMTP_URL, environment.MAIL_FROM ?? '') : null,
  };
}

/** Requires HTTPS, except for a loopback address: with plain HTTP, others on the network could read session cookies. */
function publicUrlOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url.host));
  const isOrigin = url && url.pathname === '/' && url.search === '' && url.hash === '' && url.username === '';
  if (isSafe && isOrigin) return url.origin;
  throw new InvalidSetting(
    'PUBLIC_URL must be https://HOST or https://HOST:PORT without a path; http:// is allowed only for a loopback address.',
  );
}

/** Error messages must not contain the URL, because it can contain a password. */
function mailOf(smtpUrl: string, from: string): MailSettings {
  if (!/^smtps?:\/\/./.test(smtpUrl) || !URL.canParse(smtpUrl))
    throw new InvalidSetting('SMTP_URL must be a URL that begins with smtp:// or smtps://.');
  if (!MAIL_ADDRESS.test(from))
    throw new InvalidSetting(
      'MAIL_FROM must be an email address, with or without a name, such as Scrip <scrip@example.com>.',
    );
  return { smtpUrl, from };
}

export function databaseOf(environment: NodeJS.ProcessEnv): Database {
  return databaseAt('DATABASE_URL', environment.DATABASE_URL || `file:${DEFAULT_LEDGER}`, environment);
}

/**
 * @param name the variable or option that contains `text`. Error messages contain `name`, but not `text`, because
 * `text` can contain a password.
 * @throws InvalidSetting
 */
export function databaseAt(name: string, text: string, environment: NodeJS.ProcessEnv): Database {
  // Read the settings for PostgreSQL even if the ledger is a file, so that an invalid value is always an error.
  const postgres = postgresOf(text, environment);
  if (/^postgres(ql)?:\/\//.test(text)) return postgres;
  const path = text.startsWith('file:') ? text.slice('file:'.length).replace(/^\/\/(?=\/)/, '') : '';
  // SQLite gives these names another meaning.
  const isSpecial = path === ':memory:' || /^file:/i.test(path);
  if (path === '' || isSpecial) throw new InvalidSetting(`${name} must be file:PATH or postgres://….`);
  return { kind: 'file', path };
}

function postgresOf(url: string, environment: NodeJS.ProcessEnv): PostgresDatabase {
  const citus = oneOf('DATABASE_CITUS', environment.DATABASE_CITUS || 'auto', ['auto', 'yes', 'no']);
  return {
    kind: 'postgres',
    url,
    lanes: environment.DATABASE_LANES ? wholeNumber('DATABASE_LANES', environment.DATABASE_LANES, 1, LANES_MAX) : null,
    prepared: isOn('DATABASE_PREPARED', environment.DATABASE_PREPARED || 'yes'),
    citus: citus === 'auto' ? null : citus === 'yes',
    shards: wholeNumber('DATABASE_SHARDS', environment.DATABASE_SHARDS || '16', 1, SHARDS_MAX),
    acceptUnsafe: isOn('DATABASE_ACCEPT_UNSAFE', environment.DATABASE_ACCEPT_UNSAFE || 'no'),
  };
}

/**
 * By default, the idempotency records of grants are kept longer than all others. Grants often follow webhooks from
 * payment providers, and these webhooks are retried for days.
 */
function idempotencyOf(environment: NodeJS.ProcessEnv): IdempotencyRetention {
  const days = environment.IDEMPOTENCY_GRANT_DAYS || '30';
  const hours = environment.IDEMPOTENCY_HOURS || '24';
  const othersMs = HOUR_MS * wholeNumber('IDEMPOTENCY_HOURS', hours, IDEMPOTENCY_HOURS_MIN, IDEMPOTENCY_HOURS_MAX);
  const grantsMs = DAY_MS * wholeNumber('IDEMPOTENCY_GRANT_DAYS', days, 1, IDEMPOTENCY_GRANT_DAYS_MAX);
  return { grantsMs: Math.max(grantsMs, othersMs), othersMs };
}

/** Error messages must not contain the value of `WEBHOOK_KEY`. */
export function eventsOf(environment: NodeJS.ProcessEnv): EventsSettings {
  const days = environment.EVENT_RETENTION_DAYS || '30';
  const key = environment.WEBHOOK_KEY || null;
  if (key !== null && !/^[0-9a-f]{64}$/i.test(key))
    throw new InvalidSetting('WEBHOOK_KEY must be 64 hexadecimal digits, such as the output of openssl rand -hex 32.');
  return {
    retentionMs: DAY_MS * wholeNumber('EVENT_RETENTION_DAYS', days, EVENT_RETENTION_DAYS_MIN, EVENT_RETENTION_DAYS_MAX),
    allowPrivate: isOn('WEBHOOK_ALLOW_PRIVATE', environment.WEBHOOK_ALLOW_PRIVATE || 'no'),
    key,
  };
}

function wholeNumber(name: string, text: string, min: number, max: number): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= min && value <= max) return value;
  throw new InvalidSetting(`${name} is ${JSON.stringify(text)}; it must be a whole number from ${min} to ${max}.`);
}

function oneOf<Value extends string>(name: string, value: string, values: readonly Value[]): Value {
  const found = values.find((candidate) => candidate === value);
  if (found !== undefined) return found;
  throw new InvalidSetting(`${name} is ${JSON.stringify(value)}; it must be one of ${values.join(', ')}.`);
}

function isOn(name: string, text: string): boolean {
  return oneOf(name, text, ['yes', 'no']) === 'yes';
}

function rateLimitOf(environment: NodeJS.ProcessEnv): RateLimitSettings | null {
  const rate = environment.RATE_LIMIT;
  const burst = environment.RATE_LIMIT_BURST;
  if (!rate && burst)
    throw new InvalidSetting('RATE_LIMIT_BURST has no effect without RATE_LIMIT; set both, or neither.');
  if (!rate) return null;
  const perSecond = wholeNumber('RATE_LIMIT', rate, 1, RATE_LIMIT_MAX);
  return { perSecond, burst: wholeNumber('RATE_LIMIT_BURST', burst || rate, perSecond, RATE_LIMIT_MAX) };
}

/**
 * Reads the OpenTelemetry variables:
 * https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
 */
function tracingSettings(environment: NodeJS.ProcessEnv): TracingSettings | null {
  const endpoint = traceEndpoint(environment);
  const isOff = environment.OTEL_SDK_DISABLED?.toLowerCase() === 'true' || environment.OTEL_TRACES_EXPORTER === 'none';
  if (endpoint === null || isOff) return null;
  refuseGrpc(environment);
  const sampler = environment.OTEL_TRACES_SAMPLER || 'parentbased_always_on';
  const resource = pairs('OTEL_RESOURCE_ATTRIBUTES', environment.OTEL_RESOURCE_ATTRIBUTES);
  const name = environment.OTEL_SERVICE_NAME || resource['service.name'] || 'scrip';
  return {
    endpoint,
    headers: traceHeaders(environment),
    resource: { ...resource, 'service.name': name },
    ratio: sampledRatio(sampler, environment.OTEL_TRACES_SAMPLER_ARG || '1'),
    followsParent: sampler.startsWith('parentbased_'),
  };
}

function traceEndpoint(environment: NodeJS.ProcessEnv): string | null {
  const own = environment.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT;
  const base = environment.OTEL_EXPORTER_OTLP_ENDPOINT;
  const endpoint = own || (base && `${base.replace(/\/$/, '')}/v1/traces`);
  if (!endpoint) return null;
  const url = URL.canParse(endpoint) ? new URL(endpoint) : null;
  // `fetch` would refuse a URL with a password, and its error message would contain the password.
  if (url && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '') return endpoint;
  const name = own ? 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT' : 'OTEL_EXPORTER_OTLP_ENDPOINT';
  throw new InvalidSetting(
    `${name} must be a URL that begins with http:// or https://, without a user name or password; put credentials into OTEL_EXPORTER_OTLP_HEADERS.`,
  );
}

function refuseGrpc(environment: NodeJS.ProcessEnv): void {
  const own = environment.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL;
  if ((own || environment.OTEL_EXPORTER_OTLP_PROTOCOL) !== 'grpc') return;
  const name = own ? 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL' : 'OTEL_EXPORTER_OTLP_PROTOCOL';
  throw new InvalidSetting(`${name} is "grpc"; Scrip supports only http/json.`);
}

function traceHeaders(environment: NodeJS.ProcessEnv): Record<string, string> {
  const own = environment.OTEL_EXPORTER_OTLP_TRACES_HEADERS;
  const name = own ? 'OTEL_EXPORTER_OTLP_TRACES_HEADERS' : 'OTEL_EXPORTER_OTLP_HEADERS';
  const headers = pairs(name, own || environment.OTEL_EXPORTER_OTLP_HEADERS);
  try {
    new Headers(headers);
  } catch {
    throw new InvalidSetting(`${name} contains a name or a value that is not allowed in an HTTP header.`);
  }
  return headers;
}

const ROOT_SAMPLERS = ['always_on', 'always_off', 'traceidratio'];
const SAMPLERS = [...ROOT_SAMPLERS, ...ROOT_SAMPLERS.map((root) => `parentbased_${root}`)];

function sampledRatio(sampler: string, argument: string): number {
  const kind = oneOf('OTEL_TRACES_SAMPLER', sampler, SAMPLERS).replace(/^parentbased_/, '');
  if (kind !== 'traceidratio') return kind === 'always_on' ? 1 : 0;
  const ratio = Number(argument);
  if (argument.trim() !== '' && ratio >= 0 && ratio <= 1) return ratio;
  throw new InvalidSetting(`OTEL_TRACES_SAMPLER_ARG is ${JSON.stringify(argument)}; it must be a number from 0 to 1.`);
}

/** Parses `name=value,name=value` with percent-encoded values. Error messages omit the values, which can be secrets. */
function pairs(name: string, text = ''): Record<string, string> {
  try {
    const entries = text.split(',').filter((pair) => pair.trim() !== '');
    return Object.fromEntries(
      entries.map((entry) => {
        const [, key, value] = /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/.exec(entry) ?? [];
        if (key === undefined || value === undefined) throw new URIError(entry);
        return [key, decodeURIComponent(value)];
      }),
    );
  } catch {
    throw new InvalidSetting(`${name} must have the form name=value,name=value.`);
  }
}
