/**
 * The module node:http. Importing its names makes Node evaluate each, and one loads the client of `fetch`:
 * 20 ms of processor time at every start.
 */
export const nodeHttp = process.getBuiltinModule('node:http');
