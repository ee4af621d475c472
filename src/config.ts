// What the environment says, read and checked once. Each setting is documented in README.md.

import { SIGN_UP_POLICIES, type SignUpPolicy } from './accounts/membership.ts';
import type { RateLimitSettings } from './accounts/rate-limit.ts';
import type { TracingSettings } from './tracing/tracer.ts';

export interface FileDatabase {
  readonly kind: 'file';
  readonly path: string;
  /** Whether the chains of end users are kept. */
  readonly chained?: boolean;
}

export interface PostgresDatabase {
  readonly kind: 'postgres';
  readonly url: string;
  /** Batches written at the same time, a connection each. */
  readonly lanes: number;
  readonly prepared: boolean;
  /** Null: found out from the database. */
  readonly citus: boolean | null;
  readonly acceptUnsafe: boolean;
  /** Whether the chains of end users are kept. */
  readonly chained?: boolean;
}

export type Database = FileDatabase | PostgresDatabase;

export interface ConsoleSettings {
  /** The origin at which people reach Scrip, when it is not the one at which it listens. */
  readonly publicUrl: string | null;
  readonly signUp: SignUpPolicy;
  /** Null without a mail server. */
  readonly mail: { readonly smtpUrl: string; readonly from: string } | null;
}

export interface Config {
  readonly host: string;
  readonly port: number;
  readonly database: Database;
  readonly logLevel: string;
  /** How long the answers to idempotency keys are kept, at least. */
  readonly idempotencyMs: number;
  /** Whether each request is a line in the log. */
  readonly logRequests: boolean;
  /** Where `/metrics` is, instead of `port`; on `port` when null. */
  readonly metricsPort: number | null;
  /** How often each API key may call; null where that is not limited. */
  readonly rateLimit: RateLimitSettings | null;
  /** Where spans go; nowhere when null. */
  readonly tracing: TracingSettings | null;
  readonly console: ConsoleSettings;
}

/** A setting that cannot be used, as a sentence that names it. */
export class InvalidSetting extends Error {
  override readonly name = 'InvalidSetting';
}

const PORT_MAX = 65_535;
export const LANES_MAX = 64;
const HOUR_MS = 3_600_000;
const LOOPBACK_NAME = /^(?:localhost|[a-z0-9.-]+\.localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;
const MAIL_ADDRESS = /^(?:[^<>\s@]+@[^<>\s@]+|[^<>\r\n]+ <[^<>\s@]+@[^<>\s@]+>)$/;
/** A day, which clients may count on, to a year. */
export const IDEMPOTENCY_HOURS_MIN = 24;
export const IDEMPOTENCY_HOURS_MAX = 8_760;
/** Beyond what a process answers. */
export const RATE_LIMIT_MAX = 1_000_000;
const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'];

/** @throws InvalidSetting */
export function readConfig(environment: NodeJS.ProcessEnv): Config {
  return {
    host: environment.HOST || '127.0.0.1',
    port: wholeNumber('PORT', environment.PORT || '8080', 0, PORT_MAX),
    database: databaseOf(environment),
    logLevel: oneOf('LOG_LEVEL', environment.LOG_LEVEL || 'info', LOG_LEVELS),
    idempotencyMs:
      HOUR_MS *
      wholeNumber(
        'IDEMPOTENCY_HOURS',
        environment.IDEMPOTENCY_HOURS || '24',
        IDEMPOTENCY_HOURS_MIN,
        IDEMPOTENCY_HOURS_MAX,
      ),
    ...operatorSettings(environment),
    rateLimit: rateLimitOf(environment),
    tracing: tracingSettings(environment),
    console: consoleOf(environment),
  };
}

function consoleOf(environment: NodeJS.ProcessEnv): ConsoleSettings {
  return {
    publicUrl: environment.PUBLIC_URL ? publicUrlOf(environment.PUBLIC_URL) : null,
    signUp: oneOf('SIGN_UP', environment.SIGN_UP || 'open', SIGN_UP_POLICIES),
    mail: environment.SMTP_URL ? mailOf(environment.SMTP_URL, environment.MAIL_FROM ?? '') : null,
  };
}

/** Over plain HTTP a session could be read on its way, but on this machine. */
function publicUrlOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && LOOPBACK_NAME.test(url.hostname));
  const isOrigin = url && url.pathname === '/' && url.search === '' && url.hash === '' && url.username === '';
  if (isSafe && isOrigin) return url.origin;
  throw new InvalidSetting(
    'PUBLIC_URL must be https://HOST or https://HOST:PORT with nothing behind it; http is for localhost only.',
  );
}

