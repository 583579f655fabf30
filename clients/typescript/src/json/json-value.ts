/** Any JSON value with everything that its text says: the digits of its numbers, and the order of its members. */
export type JsonValue = null | boolean | string | JsonNumber | JsonArray | JsonObject;

export interface JsonArray extends Array<JsonValue> {}

/**
 * The members in their order. A plain object would put `"2"` before `"10"`, and both before `"a"`, whatever the text
 * says.
 */
export interface JsonObject extends Map<string, JsonValue> {}

const numberSyntax = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/;

/**
 * A number as it was written: `1.10`, `-0` and `1E400` stay what they are.
 *
 * @example
 * new JsonNumber('9007199254740993').text; // '9007199254740993'
 */
export class JsonNumber {
  readonly text: string;

  /** Throws TypeError where the text is no number of JSON. */
  constructor(text: string) {
    if (!numberSyntax.test(text)) throw new TypeError(`${JSON.stringify(text)} is not a number of JSON.`);
    this.text = text;
  }

  /** The nearest number of JavaScript. */
  valueOf(): number {
    return Number(this.text);
  }

  toString(): string {
    return this.text;
  }
}

/**
 * The value as JavaScript's own: numbers become the nearest `number`, objects become plain objects. Takes any depth.
 *
 * @example
 * toPlain(parseJson('{"price":1.10}')); // { price: 1.1 }
 */
export function toPlain(value: JsonValue): unknown {
  const holder: unknown[] = [];
  const open: { from: JsonArray | JsonObject; into: object }[] = [];

  const place = (into: object, key: string | number, part: JsonValue) => {
    const isContainer = Array.isArray(part) || part instanceof Map;
    const made = isContainer ? (Array.isArray(part) ? [] : {}) : part instanceof JsonNumber ? part.valueOf() : part;
    // Assigned, a key __proto__ would be the prototype.
    Object.defineProperty(into, key, { value: made, writable: true, enumerable: true, configurable: true });
    if (isContainer) open.push({ from: part, into: made as object });
  };

  place(holder, 0, value);
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const [key, part] of next.from.entries()) place(next.into, key, part);
  }
  return holder[0];
}
