/** The caller's: throws a JsonSyntaxError. */
type Fail = (expected: string, position: number) => never;

/** The position after the escape that starts at `position`. */
export function afterEscape(bytes: Buffer, position: number, to: number, fail: Fail): number {
  const letter = position + 1 < to ? (bytes[position + 1] ?? -1) : -1;
  switch (letter) {
    case 0x22:
    case 0x5c:
    case 0x2f:
    case 0x62:
    case 0x66:
    case 0x6e:
    case 0x72:
    case 0x74:
      return position + 2;
    case 0x75:
      for (let digit = position + 2; digit < position + 6; digit += 1) {
        const byte = digit < to ? (bytes[digit] ?? -1) : -1;
        const isHex =
          (byte >= 0x30 && byte <= 0x39) || (byte >= 0x41 && byte <= 0x46) || (byte >= 0x61 && byte <= 0x66);
        if (!isHex) fail('expected four hexadecimal digits', digit);
      }
      return position + 6;
    default:
      return fail('expected an escape', position + 1);
  }
}

/** The position after the number that starts at `position`. */
export function afterNumber(bytes: Buffer, start: number, to: number, fail: Fail): number {
  let position = start;
  let byte = bytes[position] ?? -1;
  if (byte === 0x2d) {
    position += 1;
    byte = position < to ? (bytes[position] ?? -1) : -1;
  }
  if (byte === 0x30) position += 1;
  else position = afterDigits(bytes, position, to, fail);
  byte = position < to ? (bytes[position] ?? -1) : -1;
  if (byte === 0x2e) {
    position = afterDigits(bytes, position + 1, to, fail);
    byte = position < to ? (bytes[position] ?? -1) : -1;
  }
  if (byte === 0x65 || byte === 0x45) {
    position += 1;
    byte = position < to ? (bytes[position] ?? -1) : -1;
    if (byte === 0x2b || byte === 0x2d) position += 1;
    position = afterDigits(bytes, position, to, fail);
  }
  return position;
}

function afterDigits(bytes: Buffer, start: number, to: number, fail: Fail): number {
  let position = start;
  while (position < to) {
    const byte = bytes[position] ?? -1;
    if (byte < 0x30 || byte > 0x39) break;
    position += 1;
  }
  if (position === start) fail('expected a digit', position);
  return position;
}

/** Whether `word` stands at `position`. The caller has checked its first byte. */
export function isWord(bytes: Buffer, position: number, to: number, word: string): boolean {
  if (position + word.length > to) return false;
  for (let index = 1; index < word.length; index += 1) {
    if (bytes[position + index] !== word.charCodeAt(index)) return false;
  }
  return true;
}
