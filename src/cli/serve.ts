import { once } from 'node:events';
import { isIPv6, type Server } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { buildApp } from '../app.ts';
import type { Config } from '../config.ts';
import type { Context } from '../context.ts';
import { hasCode } from '../db/write-once.ts';
import { OperatorError, type Surroundings, UsageError, type Verb } from './verb.ts';
import { Stopped, withContext } from './with-context.ts';

// How long what is in flight may take to finish once the process is asked to end, in milliseconds.
const graceLimit = 30_000;

export const serveVerb: Verb = {
  summary: 'run the service',
  help: `Usage: annals serve

Brings the database to the current schema, runs the service, and prints its base
URL when it is ready to answer. SIGTERM and SIGINT (^C) end it in an orderly way;
a second one, at once.

Settings are environment variables:
  PORT, HOST                   8080, 127.0.0.1; PORT=0 picks a free port
  DATABASE_URL                 PostgreSQL 15 or later; without it, an embedded one
  ANNALS_DATA_DIR              where the embedded one keeps its files; ./data
  ANNALS_SECRET_KEY            32 bytes in base64, a list rotates
  ANNALS_BASE_URL              the public address
  ANNALS_CORS_ORIGINS          *; pages of which origins may call, none for no page
  LOG_LEVEL                    info; JSON lines on stderr
  ANNALS_SHARED_PROVIDER_TOKEN, ANNALS_COMPLETION_MODEL,
  ANNALS_COMPLETION_MAX_TOKENS, OPENAI_BASE_URL, ANTHROPIC_BASE_URL,
  GOOGLE_BASE_URL, ANNALS_SELF_HOSTED_ALLOW, ANNALS_MODELS_FILE, SMTP_URL,
  MAIL_FROM                    see docs/operations.md

Example:
  PORT=3000 annals serve`,

  async run(args, surroundings) {
    if (args.length > 0) throw new UsageError(`serve takes no arguments, and was given ${args[0]}`);
    try {
      await withContext(surroundings, (context, config) => serveUntilStopped(context, config, surroundings));
    } catch (error) {
      // Asked to end before it had begun: that is a good end too.
      if (!(error instanceof Stopped)) throw error;
    }
    return 0;
  },
};

/** Serves until the process is asked to end. `ready` is told the base URL. */
export async function serveUntilStopped(
  context: Context,
  config: Config,
  surroundings: Surroundings,
  ready: (baseUrl: string) => Promise<void> | void = surroundings.answer,
): Promise<void> {
  const app = await buildApp(context);
  await listen(app, config);
  try {
    await ready(baseUrlOf(config.host, app.server.address()));
    await stopped(surroundings.stop);
  } finally {
    const closed = app.close();
    if ((await Promise.race([closed, sleep(graceLimit, 'late', { ref: false })])) === 'late') {
      surroundings.tell(`after ${graceLimit / 1000} s requests are still in flight; they are cut`);
      app.server.closeAllConnections();
      await closed;
    }
  }
}

async function listen(app: Awaited<ReturnType<typeof buildApp>>, { host, port }: Config): Promise<void> {
  try {
    await app.listen({ host, port });
  } catch (error) {
    await app.close();
    if (hasCode(error, 'EADDRINUSE')) {
      throw new OperatorError(`port ${port} of ${host} is in use; set PORT to another one, or to 0 for any free one`);
    }
    if (hasCode(error, 'EACCES', 'EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN')) {
      const code = error instanceof Error && 'code' in error ? error.code : '';
      throw new OperatorError(`cannot listen on port ${port} of ${host} (${code}); see HOST and PORT`);
    }
    throw error;
  }
}

function baseUrlOf(host: string, address: ReturnType<Server['address']>): string {
  const port = address !== null && typeof address === 'object' ? address.port : 0;
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `http://${isIPv6(reachable) ? `[${reachable}]` : reachable}:${port}`;
}

async function stopped(stop: AbortSignal): Promise<void> {
  if (!stop.aborted) await once(stop, 'abort');
}
