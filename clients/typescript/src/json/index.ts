export { type JsonArray, JsonNumber, type JsonObject, type JsonValue, toPlain } from './json-value.ts';
export { parseJson, parseJsonSteps } from './parse.ts';
export { advance, finish, finishInSlices, type Steps } from './steps.ts';
export { stringifyJson, stringifyJsonSteps } from './stringify.ts';
