import type { FastifyRequest } from 'fastify';
import { type Static, type TObject, type TSchema, Type } from 'typebox';
import { shownActors, writtenActors } from '../../http/body-members.ts';
import { nameRules, TenantName } from '../../http/chosen-id.ts';
import { callerOf } from '../../http/credentials.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { json, noContent } from '../../http/openapi/answers.ts';
import { listItem } from '../../http/openapi/components.ts';
import { documentRoutes } from '../../http/openapi/document-routes.ts';
import { listRoutes } from '../../http/openapi/list-routes.ts';
import { type Scope, scopes } from '../../http/scopes.ts';
import type { DocumentLists, Paginator } from '../../pagination/paginator.ts';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import {
  type Acting,
  type Administration,
  maxCredentials,
  maxLifetime,
  maxLifetimeOfPerson,
  maxMakers,
  maxParts,
  type Narrowing,
  type NewCredential,
} from './administration.ts';
import { keyScopes, maxKeyRate, maxModels } from './key-store.ts';

const TenantPath = Type.Object({ tenant: TenantName });
const CredentialPath = Type.Object({ tenant: TenantName, id: Type.String({ description: 'As lists show it.' }) });

const managing: readonly Scope[] = ['access.credential_manage'];
const viewing: readonly Scope[] = ['access.credential_view', ...managing];

const scopesOf = (allowed: readonly Scope[], description: string) =>
  Type.Array(Type.Enum([...allowed], { type: 'string' }), {
    minItems: 1,
    maxItems: allowed.length,
    uniqueItems: true,
    description,
  });

const restricting = {
  query: Type.Optional(
    Type.String({
      description:
        'A query of the change history without a regular expression: only changes that match are shown. With `query`, `hide` or `actors`, ' +
        'the scopes can only be `changelog.changelog_read` and, of a client, `changelog.viewer_issue`.',
    }),
  ),
  hide: Type.Optional(Type.Array(Type.String(), { minItems: 1, description: 'Paths whose values are masked.' })),
  actors: Type.Optional(
    writtenActors(
      'What is shown of who made changes. `names` or `true` (default with `query` or `hide`): the name of the actor. `all`: also `actorId`, ' +
        '`onBehalfOf` and `correlationId`. `false`: nothing.',
    ),
  ),
};
const expiresIn = Type.Integer({
  minimum: 60,
  maximum: maxLifetime,
  description:
    'Seconds until it expires, at most those of its maker. What a person makes expires after ' +
    `${maxLifetimeOfPerson} seconds (90 days) at most. Default: with its maker, if that expires.`,
});
const models = Type.Array(Type.String(), {
  minItems: 1,
  maxItems: maxModels,
  description:
    'The models that it may call, as `openai/gpt-5`. Needs `ai.completion_manage`. Default: those of the tenant.',
});
const rate = Type.Integer({
  minimum: 1,
  maximum: maxKeyRate,
  description: 'Requests per second over all processes; more get 429. Default: the limit of the tenant.',
});
const user = Type.String({
  ...nameRules,
  description:
    'The end user of its calls of models, and of no others: a call that names another user is 403. Budgets of users limit the calls of such ' +
    'keys. Needs `ai.completion_manage`; not `*`. Default: whom the calls name.',
});
const name = Type.String({
  ...nameRules,
  description: 'The actor of its changes. It must not be in use by another client, key or person. Default: the id.',
});

const Part = Type.Object(
  {
    query: Type.String(),
    hide: Type.Array(Type.String()),
    actors: Type.Optional(shownActors('Left out: names.')),
  },
  { $id: 'CredentialRestriction', examples: [{ query: 'entity:order', hide: ['payment.card'] }] },
);
const Maker = Type.Object(
  {
    client: Type.String({ description: 'The id of the client: of a person, that of the session.' }),
    name: Type.Optional(Type.String()),
    issuer: Type.Optional(Type.String({ description: "Of a person: the address of the company's OpenID provider." })),
    subject: Type.Optional(Type.String({ description: 'Of a person: what the provider knows them by.' })),
  },
  { $id: 'CredentialMaker', examples: [{ client: 'acme.9f3c5d1e7a2b4c6d8e0f', name: 'Jane Doe' }] },
);

