// What the environment says, read and checked once. Each setting is documented in README.md.

export interface FileDatabase {
  readonly kind: 'file';
  readonly path: string;
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
}

export type Database = FileDatabase | PostgresDatabase;

export interface Config {
  readonly host: string;
  readonly port: number;
  readonly database: Database;
  readonly logLevel: string;
  /** How long the answers to idempotency keys are kept, at least. */
  readonly keepAnswersMs: number;
}

/** A setting that cannot be used, as a sentence that names it. */
export class InvalidSetting extends Error {
  override readonly name = 'InvalidSetting';
}

const PORT_MAX = 65_535;
const LANES_MAX = 64;
const HOUR_MS = 3_600_000;
/** A day, which clients may count on, to a year. */
const KEEP_ANSWERS_HOURS_MIN = 24;
const KEEP_ANSWERS_HOURS_MAX = 8_760;
const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'];

/** @throws InvalidSetting */
export function readConfig(environment: NodeJS.ProcessEnv): Config {
  return {
    host: environment.HOST || '127.0.0.1',
    port: wholeNumber('PORT', environment.PORT || '8080', 0, PORT_MAX),
    database: databaseOf(environment),
    logLevel: oneOf('LOG_LEVEL', environment.LOG_LEVEL || 'info', LOG_LEVELS),
    keepAnswersMs:
      HOUR_MS *
      wholeNumber(
        'IDEMPOTENCY_HOURS',
        environment.IDEMPOTENCY_HOURS || '24',
        KEEP_ANSWERS_HOURS_MIN,
        KEEP_ANSWERS_HOURS_MAX,
      ),
  };
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
  return { kind: 'file', path };
}

function postgresOf(url: string, environment: NodeJS.ProcessEnv): PostgresDatabase {
  const citus = oneOf('DATABASE_CITUS', environment.DATABASE_CITUS || 'auto', ['auto', 'yes', 'no']);
  return {
    kind: 'postgres',
    url,
    lanes: wholeNumber('DATABASE_LANES', environment.DATABASE_LANES || '2', 1, LANES_MAX),
    prepared: oneOf('DATABASE_PREPARED', environment.DATABASE_PREPARED || 'yes', ['yes', 'no']) === 'yes',
    citus: citus === 'auto' ? null : citus === 'yes',
    acceptUnsafe: oneOf('DATABASE_ACCEPT_UNSAFE', environment.DATABASE_ACCEPT_UNSAFE || 'no', ['yes', 'no']) === 'yes',
  };
}

function wholeNumber(name: string, text: string, min: number, max: number): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= min && value <= max) return value;
  throw new InvalidSetting(`${name} is ${JSON.stringify(text)}; it must be a whole number from ${min} to ${max}.`);
}

function oneOf(name: string, value: string, values: readonly string[]): string {
  if (values.includes(value)) return value;
  throw new InvalidSetting(`${name} is ${JSON.stringify(value)}; it must be one of ${values.join(', ')}.`);
}
