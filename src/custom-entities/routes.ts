import type { HttpServer } from '../http/http-server.ts';
import type { Paginator } from '../pagination/paginator.ts';
import { instanceRoutes } from './instance-routes.ts';
import type { CustomEntities } from './service.ts';
import { typeRoutes } from './type-routes.ts';

export interface CustomEntityRoutesOptions {
  customEntities: CustomEntities;
  paginator: Paginator;
}

/** Custom entities (contract 9), their lists and searches paged (spec D). */
export async function customEntityRoutes(app: HttpServer, options: CustomEntityRoutesOptions): Promise<void> {
  await app.register(typeRoutes, options);
  await app.register(instanceRoutes, options);
}
