import type { JWK } from 'jose';
import { Type } from 'typebox';
import type { HttpServer } from '../../http/http-server-type.ts';
import { json } from '../../http/openapi/answers.ts';
import type { GrantToken } from './grant.ts';
import type { GuessLimiter } from './guess-limiter.ts';
import { tokenRoute } from './token-route.ts';

export interface OAuthRoutesOptions {
  grantToken: GrantToken;
  publishedKeys: () => Promise<JWK[]>;
  guesses: GuessLimiter;
}

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
  const { grantToken, publishedKeys, guesses } = options;
  await app.register(tokenRoute, { grantToken, guesses });

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
