/** What the runtime has and its types lack: https://tc39.es/proposal-json-parse-with-source/ */
interface JsonWithSource {
  parse(text: string, reviver: (key: string, value: unknown, context: { source?: string }) => unknown): unknown;
  rawJSON(text: string): unknown;
}

const json = JSON as unknown as JsonWithSource;

/**
 * Parses JSON so that `JSON.stringify` writes each number as it came. A number that it would write differently is an object.
 *
 * @example
 * JSON.stringify(parseExactNumbers('[1, 1.10, 9007199254740993]')); // '[1,1.10,9007199254740993]'
 */
export function parseExactNumbers(text: string): unknown {
  return json.parse(text, (_key, value, { source }) =>
    typeof value === 'number' && source !== undefined && String(value) !== source ? json.rawJSON(source) : value,
  );
}
