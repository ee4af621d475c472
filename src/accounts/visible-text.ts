// Checks that names of accounts and API keys can be seen.

/** Spaces, zero-width characters and fillers such as U+3164 are not visible. */
export function isVisible(text: string): boolean {
  return /[^\p{C}\p{Z}\p{Default_Ignorable_Code_Point}]/u.test(text);
}
