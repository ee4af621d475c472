// A streaming parser for CSV (RFC 4180). Fields are separated by commas, lines end in LF or CRLF, and fields that
// contain a comma, a quote or a line break are in quotes. The text arrives in chunks of any size.

export interface CsvRecord {
  readonly line: number;
  readonly fields: readonly string[];
}

/** Thrown if the text is not valid CSV. */
export class InvalidCsv extends Error {
  readonly line: number;

  constructor(line: number, message: string) {
    super(message);
    this.line = line;
  }
}

/**
 * A field with more characters probably lacks its closing quote. Without this limit, such a field would extend to the
 * end of the file.
 */
const FIELD_CHARACTERS_MAX = 10_000;

type Place =
  | 'start'
  | 'unquoted'
  | 'quoted'
  /** After a quote in a quoted field: the next character decides whether the quote ends the field. */
  | 'closing';

export class CsvReader {
  #place: Place = 'start';
  #field = '';
  #fields: string[] = [];
  #line = 1;
  #first = 1;

  /** @returns the records that end in this chunk; empty lines are skipped @throws InvalidCsv */
  read(text: string): readonly CsvRecord[] {
    const records: CsvRecord[] = [];
    for (const character of text) {
      if (character === '\n' && this.#place !== 'quoted') this.#endRecord(records);
      else this.#take(character);
      if (character === '\n') this.#line += 1;
      if (this.#fields.length === 0 && this.#place === 'start') this.#first = this.#line;
    }
    return records;
  }

  /**
   * @returns a list with the last record; an empty list if the text ended with a line break
   * @throws InvalidCsv if a quoted field is not closed
   */
  end(): readonly CsvRecord[] {
    if (this.#place === 'quoted')
      throw new InvalidCsv(this.#first, 'a field has an opening quotation mark, but no closing one');
    const records: CsvRecord[] = [];
    this.#endRecord(records);
    return records;
  }

  #take(character: string): void {
    switch (this.#place) {
      case 'start':
        if (character === '"') this.#place = 'quoted';
        else if (character === ',') this.#endField();
        else this.#add(character, 'unquoted');
        return;
      case 'unquoted':
        if (character === '"')
          throw new InvalidCsv(this.#line, 'a field containing a quotation mark must be enclosed in quotation marks');
        if (character === ',') this.#endField();
        else this.#add(character, 'unquoted');
        return;
      case 'quoted':
        if (character === '"') this.#place = 'closing';
        else this.#add(character, 'quoted');
        return;
      case 'closing':
        if (character === '"') this.#add(character, 'quoted');
        else if (character === ',') this.#endField();
        else if (character !== '\r')
          throw new InvalidCsv(this.#line, 'a closing quotation mark must be followed by a comma or a line break');
    }
  }

  #add(character: string, place: Place): void {
    this.#place = place;
    this.#field += character;
    if (this.#field.length > FIELD_CHARACTERS_MAX)
      throw new InvalidCsv(
        this.#first,
        `a field has more than ${FIELD_CHARACTERS_MAX} characters; is a closing quotation mark missing?`,
      );
  }

  #endField(): void {
    this.#fields.push(this.#field);
    this.#field = '';
    this.#place = 'start';
  }

  #endRecord(records: CsvRecord[]): void {
    const isUnquoted = this.#place === 'unquoted';
    if (isUnquoted && this.#field.endsWith('\r')) this.#field = this.#field.slice(0, -1);
    const isEmpty = this.#fields.length === 0 && this.#field === '' && this.#place !== 'closing';
    this.#endField();
    if (!isEmpty) records.push({ line: this.#first, fields: this.#fields });
    this.#fields = [];
  }
}
