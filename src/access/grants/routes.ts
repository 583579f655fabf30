import { Type } from 'typebox';
import type { ErrorType } from '../../core/errors.ts';
import { basePathOf } from '../../http/base-path.ts';
import { consoleApiPath } from '../../http/browser-security.ts';
import { callerOf } from '../../http/credentials.ts';
import { maxFormBytes, takeForms } from '../../http/form-body.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { parseQueryString, type QueryParameters } from '../../http/query-parameters.ts';
import { whileListening } from '../../http/while-listening.ts';
import type { Database } from '../../postgres/database.ts';
import { TokenError } from '../oauth/token-error.ts';
import { insecureSignIn } from '../sessions/own-address.ts';
import type { Sessions } from '../sessions/sessions.ts';
import { type AuthorizationRequest, answerTo, grantScope, readAuthorizationRequest } from './authorization-request.ts';
import type { Consent } from './consent.ts';
import { dropExpiredGrants } from './grant-store.ts';
import { isDocumentAddress } from './metadata-documents.ts';
import { faultOfRedirectUri, isRedirectUriOf, ProgramFault, type RegisteredPrograms } from './programs.ts';
import type { GrantRedeemer } from './redeem.ts';

export interface AuthorizationServer {
  readonly db: Database;
  /** The public address, which is the issuer. */
  readonly address: string;
  readonly programs: RegisteredPrograms;
  /** Private-use schemes of redirect URIs. */
  readonly schemes: readonly string[];
  readonly consent: Consent;
  readonly redeemer: GrantRedeemer;
  readonly sessions: Sessions;
  readonly allowsSignIn: boolean;
}

const errors: readonly ErrorType[] = ['internal_service_error', 'service_unavailable'];
const hidden = { config: { errors }, schema: { hide: true } };
/** Bytes of a registration. */
const maxRegistrationBytes = 16 * 1024;

/**
 * The authorization server for programs that sign in with a person behind them (OAuth 2.1 as MCP has it). Its token
 * endpoint is that of clients.
 */
export async function authorizationServerRoutes(app: HttpServer, options: AuthorizationServer): Promise<void> {
  await app.register(metadataRoutes, options);
  await app.register(authorizeRoute, options);
  await app.register(registrationRoute, options);
  await app.register(revocationRoute, options);
  await app.register(consentRoutes, options);
  whileListening(app, {
    upkeep: [{ what: 'the upkeep of grants', every: 60_000, work: () => dropExpiredGrants(options.db) }],
  });
}

/** RFC 8414 and RFC 9728. Below a path the host's root has them too, where a proxy forwards them. */
async function metadataRoutes(app: HttpServer, { address }: AuthorizationServer): Promise<void> {
  const server = {
    issuer: address,
    authorization_endpoint: `${address}/oauth/authorize`,
    token_endpoint: `${address}/oauth/token`,
    registration_endpoint: `${address}/oauth/register`,
    revocation_endpoint: `${address}/oauth/revoke`,
    jwks_uri: `${address}/.well-known/jwks.json`,
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: ['authorization_code', 'refresh_token', 'client_credentials'],
    token_endpoint_auth_methods_supported: ['none', 'client_secret_basic', 'client_secret_post'],
    revocation_endpoint_auth_methods_supported: ['none'],
    code_challenge_methods_supported: ['S256'],
    scopes_supported: [grantScope],
    client_id_metadata_document_supported: true,
    authorization_response_iss_parameter_supported: true,
    service_documentation: `${address}/docs/guides/ai-tools`,
  };
  const path = basePathOf(address);
  for (const place of new Set(['', path])) {
    app.get(`/.well-known/oauth-authorization-server${place}`, hidden, async (_request, reply) => {
      reply.header('cache-control', 'public, max-age=300');
      return server;
    });

    // Of a tenant that does not exist too, so that none can be guessed.
    app.get<{ Params: { name: string } }>(
      `/.well-known/oauth-protected-resource${place}/mcp/:name`,
      hidden,
      async ({ params }, reply) => {
        reply.header('cache-control', 'public, max-age=300');
        return {
          resource: `${address}/mcp/${encodeURIComponent(params.name)}`,
          authorization_servers: [address],
          scopes_supported: [grantScope],
          bearer_methods_supported: ['header'],
          resource_name: 'Annals, the change history',
          resource_documentation: `${address}/docs/guides/ai-tools`,
        };
      },
    );
  }
}

