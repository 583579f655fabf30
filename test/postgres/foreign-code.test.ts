import { describe } from 'vitest';
import { closeAfterAll } from '../support/close-after-all.ts';
import { plantForeignCode } from '../support/server/foreign-code.ts';
import { startSourceServer } from '../support/server/source-server.ts';
import { commandTests } from './foreign-code/commands.ts';
import { sourceTests } from './foreign-code/sources.ts';

// One server for both: to plant the code takes longer than most tests.
const server = closeAfterAll(await startSourceServer());
await plantForeignCode(server);

describe('the database of Annals', () => commandTests(() => server));
describe('the database of an application', () => sourceTests(() => server));
