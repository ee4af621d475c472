// What the console uses of ghtml, which comes without types. `html` escapes what stands in `${}`; `!${}` is trusted.

declare module 'ghtml' {
  export type Fragment = string | number | bigint | null | undefined | readonly string[];
  export function html(literals: TemplateStringsArray, ...values: readonly Fragment[]): string;
}
