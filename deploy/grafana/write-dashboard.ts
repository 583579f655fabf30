// Writes annals.json, the dashboard that Grafana imports, beside this file.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { dashboard } from './dashboard.ts';

writeFileSync(join(import.meta.dirname, 'annals.json'), `${JSON.stringify(dashboard(), undefined, 2)}\n`);
