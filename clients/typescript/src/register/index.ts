// The whole of `node --import @annals/client/register`: attributes pg wherever it is loaded, and requests if
// ANNALS_CONTEXT names a module that says whose they are.

import { attributeLoadedPg } from './load-hooks.ts';
import { contextFromModule } from './servers.ts';

attributeLoadedPg();

const { ANNALS_CONTEXT: file } = process.env;
if (file !== undefined && file !== '') await contextFromModule(file);
