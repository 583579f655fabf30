import { Type } from 'typebox';
import { AnnalsError, invalidField } from '../../core/errors.ts';
import { isStorable } from '../../core/storable-text.ts';
import { TenantName } from '../../http/chosen-id.ts';
import { type Credentials, callerOf } from '../../http/credentials.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { json } from '../../http/openapi/answers.ts';
import { listItem } from '../../http/openapi/components.ts';
import { documentRoutes } from '../../http/openapi/document-routes.ts';
import { listRoutes } from '../../http/openapi/list-routes.ts';
import type { Scope } from '../../http/scopes.ts';
import type { DocumentLists, Paginator } from '../../pagination/paginator.ts';
import type { Database } from '../../postgres/database.ts';
import { readListedSession, sessionRows } from './listed-sessions.ts';
import type { SessionEnder, Sessions } from './sessions.ts';

const SessionsPath = Type.Object({ tenant: TenantName });
const SessionPath = Type.Object({ tenant: TenantName, id: Type.String({ examples: ['8f3c21a90b7d4e65'] }) });

const ListedSession = Type.Object(
  {
    id: Type.String({ description: 'As `session` of accesses has it. It grants nothing.' }),
    client: Type.String({
      description: 'The id of the client that is signed in. A person and a link have a client of their own.',
    }),
    name: Type.String({ description: 'The name of the client or the person, as change entries show it.' }),
    issuer: Type.Optional(Type.String({ description: "Of a person: the address of the company's OpenID provider." })),
    subject: Type.Optional(Type.String({ description: 'Of a person: what the provider knows them by.' })),
    by: Type.Enum(['secret', 'link', 'account'], {
      type: 'string',
      description: "With what it began: a client's secret, a link, or a company's account.",
    }),
    address: Type.Optional(Type.String({ description: 'The network address of the last request that was noted.' })),
    program: Type.Optional(
      Type.String({ description: 'The browser, as its `User-Agent` names it: at most 200 characters.' }),
    ),
    createdAt: Type.String({ format: 'date-time' }),
    seenAt: Type.String({ format: 'date-time', description: 'The last use, noted once a minute at most.' }),
    expiresAt: Type.String({ format: 'date-time' }),
  },
  {
    $id: 'ConsoleSession',
    examples: [
      {
        id: '8f3c21a90b7d4e65',
        client: 'acme.9f3c5d1e7a2b4c6d8e0f',
        name: 'Jane Doe',
        issuer: 'https://login.example.com',
        subject: 'u-1',
        by: 'account',
        address: '203.0.113.7',
        program: 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
        createdAt: '2026-09-01T09:30:00.000Z',
        seenAt: '2026-09-01T11:02:00.000Z',
        expiresAt: '2026-09-01T17:30:00.000Z',
      },
    ],
  },
);

/** What the provider knows a person by. */
const PersonOfSessions = Type.Object(
  { issuer: Type.String({ minLength: 1 }), subject: Type.String({ minLength: 1 }) },
  { $id: 'PersonOfSessions', additionalProperties: false },
);

const EndedSessions = Type.Object(
  { ended: Type.Integer({ minimum: 0, description: 'How many sessions ended.' }) },
  { $id: 'EndedSessions', examples: [{ ended: 2 }] },
);

const managing: readonly Scope[] = ['access.credential_manage'];
const viewing: readonly Scope[] = ['access.credential_view', ...managing];
const tags = ['Sessions'];
const path = '/access/:tenant/sessions';

/** The active sessions of the console in a tenant, and their end (contract 18). */
export async function sessionListRoutes(
  app: HttpServer,
  {
    db,
    documents,
    paginator,
    sessions,
  }: { db: Database; documents: DocumentLists; paginator: Paginator; sessions: Sessions },
): Promise<void> {
  listRoutes(app, paginator, {
    path,
    params: SessionsPath,
    tags,
    name: 'Sessions',
    many: 'sessions',
    item: listItem('ConsoleSessionItem', ListedSession),
    scopes: viewing,
    page: ({ credentials: { tenant } }, query, page) => documents.page(sessionRows(tenant), query, page),
  });

  documentRoutes(app, {
    path: `${path}/:id`,
    params: SessionPath,
    tags,
    name: 'Session',
    singular: 'session',
    read: {
      scopes: viewing,
      schema: ListedSession,
      async find({ params: { tenant, id } }) {
        return (await readListedSession(db, tenant, id)) ?? noSuchSession();
      },
    },
    remove: {
      scopes: managing,
      summary: 'Ending a session, with the keys and clients that a person made in it',
      async remove({ params: { tenant, id }, request }) {
        if (!(await sessions.endById(tenant, id, enderOf(request)))) noSuchSession();
      },
    },
  });

  app.post(
    `${path}/end`,
    {
      config: { scopes: managing },
      schema: {
        operationId: 'endSessions',
        tags,
        summary: 'Ending all sessions of a person, with the keys and clients that they made',
        params: SessionsPath,
        body: PersonOfSessions,
        response: { 200: json(EndedSessions, { description: 'They ended. A person without sessions is no error.' }) },
      },
    },
    async (request) => {
      const unstorable = Object.entries(request.body).find(([, text]) => !isStorable(text));
      if (unstorable !== undefined) throw invalidField(unstorable[0], 'must not have NUL or a lone surrogate');
      return { ended: await sessions.endAllOf(request.params.tenant, request.body, enderOf(request)) };
    },
  );
}

function enderOf(request: Parameters<typeof callerOf>[0] & { readonly credentials: Credentials }): SessionEnder {
  const { clientName: name, clientId } = request.credentials;
  return { name, clientId, caller: callerOf(request) };
}

function noSuchSession(): never {
  throw new AnnalsError('resource_not_found', 'There is no such session, or it has ended.');
}
