// Formats CSV lines as specified in RFC 4180.

export function csvLine(fields: readonly (string | number | null)[]): string {
  return `${fields.map(csvField).join(',')}\r\n`;
}

/**
 * A spreadsheet runs text as a formula if the text begins with one of these characters. An apostrophe before the text
 * prevents this.
 * https://owasp.org/www-community/attacks/CSV_Injection
 */
const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/;

function csvField(field: string | number | null): string {
  if (typeof field === 'number') return String(field);
  if (field === null) return '';
  const text = FORMULA.test(field) ? `'${field}` : field;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
