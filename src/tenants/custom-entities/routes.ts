import type { HttpServer } from '../../http/http-server-type.ts';
import { instanceRoutes } from './instance-routes.ts';
import type { CustomEntityRoutesOptions } from './route-options.ts';
import { typeRoutes } from './type-routes.ts';

/** Custom entities (contract 9), with paging for their lists and searches (spec D). */
export async function customEntityRoutes(app: HttpServer, options: CustomEntityRoutesOptions): Promise<void> {
  await app.register(typeRoutes, options);
  await app.register(instanceRoutes, options);
}
