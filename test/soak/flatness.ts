// Decides whether a series stays where it is over a long time. Servers are killed in between and lose what they have
// gathered, so each life is judged by itself, without its beginning, in which caches fill.
//
// The slope is the median of the slopes between all pairs of points of a life (Theil and Sen). Whether it is more than
// chance follows from how many pairs rise (Mann and Kendall), summed up over the lives (as Hirsch and Slack do over
// seasons). Both tolerate a few outliers. A series that rises is not flat if it rises by more than the bound.

import assert from 'node:assert/strict';

export interface Reading {
  /** Which process, counted from its start. */
  readonly life: number;
  readonly seconds: number;
  readonly value: number;
}

/** The rise that counts as flat: the larger of a share of the level and an amount of the unit. */
export interface Allowance {
  readonly share: number;
  readonly least: number;
}

export interface Flatness {
  readonly isFlat: boolean;
  /** In the middle of the judged part. */
  readonly level: number;
  readonly slopePerHour: number;
  /** By the slope, over the longest judged life. */
  readonly rise: number;
  readonly risePermitted: number;
  /** By how many standard deviations more pairs rise than fall. */
  readonly sigmas: number;
  readonly points: number;
  readonly judgedSeconds: number;
}

/** The share of a life in which its caches fill. */
const BEGINNING = 0.5;
const BLOCKS_MAX = 30;
/** A life with fewer points has no trend. */
const BLOCKS_MIN = 6;
/** A flat series looks like a rising one once in 44 times; that it also rises by more than the bound is far rarer. */
const SIGMAS_MAX = 2;

export function judgeFlatness(readings: readonly Reading[], allowance: Allowance): Flatness {
  const lives = [...Map.groupBy(readings, ({ life }) => life).values()]
    .map((life) => blocksOf(settled(life)))
    .filter((blocks) => blocks.length >= BLOCKS_MIN);
  assert(lives.length > 0, 'nothing was measured for long enough to be judged');
  const level = median(lives.flat().map(({ value }) => value));
  const slope = median(lives.flatMap(slopesOf));
  const judgedSeconds = Math.max(...lives.map((life) => (life.at(-1)?.seconds ?? 0) - (life[0]?.seconds ?? 0)));
  const rise = slope * judgedSeconds;
  const risePermitted = Math.max(allowance.share * level, allowance.least);
  const sigmas = trendOf(lives);
  return {
    isFlat: sigmas <= SIGMAS_MAX || rise <= risePermitted,
    level,
    slopePerHour: slope * 3_600,
    rise,
    risePermitted,
    sigmas,
    points: lives.flat().length,
    judgedSeconds,
  };
}

interface Point {
  readonly seconds: number;
  readonly value: number;
}

function settled(life: readonly Point[]): readonly Point[] {
  const [from, to] = [life[0]?.seconds ?? 0, life.at(-1)?.seconds ?? 0];
  return life.filter(({ seconds }) => seconds >= from + BEGINNING * (to - from));
}

/** Medians of neighbouring points, so that one outlier is not a point by itself. */
function blocksOf(life: readonly Point[]): readonly Point[] {
  const size = Math.max(1, Math.ceil(life.length / BLOCKS_MAX));
  return Array.from({ length: Math.floor(life.length / size) }, (_, index) => {
    const block = life.slice(index * size, (index + 1) * size);
    return { seconds: median(block.map(({ seconds }) => seconds)), value: median(block.map(({ value }) => value)) };
  });
}

function pairsOf(life: readonly Point[]): (readonly [Point, Point])[] {
  return life.flatMap((earlier, index) => life.slice(index + 1).map((later) => [earlier, later] as const));
}

function slopesOf(life: readonly Point[]): number[] {
  return pairsOf(life).map(([earlier, later]) => (later.value - earlier.value) / (later.seconds - earlier.seconds));
}

function trendOf(lives: readonly (readonly Point[])[]): number {
  const rising = sum(lives.flatMap((life) => pairsOf(life).map(([a, b]) => Math.sign(b.value - a.value))));
  const variance = sum(lives.map(varianceOf));
  return variance === 0 ? 0 : (rising - Math.sign(rising)) / Math.sqrt(variance);
}

/** Of the count of rising pairs without a trend; less if values are equal. */
function varianceOf(life: readonly Point[]): number {
  const ofTies = [...Map.groupBy(life, ({ value }) => value).values()].map(({ length }) => kendall(length));
  return kendall(life.length) - sum(ofTies);
}

function kendall(count: number): number {
  return (count * (count - 1) * (2 * count + 5)) / 18;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

export function median(values: readonly number[]): number {
  assert(values.length > 0, 'nothing has no middle');
  const ascending = values.toSorted((a, b) => a - b);
  const half = ascending.length >> 1;
  const upper = ascending[half] as number;
  return ascending.length % 2 === 1 ? upper : ((ascending[half - 1] as number) + upper) / 2;
}
