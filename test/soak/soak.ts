// `npm run soak -- --minutes 30 --rate 300 --seed 1 --output soak` runs a soak test, and writes soak.json and soak.svg.
// As a control, `--leaking` runs a server that leaks.

import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { judged, sayings } from './judged-soak.ts';
import { canMeasure } from './readings.ts';
import { plotOf } from './soak-plot.ts';
import { type SoakPlan, soak } from './soaking.ts';

const { minutes, rate, seed, output, leaking } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    rate: { type: 'string', default: '300' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    output: { type: 'string', default: 'soak' },
    leaking: { type: 'boolean', default: false },
  },
}).values;

const MINUTES_A_KILL = 1;
const READ_EVERY_SECONDS = 5;
const READINGS_MIN = 100;

if (!canMeasure()) {
  process.stderr.write('The soak test reads memory and open files from /proc, which only Linux has.\n');
  process.exit(1);
}
const plan: SoakPlan = {
  seed: Number(seed),
  seconds: Number(minutes) * 60,
  rate: Number(rate),
  kills: Math.max(1, Math.floor(Number(minutes) / 6 / MINUTES_A_KILL)),
  readEverySeconds: Math.min(READ_EVERY_SECONDS, (Number(minutes) * 60) / READINGS_MIN),
  jumpEverySeconds: Math.min(15, Number(minutes) * 3),
  backupEverySeconds: Math.min(60, Number(minutes) * 12),
  isLeaking: leaking,
};
process.stdout.write(
  `seed ${seed} (decides the requests and events; how many requests the server has processed at each event depends on the machine)\n`,
);
process.once('SIGINT', () => process.exit(1)).once('SIGTERM', () => process.exit(1));
const run = await soak(plan);
const verdict = judged(run);
writeFileSync(`${output}.json`, `${JSON.stringify({ ...run, verdicts: verdict.series })}\n`);
writeFileSync(`${output}.svg`, plotOf(run, verdict.series));
process.stdout.write(`${sayings(run, verdict).join('\n')}\nDetails: ${output}.json and ${output}.svg.\n`);
const isRight = verdict.isWhole && verdict.isFlat !== leaking;
process.exit(isRight ? 0 : 1);
