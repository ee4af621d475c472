// Says whether what was measured over a long time stays where it is. Servers are killed in between, and what one has
// gathered goes with it, so that each life is looked at by itself, without its beginning, in which caches fill.
//
// The slope is the median of the slopes between all pairs of points of a life (Theil and Sen), and whether it is more
// than chance is said by how many pairs rise (Mann and Kendall), summed up over the lives (as Hirsch and Slack do over
// seasons). Neither minds a few outliers. Something that rises is not flat when it rises by more than may be.

import assert from 'node:assert/strict';

export interface Reading {
  /** Which process, counted from its start. */
  readonly life: number;
  readonly seconds: number;
  readonly value: number;
}

/** What may come up: the larger of a share of the level, and so much of the unit. */
export interface Allowance {
  readonly share: number;
  readonly least: number;
}

export interface Flatness {
  readonly isFlat: boolean;
  /** In the middle of what was judged. */
  readonly level: number;
  readonly slopePerHour: number;
  /** By the slope, over the longest life that was judged. */
  readonly rise: number;
  readonly risePermitted: number;
  /** Of how many standard deviations the pairs rise more than they fall. */
  readonly sigmas: number;
  readonly points: number;
  readonly judgedSeconds: number;
}

/** Of a life, as its caches fill. */
const BEGINNING = 0.5;
const BLOCKS_MAX = 30;
/** A life with fewer has no trend to speak of. */
const BLOCKS_MIN = 6;
/** A flat series looks like a rising one once in 44 times; that it also rises by more than may be is far rarer. */
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

/** Medians of neighbours, so that one bad moment is no point by itself. */
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

/** Of the count of rising pairs, when there is no trend; less where values are equal. */
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
