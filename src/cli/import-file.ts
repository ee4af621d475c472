// The CSV file of `scrip import`: a header, then one addition of credits per row. The file is read twice: first to
// check all rows, then to import them.

import { createHash } from 'node:crypto';
import { createReadStream, type Stats, statSync } from 'node:fs';
import { AMOUNT_MAX } from '../ledger/amount.ts';
import { type Instant, VALIDITY_DAYS_MAX } from '../ledger/instant.ts';
import { instantIn } from '../ledger/instant-text.ts';
import { isNote, NOTE_LENGTH_MAX } from '../ledger/posting.ts';
import { CannotOpen } from '../store/store-fault.ts';
import { type ImportRow, ImportStopped } from '../store/tools/import.ts';
import type { ReportProgress } from '../store/tools/ledger-tools.ts';
import { CsvReader, type CsvRecord, InvalidCsv } from './csv.ts';
import { counted } from './output.ts';

const COLUMNS = ['end_user_id', 'amount', 'expires_at', 'validity_days', 'note'] as const;
type Column = (typeof COLUMNS)[number];

/** Errors beyond this number are counted, but not listed. */
export const ERRORS_LISTED_MAX = 20;
/** Error messages quote at most this many characters of a value. */
const VALUE_CHARACTERS_MAX = 40;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const KIB = 2 ** 10;

interface FileError {
  readonly line: number;
  readonly text: string;
}

export class FileErrors {
  readonly first: FileError[] = [];
  count = 0;

  add(line: number, column: Column | null, message: string): void {
    this.count += 1;
    if (this.count > ERRORS_LISTED_MAX) return;
    const place = column === null ? `line ${line}` : `line ${line}, column ${column}`;
    this.first.push({ line, text: `${place}: ${message}` });
  }
}

export interface CheckedFile {
  readonly rows: number;
  /** Hash of the rows, independent of the line endings, the column order and the file name. */
  readonly sha256: string;
  readonly errors: FileErrors;
  /** Rows whose credits have expired. A new import refuses a file with such rows; a resumed import skips these rows. */
  readonly expired: FileErrors;
  readonly hasInstants: boolean;
}

export class ImportFile {
  readonly #path: string;
  readonly #status: Stats;

  /** @throws CannotOpen */
  constructor(path: string) {
    this.#path = path;
    const status = statSync(path, { throwIfNoEntry: false });
    if (status === undefined) throw new CannotOpen(`File ${path} does not exist.`);
    // A pipe cannot be read twice.
    if (!status.isFile()) throw new CannotOpen(`${path} is not a regular file; pass the path of a CSV file.`);
    this.#status = status;
  }

  /** @throws CannotOpen if the file cannot be read */
  async check(now: Instant, report: ReportProgress): Promise<CheckedFile> {
    const [errors, expired] = [new FileErrors(), new FileErrors()];
    const hash = createHash('sha256');
    let rows = 0;
    let hasInstants = false;
    for await (const row of this.#read(errors, report)) {
      const { line, endUser, amount, validity, note } = row;
      hash.update(`${JSON.stringify([endUser, amount, validity, note])}\n`);
      rows += 1;
      if ('days' in validity) continue;
      hasInstants = true;
      if (validity.expiresAt <= now) expired.add(line, 'expires_at', 'this instant has already passed');
    }
    if (rows === 0 && errors.count === 0) errors.add(1, null, 'the file has no rows after the header');
    return { rows, sha256: hash.digest('hex'), errors, expired, hasInstants };
  }

  /** Call this only if `check` found no errors. @throws ImportStopped if the file has changed since the check */
  async *rows(): AsyncGenerator<ImportRow> {
    const errors = new FileErrors();
    for await (const row of this.#read(errors, () => {})) {
      if (errors.count > 0) break;
      yield row;
    }
    if (errors.count > 0) throw this.#changed();
  }

