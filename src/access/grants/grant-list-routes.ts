import { Type } from 'typebox';
import { AnnalsError } from '../../core/errors.ts';
import { consoleApiPath } from '../../http/browser-security.ts';
import { TenantName } from '../../http/chosen-id.ts';
import { callerOf } from '../../http/credentials.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { listItem } from '../../http/openapi/components.ts';
import { documentRoutes } from '../../http/openapi/document-routes.ts';
import { listRoutes } from '../../http/openapi/list-routes.ts';
import type { Scope } from '../../http/scopes.ts';
import type { DocumentLists, Paginator } from '../../pagination/paginator.ts';
import type { Database } from '../../postgres/database.ts';
import type { GrantHolder } from '../sessions/ports.ts';
import type { Session, Sessions } from '../sessions/sessions.ts';
import { grantRows, listGrants, readListedGrant } from './grant-store.ts';

const GrantsPath = Type.Object({ tenant: TenantName });
const GrantPath = Type.Object({ tenant: TenantName, id: Type.String({ examples: ['5be0c1f2a3948d67'] }) });

const Grant = Type.Object(
  {
    id: Type.String({ description: 'As `client` of accesses has it. It grants nothing.' }),
    name: Type.String({ description: 'What the program calls itself.' }),
    program: Type.Optional(
      Type.String({ description: 'The address of its metadata document. A program that registered itself has none.' }),
    ),
    redirectUri: Type.String({ description: 'Where its person was sent back to.' }),
    client: Type.String({ description: 'The id of the client whose rights count now: that of the sign-in.' }),
    onBehalfOf: Type.String({ description: 'The name of the person or the client that allowed it.' }),
    issuer: Type.Optional(Type.String({ description: "Of a person: the address of the company's OpenID provider." })),
    subject: Type.Optional(Type.String({ description: 'Of a person: what the provider knows them by.' })),
    endsWithSession: Type.Boolean({ description: 'Whether it ends when the session of the console does.' }),
    createdAt: Type.String({ format: 'date-time' }),
    expiresAt: Type.String({ format: 'date-time' }),
    usedAt: Type.Optional(
      Type.String({ format: 'date-time', description: 'The last request, noted once a minute at most.' }),
    ),
    usedAddress: Type.Optional(Type.String({ description: 'The network address of that request.' })),
  },
  {
    $id: 'Grant',
    examples: [
      {
        id: '5be0c1f2a3948d67',
        name: 'Claude',
        redirectUri: 'https://claude.ai/api/mcp/auth_callback',
        client: 'acme.9f3c5d1e7a2b4c6d8e0f',
        onBehalfOf: 'Jane Doe',
        issuer: 'https://login.example.com',
        subject: 'u-1',
        endsWithSession: false,
        createdAt: '2026-09-01T09:30:00.000Z',
        expiresAt: '2026-10-01T09:30:00.000Z',
        usedAt: '2026-09-02T11:02:00.000Z',
        usedAddress: '203.0.113.7',
      },
    ],
  },
);

const managing: readonly Scope[] = ['access.credential_manage'];
const viewing: readonly Scope[] = ['access.credential_view', ...managing];
const path = '/access/:tenant/grants';
const ownPath = `${consoleApiPath}/session/grants`;

/** The active grants of a tenant, those of a session's person, and their end (contract 18). */
export async function grantListRoutes(
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
    params: GrantsPath,
    tags: ['Grants'],
    name: 'Grants',
    many: 'grants',
    item: listItem('GrantItem', Grant),
    scopes: viewing,
    page: ({ credentials: { tenant } }, query, page) => documents.page(grantRows(tenant), query, page),
  });

  documentRoutes(app, {
    path: `${path}/:id`,
    params: GrantPath,
    tags: ['Grants'],
    name: 'Grant',
    singular: 'grant',
    read: {
      scopes: viewing,
      schema: Grant,
      async find({ params: { tenant, id } }) {
        return (await readListedGrant(db, tenant, id)) ?? noSuchGrant();
      },
    },
    remove: {
      scopes: managing,
      summary: 'Ending what a person allowed a program',
      async remove({ params: { tenant, id }, request }) {
        const { clientName: name, clientId } = request.credentials;
        const ending = { by: { name, clientId }, caller: callerOf(request) };
        const ended = await sessions.write(tenant, (transaction) =>
          sessions.endGrants(transaction, tenant, { id }, ending),
        );
        if (ended === 0) noSuchGrant();
      },
    },
  });

  const ofSession = { config: { isOfSession: true, neverCompressed: 'a session' }, schema: { hide: true } };

  app.get(ownPath, ofSession, async (request) => {
    const session = await sessions.find(request);
    return { grants: await listGrants(db, session.tenant, holderOf(session)) };
  });

  app.delete(
    `${ownPath}/:id`,
    { ...ofSession, schema: { hide: true, params: Type.Object({ id: Type.String() }) } },
    async (request, reply) => {
      const session = await sessions.find(request);
      const { tenant, clientName: name, clientId } = session;
      const which = { id: request.params.id, of: holderOf(session) };
      const ending = { by: { name, clientId }, caller: callerOf(request) };
      const ended = await sessions.write(tenant, (transaction) =>
        sessions.endGrants(transaction, tenant, which, ending),
      );
      if (ended === 0) noSuchGrant();
      return await reply.code(204).send();
    },
  );
}

function holderOf({ person, clientId }: Session): GrantHolder {
  return person ?? { clientId };
}

function noSuchGrant(): never {
  throw new AnnalsError('resource_not_found', 'There is no such grant, or it has ended.');
}
