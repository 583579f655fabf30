import type { HttpServer } from '../../http/http-server-type.ts';
import { json } from '../../http/openapi/answers.ts';
import { ModelList, ModelsPath } from './read-models.ts';

/** Lists models (spec B). */
export async function modelRoutes(app: HttpServer, { models }: { models: ModelList }): Promise<void> {
  // Serialized once, because the list never changes at runtime.
  const text = JSON.stringify(models);
  app.get(
    '/ai-service/:tenant/agentic/models',
    {
      config: { scopes: ['ai.agent_read', 'ai.agent_manage'] },
      schema: {
        operationId: 'listModels',
        tags: ['Models'],
        summary: 'Listing models',
        params: ModelsPath,
        response: { 200: json(ModelList, { description: 'The models, by provider.' }) },
      },
    },
    async (_request, reply) => {
      reply.type('application/json; charset=utf-8').serializer(() => text);
      return models;
    },
  );
}
