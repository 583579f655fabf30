import type { FastifyReply, FastifyRequest } from 'fastify';
import type { JWK } from 'jose';
import { type Static, Type } from 'typebox';
import { AnnalsError, type ErrorType, hasCode } from '../../core/errors.ts';
import { type Caller, callerOf } from '../../http/credentials.ts';
import { maxFormBytes, takeForms } from '../../http/form-body.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { json } from '../../http/openapi/answers.ts';
import type { QueryParameters } from '../../http/query-parameters.ts';
import type { GrantToken } from './grant.ts';
import type { GuessLimiter } from './guess-limiter.ts';
import { TokenError } from './token-error.ts';
import { readTokenRequest, singleParameter } from './token-request.ts';

const Token = Type.Object(
  {
    access_token: Type.String({ description: 'A signed JWT (RFC 9068); of a grant, an opaque text.' }),
    token_type: Type.Literal('Bearer'),
    expires_in: Type.Integer({ description: 'Seconds.', examples: [14_399] }),
    scope: Type.String({
      description: 'The granted scopes, and the tenant at the end.',
      examples: ['changelog.changelog_read tenant=demo'],
    }),
    refresh_token: Type.Optional(Type.String({ description: 'Of a grant: for the next access token.' })),
  },
  { $id: 'AccessToken' },
);

const TokenForm = Type.Object(
  {
    grant_type: Type.Enum(['client_credentials', 'authorization_code', 'refresh_token'], {
      type: 'string',
      examples: ['client_credentials'],
    }),
    client_id: Type.Optional(Type.String()),
    client_secret: Type.Optional(Type.String()),
    scope: Type.Optional(Type.String({ examples: ['changelog.changelog_read'] })),
    code: Type.Optional(Type.String()),
    code_verifier: Type.Optional(Type.String()),
    redirect_uri: Type.Optional(Type.String()),
    refresh_token: Type.Optional(Type.String()),
    resource: Type.Optional(Type.String({ description: 'RFC 8707' })),
  },
  // Unknown parameters of a token request are ignored (RFC 6749, 3.2).
  { $id: 'TokenRequest', additionalProperties: true },
);

const TokenErrorBody = Type.Object(
  { error: Type.String(), error_description: Type.String() },
  {
    $id: 'TokenError',
    description: 'RFC 6749, section 5.2',
    examples: [{ error: 'invalid_client', error_description: 'Invalid client' }],
  },
);

const errors: readonly ErrorType[] = ['rate_limit_exceeded', 'internal_service_error', 'service_unavailable'];

const schema = {
  operationId: 'issueToken',
  tags: ['Authentication'],
  summary: 'Get an access token (OAuth 2.0 client credentials)',
  description:
    'A form with `grant_type=client_credentials`. The client authenticates with HTTP Basic, or with `client_id` and ' +
    '`client_secret`. The optional `scope` is a list separated by blanks; the default is all scopes of the client. ' +
    'Programs that a person allowed send their `client_id` alone, with `authorization_code` or `refresh_token`.',
  consumes: ['application/x-www-form-urlencoded'],
  body: TokenForm,
  response: {
    200: json(Token, { description: 'The token.' }),
    400: json(TokenErrorBody, { description: 'The request or the grant is not valid.' }),
    401: json(TokenErrorBody, { description: 'The client is unknown.', headers: ['WWW-Authenticate'] }),
  },
};

/** `POST /oauth/token`, in its own plugin: it reads forms, and its errors follow RFC 6749. */
async function tokenRoute(
  app: HttpServer,
  { grantToken, guesses, redeemGrant }: Omit<OAuthRoutesOptions, 'publishedKeys'>,
): Promise<void> {
  takeForms(app);

  app.addHook('onRequest', (_request, reply, done) => {
    reply.header('cache-control', 'no-store').header('pragma', 'no-cache');
    done();
  });

  app.setErrorHandler((error, request, reply) => {
    if (error instanceof TokenError) return answerTokenError(error, request, reply);
    if (isNoForm(error)) return answerTokenError(notAForm(), request, reply);
    throw error;
  });

  // RFC 6749 defines the errors of a form, which a schema cannot name: readTokenRequest validates.
  const validatorCompiler = () => (value: unknown) => ({ value });
  app.post(
    '/oauth/token',
    { config: { errors }, schema, validatorCompiler, bodyLimit: maxFormBytes },
    async (request) => {
      const form = request.body as unknown as QueryParameters | null;
      if (form === null) throw notAForm();
      const grantType = singleParameter(form, 'grant_type');
      if (redeemGrant !== undefined && (grantType === 'authorization_code' || grantType === 'refresh_token'))
        return await redeemGrant(form, request.headers.authorization, callerOf(request));
      const tokenRequest = readTokenRequest(request.headers.authorization, form);
      return await guesses.limit({ ...tokenRequest, address: request.ip }, () => grantToken(tokenRequest, request.ip));
    },
  );
}

function notAForm(): TokenError {
  return new TokenError('invalid_request', 'The content must be application/x-www-form-urlencoded');
}

/** The content type, charset or encoding is not that of a form, which RFC 6749 treats as an error of the form. */
function isNoForm(error: unknown): boolean {
  if (error instanceof AnnalsError) return error.type === 'unsupported_media_type';
  return hasCode(error, 'FST_ERR_CTP_INVALID_MEDIA_TYPE');
}

function answerTokenError(error: TokenError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  if (error.code === 'invalid_client' && request.headers.authorization !== undefined) {
    reply.header('www-authenticate', 'Basic realm="annals", charset="UTF-8"');
  }
  return reply.code(error.status).send(error.body);
}

export interface OAuthRoutesOptions {
  grantToken: GrantToken;
  publishedKeys: () => Promise<JWK[]>;
  guesses: GuessLimiter;
  /** Issues tokens to programs that a person allowed; undefined: there are none. */
  redeemGrant?: RedeemGrant | undefined;
}

/** Rejects with a TokenError. */
type RedeemGrant = (
  form: QueryParameters,
  authorization: string | undefined,
  caller: Caller,
) => Promise<Static<typeof Token>>;

const KeySet = Type.Object(
  { keys: Type.Array(Type.Record(Type.String(), Type.String())) },
  {
    $id: 'KeySet',
    examples: [
      {
        keys: [
          {
            kty: 'EC',
            crv: 'P-256',
            alg: 'ES256',
            use: 'sig',
            kid: 'k1',
            x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
            y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
          },
        ],
      },
    ],
  },
);

/** The token endpoint and the keys that verify its tokens. */
export async function oauthRoutes(app: HttpServer, options: OAuthRoutesOptions): Promise<void> {
  const { publishedKeys } = options;
  await app.register(tokenRoute, options);

  app.get(
    '/.well-known/jwks.json',
    {
      config: { errors: ['internal_service_error', 'service_unavailable'] },
      schema: {
        operationId: 'listSigningKeys',
        tags: ['Authentication'],
        summary: 'Retrieving the keys that verify tokens',
        response: { 200: json(KeySet, { description: 'A JSON Web Key Set (RFC 7517).' }) },
      },
    },
    async (_request, reply) => {
      // Short, so that verifiers see a new key early. They fetch again for an unknown key id.
      reply.header('cache-control', 'public, max-age=300');
      return { keys: (await publishedKeys()) as Record<string, string>[] };
    },
  );
}
