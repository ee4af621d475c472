// The API reference at `/docs`, generated from the OpenAPI document.

import { html } from 'ghtml';
import { numberText } from '../figures.ts';
import { type Page, page } from '../layout.ts';

export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
}

type Examples = Readonly<Record<string, { readonly summary?: string; readonly value?: unknown }>>;

interface Content {
  readonly schema?: Schema;
  readonly example?: unknown;
  readonly examples?: Examples;
}

interface Body {
  readonly description?: string;
  readonly content?: Readonly<Record<string, Content>>;
}

export interface Operation {
  readonly operationId?: string;
  readonly summary?: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly required?: boolean;
    readonly description?: string;
    readonly schema?: Schema;
    readonly example?: unknown;
    readonly examples?: Examples;
  }[];
  readonly requestBody?: Body;
  readonly responses?: Readonly<Record<string, Body>>;
}

export interface OpenApiDocument {
  readonly info: { readonly title: string; readonly version: string; readonly description?: string };
  readonly tags?: readonly { readonly name: string; readonly description?: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components?: { readonly schemas?: Readonly<Record<string, Schema>> };
}

interface Call {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

/** @param apiUrl the origin of the API, for the examples */
export function apiReferencePage(document: OpenApiDocument, apiUrl: string, viewer: Page['viewer']): string {
  const { info, tags = [] } = document;
  const calls = callsOf(document);
  const sections = tags.map(({ name, description = '' }) => {
    const own = calls.filter(({ operation }) => operation.tags?.includes(name));
    // The tag of the webhooks has no calls.
    if (own.length === 0) return '';
    return html`<h2 class="part" id="${name}">${name}</h2>
<p class="muted lede">!${prose(description)}</p>
!${own.map((call) => callSection(call, document, apiUrl))}`;
  });
  const links = calls.map(({ id, method, path }) => html`<a class="mono" href="#${id}">${method} ${path}</a>`);
  const body = html`<div class="reference">
<h1>API reference</h1>
<p class="lede">!${prose(info.description ?? '')} Version ${info.version}. To generate a client, use the <a href="/openapi.json">OpenAPI document</a>.</p>
<nav class="calls" aria-label="Calls">!${links}</nav>
<section class="card">
<h2>Requests</h2>
<p>Send JSON to <code>${apiUrl}</code>, or to <code>${apiUrl}/v1</code>, with an API key in the <code>Authorization: Bearer &lt;API key&gt;</code> header. The examples read the key from the shell variable <code>SCRIP_KEY</code>. Scrip refuses requests with unknown fields.</p>
</section>
!${sections}
</div>`;
  return page({ title: 'API reference', viewer, current: 'api-reference', body });
}

function callsOf({ paths }: OpenApiDocument): readonly Call[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      id: operation.operationId ?? `${method}${path.replaceAll('/', '-')}`,
      method: method.toUpperCase(),
      path,
      operation,
    })),
  );
}

function callSection(call: Call, document: OpenApiDocument, apiUrl: string): string {
  const { id, method, path, operation } = call;
  const { summary = path, description = '' } = operation;
  const response = operation.responses?.['200'];
  return html`<section class="card call" id="${id}" aria-labelledby="${id}-heading">
<h3 id="${id}-heading">${summary} <span class="muted mono">${method} ${path}</span></h3>
<p>!${prose(description)}</p>
!${fieldTable(`Fields: ${summary}`, 'Field', fieldsOf(operation, document))}
!${code('Request', requestOf(call, apiUrl))}
!${fieldTable(`Response: ${summary}`, 'Response field', responseFieldsOf(contentOf(response)?.schema, document))}
!${code('Response', JSON.stringify(exampleIn(response), null, 2))}
!${errorTable(summary, operation)}
</section>`;
}

interface FieldRow {
  readonly name: string;
  readonly isRequired: boolean;
  readonly schema: Schema;
  readonly description: string | undefined;
}

function fieldsOf({ parameters = [], requestBody }: Operation, document: OpenApiDocument): readonly FieldRow[] {
  const ofBody = propertiesOf(contentOf(requestBody)?.schema, document);
  const ofParameters = parameters.map(({ name, in: place, required = false, description, schema = {} }) => ({
    name: place === 'header' ? `${name} (header)` : name,
    isRequired: required,
    schema,
    description,
  }));
  return [...ofBody, ...ofParameters];
}

/** Returns one row for each field. The rows for the fields of list entries follow the row for the list. */
function responseFieldsOf(schema: Schema | undefined, document: OpenApiDocument): readonly FieldRow[] {
  return propertiesOf(schema, document).flatMap((row) => {
    const entries = row.schema.items === undefined ? [] : responseFieldsOf(row.schema.items, document);
    return [row, ...entries.map((entry) => ({ ...entry, name: `${row.name}[].${entry.name}` }))];
  });
}

