// Decides whether a series rises in the long run. A series counts as rising if its rise is both statistically
// significant and larger than a bound. A "life" is the time from the start to the end of one server process. The first
// half of each life is ignored, because caches are still filling. The rest is divided into blocks of successive
// readings, and the median of each block is a "point". Points of different lives are not compared.
//
// The slope is the Theil-Sen estimate: the median of the slopes between any two points of a life. The Mann-Kendall test
// gives the significance of the slope. The test statistics of all lives are added up, as in the seasonal test of Hirsch
// and Slack, with lives in place of seasons.

import assert from 'node:assert/strict';

export interface Reading {
  readonly life: number;
  readonly seconds: number;
  readonly value: number;
}

/** The largest rise that counts as flat: `share` times the median of all points, but at least `least`. */
export interface Allowance {
  readonly share: number;
  readonly least: number;
}

export interface Flatness {
  readonly isFlat: boolean;
  /** The median of all points. */
  readonly level: number;
  readonly slopePerHour: number;
  /** The rise during `spanSeconds` at `slopePerHour`. */
  readonly rise: number;
  readonly risePermitted: number;
  /** The number of rising pairs of points minus the number of falling pairs, in standard deviations. */
  readonly sigmas: number;
  readonly points: number;
  /** The longest time between the first and the last point of one life. */
  readonly spanSeconds: number;
}

/** This initial fraction of each life is ignored. */
const BEGINNING = 0.5;
const BLOCKS_MAX = 30;
const BLOCKS_MIN = 6;
/** By chance, one in 44 flat series exceeds this value, but a series fails only if its rise also exceeds the bound. */
const SIGMAS_MAX = 2;

export function judgeFlatness(readings: readonly Reading[], allowance: Allowance): Flatness {
  const lives = [...Map.groupBy(readings, ({ life }) => life).values()]
    .map((life) => blocksOf(settled(life)))
    .filter((blocks) => blocks.length >= BLOCKS_MIN);
  assert(lives.length > 0, 'no process was measured for long enough to be judged');
  const level = median(lives.flat().map(({ value }) => value));
  const slope = median(lives.flatMap(slopesOf));
  const spanSeconds = Math.max(...lives.map((life) => (life.at(-1)?.seconds ?? 0) - (life[0]?.seconds ?? 0)));
  const rise = slope * spanSeconds;
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
    spanSeconds,
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

/** Replaces each block of successive points with their median, so that a single outlier has no effect. */
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
 * In a series without a trend, the number of rising pairs minus the number of falling pairs varies around zero. Returns
 * the variance of this difference. Equal values reduce the variance.
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
