// What the console uses of ghtml, which has no types of its own. `html` escapes `${}` and inserts `!${}` as trusted HTML.

declare module 'ghtml' {
  export type Fragment = string | number | bigint | null | undefined | readonly string[];
  export function html(literals: TemplateStringsArray, ...values: readonly Fragment[]): string;
}
