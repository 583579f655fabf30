import { buildApp } from '../../src/app.ts';
import { createContext } from '../../src/context/context.ts';
import { readConfig } from '../../src/core/config/config.ts';
import { tellProcessorTime } from './processor-time.ts';

// The service as one process of `annals serve` runs it, log and all. It tells its processor time when it is asked.
const config = readConfig(process.env);
if (config.databaseUrl === undefined) throw new Error('DATABASE_URL is missing');
const context = await createContext({ config, databaseUrl: config.databaseUrl, secretKeys: config.secretKeys });
const app = await buildApp(context);
process.on('SIGTERM', async () => {
  await app.close();
  await context.close();
  process.exit();
});
tellProcessorTime(await app.listen({ host: '127.0.0.1', port: 0 }));
