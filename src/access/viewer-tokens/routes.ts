import { Type } from 'typebox';
import { AnnalsError, invalidField } from '../../core/errors.ts';
import type { Sealer } from '../../core/sealing.ts';
import { shownActorsOf } from '../../core/written-restriction.ts';
import { writtenActors } from '../../http/body-members.ts';
import { maxNameCharacters, nameRules, TenantName } from '../../http/chosen-id.ts';
import { callerOf, type ReadRestriction } from '../../http/credentials.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { json } from '../../http/openapi/answers.ts';
import type { Database } from '../../postgres/database.ts';
import { noteViewerToken } from '../accesses/store.ts';
import { maxTokenLength, sealViewerToken } from './token-text.ts';

/** Seconds. */
export const viewerTokenLifetime = { default: 600, max: 3_600 } as const;

const NewViewerToken = Type.Object(
  {
    q: Type.String({
      pattern: '\\S',
      'x-must': 'have a term; entity:* shows all changes',
      description:
        'A query of the change history: who has the token sees the changes that match, and nothing that tells of any other. ' +
        'It has at least one term and no regular expression. `entity:*` shows all. Terms on what `actors` shows need it; terms on the ' +
        'context need `changelog.changelog_manage`.',
    }),
    subject: Type.String({
      ...nameRules,
      description: `Who looks, as the caller knows them: 1 to ${maxNameCharacters} characters. The accesses list it.`,
    }),
    expiresIn: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: viewerTokenLifetime.max,
        description: `Seconds until it expires. Default: ${viewerTokenLifetime.default}.`,
      }),
    ),
    hide: Type.Optional(Type.Array(Type.String(), { description: 'Paths whose values are masked. Default: none.' })),
    actors: Type.Optional(
      writtenActors(
        'What the changes show of who made them. `names` or `true` (default): the name of the actor. `all`: also `actorId`, `onBehalfOf` ' +
          'and `correlationId`, as far as the maker sees them. `false`: nothing.',
      ),
    ),
    export: Type.Optional(
      Type.Boolean({ description: 'Whether the changes of a query can be had as a file. Default: false.' }),
    ),
  },
  {
    $id: 'NewViewerToken',
    additionalProperties: false,
    examples: [{ q: 'entity:order related.entityId:c-17', subject: 'customer c-17', hide: ['payment.card'] }],
  },
);

const ViewerToken = Type.Object(
  {
    token: Type.String({ description: `At most ${maxTokenLength} characters.` }),
    expiresIn: Type.Integer({ minimum: 1, maximum: viewerTokenLifetime.max, description: 'In seconds.' }),
  },
  { $id: 'ViewerToken', examples: [{ token: 'annals_view_AbE3…', expiresIn: 600 }] },
);

export interface ViewerTokenOptions {
  db: Database;
  sealer: Sealer;
  readRestriction: ReadRestriction;
  now: () => number;
}

/** Issues tokens with which a platform's own customers see their part of the history (contract 18). */
export async function viewerTokenRoutes(app: HttpServer, options: ViewerTokenOptions): Promise<void> {
  const { db, sealer, readRestriction, now } = options;

  app.post(
    '/changelog/:tenant/viewer-tokens',
    {
      config: { scopes: ['changelog.viewer_issue'], appliesRestriction: true },
      schema: {
        operationId: 'createViewerToken',
        tags: ['Viewer'],
        summary: 'Making a token for the viewer',
        description: 'The token shows a part of the history to one person. It ends with the client that made it.',
        params: Type.Object({ tenant: TenantName }),
        body: NewViewerToken,
        response: { 201: json(ViewerToken, { description: 'The token.' }) },
      },
    },
    async (request, reply) => {
      const { tenant, clientId, person, restriction, scopes } = request.credentials;
      const { q, subject, expiresIn = viewerTokenLifetime.default, hide = [], actors = true } = request.body;
      const written = { query: q, hide, actors: shownActorsOf(actors) };
      checkPart(() => readRestriction([...(restriction?.written ?? []), written], { scopes, restriction }));
      const expiresAt = now() + expiresIn * 1_000;
      const token = sealViewerToken(sealer, {
        ...written,
        clientId,
        subject,
        expiresAt,
        export: request.body.export === true,
      });
      if (token.length > maxTokenLength) {
        const length = `The token would have ${token.length} characters, and it can have ${maxTokenLength}`;
        throw invalidField('q', `${length}: write a shorter q, subject or hide.`);
      }
      await noteViewerToken(db, { tenant, clientId, person, subject, caller: callerOf(request) });
      return await reply.code(201).header('cache-control', 'no-store').send({ token, expiresIn });
    },
  );
}

/** Reports faults of a restriction's query at `q`. */
function checkPart(read: () => unknown): void {
  try {
    read();
  } catch (error) {
    if (!(error instanceof AnnalsError) || error.details[0]?.field !== 'query') throw error;
    throw invalidField('q', error.message);
  }
}