const shown = {
  name: Type.String(),
  scopes: Type.Array(Type.String(), { description: 'Those that all of its makers still have.' }),
  restriction: Type.Optional(
    Type.Array(Part, {
      description:
        'What it sees of the change history: what all of these show, those of its makers first. Each part applies to what the parts before it show. Left out: all that its scopes permit.',
    }),
  ),
  madeBy: Type.Optional(Maker),
  state: Type.Enum(['active', 'revoked', 'expired', 'ended'], {
    type: 'string',
    description: '`ended`: with a client that made it.',
  }),
  createdAt: Type.String({ format: 'date-time' }),
  expiresAt: Type.Optional(Type.String({ format: 'date-time' })),
  revokedAt: Type.Optional(Type.String({ format: 'date-time' })),
  usedAt: Type.Optional(Type.String({ format: 'date-time', description: 'The last request, to the minute.' })),
  usedAddress: Type.Optional(Type.String({ description: 'The network address of that request.' })),
};
const example = {
  name: 'Billing',
  scopes: ['changelog.changelog_read'],
  restriction: [{ query: 'entity:invoice', hide: ['iban'] }],
  madeBy: { client: 'acme.9f3c5d1e7a2b4c6d8e0f', name: 'Jane Doe' },
  state: 'active',
  createdAt: '2026-09-01T09:30:00.000Z',
  expiresAt: '2026-11-30T09:30:00.000Z',
  usedAt: '2026-09-02T07:12:00.000Z',
  usedAddress: '203.0.113.7',
};

const clientId = Type.String({ description: 'The `client_id` of the token endpoint.' });
const clientExample = { id: 'acme.5b1f0c2d3e4f5a6b7c8d', ...example };
const Client = Type.Object({ id: clientId, ...shown }, { $id: 'Client', examples: [clientExample] });
const ClientWithSecret = Type.Object(
  { id: clientId, ...shown, clientSecret: Type.String({ description: 'Shown this once.' }) },
  { $id: 'ClientWithSecret', examples: [{ ...clientExample, clientSecret: 'F8v2…' }] },
);
const clientScopes = scopesOf(scopes, 'No wider than those of the caller.');
const NewClient = Type.Object(
  { name: Type.Optional(name), scopes: clientScopes, ...restricting, expiresIn: Type.Optional(expiresIn) },
  {
    $id: 'NewClient',
    additionalProperties: false,
    examples: [{ name: 'Billing', scopes: ['changelog.changelog_read'], query: 'entity:invoice', hide: ['iban'] }],
  },
);
const narrowed = 'Those that stay: some of those that it has.';
const ClientNarrowing = Type.Object(
  { scopes: Type.Optional(scopesOf(scopes, narrowed)), ...restricting, expiresIn: Type.Optional(expiresIn) },
  { $id: 'ClientNarrowing', additionalProperties: false, minProperties: 1, examples: [{ hide: ['customer.email'] }] },
);

const ofKeys = {
  models: Type.Optional(Type.Array(Type.String())),
  rate: Type.Optional(Type.Integer({ description: 'Requests per second.' })),
  user: Type.Optional(Type.String({ description: 'The end user of its calls of models.' })),
};
const keyExample = { id: '0Vt3kQ8uXb2LrY6n', ...example, rate: 5 };
const Key = Type.Object({ id: Type.String(), ...shown, ...ofKeys }, { $id: 'Key', examples: [keyExample] });
const KeyWithSecret = Type.Object(
  { id: Type.String(), ...shown, ...ofKeys, key: Type.String({ description: 'Shown this once.' }) },
  { $id: 'KeyWithSecret', examples: [{ ...keyExample, key: 'annals_0Vt3kQ8uXb2LrY6n_…' }] },
);
const limits = { expiresIn: Type.Optional(expiresIn), models: Type.Optional(models), rate: Type.Optional(rate) };
const NewKey = Type.Object(
  {
    name: Type.Optional(name),
    scopes: scopesOf(keyScopes, 'No wider than those of the caller.'),
    ...restricting,
    ...limits,
    user: Type.Optional(user),
  },
  {
    $id: 'NewKey',
    additionalProperties: false,
    examples: [{ name: 'Claude of Jane', scopes: ['changelog.changelog_read'], expiresIn: 7_776_000 }],
  },
);
const KeyNarrowing = Type.Object(
  { scopes: Type.Optional(scopesOf(keyScopes, narrowed)), ...restricting, ...limits },
  { $id: 'KeyNarrowing', additionalProperties: false, minProperties: 1, examples: [{ rate: 2 }] },
);

/** Locks the sessions of the request's person. */
type LockPerson = (transaction: DatabaseTransaction, request: FastifyRequest, how: { makes: boolean }) => Promise<void>;

interface CredentialRoutesOptions {
  administration: Administration;
  documents: DocumentLists;
  paginator: Paginator;
  lockPerson: LockPerson;
}

/** What differs between clients and keys. */
interface Collection {
  readonly of: Administration['clients'];
  readonly path: string;
  readonly noun: 'client' | 'key';
  readonly Noun: 'Client' | 'Key';
  readonly item: TObject;
  readonly created: TObject;
  readonly body: TSchema;
  readonly narrowing: TSchema;
  readonly stops: string;
}

