// The result of a soak test: whether all acknowledged writes are stored, and whether each series is flat.

import { type Flatness, judgeFlatness } from './flatness.ts';
import { type Readings, SERIES, type SeriesName } from './readings.ts';
import { verdictText } from './soak-plot.ts';
import type { Soak } from './soaking.ts';

export interface Verdict {
  readonly isWhole: boolean;
  readonly isFlat: boolean;
  readonly series: Readonly<Record<SeriesName, Flatness>>;
}

const NAMES = Object.keys(SERIES) as SeriesName[];
const SHOWN = 10;

export function judged(run: Soak): Verdict {
  const series = seriesOf(run.readings);
  return {
    isWhole: run.lost + run.lostInBackup + run.wrong.length === 0,
    isFlat: NAMES.every((name) => series[name].isFlat),
    series,
  };
}

function seriesOf(readings: Readings): Verdict['series'] {
  const judge = (name: SeriesName) => judgeFlatness(readings[name], SERIES[name].allowance);
  return {
    memory: judge('memory'),
    descriptors: judge('descriptors'),
    log: judge('log'),
    median: judge('median'),
    slowest: judge('slowest'),
  };
}

export function sayings(run: Soak, { isWhole, series }: Verdict): string[] {
  const of = (kind: string) => run.events.filter((event) => event.kind === kind).map(({ ms }) => ms);
  const down = of('kill').map(Math.round);
  const { requests, reads, cut, sentAgain, statuses } = run.counts;
  return [
    `${Math.round(run.seconds)} s: ${requests} requests, including ${reads} reads, for ${run.endUsers} end users; ${cut} without a response, ${sentAgain} retried; by status ${JSON.stringify(statuses)}`,
    `${down.length} kills, running again after ${down.join(', ')} ms; ${of('jump').length} jumps of the clock, ${run.days.toFixed(1)} days forward; ${of('backup').length} backups`,
    `${isWhole ? 'ok' : 'NOT OK'}  ${run.acknowledged} writes acknowledged, ${run.lost} lost; ${run.lostInBackup} of the ${run.checkedInBackup} before the last backup are missing from the backup; ${run.refused} refused, ${run.unknown} unknown; ${run.wrong.length} other problems`,
    ...run.wrong.slice(0, SHOWN).map((sentence) => `        ${sentence}`),
    ...NAMES.map((name) => {
      const { title, unit } = SERIES[name];
      return `${series[name].isFlat ? 'ok' : 'NOT OK'}  ${title}: ${verdictText(series[name], unit)}`;
    }),
  ];
}
