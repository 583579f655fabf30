import { once } from 'node:events';
import { isIPv6, type Server } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { buildApp } from '../app.ts';
import type { Config } from '../config.ts';
import type { Context } from '../context.ts';
import type { SchemaWatch } from '../db/schema/watch-schema.ts';
import { hasCode } from '../db/write-once.ts';
import { type Command, type CommandIo, OperatorError, UsageError } from './command.ts';
import { Stopped } from './stopped.ts';
import { withContext } from './with-context.ts';

// Maximum milliseconds that open requests have to finish after the process was asked to stop.
const graceLimit = 30_000;
// The maximum if another version waits for the process, and the time for load balancers to notice before it.
const outdatedGraceLimit = 10_000;
const outdatedNotice = 2_000;

export const serveCommand: Command = {
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

  async run(args, io) {
    if (args.length > 0) throw new UsageError(`serve takes no arguments, and was given ${args[0]}`);
    try {
      await withContext(io, (context, config, watch) => serveUntilStopped(context, config, { io, watch }));
    } catch (error) {
      // The process was asked to stop before it had started: this is a success too.
      if (!(error instanceof Stopped)) throw error;
    }
    return 0;
  },
};

export interface ServeOptions {
  io: CommandIo;
  watch: SchemaWatch;
  /** Called with the base URL; default: prints it. */
  ready?: (baseUrl: string) => Promise<void> | void;
}

/**
 * Serves until the process is asked to stop. Throws an OperatorError if it stops because another version changes the
 * schema of the database. From then on, the process is not ready, and it finishes its open requests.
 */
export async function serveUntilStopped(
  context: Context,
  config: Config,
  { io, watch, ready = io.answer }: ServeOptions,
): Promise<void> {
  const app = await buildApp(context, { notReady: () => watch.reason });
  await listen(app, config);
  // The start does not wait for the warm-up, and Annals answers calls meanwhile.
  context
    .warmUp()
    .catch((error) => context.logger.debug({ err: error }, 'the warm-up failed; first calls take longer'));
  let grace = graceLimit;
  try {
    await ready(baseUrlOf(config.host, app.server.address()));
    await stopped(AbortSignal.any([io.stop, watch.signal]));
    if (watch.reason !== undefined) {
      grace = outdatedGraceLimit;
      context.logger.error(watch.reason);
      // All answers are correct until the schema has changed.
      if (!watch.late) await sleep(outdatedNotice, undefined, { signal: io.stop }).catch(() => {});
      throw new OperatorError(watch.reason);
    }
  } finally {
    const closed = app.close();
    if ((await Promise.race([closed, sleep(grace, 'late', { ref: false })])) === 'late') {
      io.tell(`after ${grace / 1000} s requests are still in flight; they are cut`);
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
