import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { authorOf } from '../../http/credentials.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { optionalBody } from '../../http/json-body.ts';
import { json, jsonText, jsonType, noContent } from '../../http/openapi/answers.ts';
import { documentRoutes } from '../../http/openapi/document-routes.ts';
import { listRoutes } from '../../http/openapi/list-routes.ts';
import { insufficientScopes, mayReadHistory, type Scope } from '../../http/scopes.ts';
import type { Paginator } from '../../pagination/paginator.ts';
import {
  AttemptItem,
  AttemptPath,
  PreviewQuery,
  ReplayBody,
  ResumeBody,
  RotatedKey,
  ShownRequest,
  SubscriptionCreated,
  SubscriptionPath,
  SubscriptionsPath,
  subscriptionSchemas,
  type TargetSchemas,
  TestResult,
} from './schemas.ts';
import type { Subscriptions } from './service.ts';
import type { Maker } from './write-subscriptions.ts';

const tags = ['Subscriptions'];
const neverCompressed = 'addresses of targets, and what targets answer, can be secrets';
const writing: readonly Scope[] = ['changelog.subscription_manage'];
const reading: readonly Scope[] = ['changelog.subscription_read', ...writing];
const path = '/changelog/:tenant/subscriptions';

/** What would have been sent. */
const Preview = Type.Object(
  {
    items: Type.Array(Type.Unknown(), { description: 'Change entries, the oldest first.' }),
    cursor: Type.String({ description: 'Where the reading stands, for `after`.' }),
    caughtUp: Type.Boolean({ description: 'Whether nothing more has been recorded.' }),
  },
  { $id: 'SubscriptionPreview', examples: [{ items: [], cursor: 'AUYx', caughtUp: true }] },
);

export async function subscriptionRoutes(
  app: HttpServer,
  { subscriptions, paginator, targets }: { subscriptions: Subscriptions; paginator: Paginator; targets: TargetSchemas },
): Promise<void> {
  const { Body, Shown, Item } = subscriptionSchemas(targets);

  listRoutes(app, paginator, {
    path,
    params: SubscriptionsPath,
    tags,
    name: 'Subscriptions',
    many: 'subscriptions',
    neverCompressed,
    item: Item,
    scopes: reading,
    page: ({ credentials: { tenant } }, query, options) => subscriptions.list(tenant, query, options),
  });

  app.post(
    path,
    {
      config: { scopes: writing, errors: ['conflict_resource'] },
      schema: {
        operationId: 'createSubscription',
        tags,
        summary: 'Creating a subscription',
        params: SubscriptionsPath,
        body: Body,
        response: {
          201: json(SubscriptionCreated, { description: 'The subscription was created.', headers: ['Location'] }),
        },
      },
    },
    async (request, reply) => {
      const { tenant } = request.params;
      const created = await subscriptions.create(makerOf(request), request.body);
      return await reply.code(201).header('location', `/changelog/${tenant}/subscriptions/${created.id}`).send(created);
    },
  );

  documentRoutes(app, {
    path: `${path}/:id`,
    params: SubscriptionPath,
    tags,
    name: 'Subscription',
    singular: 'subscription',
    read: {
      neverCompressed,
      scopes: reading,
      schema: Shown,
      find: ({ params: { tenant, id } }) => subscriptions.find(tenant, id),
    },
    put: {
      scopes: writing,
      errors: ['conflict_resource', 'resource_not_found'],
      body: Body,
      replacesOnly: true,
      async put({ params, request }) {
        const body = request.body as Parameters<Subscriptions['replace']>[2];
        await subscriptions.replace(makerOf(request), params.id, body);
        return 'replaced';
      },
    },
    remove: { scopes: writing, remove: ({ params, author }) => subscriptions.remove(author, params.id) },
  });

  actionRoutes(app, subscriptions);

  listRoutes(app, paginator, {
    path: `${path}/:id/attempts`,
    params: SubscriptionPath,
    tags,
    name: 'SubscriptionAttempts',
    many: 'attempts',
    neverCompressed,
    item: AttemptItem,
    scopes: reading,
    errors: ['resource_not_found'],
    of: (params) => idOf(params),
    page: ({ params, credentials: { tenant } }, query, options) =>
      subscriptions.attempts(tenant, idOf(params), query, options),
  });

  app.get(
    `${path}/:id/attempts/:attempt/request`,
    {
      config: { scopes: reading, errors: ['resource_not_found', 'conflict_resource'] },
      schema: {
        operationId: 'getSentRequest',
        tags,
        summary: 'Showing what an attempt of a webhook sent',
        description:
          "Rebuilt from the history with today's masks, erasures and settings, since it is never stored. Also requires a scope that " +
          'reads the change history.',
        params: AttemptPath,
        response: { 200: json(ShownRequest, { description: 'The request, without secrets.' }) },
      },
    },
    async (request) => {
      const { scopes } = request.credentials;
      if (!mayReadHistory(scopes)) throw insufficientScopes();
      const { tenant, id, attempt } = request.params;
      return await subscriptions.sentRequest(tenant, id, Number(attempt), { scopes });
    },
  );

  app.get(
    `${path}/:id/preview`,
    {
      config: { scopes: reading, errors: ['resource_not_found', 'cursor_invalid'] },
      schema: {
        operationId: 'previewSubscription',
        tags,
        summary: 'Showing what a subscription would have sent in the last day',
        description:
          'Also requires a scope that reads the change history. Values are not masked: these are the entries, with what the ' +
          'subscription shows of who made them.',
        params: SubscriptionPath,
        querystring: PreviewQuery,
        response: { 200: jsonText(Preview, { description: 'The changes of the last day that match.' }) },
      },
    },
    async (request, reply) => {
      if (!mayReadHistory(request.credentials.scopes)) throw insufficientScopes();
      const { tenant, id } = request.params;
      const { after, limit = 100 } = request.query;
      const { items, cursor, caughtUp } = await subscriptions.preview(tenant, id, {
        after,
        limit,
        scopes: request.credentials.scopes,
      });
      const texts = items.map(({ text }) => text).join(',');
      return await reply.type(jsonType).send(`{"items":[${texts}],"cursor":"${cursor}","caughtUp":${caughtUp}}`);
    },
  );
}

