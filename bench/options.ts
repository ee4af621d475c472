// Parses the command line of the benchmarks.

import { parseArgs } from 'node:util';

export interface Options {
  /** The parts of the benchmark to run: names, or prefixes of names. If the list is empty, all parts run. */
  readonly only: readonly string[];
  readonly rounds: number;
  readonly seconds: number;
  readonly connections: number | null;
  readonly quick: boolean;
  readonly keep: boolean;
  readonly chart: boolean;
  readonly publish: boolean;
}

export const USAGE = `npm run bench -- [options]
  --only NAME          the name of a part, or a prefix of several names; may be repeated
  --rounds N           number of blocks per subject (default 10, with --quick 2)
  --seconds S          length of a block (default 2)
  --connections C      number of connections, instead of each part's default
  --quick              measure for a minute and compare the ratios with bench/baseline.json
  --keep               with --quick: store the ratios in bench/baseline.json
  --chart              draw bench/results/chart.svg from bench/results/latest.json
  --publish            write docs/benchmarks.json, docs/benchmarks.svg and the tables in docs/benchmarks.md
`;

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
    rounds: wholeNumber('rounds', values.rounds, quick ? 2 : 10),
    seconds: wholeNumber('seconds', values.seconds, 2),
    connections: values.connections === undefined ? null : wholeNumber('connections', values.connections, 0),
  };
}

function wholeNumber(name: string, text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise;
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text);
  throw new TypeError(`--${name} must be a whole number from 1 to 999999.`);
}
