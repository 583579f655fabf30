import '../test/support/server/turn-probe.ts';
import { buildApp } from '../src/app.ts';
import { createContext } from '../src/context/context.ts';
import { readConfig } from '../src/core/config/config.ts';
import { main } from '../src/main.ts';

// `annals serve` or `annals recorder` from the sources, to be forked, with a probe of its event loop. With BENCH_NOW
// (milliseconds since 1970) the service's clock stands there: the default window of a query ends at that moment.
const { BENCH_NOW: now } = process.env;
if (now === undefined) {
  await main(process.argv.slice(2), process.env);
} else {
  const config = readConfig(process.env);
  const { databaseUrl = '', secretKeys } = config;
  const clock = { now: () => Number(now), elapsed: () => performance.now() };
  const context = await createContext({ config, databaseUrl, secretKeys, overrides: { clock } });
  const app = await buildApp(context);
  process.stdout.write(`${await app.listen({ host: '127.0.0.1', port: 0 })}\n`);
  process.on('SIGTERM', async () => {
    await app.close();
    await context.close();
    process.exit();
  });
}
