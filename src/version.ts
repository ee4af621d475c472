// The version of Scrip. It must equal the version in package.json, which the published package does not read at run
// time; a test compares the two.

export const VERSION = '0.1.0';
