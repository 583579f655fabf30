import { Type } from 'typebox';
import { TenantName } from '../../http/chosen-id.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { listItem } from '../../http/openapi/components.ts';
import { listRoutes } from '../../http/openapi/list-routes.ts';
import { whileListening } from '../../http/while-listening.ts';
import type { DocumentLists, Paginator } from '../../pagination/paginator.ts';
import type { Database } from '../../postgres/database.ts';
import { accessKinds, accessRows, dropOldAccesses } from './store.ts';

const AccessesPath = Type.Object({ tenant: TenantName });

const Access = Type.Object(
  {
    id: Type.String({ description: 'Ids have the order of time: `sort=_id:DESC` lists the newest first.' }),
    at: Type.String({
      format: 'date-time',
      description: 'Of refusals and reads the begin of their hour, of viewer tokens that of their day, in UTC.',
    }),
    kind: Type.Enum([...accessKinds], { type: 'string' }),
    client: Type.String({
      description: 'The id of the client, the key or the grant. A person and a link have a client of their own.',
    }),
    name: Type.String({
      description:
        'The name of the client, the person or the key, as change entries show it; what a program calls itself.',
    }),
    onBehalfOf: Type.Optional(
      Type.String({ description: 'Of a program that a person allowed: the name of the person or the client.' }),
    ),
    issuer: Type.Optional(Type.String({ description: "Of a person: the address of the company's OpenID provider." })),
    subject: Type.Optional(Type.String({ description: 'Of a person: what the provider knows them by.' })),
    address: Type.Optional(
      Type.String({ description: 'The network address that the request came from. Of refusals and reads the last.' }),
    ),
    program: Type.Optional(
      Type.String({ description: 'The browser or program, as its `User-Agent` names it: at most 200 characters.' }),
    ),
    session: Type.Optional(
      Type.String({ description: 'Of the console: the same for a sign-in and the end of its session.' }),
    ),
    details: Type.Record(Type.String(), Type.Union([Type.String(), Type.Integer()]), {
      description:
        '`by` of a sign-in: secret, link, account; of a session that was ended, or a client or a key: who ended, made, narrowed, rotated or revoked it, ' +
        'with the id of their client as `byClient`, which an operator has none of. `why` of a refusal: secret, revoked; where a session, a client, a key or a grant of a person was ended: rules, provider; ' +
        'of clients, keys and grants also `session`, where somebody ended the session; of grants also signed_out, expired, too_many, program (the program ended it), ' +
        'code and reuse (a code or refresh token was used twice). `redirect` of a grant: the host to which its person was sent back. `scope` of a new or narrowed client, link or key. `changed`: what was narrowed. `job`, ' +
        '`format` and `bytes` of an export. `subject` of viewer tokens: who looks. Of reads how many requests read what: `changelogs`, `histogram`, `names`, ' +
        '`mcp`, `viewer` and so on, as the path calls it.',
    }),
    count: Type.Integer({
      minimum: 1,
      description: 'How many refusals or reads there were in that hour, or viewer tokens on that day. Otherwise 1.',
    }),
  },
  {
    $id: 'Access',
    examples: [
      {
        id: '065b2f0a1c3d40-5f2c9a7be01d3344',
        at: '2026-09-01T09:30:00.000Z',
        kind: 'export_downloaded',
        client: 'acme.9f3c5d1e7a2b4c6d8e0f',
        name: 'Jane Doe',
        issuer: 'https://login.example.com',
        subject: 'u-1',
        address: '203.0.113.7',
        program: 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
        details: { job: '7c2f6f0e-35a0-4b4a-9a55-1f6f2c0d8e21', format: 'CSV', bytes: 18230 },
        count: 1,
      },
    ],
  },
);

const AccessItem = listItem('AccessItem', Access);

/** Sign-ins, refusals, reads and exports of a tenant (contract 18). */
export async function accessRoutes(
  app: HttpServer,
  { documents, paginator }: { documents: DocumentLists; paginator: Paginator },
): Promise<void> {
  listRoutes(app, paginator, {
    path: '/changelog/:tenant/accesses',
    params: AccessesPath,
    tags: ['Accesses'],
    name: 'Accesses',
    many: 'accesses',
    item: AccessItem,
    scopes: ['changelog.access_read'],
    page: ({ credentials: { tenant } }, query, page) => documents.page(accessRows(tenant), query, page),
  });
}

// Milliseconds.
const dropEvery = 60 * 60_000;

/** Deletes old accesses while the server listens. */
export async function accessUpkeep(app: HttpServer, { db }: { db: Database }): Promise<void> {
  whileListening(app, {
    upkeep: [{ what: 'the upkeep of accesses', every: dropEvery, work: () => dropOldAccesses(db) }],
  });
}