function propertiesOf(schema: Schema | undefined, document: OpenApiDocument): readonly FieldRow[] {
  const { properties = {}, required = [] } = resolved(schema, document);
  return Object.entries(properties).map(([name, property]) => {
    const own = resolved(property, document);
    return { name, isRequired: required.includes(name), schema: own, description: own.description };
  });
}

function resolved(schema: Schema | undefined, { components }: OpenApiDocument): Schema {
  const name = schema?.$ref?.split('/').at(-1);
  return (name === undefined ? schema : components?.schemas?.[name]) ?? {};
}

function contentOf(body: Body | undefined): Content | undefined {
  return Object.values(body?.content ?? {})[0];
}

function exampleIn(body: Body | undefined): unknown {
  return exampleOf(contentOf(body) ?? {});
}

function exampleOf({ example, examples = {} }: { readonly example?: unknown; readonly examples?: Examples }): unknown {
  return example ?? Object.values(examples)[0]?.value;
}

function fieldTable(label: string, heading: string, fields: readonly FieldRow[]): string {
  if (fields.length === 0) return '';
  const rows = fields.map(
    ({ name, isRequired, schema, description = '' }) => html`<tr>
<th scope="row"><code>${name}</code>!${isRequired ? '' : ' <span class="muted">optional</span>'}</th>
<td>!${typeOf(schema)}</td>
<td>!${prose(description)}</td>
</tr>`,
  );
  return html`<div class="scroll" role="region" aria-label="${label}" tabindex="0">
<table class="table fields"><thead><tr><th scope="col">${heading}</th><th scope="col">Type</th><th scope="col">Meaning</th></tr></thead><tbody>!${rows}</tbody></table>
</div>`;
}

function typeOf(schema: Schema): string {
  const { type = 'string', format, enum: values, default: initial, minimum, maximum, maxLength } = schema;
  const parts = [html`${[type].flat().join(' or ')}${format === undefined ? '' : ` (${format})`}`];
  if (values !== undefined) parts.push(values.map((value) => html`<code>${String(value)}</code>`).join(' or '));
  if (minimum !== undefined && maximum !== undefined)
    parts.push(html`${numberText(minimum)} to ${numberText(maximum)}`);
  else if (minimum !== undefined) parts.push(html`at least ${numberText(minimum)}`);
  if (maxLength !== undefined) parts.push(html`up to ${numberText(maxLength)} characters`);
  if (initial !== undefined) parts.push(html`default ${String(initial)}`);
  return parts.join('<br>');
}

function errorTable(summary: string, { responses = {} }: Operation): string {
  const errors = Object.entries(responses)
    .filter(([status]) => status !== '200')
    .flatMap(([status, body]) =>
      Object.entries(contentOf(body)?.examples ?? {}).map(([name, example]) => ({ status, name, ...example })),
    );
  const rows = errors.map(
    ({ status, name, summary: title = '' }) => html`<tr>
<th scope="row">${status}</th><td><a href="/problems/${name}"><code>${name}</code></a></td><td>${title}</td>
</tr>`,
  );
  return html`<details class="as-table"><summary>Errors: ${summary}</summary>
<div class="scroll" role="region" aria-label="Errors: ${summary}" tabindex="0">
<table class="table"><thead><tr><th scope="col">Status</th><th scope="col">Error</th><th scope="col">Meaning</th></tr></thead><tbody>!${rows}</tbody></table>
</div></details>`;
}

function requestOf({ method, path, operation }: Call, apiUrl: string): string {
  const { parameters = [], requestBody } = operation;
  const given = parameters.filter(
    (parameter) => exampleOf(parameter) !== undefined && parameter.required !== undefined,
  );
  const query = new URLSearchParams(
    given
      .filter(({ in: place, required }) => place === 'query' && required)
      .map((parameter) => [parameter.name, String(exampleOf(parameter))]),
  );
  const headers = given
    .filter(({ in: place }) => place === 'header')
    .map((parameter) => `${parameter.name}: ${exampleOf(parameter)}`);
  const url = `${apiUrl}${path}${query.size === 0 ? '' : `?${query}`}`;
  const lines = [
    `curl ${method === 'GET' ? `"${url}"` : `-X ${method} ${url}`}`,
    `-H "Authorization: Bearer $SCRIP_KEY"`,
  ];
  if (requestBody !== undefined) lines.push(`-H 'Content-Type: application/json'`);
  for (const header of headers) lines.push(`-H '${header}'`);
  if (requestBody !== undefined) lines.push(`-d '${JSON.stringify(exampleIn(requestBody))}'`);
  return lines.join(' \\\n  ');
}

function code(label: string, text: string | undefined): string {
  return text === undefined
    ? ''
    : html`<p class="label">${label}</p><pre class="code" tabindex="0"><code>${text}</code></pre>`;
}

/** Turns text in backticks into `<code>` elements. */
function prose(text: string): string {
  return html`${text}`.replaceAll(/`([^`]*)`/g, '<code>$1</code>');
}