/** Clients and keys, administered without a command line (contract 18). */
export async function credentialRoutes(app: HttpServer, options: CredentialRoutesOptions): Promise<void> {
  const { clients, keys } = options.administration;
  collectionRoutes(app, options, {
    of: clients,
    path: '/access/:tenant/clients',
    noun: 'client',
    Noun: 'Client',
    item: Client,
    created: ClientWithSecret,
    body: NewClient,
    narrowing: ClientNarrowing,
    stops:
      'The secret, the tokens that it got, and the sessions of the console that began with it, but for that of the request,',
  });
  collectionRoutes(app, options, {
    of: keys,
    path: '/access/:tenant/keys',
    noun: 'key',
    Noun: 'Key',
    item: Key,
    created: KeyWithSecret,
    body: NewKey,
    narrowing: KeyNarrowing,
    stops: 'The secret before it',
  });
}

function collectionRoutes(
  app: HttpServer,
  { documents, paginator, lockPerson }: CredentialRoutesOptions,
  { of, path, noun, Noun, item, created, body, narrowing, stops }: Collection,
): void {
  const tags = ['Credentials'];
  const acting = (request: FastifyRequest): Acting => ({
    credentials: request.credentials,
    caller: callerOf(request),
    lockPerson: (transaction, how) => lockPerson(transaction, request, how),
  });
  const described = { tags, params: CredentialPath };

  listRoutes(app, paginator, {
    path,
    params: TenantPath,
    tags,
    name: `${Noun}s`,
    many: `${noun}s`,
    item: listItem(`${Noun}Item`, item),
    scopes: viewing,
    page: ({ credentials: { tenant } }, query, page) => documents.page(of.rows(tenant), query, page),
  });

  app.post(
    path,
    {
      config: { scopes: managing, errors: ['conflict_resource'] },
      schema: {
        operationId: `create${Noun}`,
        tags,
        summary: `Making a ${noun}`,
        description:
          `It has at most the rights of the caller, and ends within 5 seconds of the caller's end. A tenant has at most ${maxCredentials} ` +
          `active ${noun}s; a client that was made through ${maxMakers} others makes no more. Without a person's refresh token, they make none.`,
        params: TenantPath,
        body,
        response: {
          201: json(created, { description: `The ${noun}. Its secret is shown this once.`, headers: ['Location'] }),
        },
      },
    },
    async (request, reply) => {
      const made = (await of.make(acting(request), request.body as NewCredential)) as { id: string };
      const { tenant } = request.credentials;
      return await reply
        .code(201)
        .header('cache-control', 'no-store')
        .header('location', `/access/${tenant}/${noun}s/${made.id}`)
        .send(made as Static<typeof created>);
    },
  );

  documentRoutes(app, {
    path: `${path}/:id`,
    params: CredentialPath,
    tags,
    name: Noun,
    singular: noun,
    read: { scopes: viewing, schema: item, find: ({ params: { tenant, id } }) => of.find(tenant, id) },
    remove: {
      scopes: managing,
      summary: `Revoking a ${noun}`,
      remove: ({ params: { id }, request }) => of.revoke(acting(request), id),
    },
  });

  app.patch(
    `${path}/:id`,
    {
      config: { scopes: managing, errors: ['resource_not_found', 'conflict_resource'] },
      schema: {
        operationId: `narrow${Noun}`,
        ...described,
        summary: `Narrowing a ${noun}`,
        description:
          'Rights can only be removed: anything else is refused. `query` and `hide` are added to those that there are, ' +
          `${maxParts} times at most. It takes effect within 5 seconds, on tokens that were issued before, too.`,
        body: narrowing,
        response: { 204: noContent(`The ${noun} is narrowed.`) },
      },
    },
    async (request, reply) => {
      const { tenant, id } = request.params;
      await of.narrow(tenant, id, request.body as Narrowing, acting(request));
      return await reply.code(204).send();
    },
  );

  app.post(
    `${path}/:id/rotate`,
    {
      config: { scopes: managing, errors: ['resource_not_found', 'conflict_resource'] },
      schema: {
        operationId: `rotate${Noun}`,
        ...described,
        summary: `Replacing the secret of a ${noun}`,
        description:
          `${stops} stop within 5 seconds. The caller needs all of its scopes, and it must end with the caller: one that ` +
          'the caller made, or that such a client made, or the caller itself.',
        response: { 200: json(created, { description: `The ${noun} with its new secret, which is shown this once.` }) },
      },
    },
    async (request, reply) => {
      const { tenant, id } = request.params;
      const { shown: rotated, secret } = await of.rotate(tenant, id, acting(request));
      return await reply.header('cache-control', 'no-store').send({ ...rotated, ...secret } as Static<typeof created>);
    },
  );
}
