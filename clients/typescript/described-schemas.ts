import { buildApp, buildRecorderApp } from '../../src/app.ts';
import type { Context } from '../../src/context/context.ts';
import { readConfig } from '../../src/core/config/config.ts';
import { createLogger } from '../../src/http/logger.ts';

export interface DescribedSchemas {
  openapi: string;
  info: object;
  components: { schemas: Readonly<Record<string, unknown>> };
}

/** Stands for all services of a process: to describe operations, none of them is called. */
const uncalled: unknown = new Proxy(() => uncalled, {
  get: (_target, name) => (name === 'then' ? undefined : uncalled),
});

/**
 * An OpenAPI document with the schemas of the service and of the recorder, and no operations: the client names its own
 * parameters, and the schemas alone make a package of a third of the size. Needs no database.
 */
export async function describedSchemas(): Promise<object> {
  const known = {
    authorizationServer: undefined,
    completions: {},
    webConsole: { folder: import.meta.dirname },
    config: readConfig({}),
    logger: createLogger('silent'),
    metrics: undefined,
    tenantRate: undefined,
    tracer: undefined,
  };
  const context = new Proxy(known, {
    get: (target, name) => (name in target ? Reflect.get(target, name) : uncalled),
  }) as unknown as Context;
  const service = await buildApp(context);
  const recorder = await buildRecorderApp(context, { mapping: undefined });
  const document: DescribedSchemas = JSON.parse(service.openApiText());
  const ofRecorder: DescribedSchemas = JSON.parse(recorder.openApiText());
  return schemasOf(document, ofRecorder);
}

/** The schemas of both documents by name. */
export function schemasOf({ openapi, info, components }: DescribedSchemas, ofRecorder: DescribedSchemas): object {
  const named = Object.entries({ ...ofRecorder.components.schemas, ...components.schemas });
  const schemas = Object.fromEntries(named.sort(([one], [other]) => (one < other ? -1 : 1)));
  return { openapi, info, paths: {}, components: { schemas } };
}
