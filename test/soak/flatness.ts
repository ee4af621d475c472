// Decides whether a series stays flat over a long time. The readings of each server process (a "life") are judged
// separately. The first half of each life is ignored, because caches fill during this time.
//
// The slope of a series is the median slope between two points of the same life (Theil and Sen). Its significance is
// computed with the test of Mann and Kendall, summed over all lives as Hirsch and Slack do with seasons. A series is
// not flat if its rise is significant and larger than a bound.

import assert from 'node:assert/strict';

export interface Reading {
  /** The sequence number of the process in the test. */
  readonly life: number;
  readonly seconds: number;
  readonly value: number;
}

/** The largest rise that counts as flat: `share` of the level, or `least` (in the unit of the series) if larger. */
export interface Allowance {
  readonly share: number;
  readonly least: number;
}

export interface Flatness {
  readonly isFlat: boolean;
  /** The median of the judged points. */
  readonly level: number;
  readonly slopePerHour: number;
  /** The slope multiplied by the length of the longest judged life. */
  readonly rise: number;
  readonly risePermitted: number;
  /** The number of rising pairs minus the number of falling pairs, in standard deviations. */
  readonly sigmas: number;
  readonly points: number;
  readonly judgedSeconds: number;
}

/** This share of each life is ignored at the beginning of the life, because caches are still filling. */
const BEGINNING = 0.5;
const BLOCKS_MAX = 30;
/** A life with fewer points is not judged. */
const BLOCKS_MIN = 6;
/** One in 44 flat series exceeds this value by chance. Far fewer of them rise by more than the bound as well. */
const SIGMAS_MAX = 2;

export function judgeFlatness(readings: readonly Reading[], allowance: Allowance): Flatness {
  const lives = [...Map.groupBy(readings, ({ life }) => life).values()]
    .map((life) => blocksOf(settled(life)))
    .filter((blocks) => blocks.length >= BLOCKS_MIN);
  assert(lives.length > 0, 'no process was measured for long enough to be judged');
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

/** Replaces each block of consecutive points with its median, so that a single outlier has no effect. */
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

/**
 * The variance, in a series without a trend, of the number of rising pairs minus the number of falling pairs. Equal
 * values reduce the variance.
 */
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
  assert(values.length > 0, 'at least one value is needed');
  const ascending = values.toSorted((a, b) => a - b);
  const half = ascending.length >> 1;
  const upper = ascending[half] as number;
  return ascending.length % 2 === 1 ? upper : ((ascending[half - 1] as number) + upper) / 2;
}
