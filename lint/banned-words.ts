// Finds banned words in tracked files. `npm run -s lint:words` checks all files, and `npm run -s lint:words -- PATHS`
// checks only the files and folders in PATHS. The script prints one line with a hint for each banned word, and exits
// with code 1 if it finds any. EXCEPTIONS lists allowed uses.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** The patterns ignore case. A pattern without `\b` also matches within identifiers. */
const BANNED: readonly (readonly [words: string, hint: string])[] = [
  ['whoever', 'name the person or thing: the caller, the client, the operator'],
  ['nobody', 'say what does not happen: "no client waits", "unused", "unset"'],
  ['somebody', 'name the person: a user, an operator; or use the passive voice'],
  ['whose turn', 'use the term for it: the next in the queue, scheduled, due'],
  ['\\banew\\b', 'again; or the verb that is meant: recompute, reset, rewrite'],
  ['\\bbefell\\b', 'failed with, caused by'],
  ['\\bbefalls?\\b', 'fails with, causes'],
  ['\\bis told\\b', 'gets, receives, is notified, is called with'],
  ['\\blets go\\b', 'releases, closes'],
  ['\\bwhat waits\\b', 'the queue, queued commands, waiting requests'],
  ['\\bwho waits\\b', 'waiting clients, queued requests'],
  ['\\bslips?\\b', 'an idempotency record'],
  ['\\blandmarks?\\b', 'a snapshot of the cycles'],
  ['unposted', 'deferred, pending: balances that are not flushed yet'],
];

const CHECKED = /(?:\.(?:ts|js|css|md|ya?ml|json|service)$|(?:^|\/)Dockerfile$|^\.ci\/)/;
/** Generated files are not checked. */
const GENERATED = /(?:^|\/)(?:package-lock\.json|benchmarks\.json|baseline\.json)$/;

interface Exception {
  readonly path: string;
  /** The exception applies only to lines that contain this text. Without `contains`, it applies to the whole file. */
  readonly contains?: string;
  readonly reason: string;
}

export const EXCEPTIONS: readonly Exception[] = [
  { path: 'lint/banned-words.ts', reason: 'it lists the words' },
  { path: 'test/project/banned-words.test.ts', reason: 'it tests that the words are found' },
  {
    path: 'test/store/postgres/pooler/pgbouncer.ts',
    contains: "['-u', 'nobody']",
    reason: 'it is the name of a Unix user',
  },
];

export interface Finding {
  readonly path: string;
  readonly line: number;
  readonly words: string;
  readonly hint: string;
}

/** Matches the gap between two words: spaces, or a line break and an optional comment or quote marker. */
const GAP = '(?:[ \\t]+|[ \\t]*\\r?\\n[ \\t]*(?://|\\*|#|>|--)?[ \\t]*)';

const PATTERNS = BANNED.map(([words, hint]) => ({
  pattern: new RegExp(words.replaceAll(' ', GAP), 'gi'),
  hint,
}));

/** @returns all findings that EXCEPTIONS does not allow, sorted by line */
export function bannedWordsIn(path: string, text: string): Finding[] {
  const lines = text.split('\n');
  const findings = PATTERNS.flatMap(({ pattern, hint }) =>
    [...text.matchAll(pattern)].map((match) => {
      const line = text.slice(0, match.index).split('\n').length;
      return { path, line, words: match[0].replaceAll(/\s+/g, ' '), hint };
    }),
  );
  return findings
    .filter(({ line }) => !EXCEPTIONS.some((exception) => isExcepted(exception, path, lines[line - 1] as string)))
    .toSorted((a, b) => a.line - b.line);
}

function isExcepted({ path, contains }: Exception, foundIn: string, line: string): boolean {
  return path === foundIn && (contains === undefined || line.includes(contains));
}

/** @param paths files or folders; empty for all tracked files */
function trackedFiles(paths: readonly string[]): string[] {
  const listed = execFileSync('git', ['ls-files', '-z', '--', ...paths], { encoding: 'utf8' });
  return listed.split('\0').filter((path) => CHECKED.test(path) && !GENERATED.test(path));
}

if (import.meta.main) {
  const findings = trackedFiles(process.argv.slice(2)).flatMap((path) =>
    bannedWordsIn(path, readFileSync(path, 'utf8')),
  );
  for (const { path, line, words, hint } of findings) process.stdout.write(`${path}:${line}: "${words}": ${hint}\n`);
  if (findings.length > 0) {
    process.stdout.write(`${findings.length} banned words found; see lint/banned-words.ts.\n`);
    process.exitCode = 1;
  }
}
