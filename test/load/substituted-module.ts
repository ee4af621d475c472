// Replaces a module of Scrip by a module of a test, for controls that weaken a process. Used by files that are loaded
// before all other modules of a process and its threads (`NODE_OPTIONS=--import=…`).

import { registerHooks } from 'node:module';

export interface Substitution {
  /** How the path of the importing file ends. Other files get the original module. */
  readonly importer: string;
  /** How the specifier of the replaced module ends in the importing file. */
  readonly specifier: string;
  /** The module that the importing file gets instead. */
  readonly replacement: URL;
}

export function substitute({ importer, specifier, replacement }: Substitution): void {
  registerHooks({
    resolve: (asked, context, next) =>
      asked.endsWith(specifier) && context.parentURL?.endsWith(importer)
        ? { url: replacement.href, shortCircuit: true }
        : next(asked, context),
  });
}
