export { type JsonArray, JsonNumber, type JsonObject, type JsonValue, toPlain } from './json-value.ts';
export { parseJson } from './parse.ts';
export { stringifyJson } from './stringify.ts';