/** The URL may have a password in it, which must not come back in the message. */
function mailOf(smtpUrl: string, from: string): { smtpUrl: string; from: string } {
  if (!/^smtps?:\/\/./.test(smtpUrl) || !URL.canParse(smtpUrl))
    throw new InvalidSetting('SMTP_URL must be smtp://… or smtps://….');
  if (!MAIL_ADDRESS.test(from))
    throw new InvalidSetting(
      'MAIL_FROM must be an address, or a name and an address, such as Scrip <scrip@example.com>.',
    );
  return { smtpUrl, from };
}

export function databaseOf(environment: NodeJS.ProcessEnv): Database {
  return databaseAt('DATABASE_URL', environment.DATABASE_URL || 'file:data/scrip.db', environment);
}

/**
 * @param name what said so, for the message, in which a password of the URL must not come back
 * @throws InvalidSetting
 */
export function databaseAt(name: string, text: string, environment: NodeJS.ProcessEnv): Database {
  if (/^postgres(ql)?:\/\//.test(text)) return postgresOf(text, environment);
  const path = text.startsWith('file:') ? text.slice('file:'.length).replace(/^\/\/(?=\/)/, '') : '';
  if (path === '') throw new InvalidSetting(`${name} must be file:PATH or postgres://….`);
  return { kind: 'file', path, chained: isChained(environment) };
}

function postgresOf(url: string, environment: NodeJS.ProcessEnv): PostgresDatabase {
  const citus = oneOf('DATABASE_CITUS', environment.DATABASE_CITUS || 'auto', ['auto', 'yes', 'no']);
  return {
    kind: 'postgres',
    url,
    lanes: wholeNumber('DATABASE_LANES', environment.DATABASE_LANES || '1', 1, LANES_MAX),
    prepared: oneOf('DATABASE_PREPARED', environment.DATABASE_PREPARED || 'yes', ['yes', 'no']) === 'yes',
    citus: citus === 'auto' ? null : citus === 'yes',
    chained: isChained(environment),
    acceptUnsafe: oneOf('DATABASE_ACCEPT_UNSAFE', environment.DATABASE_ACCEPT_UNSAFE || 'no', ['yes', 'no']) === 'yes',
  };
}

function isChained(environment: NodeJS.ProcessEnv): boolean {
  return oneOf('LEDGER_CHAIN', environment.LEDGER_CHAIN || 'no', ['yes', 'no']) === 'yes';
}

function wholeNumber(name: string, text: string, min: number, max: number): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= min && value <= max) return value;
  throw new InvalidSetting(`${name} is ${JSON.stringify(text)}; it must be a whole number from ${min} to ${max}.`);
}

function oneOf<Value extends string>(name: string, value: string, values: readonly Value[]): Value {
  const found = values.find((one) => one === value);
  if (found !== undefined) return found;
  throw new InvalidSetting(`${name} is ${JSON.stringify(value)}; it must be one of ${values.join(', ')}.`);
}

function operatorSettings(environment: NodeJS.ProcessEnv): Pick<Config, 'logRequests' | 'metricsPort'> {
  const metricsPort = environment.METRICS_PORT || null;
  return {
    logRequests: oneOf('REQUEST_LOG', environment.REQUEST_LOG || 'no', ['yes', 'no']) === 'yes',
    metricsPort: metricsPort === null ? null : wholeNumber('METRICS_PORT', metricsPort, 0, PORT_MAX),
  };
}