  async *#read(errors: FileErrors, report: ReportProgress): AsyncGenerator<ImportRow> {
    let header: Header | null = null;
    for await (const record of this.#records(errors, report)) {
      header ??= headerOf(record, errors);
      if (header === null) return;
      if (record.line === header.line) continue;
      const row = rowOf(record, header, errors);
      if (row !== null) yield row;
    }
    if (header === null && errors.count === 0) errors.add(1, null, 'the file is empty');
  }

  async *#records(errors: FileErrors, report: ReportProgress): AsyncGenerator<CsvRecord> {
    const reader = new CsvReader();
    try {
      for await (const text of this.#texts(report)) yield* reader.read(text);
      yield* reader.end();
    } catch (error) {
      if (!(error instanceof InvalidCsv)) throw error;
      errors.add(error.line, null, error.message);
    }
  }

  /** @throws ImportStopped if the file has changed since it was opened */
  async *#texts(report: ReportProgress): AsyncGenerator<string> {
    const decoder = new TextDecoder('utf-8', { fatal: true });
    const total = Math.ceil(this.#status.size / KIB);
    let bytes = 0;
    try {
      for await (const chunk of createReadStream(this.#path)) {
        this.#refuseChanged();
        yield decoder.decode(chunk, { stream: true });
        bytes += chunk.length;
        report({ step: 'checking', done: Math.ceil(bytes / KIB), total, unit: 'KiB' });
      }
      yield decoder.decode();
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA')
        throw new CannotOpen(`${this.#path} is not UTF-8 text; save the file as UTF-8.`);
      if (error instanceof Error && 'syscall' in error) throw new CannotOpen(`Cannot read ${this.#path} (${message}).`);
      throw error;
    }
  }

  #refuseChanged(): void {
    const { size, mtimeMs } = statSync(this.#path, { throwIfNoEntry: false }) ?? {};
    if (size !== this.#status.size || mtimeMs !== this.#status.mtimeMs) throw this.#changed();
  }

  #changed(): ImportStopped {
    return new ImportStopped(
      `${this.#path} changed during the import; restore the original file and run the same command again.`,
    );
  }
}

interface Header {
  readonly line: number;
  readonly columns: readonly Column[];
}

function headerOf({ line, fields }: CsvRecord, errors: FileErrors): Header | null {
  const names = fields.map((name) => name.trim());
  const before = errors.count;
  const unknown = names.find((name) => !COLUMNS.includes(name as Column));
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  const missing = ['end_user_id', 'amount'].find((name) => !names.includes(name));
  if (unknown !== undefined)
    errors.add(line, null, `${shown(unknown)} is not a known column; the columns are ${COLUMNS.join(',')}`);
  else if (twice !== undefined) errors.add(line, null, `the ${twice} column appears twice`);
  else if (missing !== undefined) errors.add(line, null, `the header has no ${missing} column`);
  else if (!names.includes('expires_at') && !names.includes('validity_days'))
    errors.add(line, null, 'the header has neither expires_at nor validity_days');
  return errors.count === before ? { line, columns: names as Column[] } : null;
}

function rowOf({ line, fields }: CsvRecord, { columns }: Header, errors: FileErrors): ImportRow | null {
  if (fields.length !== columns.length) {
    errors.add(line, null, `the row has ${counted(fields.length, 'field')}, but the header has ${columns.length}`);
    return null;
  }
  const field = (column: Column) => fields[columns.indexOf(column)]?.trim() ?? '';
  const before = errors.count;
  const endUser = field('end_user_id').toLowerCase();
  if (!UUID.test(endUser)) errors.add(line, 'end_user_id', `${shown(endUser)} is not a UUID`);
  const amount = Number(field('amount'));
  if (!/^[1-9]\d{0,15}$/.test(field('amount')) || amount > AMOUNT_MAX)
    errors.add(line, 'amount', `${shown(field('amount'))} is not a whole number from 1 to ${AMOUNT_MAX}`);
  const note = field('note') === '' ? null : field('note');
  if (note !== null && !isNote(note))
    errors.add(line, 'note', `must have at most ${NOTE_LENGTH_MAX} characters, none of them U+0000`);
  const validity = validityOf(line, { expiresAt: field('expires_at'), days: field('validity_days') }, errors);
  return validity === null || errors.count > before ? null : { line, endUser, amount, validity, note };
}

function validityOf(
  line: number,
  { expiresAt, days }: { expiresAt: string; days: string },
  errors: FileErrors,
): ImportRow['validity'] | null {
  const instant = instantIn(expiresAt);
  if ((expiresAt === '') === (days === ''))
    errors.add(
      line,
      'expires_at',
      `a row must have either expires_at or validity_days; this row has ${days === '' ? 'neither' : 'both'}`,
    );
  else if (days !== '') {
    // As in the API, a validity above the maximum is reduced to the maximum.
    if (/^[1-9]\d*$/.test(days)) return { days: Math.min(Number(days), VALIDITY_DAYS_MAX) };
    errors.add(line, 'validity_days', `${shown(days)} is not a positive whole number`);
  } else if (instant !== null) return { expiresAt: instant };
  else
    errors.add(
      line,
      'expires_at',
      `${shown(expiresAt)} is not a date and time with a time zone, such as 2026-11-20T08:00:00Z`,
    );
  return null;
}

function shown(value: string): string {
  const characters = [...value];
  return JSON.stringify(
    characters.length > VALUE_CHARACTERS_MAX ? `${characters.slice(0, VALUE_CHARACTERS_MAX).join('')}…` : value,
  );
}
