import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';

// The law of test/http/random-bodies.test.ts with more bodies: what is valid by the OpenAPI document is refused for nothing
// that the document could have ruled out.
const { values: settings } = parseArgs({
  options: {
    /** Bodies of each operation. */
    bodies: { type: 'string', default: '200' },
  },
});
const { status } = spawnSync('npx', ['vitest', 'run', '--testTimeout=1200000', 'test/http/random-bodies.test.ts'], {
  env: { ...process.env, ANNALS_LAW_BODIES: settings.bodies },
  stdio: 'inherit',
});
process.exitCode = status ?? 1;
