// The version of Scrip. The program does not read package.json, so a test checks that the two versions match.

export const VERSION = '0.1.0';