function actionRoutes(app: HttpServer, subscriptions: Subscriptions): void {
  const described = { tags, params: SubscriptionPath };

  app.post(
    `${path}/:id/test`,
    {
      // A target may use the whole timeout of a request.
      config: { scopes: writing, work: 'calls', errors: ['resource_not_found'] },
      schema: {
        operationId: 'testSubscription',
        ...described,
        summary: 'Sending a sample that is marked as one',
        response: { 200: json(TestResult, { description: 'What the target answered.' }) },
      },
    },
    async ({ params: { tenant, id } }) => await subscriptions.test(tenant, id),
  );

  app.post(
    `${path}/:id/pause`,
    {
      config: { scopes: writing, errors: ['resource_not_found'] },
      schema: {
        operationId: 'pauseSubscription',
        ...described,
        summary: 'Pausing a subscription',
        response: { 204: noContent('Nothing more is sent but what is on its way.') },
      },
    },
    async ({ params: { tenant, id } }, reply) => {
      await subscriptions.pause(tenant, id);
      return await reply.code(204).send();
    },
  );

  app.post(
    `${path}/:id/resume`,
    {
      preValidation: optionalBody,
      config: { scopes: writing, errors: ['resource_not_found', 'conflict_resource', 'cursor_invalid'] },
      schema: {
        operationId: 'resumeSubscription',
        ...described,
        summary: 'Resuming a subscription where it stopped',
        description: 'Also requires a scope that reads the change history.',
        body: ResumeBody,
        response: { 204: noContent('The subscription is running.') },
      },
    },
    async (request, reply) => {
      makerOf(request);
      const { tenant, id } = request.params;
      await subscriptions.resume(tenant, id, request.body.from);
      return await reply.code(204).send();
    },
  );

  app.post(
    `${path}/:id/replay`,
    {
      config: { scopes: writing, errors: ['resource_not_found', 'conflict_resource', 'cursor_invalid'] },
      schema: {
        operationId: 'replaySubscription',
        ...described,
        summary: 'Sending changes once more',
        description:
          'Sends what was recorded from `from` on and before `to` (default: until now) once more, beside the live changes. Or it sends ' +
          'what is parked. Also requires a scope that reads the change history.',
        body: ReplayBody,
        response: { 204: noContent('The replay begins.') },
      },
    },
    async (request, reply) => {
      makerOf(request);
      const { tenant, id } = request.params;
      await subscriptions.replay(tenant, id, request.body);
      return await reply.code(204).send();
    },
  );

  app.post(
    `${path}/:id/rotate`,
    {
      config: { scopes: writing, errors: ['resource_not_found', 'conflict_resource'] },
      schema: {
        operationId: 'rotateSubscriptionKey',
        ...described,
        summary: 'Making a new key for signatures',
        description: 'The key before it signs as well for 24 hours.',
        response: { 200: json(RotatedKey, { description: 'The new key, which is shown this once.' }) },
      },
    },
    async (request) => await subscriptions.rotate(authorOf(request), request.params.id),
  );

  app.delete(
    `${path}/:id/parked`,
    {
      config: { scopes: writing, errors: ['resource_not_found'] },
      schema: {
        operationId: 'deleteParkedChanges',
        ...described,
        summary: 'Deleting what is parked',
        response: { 204: noContent('Nothing is parked.') },
      },
    },
    async ({ params: { tenant, id } }, reply) => {
      await subscriptions.dropParked(tenant, id);
      return await reply.code(204).send();
    },
  );
}

function idOf(params: unknown): string {
  return (params as { id: string }).id;
}

/** Receiving changes of the history requires a scope that reads it. */
function makerOf(request: Pick<FastifyRequest, 'credentials' | 'id'>): Maker {
  const { scopes, clientId } = request.credentials;
  if (!mayReadHistory(scopes)) throw insufficientScopes();
  return { ...authorOf(request), clientId, scopes };
}
