/**
 * Whether a name contains a character that people can see. Spaces, zero-width characters and fillers such as U+3164 do
 * not count.
 */
export function isVisible(text: string): boolean {
  return /[^\p{C}\p{Z}\p{Default_Ignorable_Code_Point}]/u.test(text);
}
