// Generates the documentation for language models (https://llmstxt.org): `npm run llms`. llms.txt is the index from
// docs/README.md. llms-full.txt contains all documents for users, operators and evaluators of Scrip, with links
// relative to the root of the repository.

import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

const REPOSITORY = join(import.meta.dirname, '..');
const INDEX = 'docs/README.md';
/** The section of the index that llms-full.txt leaves out: documents for developers of Scrip. */
const OPTIONAL = 'Changing Scrip';

const SUMMARY = `# Scrip

> A credit ledger that runs beside your backend: it adds, holds and spends the credits of end users over HTTP, spends
> the oldest credits first, expires credits on time, and renews them in cycles. Runs as one process with a SQLite file,
> or as several processes on PostgreSQL.
`;

interface Section {
  readonly title: string;
  readonly items: readonly string[];
}

function textOf(path: string): string {
  return readFileSync(join(REPOSITORY, path), 'utf8');
}

/** A section of docs/README.md is a bold title and a numbered list. */
function sections(): Section[] {
  const parts = textOf(INDEX).split(/^\*\*(.+)\*\*$/m);
  const titles = parts.filter((_, index) => index % 2 === 1);
  return titles.map((title, index) => {
    const list = (parts[2 * index + 2] as string).replaceAll(/\n {3}/g, ' ');
    return { title, items: [...list.matchAll(/^\d+\. (.+)$/gm)].map(([, item]) => item as string) };
  });
}

function targetOf(document: string, link: string): string {
  const [path = '', anchor] = link.split('#');
  const target = path === '' ? document : normalize(join(dirname(document), path));
  return anchor === undefined ? target : `${target}#${anchor}`;
}

function documentsOf({ items }: Section): string[] {
  const links = items.flatMap((item) => [...item.matchAll(/\]\(([^)#]+\.md)/g)].map(([, link]) => link as string));
  return links.map((link) => targetOf(INDEX, link));
}

/**
 * Returns the text of the document, after a comment with the document's path. Links are relative to the root of the
 * repository. Links in code blocks are unchanged.
 */
function withRootedLinks(document: string): string {
  const parts = textOf(document).split(/(^```[\s\S]*?^```$)/m);
  const rooted = parts.map((part, index) =>
    index % 2 === 1
      ? part
      : part.replaceAll(/\]\((?![a-z]+:)([^)\s]+)\)/g, (_, link: string) => `](${targetOf(document, link)})`),
  );
  return `<!-- ${document} -->\n\n${rooted.join('').trimEnd()}\n`;
}

export function llmsIndex(): string {
  const lists = sections().map(({ title, items }) => {
    const heading = title === OPTIONAL ? 'Optional' : title;
    return `## ${heading}\n\n${items.map((item) => `- ${item}`).join('\n')}\n`;
  });
  const whole = 'All of these documents except the optional ones are in one file: [llms-full.txt](llms-full.txt).\n';
  return [SUMMARY, whole, ...lists].join('\n');
}

export function llmsFull(): string {
  const wanted = sections().filter(({ title }) => title !== OPTIONAL);
  const documents = new Set(['README.md', ...wanted.flatMap(documentsOf)]);
  return [...documents].map(withRootedLinks).join('\n');
}

export const LLMS_FILES: readonly (readonly [path: string, text: () => string])[] = [
  ['docs/llms.txt', llmsIndex],
  ['docs/llms-full.txt', llmsFull],
];

if (import.meta.main) for (const [path, text] of LLMS_FILES) writeFileSync(join(REPOSITORY, path), text());