/** `GET /oauth/authorize`: keeps the request in the browser, and shows it in the console. */
async function authorizeRoute(
  app: HttpServer,
  { address, programs, schemes, consent, allowsSignIn }: AuthorizationServer,
): Promise<void> {
  app.get('/oauth/authorize', { ...hidden, exposeHeadRoute: false }, async ({ url }, reply) => {
    if (!allowsSignIn) throw insecureSignIn();
    reply.header('cache-control', 'no-store');
    const question = url.indexOf('?');
    const read = readAuthorizationRequest(parseQueryString(question === -1 ? '' : url.slice(question + 1)), address);
    const kept = typeof read === 'string' ? read : keep(read);
    // A browser is sent to a program only after its person has seen the program's address (RFC 9700, 4.11.2).
    if (typeof kept === 'string') return await reply.redirect(`${address}/console/authorize?fault=${kept}`, 303);
    if (kept.location !== undefined) return await reply.redirect(kept.location, 303);
    // A sign-in there goes to the tenant that the program asks for.
    const view = `${address}/console/authorize${kept.tenant === undefined ? '' : `?tenant=${kept.tenant}`}`;
    return await reply.header('set-cookie', kept.cookie).redirect(view, 303);
  });

  function keep(request: AuthorizationRequest) {
    const { clientId, redirectUri, state, challenge, tenant, isSilent } = request;
    const kept = { redirectUri, state, challenge, tenant };
    const program = programs.read(clientId);
    if (program === undefined) {
      // Its document is read for a person who has signed in, so that strangers cause no request.
      if (isSilent || !isDocumentAddress(clientId)) return 'program';
      if (faultOfRedirectUri(redirectUri, schemes) !== undefined) return 'redirect';
      return cookieOf(consent.keep({ clientId, name: '' }, kept, { url: clientId, isUnread: true }), tenant);
    }
    if (!isRedirectUriOf(program, redirectUri)) return 'redirect';
    if (isSilent) return { location: answerTo(request, { error: 'login_required' }, address) };
    return cookieOf(consent.keep(program, kept), tenant);
  }

  function cookieOf(cookie: string | undefined, tenant: string | undefined) {
    return cookie === undefined ? 'length' : { cookie, tenant, location: undefined };
  }
}

/** `POST /oauth/register` (RFC 7591). Nothing is stored, so nothing limits the registrations. */
async function registrationRoute(app: HttpServer, { programs }: AuthorizationServer): Promise<void> {
  app.post('/oauth/register', { ...hidden, bodyLimit: maxRegistrationBytes }, async (request, reply) => {
    reply.header('cache-control', 'no-store');
    try {
      const { clientId, name, redirectUris } = programs.register(request.body);
      return await reply.code(201).send({
        client_id: clientId,
        client_name: name,
        redirect_uris: redirectUris,
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: 'none',
        application_type: 'native',
        scope: grantScope,
      });
    } catch (error) {
      if (!(error instanceof ProgramFault)) throw error;
      return await reply.code(400).send({ error: error.code, error_description: error.message });
    }
  });
}

/** `POST /oauth/revoke` (RFC 7009): ends the grant of a token. */
async function revocationRoute(app: HttpServer, { redeemer }: AuthorizationServer): Promise<void> {
  takeForms(app);
  const validatorCompiler = () => (value: unknown) => ({ value });
  app.post('/oauth/revoke', { ...hidden, validatorCompiler, bodyLimit: maxFormBytes }, async (request, reply) => {
    reply.header('cache-control', 'no-store');
    try {
      const form = request.body as QueryParameters | null;
      if (form === null)
        throw new TokenError('invalid_request', 'The content must be application/x-www-form-urlencoded');
      await redeemer.revoke(form, callerOf(request));
      return await reply.code(200).send();
    } catch (error) {
      if (!(error instanceof TokenError)) throw error;
      return await reply.code(error.status).send(error.body);
    }
  });
}

const Decision = Type.Object({ request: Type.String(), allow: Type.Boolean() }, { additionalProperties: false });

/** What the page of the console asks and says. */
async function consentRoutes(app: HttpServer, { consent, sessions, allowsSignIn }: AuthorizationServer): Promise<void> {
  const path = `${consoleApiPath}/authorizations`;
  const schema = { hide: true };
  const config = { isOfSession: true, neverCompressed: 'a session' };

  app.get(path, { config, schema }, async (request, reply) => {
    const { shown, cookie } = await consent.read(await sessions.find(request), request);
    if (cookie !== undefined) reply.header('set-cookie', cookie);
    return shown;
  });

  app.post(path, { config, schema: { ...schema, body: Decision } }, async (request, reply) => {
    if (!allowsSignIn) throw insecureSignIn();
    const session = await sessions.find(request);
    const { request: id, allow } = request.body;
    const { location, isDone } = await consent.decide(session, { id, allow }, request);
    const { tenant, clientId } = session;
    request.log.info({ tenant, clientId, allow }, 'a person decided about a program');
    if (isDone) reply.header('set-cookie', consent.clearCookie);
    return { location };
  });
}
