/** A JSON value that keeps its numbers as they are written, for evaluators that compare them exactly. */
export type JsonModel = null | boolean | string | JsonNumber | readonly JsonModel[] | JsonObject;

export interface JsonObject {
  readonly members: Readonly<Record<string, JsonModel>>;
}

export interface JsonNumber {
  readonly number: string;
}

export function isNumber(value: JsonModel | undefined): value is JsonNumber {
  return typeof value === 'object' && value !== null && 'number' in value;
}

export function isObject(value: JsonModel | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && 'members' in value;
}

/** The JSON text of a model. */
export function writeJson(value: JsonModel): string {
  if (isNumber(value)) return value.number;
  if (isObject(value)) {
    return `{${Object.entries(value.members)
      .map(([key, member]) => `${JSON.stringify(key)}:${writeJson(member)}`)
      .join(',')}}`;
  }
  return Array.isArray(value) ? `[${value.map(writeJson).join(',')}]` : JSON.stringify(value);
}

/** The value at a path; undefined where there is none. A key of digits is an index where it meets an array. */
export function valueAt(document: JsonObject, path: readonly string[]): JsonModel | undefined {
  let value: JsonModel | undefined = document;
  for (const key of path) {
    if (Array.isArray(value))
      value = /^(0|[1-9]\d*)$/.test(key) ? (value[Number(key)] as JsonModel | undefined) : undefined;
    else value = isObject(value) && Object.hasOwn(value.members, key) ? value.members[key] : undefined;
  }
  return value;
}

/** Every value that a path leads to: one that meets an array continues in each of its elements, at its end as well. */
export function valuesAt(value: JsonModel, path: readonly string[]): JsonModel[] {
  const [key, ...rest] = path;
  const own: JsonModel[] = [];
  if (key === undefined) own.push(value);
  else if (isObject(value) && Object.hasOwn(value.members, key))
    own.push(...valuesAt(value.members[key] ?? null, rest));
  else if (Array.isArray(value) && /^(0|[1-9]\d*)$/.test(key) && Number(key) < value.length) {
    own.push(...valuesAt(value[Number(key)], rest));
  }
  return Array.isArray(value) ? [...own, ...value.flatMap((element) => valuesAt(element, path))] : own;
}

/** Exact, whatever the number of digits: -1, 0 or 1. */
export function compareNumbers(one: string, other: string): number {
  const [first, second] = [decimalOf(one), decimalOf(other)];
  const least = Math.min(first.exponent, second.exponent);
  const difference =
    first.mantissa * 10n ** BigInt(first.exponent - least) - second.mantissa * 10n ** BigInt(second.exponent - least);
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}

export function compareCodePoints(one: string, other: string): number {
  const [first, second] = [[...one], [...other]];
  for (let index = 0; index < Math.min(first.length, second.length); index += 1) {
    const difference = (first[index]?.codePointAt(0) ?? 0) - (second[index]?.codePointAt(0) ?? 0);
    if (difference !== 0) return Math.sign(difference);
  }
  return Math.sign(first.length - second.length);
}

function decimalOf(text: string): { mantissa: bigint; exponent: number } {
  const [digits = '', power = '0'] = text.toLowerCase().split('e');
  const [whole = '', fraction = ''] = digits.split('.');
  return { mantissa: BigInt(whole + fraction), exponent: Number(power) - fraction.length };
}
