import * as fc from 'fast-check';

/**
 * A character of Unicode, no half of a pair. For the unit `binary` fast-check keeps a table of all 1.1 million in
 * memory.
 */
export const anyCharacter = fc
  .oneof(fc.nat({ max: 0x7f }), fc.nat({ max: 0xd7ff }), fc.integer({ min: 0xe000, max: 0x10ffff }))
  .map((code) => String.fromCodePoint(code));
