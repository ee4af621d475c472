// `npm run kill -- --kills 200 --seed 1` kills a server under load and checks that it loses no acknowledged write. The
// test must also catch the controls: writers that are broken on purpose.

import { parseArgs } from 'node:util';
import { type Kills, killRepeatedly, summaryOf } from './killing.ts';
import { randomFrom } from './randomness.ts';

const CONTROL_KILLS_MAX = 40;
const SHOWN = 10;
const PROGRESS_EVERY_KILLS = 10;

const { kills, seed } = parseArgs({
  options: {
    kills: { type: 'string', default: '200' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
}).values;

say(
  `seed ${seed} (decides what the clients send and when the server is killed; how much the server has done by then depends on the machine)`,
);
let hasFailed = false;
await examine(
  'as shipped',
  Number(kills),
  null,
  ({ lost, halfBatches, wrong }) => lost + halfBatches + wrong.length === 0,
);
await examine(
  'control: responds before it commits',
  CONTROL_KILLS_MAX,
  'late',
  (found) => found.lost > 0 || found.wrong.length > 0,
);
await examine(
  'control: commits each half of a batch separately',
  CONTROL_KILLS_MAX,
  'halves',
  ({ halfBatches }) => halfBatches > 0,
);
process.exit(hasFailed ? 1 : 0);

async function examine(
  name: string,
  count: number,
  weakness: 'late' | 'halves' | null,
  isRight: (found: Kills) => boolean,
) {
  let said = 0;
  const isEnough = (sofar: Kills) => {
    if (weakness !== null) return isRight(sofar);
    if (sofar.kills >= said + PROGRESS_EVERY_KILLS) {
      said = sofar.kills;
      say(`so far: ${summaryOf(sofar)}`);
    }
    return false;
  };
  const found = await killRepeatedly(count, randomFrom(Number(seed)), weakness, isEnough);
  hasFailed ||= !isRight(found);
  say(`${isRight(found) ? 'ok' : 'NOT OK'}  ${name}: ${summaryOf(found)}`);
  if (!isRight(found)) for (const sentence of found.wrong.slice(0, SHOWN)) say(`        ${sentence}`);
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
