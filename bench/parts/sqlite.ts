// Compares Scrip on SQLite with the echo server: additions, balances, and a minute of subtractions.

import { diskSpeed } from '../disk-speed.ts';
import { inTurn } from '../in-turn.ts';
import { assertWhole, type Subjects } from '../subjects.ts';
import { ADD_MEDIUM, BALANCE_MEDIUM, CROWD_MEDIUM, SUBTRACT_MEDIUM } from '../workload.ts';
import { type Part, type PartSettings, WARM_UP_SECONDS } from './part.ts';

const SUSTAINED_SECONDS = 60;
const ECHO_SECONDS = 5;

const calls: Part = {
  name: 'calls',
  title: 'Additions and balances compared with the echo, 100,000 end users',
  async run(subjects, settings) {
    const { file, secret } = await subjects.seed('medium', [CROWD_MEDIUM]);
    const [echo, scrip] = [await subjects.echo(), await subjects.scripOnSqlite(file, secret)];
    const contestsOf = (workload: typeof ADD_MEDIUM) => [echo, scrip].map((subject) => ({ subject, workload }));
    const rows = [];
    const wanted = settings.connections === null ? [64, 256] : [settings.connections];
    // Balances come first, since additions give each end user more cycles.
    for (const workload of [BALANCE_MEDIUM, ADD_MEDIUM])
      for (const connections of wanted)
        rows.push(...(await inTurn(contestsOf(workload), { ...settings, connections, warmUp: WARM_UP_SECONDS })));
    await subjects.end(scrip);
    await assertWhole(file);
    return { rows, figures: [] };
  },
};

/** Measures the echo server before and after Scrip, since the speed of the machine may change within a minute. */
const sustainedAt = (connections: number): Part => ({
  name: `sustained-${connections}`,
  title: `Subtractions over 100,000 end users for a minute, ${connections} connections`,
  run: (subjects, settings) => sustained(subjects, settings, connections),
});

async function sustained(subjects: Subjects, settings: PartSettings, connections: number) {
  const { file, secret } = await subjects.seed('medium', [CROWD_MEDIUM]);
  const [echo, scrip] = [await subjects.echo(), await subjects.scripOnSqlite(file, secret)];
  const once = { connections: settings.connections ?? connections, rounds: 1, warmUp: 0 };
  const load = { workload: SUBTRACT_MEDIUM };
  const echoed = { ...once, seconds: ECHO_SECONDS };
  await inTurn([{ subject: echo, ...load }], { ...echoed, seconds: WARM_UP_SECONDS });
  const disk = diskSpeed('before');
  const before = await inTurn([{ subject: echo, ...load }], echoed);
  const minute = await inTurn([{ subject: scrip, ...load }], { ...once, seconds: SUSTAINED_SECONDS });
  const behind = await inTurn([{ subject: echo, ...load }], echoed);
  disk.push(...diskSpeed('after'));
  await subjects.end(scrip);
  await assertWhole(file);
  const [first, last] = [before[0], behind[0]];
  if (first === undefined || last === undefined) throw new Error('the echo was not measured');
  const mean = (of: 'rate' | 'cpuMicros' | 'p50' | 'p99' | 'p999') => (first[of] + last[of]) / 2;
  const eachRound = [{ rate: mean('rate'), cpuMicros: mean('cpuMicros'), p99: mean('p99') }];
  const measured = { rate: mean('rate'), cpuMicros: mean('cpuMicros'), p50: mean('p50'), p99: mean('p99') };
  const echoRow = { ...first, ...measured, p999: mean('p999'), eachRound };
  return { rows: [echoRow, ...minute], figures: disk };
}

export const sqlite: readonly Part[] = [calls, sustainedAt(64), sustainedAt(256)];
