// Replaces a module of Scrip by one of a test, in processes that a control weakens. Used by files that are loaded
// before everything else in a process and its threads (`NODE_OPTIONS=--import=…`).

import { registerHooks } from 'node:module';

export interface Substitution {
  /** How the path of the importing file ends. Other files keep the original. */
  readonly importer: string;
  /** How the module's name ends, as `importer` gives it. */
  readonly specifier: string;
  /** The module that `importer` gets. */
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
