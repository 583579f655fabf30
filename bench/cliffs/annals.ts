import { buildApp } from '../../src/app.ts';
import { createContext } from '../../src/context/context.ts';
import { readConfig } from '../../src/core/config/config.ts';
import { benchNow } from '../history/data.ts';

// The service itself as `annals serve` runs it, on a clock that stands at the end of the benchmark's history: the
// default window is of the trailing 30 days. Settings are those of the service.
const config = readConfig(process.env);
if (config.databaseUrl === undefined) throw new Error('DATABASE_URL is missing');
const { databaseUrl, secretKeys } = config;
const clock = { now: () => benchNow, elapsed: () => performance.now() };
const context = await createContext({ config, databaseUrl, secretKeys, overrides: { clock } });
const app = await buildApp(context);
process.stdout.write(`${await app.listen({ host: config.host, port: config.port })}\n`);
process.on('SIGTERM', async () => {
  await app.close();
  await context.close();
  process.exit();
});
