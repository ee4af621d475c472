// A part of the benchmark that can be measured separately, in a few minutes at most.

import type { Figure, Row } from '../results.ts';
import type { Subjects } from '../subjects.ts';

export interface PartSettings {
  readonly rounds: number;
  readonly seconds: number;
  /** Null for the default of the part. */
  readonly connections: number | null;
}

export interface Part {
  readonly name: string;
  readonly title: string;
  /** @param subjects the caller stops all subjects afterwards */
  run(subjects: Subjects, settings: PartSettings): Promise<{ rows: readonly Row[]; figures: readonly Figure[] }>;
}

export const WARM_UP_SECONDS = 2;
