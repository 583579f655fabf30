/** The order of texts by their code points, which that of JavaScript is not above U+FFFF: for `sort`. */
export function compareCodePoints(one: string, other: string): number {
  const length = Math.min(one.length, other.length);
  for (let index = 0; index < length; index++) {
    const [first, second] = [one.charCodeAt(index), other.charCodeAt(index)];
    if (first !== second) return placeOf(first) - placeOf(second);
  }
  return one.length - other.length;
}

/** Surrogates stand for code points above all others. */
function placeOf(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}
