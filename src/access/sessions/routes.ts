import { join } from 'node:path';
import fastifyStatic from '@fastify/static';
import type { FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { AnnalsError } from '../../core/errors.ts';
import { nothingAtThisPath } from '../../http/allowed-methods.ts';
import { consoleApiPath } from '../../http/browser-security.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { whileListening } from '../../http/while-listening.ts';
import { backchannelLogoutRoute, forgetOldTokens } from './backchannel-logout.ts';
import { sessionKeyRoutes } from './key-routes.ts';
import { insecureSignIn } from './own-address.ts';
import type { ConsolePage } from './page.ts';
import { type Approvals, peopleRoutes } from './people-routes.ts';
import { checksEvery } from './people-sessions.ts';
import type { Console } from './service.ts';
import type { Session, StartedSession } from './sessions.ts';

/** The console (contract 13): its page and its sessions. Its operations are those of the HTTP interface. */
export async function consoleRoutes(
  app: HttpServer,
  options: Console & { readonly approvals: Approvals | undefined },
): Promise<void> {
  const { page, folder } = options;
  await app.register(sessionRoutes, options);
  await app.register(sessionKeyRoutes, options);
  await app.register(peopleRoutes, options);
  await app.register(backchannelLogoutRoute, options);
  await app.register(pageRoutes, { page, folder });
}

const hidden = { schema: { hide: true } };

/** Contract 13: only files of this service, no inline scripts or styles. */
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
  "base-uri 'self'; form-action 'none'; frame-ancestors 'none'";

/**
 * The page of the console at `/console` with its files. Every other address under it is the page too, whose views have
 * addresses. `/` redirects to it, or to the reference if the page was not built.
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
          // With helmet's no-referrer, some of the page's own requests would have the origin `null`.
          'referrer-policy': 'same-origin',
          'cache-control': 'no-cache',
        })
        .type('text/html; charset=utf-8')
        .send(built.html);
    });
  }

  await app.register(fastifyStatic, {
    root: join(folder, 'assets'),
    // Missing in a checkout that is not built.
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
// Not in the OpenAPI document: only the console's page signs in this way.
const schema = { hide: true };
const config = { isOfSession: true, neverCompressed: 'a session' };
/** Bytes. The sender is not authenticated yet. */
export const maxSignInBytes = 16 * 1024;

const SignIn = Type.Object(
  {
    clientId: Type.Optional(Type.String()),
    clientSecret: Type.Optional(Type.String()),
    link: Type.Optional(Type.String()),
    tenant: Type.Optional(Type.String()),
  },
  { additionalProperties: false },
);

const SessionQuery = Type.Object({
  /** With `true` the answer says whether the history is sealed; the query is skipped unless requested. */
  sealed: Type.Optional(
    Type.Union([Type.Literal('true'), Type.Literal('false')], {
      type: 'string',
      'x-message': 'sealed must be true or false',
    }),
  ),
});

/** Sign-in to the console, and sign-out (contract 13). */
async function sessionRoutes(
  app: HttpServer,
  { sessions, peopleSessions, keys, wholesOf, isSealed, allowsSignIn, baseUrl = '' }: Console,
): Promise<void> {
  app.post(path, { config, schema: { ...schema, body: SignIn }, bodyLimit: maxSignInBytes }, async (request, reply) => {
    if (!allowsSignIn) throw insecureSignIn();
    const signIn = readSignIn(request.body);
    const session = await start(signIn, request);
    if (typeof session === 'string') return { signInUrl: `${baseUrl}/console/oidc?to=${encodeURIComponent(session)}` };
    const { tenant, clientId } = session;
    request.log.info({ tenant, clientId }, 'signed in to the console');
    return await reply.header('set-cookie', session.cookie).send(shown(session, { keys, wholesOf }));
  });

  /** A text: the view of the console to open after a new sign-in. */
  async function start(signIn: SignInRequest, request: FastifyRequest): Promise<StartedSession | string> {
    if ('tenant' in signIn) {
      const changed = await peopleSessions.changeTenant(signIn.tenant, request);
      return changed === 'keys' ? `?${new URLSearchParams({ tenant: signIn.tenant })}` : changed;
    }
    if ('link' in signIn) return await sessions.redeem(signIn.link, request);
    return await sessions.signIn(signIn.clientId, signIn.clientSecret, request);
  }

  app.get(path, { config, schema: { ...schema, querystring: SessionQuery } }, async (request) => {
    const session = await sessions.find(request);
    const body = shown(session, { keys, wholesOf });
    const asksForSeal = request.query.sealed === 'true' && session.scopes.includes('changelog.proof_read');
    return asksForSeal ? { ...body, isSealed: await isSealed(session.tenant) } : body;
  });

  app.delete(path, { config, schema }, async (request, reply) => {
    const { cookie, signOutUrl } = await peopleSessions.signOut(request);
    reply.header('set-cookie', cookie);
    return signOutUrl === undefined ? await reply.code(204).send() : await reply.send({ signOutUrl: signOutUrl.href });
  });
}

type SignInRequest = { link: string } | { clientId: string; clientSecret: string } | { tenant: string };

function readSignIn(body: Static<typeof SignIn>): SignInRequest {
  const { clientId, clientSecret, link, tenant } = body;
  const members = Object.keys(body).length;
  if (link !== undefined && members === 1) return { link };
  if (tenant !== undefined && members === 1) return { tenant };
  if (clientId !== undefined && clientSecret !== undefined && members === 2) return { clientId, clientSecret };
  throw new AnnalsError(
    'validation_violation',
    'The body must have clientId and clientSecret, or link, or the tenant that a person changes to.',
  );
}

/** For the page: who is signed in, with which rights. */
function shown(signedIn: Session, { keys, wholesOf }: Pick<Console, 'keys' | 'wholesOf'>): object {
  const { session: id, by, tenant, clientId, clientName, scopes, expiresAt, tenants, renews, restriction } = signedIn;
  return {
    id,
    tenant,
    client: clientId,
    name: clientName,
    by,
    scopes,
    expiresAt: expiresAt.toISOString(),
    ...(restriction && { wholes: wholesOf(restriction) }),
    ...(tenants && { tenants }),
    ...(renews && { keyScopes: keys.scopesOf(scopes) }),
  };
}

/** Milliseconds. Expired sessions are refused at once; their rows remain until then. */
const every = 60_000;

/** Deletes expired sessions and links of the console. */
export async function consoleUpkeep(app: HttpServer, { db, sessions, peopleSessions }: Console): Promise<void> {
  whileListening(app, {
    upkeep: [
      { what: 'the upkeep of sessions', every, work: () => sessions.upkeep() },
      { what: 'the upkeep of logout tokens', every, work: () => forgetOldTokens(db) },
      { what: 'asking the OpenID provider again', every: checksEvery, work: () => peopleSessions.checkPeople() },
    ],
  });
}
