/**
 * The module node:http. To import its names has Node look at each of them, and one of them loads the client of `fetch`: 20 ms of
 * processor time at every start.
 */
export const nodeHttp = process.getBuiltinModule('node:http');
