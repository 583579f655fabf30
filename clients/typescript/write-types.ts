// Writes src/openapi.ts, the types of what the service takes and answers.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import openapiTypes, { astToString } from 'openapi-typescript';
import { describedSchemas } from './described-schemas.ts';

const types = astToString(await openapiTypes(JSON.stringify(await describedSchemas())));
writeFileSync(join(import.meta.dirname, 'src', 'openapi.ts'), types);
