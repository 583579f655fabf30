import { afterAll, beforeAll, describe } from 'vitest';
import { plantForeignCode } from '../support/server/foreign-code.ts';
import { type SourceServer, startSourceServer } from '../support/server/source-server.ts';
import { commandTests } from './foreign-code/commands.ts';
import { sourceTests } from './foreign-code/sources.ts';

// One server for both: to plant the code takes longer than most tests.
let server: SourceServer;

beforeAll(async () => {
  server = await startSourceServer();
  await plantForeignCode(server);
});

afterAll(() => server.close());

describe('the database of Annals', () => commandTests(() => server));
describe('the database of an application', () => sourceTests(() => server));
