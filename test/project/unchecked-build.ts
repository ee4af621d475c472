// Speeds up tests that build a copy of the project.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { IS_LONG } from '../effort.ts';

/** Under `npm test`, builds in `folder` do not check types, because `npm run types` checks them. */
export function omitTypeCheck(folder: string): void {
  if (IS_LONG) return;
  const path = join(folder, 'tsconfig.build.json');
  const { compilerOptions, ...rest } = JSON.parse(readFileSync(path, 'utf8'));
  writeFileSync(path, JSON.stringify({ ...rest, compilerOptions: { ...compilerOptions, noCheck: true } }));
}
