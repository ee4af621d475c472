// Writes `src/generated.ts`, the types of the client, from the OpenAPI document of the service. It knows the JSON Schema
// that the service uses and stops at anything else, rather than guess. `node client/generate.ts` asks a Scrip that it
// starts itself; `node client/generate.ts URL` asks the one at that address.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
}

interface Media {
  readonly schema: Schema;
  readonly examples?: Readonly<Record<string, unknown>>;
}

interface Operation {
  readonly operationId: string;
  readonly requestBody?: { readonly content: Readonly<Record<string, Media>> };
  readonly responses: Readonly<Record<string, { readonly content: Readonly<Record<string, Media>> }>>;
}

interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

const GENERATED = join(import.meta.dirname, 'src', 'generated.ts');
const START_MS = 30_000;

const HEAD = `// Written by \`node client/generate.ts\` from the OpenAPI document of the service: change that, not this. The words are
// those of the interface, so that what its documentation calls a field is what the field is called here.
// biome-ignore-all format: written by a program
`;

/** The text of `src/generated.ts` for a document: what is asked, what is answered, and the names of the errors. */
export function typesOf({ paths, components }: OpenApi): string {
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods));
  const requests = operations.flatMap(({ operationId, requestBody }) => {
    const schema = requestBody?.content['application/json']?.schema;
    return schema ? [interfaceOf(`${operationId[0]?.toUpperCase()}${operationId.slice(1)}Request`, schema)] : [];
  });
  const answers = Object.entries(components.schemas).map(([name, schema]) => interfaceOf(name, schema));
  return [HEAD, ...requests, ...answers, errorNames(operations)].join('\n');
}

function interfaceOf(name: string, schema: Schema): string {
  const members = Object.entries(schema.properties ?? {}).map(([field, of]) => {
    const optional = schema.required?.includes(field) ? '' : '?';
    return `${comment(of.description)}  readonly ${field}${optional}: ${typeOf(of)};\n`;
  });
  return `export interface ${name} {\n${members.join('')}}\n`;
}

function typeOf(schema: Schema): string {
  if (schema.$ref !== undefined) return schema.$ref.replace('#/components/schemas/', '');
  if (schema.const !== undefined) return literal(schema.const);
  if (schema.anyOf !== undefined) return schema.anyOf.map(typeOf).join(' | ');
  if (schema.enum !== undefined) return schema.enum.map(literal).join(' | ');
  if (typeof schema.type === 'object') return schema.type.map((type) => typeOf({ ...schema, type })).join(' | ');
  switch (schema.type) {
    case 'string':
    case 'boolean':
    case 'null':
      return schema.type;
    case 'integer':
    case 'number':
      return 'number';
    case 'array':
      return `readonly ${elementOf(schema.items ?? {})}[]`;
    case 'object':
      return `{ ${Object.entries(schema.properties ?? {})
        .map(memberOf(schema))
        .join('; ')} }`;
    default:
      throw new TypeError(`No type is known for ${JSON.stringify(schema)}.`);
  }
}

function memberOf({ required }: Schema): (member: [string, Schema]) => string {
  return ([field, schema]) => `readonly ${field}${required?.includes(field) ? '' : '?'}: ${typeOf(schema)}`;
}

function elementOf(schema: Schema): string {
  const type = typeOf(schema);
  return type.includes(' | ') ? `(${type})` : type;
}

function literal(value: unknown): string {
  return typeof value === 'string' ? `'${value}'` : JSON.stringify(value);
}

function comment(description: string | undefined): string {
  return description === undefined ? '' : `  /** ${description.replaceAll('*/', '*\\/')} */\n`;
}

/** The examples of an answer that is an error bear the name of the error. */
function errorNames(operations: readonly Operation[]): string {
  const medias = operations.flatMap(({ responses }) => Object.values(responses).map(({ content }) => content));
  const names = medias.flatMap((content) => Object.keys(content['application/problem+json']?.examples ?? {}));
  const union = [...new Set(names)].sort().map((name) => `  | '${name}'`);
  return `/** The errors that the operations are described with. */\nexport type ErrorName =\n${union.join('\n')};\n`;
}

async function documentOf(url: string): Promise<OpenApi> {
  const response = await fetch(new URL('/openapi.json', url));
  if (!response.ok) throw new Error(`${url} answered ${response.status}.`);
  return (await response.json()) as OpenApi;
}

/** From a Scrip that lives for as long as it takes to ask. */
async function documentOfThisScrip(): Promise<OpenApi> {
  const folder = await mkdtemp(join(tmpdir(), 'scrip-generate-'));
  const scrip = spawn(process.execPath, [join(import.meta.dirname, '../src/cli.ts'), 'serve'], {
    env: { ...process.env, PORT: '0', DATABASE_URL: `file:${join(folder, 'ledger.db')}`, LOG_LEVEL: 'silent' },
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: START_MS,
  });
  const exited = once(scrip, 'exit');
  try {
    for await (const line of createInterface(scrip.stdout)) {
      const [url] = /http:\S+:\d+/.exec(line) ?? [];
      if (url) return await documentOf(url);
    }
    throw new Error('Scrip did not start.');
  } finally {
    scrip.kill();
    await exited;
    await rm(folder, { recursive: true, force: true });
  }
}

if (import.meta.main) {
  const [, , url] = process.argv;
  await writeFile(GENERATED, typesOf(url ? await documentOf(url) : await documentOfThisScrip()));
}
