// Plots a soak test as one SVG file, with one panel for each series.

import { scaleLinear } from 'd3-scale';
import { type Flatness, median } from './flatness.ts';
import { SERIES, type SeriesName } from './readings.ts';
import type { Soak, SoakEvent } from './soaking.ts';

const WIDTH = 960;
const LEFT = 64;
const RIGHT = WIDTH - 16;
const TOP = 64;
const PANEL = 118;
const PANEL_HEIGHT = 70;
const TICKS = 3;
const SHORT_SECONDS = 120;
/** The vertical axis ends at about this multiple of the median at most; larger values are drawn at the top. */
const CEILING_OF_MEDIAN = 8;

const COLORS: Record<SoakEvent['kind'], string> = { kill: '#c0392b', jump: '#b9c4cf', backup: '#d9e8d2' };

export function plotOf(run: Soak, verdicts: Readonly<Record<SeriesName, Flatness>>): string {
  const names = Object.keys(SERIES) as SeriesName[];
  const height = TOP + names.length * PANEL + 30;
  const x = scaleLinear([0, run.seconds], [LEFT, RIGHT]);
  const foot = TOP + names.length * PANEL - (PANEL - PANEL_HEIGHT) + 18;
  const unit = run.seconds < SHORT_SECONDS ? 1 : 60;
  const times = scaleLinear([0, run.seconds / unit], [0, 1]).ticks(8);
  const minutes = times.map((at) =>
    text(x(at * unit), foot, timeText(at * unit), at === times.at(-1) ? 'end' : 'middle'),
  );
  const panels = names.map((name, index) => panel(run, name, verdicts[name], x, TOP + index * PANEL));
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" font-size="12" fill="#2c3e50">
<title>Soak test of Scrip, ${timeText(run.seconds)}</title>
<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>
${text(LEFT, 20, `${timeText(run.seconds)} at ${run.plan.rate} requests a second: ${run.counts.requests.toLocaleString('en')} requests, clock moved forward ${Math.round(run.days)} days`, 'start', 15)}
${legend()}
${panels.join('\n')}
${minutes.join('\n')}
</svg>
`;
}

function legend(): string {
  const words = { kill: 'killed', jump: 'the clock jumps', backup: 'a backup is made' };
  return Object.entries(words)
    .map(([kind, word], index) => {
      const left = LEFT + index * 140;
      const color = COLORS[kind as SoakEvent['kind']];
      return `<rect x="${left}" y="30" width="12" height="12" fill="${color}"/>${text(left + 18, 40, word, 'start')}`;
    })
    .join('\n');
}

type Scale = ReturnType<typeof scaleLinear<number, number>>;

function panel(run: Soak, name: SeriesName, verdict: Flatness, x: Scale, top: number): string {
  const { title, unit } = SERIES[name];
  const readings = run.readings[name];
  const values = readings.map(({ value }) => value);
  const highest = Math.min(Math.max(...values), CEILING_OF_MEDIAN * median(values)) || 1;
  const y = scaleLinear([0, highest], [top + PANEL_HEIGHT, top + 8])
    .nice(TICKS)
    .clamp(true);
  const ticks = y
    .ticks(TICKS)
    .map(
      (value) =>
        `<line x1="${LEFT}" x2="${RIGHT}" y1="${y(value)}" y2="${y(value)}" stroke="#ecf0f1"/>${text(LEFT - 6, y(value) + 4, figure(value), 'end')}`,
    );
  const lives = [...Map.groupBy(readings, ({ life }) => life).values()].map((life) => {
    const points = life.map(({ seconds, value }) => `${x(seconds).toFixed(1)},${y(value).toFixed(1)}`).join(' ');
    return `<polyline points="${points}" fill="none" stroke="#1f5f8b" stroke-width="1.2"/>`;
  });
  const head = `${title}${unit === '' ? '' : `, ${unit}`}: ${verdictText(verdict, unit)}`;
  const color = verdict.isFlat ? '#2c3e50' : '#c0392b';
  return [
    text(LEFT, top, head, 'start', 12, color),
    ...run.events.map((event) => mark(event, x, top)),
    ...ticks,
    ...lives,
  ].join('\n');
}

function mark({ kind, seconds, ms }: SoakEvent, x: Scale, top: number): string {
  const width = kind === 'backup' ? Math.max(1, x(seconds + ms / 1_000) - x(seconds)) : 1;
  return `<rect x="${x(seconds).toFixed(1)}" y="${top + 8}" width="${width.toFixed(1)}" height="${PANEL_HEIGHT - 8}" fill="${COLORS[kind]}"/>`;
}

export function verdictText({ isFlat, level, slopePerHour, risePermitted, rise }: Flatness, unit: string): string {
  const name = unit === '' ? '' : ` ${unit}`;
  const slope = `${slopePerHour < 0 ? '−' : '+'}${figure(Math.abs(slopePerHour))}${name} an hour`;
  const why = isFlat ? '' : ` (it rose by ${figure(rise)}; at most ${figure(risePermitted)} is permitted)`;
  return `${isFlat ? 'flat' : 'NOT FLAT'} at ${figure(level)}${name}, ${slope}${why}`;
}

function figure(value: number): string {
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(Math.abs(value) >= 10 ? 1 : 2).replace(/\.0+$/, '');
}

function timeText(seconds: number): string {
  return seconds < SHORT_SECONDS ? `${Math.round(seconds)} s` : `${Math.round(seconds / 6) / 10} min`;
}

function text(x: number, y: number, words: string, anchor: string, size = 12, color = '#2c3e50'): string {
  return `<text x="${x}" y="${y}" text-anchor="${anchor}" font-size="${size}" fill="${color}">${words}</text>`;
}
