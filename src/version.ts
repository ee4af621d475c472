// The version of Scrip. A test checks that package.json contains the same version.

export const VERSION = '0.1.0';
