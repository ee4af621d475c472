// What the environment says, read and checked once. Each setting is documented in README.md.

import { CannotOpen } from './store/store.ts';

export type DatabaseUrl =
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'postgres'; readonly url: string };

export interface Config {
  readonly host: string;
  readonly port: number;
  readonly database: DatabaseUrl;
  readonly logLevel: string;
}

/** A setting that cannot be used, as a sentence that names it. */
export class InvalidSetting extends Error {
  override readonly name = 'InvalidSetting';
}

const PORT_MAX = 65_535;
const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'];

/** @throws InvalidSetting */
export function readConfig(environment: NodeJS.ProcessEnv): Config {
  return {
    host: environment.HOST || '127.0.0.1',
    port: portOf(environment.PORT || '8080'),
    database: databaseOf(environment.DATABASE_URL || 'file:data/scrip.db'),
    logLevel: oneOf('LOG_LEVEL', environment.LOG_LEVEL || 'info', LOG_LEVELS),
  };
}

/** The path of the ledger file. */
export function ledgerFileOf(database: DatabaseUrl): string {
  if (database.kind === 'file') return database.path;
  throw new CannotOpen('This version of Scrip keeps its ledger in a file; set DATABASE_URL=file:PATH.');
}

function portOf(text: string): number {
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= PORT_MAX) return port;
  throw new InvalidSetting(`PORT is ${JSON.stringify(text)}; it must be a whole number from 0 to ${PORT_MAX}.`);
}

/** A password in the URL must not come back in the message. */
function databaseOf(text: string): DatabaseUrl {
  if (/^postgres(ql)?:\/\//.test(text)) return { kind: 'postgres', url: text };
  if (text.startsWith('file:') && text.length > 'file:'.length)
    return { kind: 'file', path: text.slice('file:'.length).replace(/^\/\/(?=\/)/, '') };
  throw new InvalidSetting('DATABASE_URL must be file:PATH or postgres://….');
}

function oneOf(name: string, value: string, values: readonly string[]): string {
  if (values.includes(value)) return value;
  throw new InvalidSetting(`${name} is ${JSON.stringify(value)}; it must be one of ${values.join(', ')}.`);
}
