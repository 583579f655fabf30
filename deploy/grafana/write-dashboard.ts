// Writes annals.json beside this file: the dashboard that Grafana imports.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { dashboard } from './dashboard.ts';

writeFileSync(join(import.meta.dirname, 'annals.json'), `${JSON.stringify(dashboard(), undefined, 2)}\n`);
