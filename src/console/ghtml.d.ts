// Type declarations for ghtml, which has none of its own. `html` escapes the values of `${}` and inserts the values of
// `!${}` as trusted HTML.

declare module 'ghtml' {
  export type Fragment = string | number | bigint | null | undefined | readonly string[];
  export function html(literals: TemplateStringsArray, ...values: readonly Fragment[]): string;
}
