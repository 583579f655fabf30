import { join } from 'node:path';
import fastifyStatic from '@fastify/static';
import { type Static, Type } from 'typebox';
import { AnnalsError } from '../core/errors.ts';
import { consoleApiPath } from '../http/console-target.ts';
import { nothingAtThisPath } from '../http/error-answers.ts';
import type { HttpServer } from '../http/http-server-type.ts';
import { whileListening } from '../http/while-listening.ts';
import type { ConsolePage } from './page.ts';
import type { Console } from './service.ts';
import type { Session, Sessions } from './sessions.ts';

/** The console (contract 13): its page and its sessions. Its operations are those of the interface. */
export async function consoleRoutes(app: HttpServer, { sessions, allowsSignIn, page, folder }: Console): Promise<void> {
  await app.register(sessionRoutes, { sessions, allowsSignIn });
  await app.register(pageRoutes, { page, folder });
}

const hidden = { schema: { hide: true } };

/** Contract 13: files of this service alone, and no inline script or style. */
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
  "base-uri 'self'; form-action 'none'; frame-ancestors 'none'";

/**
 * The page of the console at `/console` with its files. Every address below it that is no file is the page, which has
 * views with addresses of their own. `/` leads to it, and to the reference where the page was not built.
 */
async function pageRoutes(app: HttpServer, { page, folder }: { page: ConsolePage; folder: string }): Promise<void> {
  app.get('/', hidden, async (_request, reply) => {
    return await reply.redirect(page.read() === undefined ? '/docs' : '/console');
  });

  for (const path of ['/console', '/console/*']) {
    app.get<{ Params: { '*'?: string } }>(path, hidden, async ({ params }, reply) => {
      if (/^(?:api|assets)(?:\/|$)/.test(params['*'] ?? '')) throw nothingAtThisPath();
      const built = page.read();
      if (built === undefined) throw notBuilt();
      return await reply
        .headers({
          'content-security-policy': policy,
          'cross-origin-opener-policy': 'same-origin',
          // With helmet's no-referrer some requests of the page itself would have the origin `null`.
          'referrer-policy': 'same-origin',
          'cache-control': 'no-cache',
        })
        .type('text/html; charset=utf-8')
        .send(built.html);
    });
  }

  await app.register(fastifyStatic, {
    root: join(folder, 'assets'),
    // In a checkout that was not built there are none.
    suppressWarning: true,
    prefix: '/console/assets/',
    decorateReply: false,
    dotfiles: 'ignore',
    preCompressed: true,
    // Their names change with their content.
    immutable: true,
    maxAge: '1y',
  });
}

function notBuilt(): AnnalsError {
  return new AnnalsError(
    'service_unavailable',
    'The page of the console is not built. Run "npm run prepare" in the folder of Annals.',
  );
}

const path = `${consoleApiPath}/session`;
// The document describes the interface. This is how its own page signs in.
const schema = { hide: true };
const config = { isOfSession: true };
/** In bytes. The sender is not known yet. */
export const maxSignInBytes = 16 * 1024;

const SignIn = Type.Object(
  {
    clientId: Type.Optional(Type.String()),
    clientSecret: Type.Optional(Type.String()),
    link: Type.Optional(Type.String()),
  },
  { additionalProperties: false },
);

/** Signing in to the console, and out (contract 13). */
async function sessionRoutes(
  app: HttpServer,
  { sessions, allowsSignIn }: { sessions: Sessions; allowsSignIn: boolean },
): Promise<void> {
  app.post(path, { config, schema: { ...schema, body: SignIn }, bodyLimit: maxSignInBytes }, async (request, reply) => {
    if (!allowsSignIn) throw insecure();
    const given = readSignIn(request.body);
    const session =
      'link' in given
        ? await sessions.redeem(given.link, request)
        : await sessions.signIn(given.clientId, given.clientSecret, request);
    const { tenant, clientId } = session;
    request.log.info({ tenant, clientId }, 'signed in to the console');
    return await reply.header('set-cookie', session.cookie).send(shown(session));
  });

  app.get(path, { config, schema }, async (request) => shown(await sessions.find(request)));

  app.delete(path, { config, schema }, async (request, reply) => {
    return await reply
      .header('set-cookie', await sessions.signOut(request))
      .code(204)
      .send();
  });
}

function readSignIn({
  clientId,
  clientSecret,
  link,
}: Static<typeof SignIn>): { link: string } | { clientId: string; clientSecret: string } {
  if (link !== undefined && clientId === undefined && clientSecret === undefined) return { link };
  if (link === undefined && clientId !== undefined && clientSecret !== undefined) return { clientId, clientSecret };
  throw new AnnalsError('validation_violation', 'The body must have either clientId and clientSecret, or link.');
}

function shown({ tenant, clientId, clientName, scopes, expiresAt }: Session): object {
  return { tenant, client: clientId, name: clientName, scopes, expiresAt: expiresAt.toISOString() };
}

function insecure(): AnnalsError {
  return new AnnalsError(
    'insufficient_permissions',
    'Signing in over plain HTTP is refused: others in the network could take over the session. Serve the console over ' +
      'HTTPS, or allow it with ANNALS_CONSOLE_INSECURE=true.',
  );
}

/** Milliseconds. A session that has expired is refused at once; its row stays until then. */
const every = 60_000;

/** Deletes the sessions and links of the console that have expired. */
export async function consoleUpkeep(app: HttpServer, { sessions }: Pick<Console, 'sessions'>): Promise<void> {
  whileListening(app, { upkeep: [{ what: 'the upkeep of sessions', every, work: () => sessions.upkeep() }] });
}