/** The burst is at least what may come in a second, and that when nothing is said. */
function rateLimitOf(environment: NodeJS.ProcessEnv): RateLimitSettings | null {
  const rate = environment.RATE_LIMIT || null;
  const burst = environment.RATE_LIMIT_BURST || rate;
  if (rate === null) {
    if (burst !== null) throw new InvalidSetting('RATE_LIMIT_BURST is set and RATE_LIMIT is not: nothing is limited.');
    return null;
  }
  const perSecond = wholeNumber('RATE_LIMIT', rate, 1, RATE_LIMIT_MAX);
  return { perSecond, burst: wholeNumber('RATE_LIMIT_BURST', burst ?? rate, perSecond, RATE_LIMIT_MAX) };
}

/** The usual variables of OpenTelemetry: https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/ */
function tracingSettings(environment: NodeJS.ProcessEnv): TracingSettings | null {
  const endpoint = traceEndpoint(environment);
  const isOff = environment.OTEL_SDK_DISABLED?.toLowerCase() === 'true' || environment.OTEL_TRACES_EXPORTER === 'none';
  if (endpoint === null || isOff) return null;
  const protocol = environment.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL || environment.OTEL_EXPORTER_OTLP_PROTOCOL || '';
  if (protocol === 'grpc')
    throw new InvalidSetting('OTEL_EXPORTER_OTLP_PROTOCOL is "grpc"; Scrip sends traces over HTTP only: http/json.');
  const headers = environment.OTEL_EXPORTER_OTLP_TRACES_HEADERS || environment.OTEL_EXPORTER_OTLP_HEADERS;
  const sampler = environment.OTEL_TRACES_SAMPLER || 'parentbased_always_on';
  const resource = pairs('OTEL_RESOURCE_ATTRIBUTES', environment.OTEL_RESOURCE_ATTRIBUTES);
  const name = environment.OTEL_SERVICE_NAME || resource['service.name'] || 'scrip';
  return {
    endpoint,
    headers: pairs('OTEL_EXPORTER_OTLP_HEADERS', headers),
    resource: { ...resource, 'service.name': name },
    ratio: sampledShare(sampler, environment.OTEL_TRACES_SAMPLER_ARG),
    followsParent: sampler.startsWith('parentbased_'),
  };
}

function traceEndpoint(environment: NodeJS.ProcessEnv): string | null {
  const own = environment.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT;
  const base = environment.OTEL_EXPORTER_OTLP_ENDPOINT;
  const endpoint = own || (base && `${base.replace(/\/$/, '')}/v1/traces`);
  if (!endpoint) return null;
  if (URL.canParse(endpoint) && /^https?:/.test(endpoint)) return endpoint;
  throw new InvalidSetting('OTEL_EXPORTER_OTLP_ENDPOINT must be http://… or https://….');
}

function sampledShare(sampler: string, argument = '1'): number {
  const kind = sampler.replace(/^parentbased_/, '');
  oneOf('OTEL_TRACES_SAMPLER', kind, ['always_on', 'always_off', 'traceidratio']);
  if (kind !== 'traceidratio') return kind === 'always_on' ? 1 : 0;
  const ratio = Number(argument);
  if (argument.trim() !== '' && ratio >= 0 && ratio <= 1) return ratio;
  throw new InvalidSetting(`OTEL_TRACES_SAMPLER_ARG is ${JSON.stringify(argument)}; it must be a number from 0 to 1.`);
}

/** `name=value,name=value`, percent-encoded. What is wrong with it is said without it: there may be a secret in it. */
function pairs(name: string, text = ''): Record<string, string> {
  const entries = text
    .split(',')
    .filter((pair) => pair.trim() !== '')
    .map((pair) => /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/.exec(pair)?.slice(1));
  try {
    return Object.fromEntries(
      entries.map((entry) => {
        if (entry === undefined) throw new URIError();
        return [entry[0] as string, decodeURIComponent(entry[1] as string)];
      }),
    );
  } catch {
    throw new InvalidSetting(`${name} must be like name=value,name=value.`);
  }
}
