// The command line of the benchmarks.

import { parseArgs } from 'node:util';

export interface Options {
  /** Parts by name, or by how their names begin; all when empty. */
  readonly only: readonly string[];
  readonly rounds: number;
  readonly seconds: number;
  readonly connections: number | null;
  /** Print the ratios of a minute, and compare them with those that were kept. */
  readonly quick: boolean;
  /** Keep what `quick` measures, for later runs to be compared with. */
  readonly keep: boolean;
  /** Draw the chart from stored results, and measure nothing. */
  readonly chart: boolean;
  /** Write stored results into the documentation, and measure nothing. */
  readonly publish: boolean;
}

export const USAGE = `npm run bench -- [options]
  --only NAME          a part, or how the names of several begin; may be repeated
  --rounds N           how often each subject is loaded (3)
  --seconds S          for how long each time (2)
  --connections C      instead of those that each part is for
  --quick              a minute: ratios, compared with bench/baseline.json; with --keep they are kept there
  --chart              draw bench/results/chart.svg from bench/results/latest.json
  --publish            put the tables into docs/benchmarks.md, with docs/benchmarks.json and docs/benchmarks.svg
`;

/** @throws TypeError for an unknown option */
export function optionsOf(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: 'string', multiple: true, default: [] },
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      connections: { type: 'string' },
      quick: { type: 'boolean', default: false },
      keep: { type: 'boolean', default: false },
      chart: { type: 'boolean', default: false },
      publish: { type: 'boolean', default: false },
    },
  });
  const { quick } = values;
  return {
    ...values,
    rounds: wholeNumber('rounds', values.rounds, quick ? 2 : 3),
    seconds: wholeNumber('seconds', values.seconds, 2),
    connections: values.connections === undefined ? null : wholeNumber('connections', values.connections, 0),
  };
}

function wholeNumber(name: string, text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise;
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text);
  throw new TypeError(`--${name} is a whole number`);
}
