// Replaces a module of Scrip, so that a control run can test a server that is broken on purpose. The file that calls
// `substitute` must load before all other modules, in every thread (`NODE_OPTIONS=--import=…`).

import { registerHooks } from 'node:module';

export interface Substitution {
  readonly importer: string;
  readonly specifier: string;
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
